package watch_test

import (
	"bytes"
	"context"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"redlockctl/internal/lab"
	"redlockctl/internal/lab/labtest"
	"redlockctl/redlock"
	"redlockctl/restartguard"
	"redlockctl/restartguard/watch"
)

// liar is a server with prepared answers. Its fence has no effect: writes are accepted.
type liar struct {
	mu     sync.Mutex
	run    string
	params map[string]string
	deaf   bool // CONFIG SET says OK and does nothing
}

func (l *liar) serve(p *server.Peer, cmd string, args ...string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch strings.ToUpper(cmd) {
	case "INFO":
		p.WriteBulk("run_id:" + l.run + "\r\nrole:master\r\n")
	case "CONFIG":
		switch strings.ToUpper(args[0]) {
		case "GET":
			p.WriteMapLen(1)
			p.WriteBulk(args[1])
			p.WriteBulk(l.params[args[1]])
		case "SET":
			if !l.deaf {
				l.params[args[1]] = args[2]
			}
			p.WriteOK()
		}
	default:
		return false
	}
	return true
}

func (l *liar) restart() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.run += "x"
}

func startLiar(t *testing.T, deaf bool) (*liar, *redlock.Node) {
	l := &liar{run: "a", deaf: deaf, params: map[string]string{"min-replicas-to-write": "0", "min-replicas-max-lag": "10"}}
	m := miniredis.RunT(t)
	m.Server().SetPreHook(l.serve)
	return l, named(t, redis.Options{Addr: m.Addr()})
}

// meddler is a connection that lets something happen just before a command
// with a certain text goes out.
type meddler struct {
	net.Conn
	text   string
	before func()
}

func (m meddler) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte(m.text)) {
		m.before()
	}
	return m.Conn.Write(b)
}

// meddled is the node of s, with something that happens just before the first
// command that holds text.
func meddled(t *testing.T, s *lab.Server, text string, before func()) *redlock.Node {
	var once sync.Once
	return named(t, redis.Options{Addr: s.Addr(), Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return meddler{c, text, func() { once.Do(before) }}, nil
	}})
}

// The node is what answers at its address, not the address.
func TestAnotherServerAtTheAddress(t *testing.T) {
	first, second := fenced(t), fenced(t)
	var at atomic.Pointer[lab.Server]
	var conns sync.Map
	at.Store(first)
	node := named(t, redis.Options{Addr: first.Addr(), Dialer: func(ctx context.Context, network, _ string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, at.Load().Addr())
		if err == nil {
			conns.Store(c, nil)
		}
		return c, err
	}})
	g := guard(t, watch.Config{}, node)
	g.reaches(restartguard.PhaseServing)
	moved := time.Now()
	at.Store(second)
	conns.Range(func(c, _ any) bool { _ = c.(net.Conn).Close(); return true })
	g.becomes("closed", func(st restartguard.NodeStatus) bool { return st.Phase == restartguard.PhaseFenced && st.Proven })
	if writes(t, second) {
		t.Error("the other server votes")
	}
	if !writes(t, first) {
		t.Error("the order to close reached the former server")
	}
	notBefore(t, delay, moved, firstWrite(t, second))
	if text := g.tells("restart"); !strings.Contains(text, "started UNFENCED") {
		t.Errorf("told %q", text)
	}
}

// A server that restarts behind the look: the order to close that follows from it
// fails, and the next incarnation is judged by a look of its own.
func TestARestartBetweenLookAndClosing(t *testing.T) {
	s := labtest.Servers(t, 1)[0] // starts unfenced
	var born atomic.Pointer[time.Time]
	node := meddled(t, s, raiseText, func() {
		b := restart(t, s)
		born.Store(&b)
	})
	g := guard(t, watch.Config{}, node)
	first := g.reaches(restartguard.PhaseServing).RunID
	restart(t, s)
	g.becomes("closed in its third life", func(st restartguard.NodeStatus) bool {
		return born.Load() != nil && st.Phase == restartguard.PhaseFenced && st.Proven
	})
	if writes(t, s) {
		t.Fatal("accepts writes")
	}
	notBefore(t, delay, *born.Load(), firstWrite(t, s))
	if g.reaches(restartguard.PhaseServing).RunID == first {
		t.Fatal("no restart was seen")
	}
}

// liftText is a part of CONFIG SET min-replicas-to-write 0, as it travels.
const (
	removeText = "min-replicas-to-write\r\n$1\r\n0\r\n"
	raiseText  = "min-replicas-to-write\r\n$10\r\n2147483647\r\n"
)

func TestRemovalNeverReachesTheNextIncarnation(t *testing.T) {
	s := fenced(t)
	var born atomic.Pointer[time.Time]
	// D has passed, the removal is in flight, and the server dies and is started again.
	node := meddled(t, s, removeText, func() {
		b := restart(t, s)
		born.Store(&b)
	})
	g := guard(t, watch.Config{}, node)
	g.reaches(restartguard.PhaseServing)
	restart(t, s)
	if !wait(func() bool { return born.Load() != nil }) {
		t.Fatal("no lift was ever sent")
	}
	notBefore(t, delay, *born.Load(), firstWrite(t, s))
}

func TestCordonThatCrossesARemovalIsPutBack(t *testing.T) {
	cordonIsPutBack(t, fenced(t), removeText)
}

func TestCordonThatCrossesAFencingIsPutBack(t *testing.T) {
	cordonIsPutBack(t, labtest.Servers(t, 1)[0], raiseText)
}

// cordonIsPutBack has an operator cordon the node behind a guard's command with this text.
func cordonIsPutBack(t *testing.T, s *lab.Server, text string) {
	t.Helper()
	node := meddled(t, s, text, func() { do(t, s, "CONFIG", "SET", "min-replicas-to-write", "2147483646") })
	g := guard(t, watch.Config{Delay: 50 * time.Millisecond}, node)
	g.reaches(restartguard.PhaseServing)
	restart(t, s)
	g.reaches(restartguard.PhaseCordoned)
	time.Sleep(200 * time.Millisecond) // four times D: what might rejoin wrongly has done so
	if g.reaches(restartguard.PhaseCordoned); writes(t, s) {
		t.Fatal("a cordoned node accepts writes")
	}
}

func TestOneConnectionNeverDialsAgain(t *testing.T) {
	s := labtest.Servers(t, 1, lab.BootFence...)[0]
	c := watch.Dial(s.Node(), time.Second)
	defer c.Close()
	o, err := watch.LookAt(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	restart(t, s)
	for range 5 {
		if _, err := watch.Carry(t.Context(), c, restartguard.Action{Kind: restartguard.Remove, RunID: o.RunID}); !watch.Broken(err) {
			t.Fatalf("lift: %v", err)
		}
		if _, err := watch.LookAt(t.Context(), c); !watch.Broken(err) {
			t.Fatalf("look: %v", err)
		}
	}
	if writes(t, s) {
		t.Fatal("the lift reached the next life")
	}
}
