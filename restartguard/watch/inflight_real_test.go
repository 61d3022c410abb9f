package watch_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/internal/lab/labtest"
	"redlockctl/redlock"
	"redlockctl/restartguard"
	"redlockctl/restartguard/watch"
)

// deadly is CLIENT KILL ID and the id, as it travels.
var deadly = regexp.MustCompile(`(?i)\$4\r\nkill\r\n\$2\r\nid\r\n\$\d+\r\n(\d+)\r\n`)

// strayConn is a connection of a guard on which something happens just before
// its first lift, and where orders to end connections may miss.
type lateConn struct {
	net.Conn
	before func()
	misses bool
}

func (c lateConn) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte(removeText)) {
		c.before()
	}
	if m := deadly.FindSubmatchIndex(b); c.misses && m != nil {
		b = bytes.Clone(b)
		for at := range b[m[2]:m[3]] {
			b[m[2]+at] = '9' // which no connection has
		}
	}
	return c.Conn.Write(b)
}

// TestAStrayLiftOpensNothing lets the network hold up a lift, which the guard
// gives up and sends again. The master is opened, flushed and closed again, and
// then the first lift arrives.
func TestALateRemovalChangesNothing(t *testing.T) {
	const d = 2 * time.Second
	for _, successor := range []bool{false, true} {
		for _, misses := range []bool{false, true} {
			t.Run(fmt.Sprintf("guard killed %v, connection ended %v", successor, !misses), func(t *testing.T) {
				t.Parallel()
				s, dir := fenced(t), t.TempDir()
				proxy := labtest.NewProxy(t, s)
				var once sync.Once
				var release func()
				stranded := make(chan struct{})
				node := named(t, redis.Options{Addr: proxy.Node().Addr(), Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
					c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
					return lateConn{c, func() {
						once.Do(func() { release = proxy.Strand(labtest.ToServer); close(stranded) })
					}, misses}, err
				}})
				m := openMemory(t, dir)
				cfg := watch.Config{Delay: d, Timeout: 100 * time.Millisecond, Memory: m}
				g := guard(t, cfg, node)
				g.reaches(restartguard.PhaseServing)
				restart(t, s)
				<-stranded
				defer release()
				if successor {
					g.stop()
					_ = m.Close()
					cfg.Memory = openMemory(t, dir)
					m = cfg.Memory
					g = guard(t, cfg, node)
				}
				defer func() { g.stop(); _ = m.Close() }()
				g.reaches(restartguard.PhaseServing)
				if !writes(t, s) {
					t.Fatal("the second lift did not arrive")
				}
				do(t, s, "FLUSHALL")
				until := g.becomes("closed and proven", func(st restartguard.NodeStatus) bool {
					return st.Phase == restartguard.PhaseFenced && st.Proven
				}).Until
				release()
				opened := false
				for !opened && time.Until(until) > 100*time.Millisecond {
					opened = writes(t, s) && time.Now().Before(until) // a busy machine answers late
					time.Sleep(time.Millisecond)
				}
				if opened != misses {
					t.Fatalf("opened inside D: %v", opened)
				}
			})
		}
	}
}

// TestALiftOfAnotherGuardFromBeforeALossOpensNothing lets the network hold up the lift of
// one guard, while another opens the master, and closes it again for a flush. Where the
// first guard's connection is not ended, its lift opens the master inside D.
func TestARemovalOfAnotherGuardFromBeforeALossChangesNothing(t *testing.T) {
	const d = 2 * time.Second
	for _, misses := range []bool{false, true} {
		t.Run(fmt.Sprintf("connection ended %v", !misses), func(t *testing.T) {
			t.Parallel()
			s := fenced(t)
			proxy := labtest.NewProxy(t, s)
			var once sync.Once
			stranded := make(chan func(), 1)
			dialer := func(before func(), misses bool) func(context.Context, string, string) (net.Conn, error) {
				return func(ctx context.Context, network, addr string) (net.Conn, error) {
					c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
					return lateConn{c, before, misses}, err
				}
			}
			slow := named(t, redis.Options{Addr: proxy.Node().Addr(), Dialer: dialer(func() {
				once.Do(func() { stranded <- proxy.Strand(labtest.ToServer) })
			}, false)})
			quick := named(t, redis.Options{Addr: s.Addr(), Dialer: dialer(func() {}, misses)})
			first := guard(t, watch.Config{Delay: d, Timeout: 10 * time.Second}, slow)
			first.reaches(restartguard.PhaseServing)
			restart(t, s)
			first.reaches(restartguard.PhaseFenced)
			release := <-stranded
			second := guard(t, watch.Config{Delay: d}, quick) // its D begins a moment later
			defer second.stop()
			defer first.stop()
			defer release()
			second.reaches(restartguard.PhaseServing)
			do(t, s, "FLUSHALL")
			until := second.becomes("closed and proven", func(st restartguard.NodeStatus) bool {
				return st.Phase == restartguard.PhaseFenced && st.Proven
			}).Until
			release()
			opened := false
			for !opened && time.Until(until) > 100*time.Millisecond {
				opened = writes(t, s) && time.Now().Before(until) // a busy machine answers late
				time.Sleep(time.Millisecond)
			}
			if opened != misses {
				t.Fatalf("opened inside D: %v", opened)
			}
		})
	}
}

// TestAnEarlierGuardsConnectionsAreEnded looks at whose connections end when a
// guard starts: those of the guard that had its state directory, and nobody
// else's.
func TestAnEarlierGuardsConnectionsAreEnded(t *testing.T) {
	s, dir := labtest.Servers(t, 1)[0], t.TempDir()
	m := openMemory(t, dir)
	defer m.Close()
	mine, other := "redlockctl:guard:"+m.ID(), "redlockctl:guard:other"
	var conns []*redis.Client
	for _, name := range []string{mine, other, mine, "redlockctl:guard", mine + "x"} {
		c := redlock.ConnectOnce(s.Node(), time.Second)
		defer c.Close()
		if err := c.Do(t.Context(), "CLIENT", "SETNAME", name).Err(); err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
	}
	g := guard(t, watch.Config{Memory: m}, s.Node())
	g.reaches(restartguard.PhaseServing)
	for i, c := range conns {
		if alive, want := c.Ping(t.Context()).Err() == nil, i != 0 && i != 2; alive != want {
			t.Errorf("connection %d is alive: %v", i, alive)
		}
	}
	if list := fmt.Sprint(do(t, s, "CLIENT", "LIST")); !strings.Contains(list, " name="+mine+" ") {
		t.Errorf("the guard's own connection has no name: %s", list)
	}
	g.stop()
}

// TestWhereConnectionsCannotBeEnded: a guard that may not close connections reports it, and waits.
func TestWhereConnectionsCannotBeEnded(t *testing.T) {
	for name, rights := range map[string][]string{
		"neither id nor kill": {"-client"},
		"no kill":             {"-client|kill"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := fenced(t, aclUser(rights...)...)
			proxy := labtest.NewProxy(t, s)
			var once sync.Once
			stranded := make(chan func(), 1)
			node := named(t, redis.Options{Addr: proxy.Node().Addr(), Username: "guard", Password: "secret",
				Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
					c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
					return lateConn{c, func() { once.Do(func() { stranded <- proxy.Strand(labtest.ToServer) }) }, false}, err
				}})
			g := guard(t, watch.Config{Timeout: 100 * time.Millisecond}, node)
			g.reaches(restartguard.PhaseServing)
			restart(t, s)
			release := <-stranded
			gave := time.Now()
			notBefore(t, delay, gave, firstWrite(t, s))
			g.reaches(restartguard.PhaseServing)
			if text := g.tells("in-flight command"); !strings.Contains(text, "cannot be ruled out") {
				t.Fatalf("%q", text)
			}
			release()
		})
	}
}
