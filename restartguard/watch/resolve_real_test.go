package watch_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/net/dns/dnsmessage"

	"redlockctl/internal/lab"
	"redlockctl/internal/lab/labtest"
	"redlockctl/redlock"
	"redlockctl/restartguard"
	"redlockctl/restartguard/watch"
	"redlockctl/server/announce"
)

// atAName is a node by a name that leads to the first of two servers, through first, until another address is stored.
func atAName(t *testing.T) (servers []*lab.Server, first *forwarder, address *atomic.Value, n *redlock.Node) {
	t.Helper()
	servers = labtest.Servers(t, 2)
	first = forward(t, "127.0.0.2:0", servers[0].Addr())
	_, port, _ := net.SplitHostPort(first.Addr().String())
	forward(t, "127.0.0.3:"+port, servers[1].Addr())
	address = new(atomic.Value)
	address.Store(netip.MustParseAddr("127.0.0.2"))
	resolveBy(t, address)
	n, err := redlock.NewNode("n1", &redis.Options{Addr: "n1.redlock.test:" + port})
	if err != nil {
		t.Fatal(err)
	}
	return servers, first, address, n
}

// A master that comes back under its name at another address, empty, as a pod does, is
// found there: the guard fences it as one that has lost its locks, and lets it rejoin.
func TestANameMayResolveAnew(t *testing.T) {
	servers, first, address, n := atAName(t)
	c, err := redlock.New([]*redlock.Node{n}, redlock.Options{NodeTimeout: time.Second, Retries: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	g, err := watch.New([]*redlock.Node{n}, watch.Config{Delay: 300 * time.Millisecond, Poll: 20 * time.Millisecond, FirstContact: restartguard.AdoptYoung})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = g.Run(ctx) }()
	defer func() { stop(); <-ended }()
	until := func(what string, ok func() bool) {
		t.Helper()
		for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: %+v", what, g.Status())
			}
		}
	}
	until("the guard does not meet the node", g.Met)
	before := g.Status()[0].RunID
	if _, err := c.Acquire(ctx, "job", time.Minute); err != nil {
		t.Fatal(err)
	}

	address.Store(netip.MustParseAddr("127.0.0.3"))
	first.end()
	until("the guard does not find the node at its new address", func() bool {
		s := g.Status()[0]
		return s.RunID != "" && s.RunID != before
	})
	until("the node does not rejoin", func() bool { return g.Status()[0].Phase == restartguard.PhaseServing })
	until("no lock can be had at the new address", func() bool {
		l, err := c.Acquire(ctx, "job", time.Minute)
		return err == nil && l.Valid(time.Now())
	})
	if value, err := servers[1].Do(ctx, "EXISTS", "job"); err != nil || fmt.Sprint(value) != "1" {
		t.Errorf("the lock is not on the new server: %v, %v", value, err)
	}
}

// forwarder passes connections on to a server.
type forwarder struct {
	net.Listener
	mu    sync.Mutex
	conns []net.Conn
}

func forward(t *testing.T, at, to string) *forwarder {
	t.Helper()
	l, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	f := &forwarder{Listener: l}
	t.Cleanup(f.end)
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := (&net.Dialer{Resolver: new(net.Resolver)}).Dial("tcp", to)
			if err != nil {
				_ = in.Close()
				continue
			}
			f.mu.Lock()
			f.conns = append(f.conns, in, out)
			f.mu.Unlock()
			go func() { _, _ = io.Copy(out, in); _ = out.Close() }()
			go func() { _, _ = io.Copy(in, out); _ = in.Close() }()
		}
	}()
	return f
}

// end ends the listener and its connections, as when a pod is gone.
func (f *forwarder) end() {
	_ = f.Close()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.conns {
		_ = c.Close()
	}
}

// resolveBy answers every name with an address, for as long as the test runs.
func resolveBy(t *testing.T, address *atomic.Value) {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buf[:n]) != nil || len(m.Questions) == 0 {
				continue
			}
			m.Response, m.Additionals = true, nil
			if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
				m.Answers = []dnsmessage.Resource{{
					Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
					Body:   &dnsmessage.AResource{A: address.Load().(netip.Addr).As4()},
				}}
			}
			if out, err := m.Pack(); err == nil {
				_, _ = conn.WriteTo(out, from)
			}
		}
	}()
	before := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
	t.Cleanup(func() { net.DefaultResolver = before; _ = conn.Close() })
}

// A name that leads to another server while the former one lives: no connection
// breaks, and the guard finds the new server all the same. For how long that served
// nobody knows.
func TestANameThatMovesWhileTheOldServerLives(t *testing.T) {
	servers, _, address, n := atAName(t)
	g := guard(t, watch.Config{Delay: 2 * time.Second}, n)
	before := g.reaches(restartguard.PhaseServing).RunID

	address.Store(netip.MustParseAddr("127.0.0.3"))
	began := time.Now()
	g.becomes("fenced at its new address", func(s restartguard.NodeStatus) bool {
		return s.RunID != before && s.Phase == restartguard.PhaseFenced
	})
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("seen after %s", took)
	}
	g.tells("moved")
	if text := g.tells("fenced"); !strings.Contains(text, "not known") || g.Status()[0].Exposed != 0 {
		t.Errorf("claims to know for how long it served: %q", text)
	}
	// The guard is seen where the name leads to.
	if !wait(func() bool {
		all, _ := do(t, servers[1], "PUBSUB", "CHANNELS", announce.Pattern).([]any)
		return len(all) > 0
	}) {
		t.Error("it does not announce itself on the new server")
	}
}

// An address has no name that could lead elsewhere.
func TestHostOf(t *testing.T) {
	for addr, want := range map[string]string{
		"redis-1.example.com:6379": "redis-1.example.com", "localhost:1": "localhost",
		"10.0.0.1:6379": "", "[::1]:6379": "", "[fe80::1%eth0]:6379": "", "/run/redis.sock": "", ":6379": "",
	} {
		if got := watch.HostOf(addr); got != want {
			t.Errorf("%s: %q", addr, got)
		}
	}
}
