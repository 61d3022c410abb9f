package watch_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"redlockctl/internal/lab"
	"redlockctl/internal/lab/labtest"
	"redlockctl/redlock"
	"redlockctl/restartguard"
	"redlockctl/restartguard/watch"
)

const shortBound = 100 * time.Millisecond

// five are servers that start fenced and were opened, with a guard that knows them
// for long enough to take their word.
func five(t *testing.T) ([]*lab.Server, *guarded) {
	t.Helper()
	servers := labtest.Servers(t, 5, lab.BootFence...)
	nodes := make([]*redlock.Node, len(servers))
	for i, s := range servers {
		do(t, s, "CONFIG", "SET", "min-replicas-to-write", "0")
		nodes[i] = s.Node()
	}
	g := guard(t, watch.Config{
		Delay: time.Hour,
		Early: watch.EarlyRejoin{AttemptBound: shortBound, Patterns: []string{"lock:*", "lock:*:b", "redlock*"}},
	}, nodes...)
	for _, n := range nodes {
		if !wait(func() bool { return g.phaseOf(n.Name()) == restartguard.PhaseServing }) {
			t.Fatalf("%s was never seen", n.Name())
		}
	}
	g.TrustAll()
	return servers, g
}

func (g *guarded) phaseOf(node string) restartguard.Phase {
	for _, s := range g.Status() {
		if s.Node == node {
			return s.Phase
		}
	}
	return restartguard.PhaseUnknown
}

// token is one as node-redlock draws it.
func token(i int) string { return fmt.Sprintf("a%031x", i) }

// lockOn puts copies of one lock on servers.
func lockOn(t *testing.T, key, token string, ttl time.Duration, servers ...*lab.Server) {
	t.Helper()
	for _, s := range servers {
		do(t, s, "SET", key, token, "NX", "PX", ttl.Milliseconds())
	}
}

func TestEarlyRejoinOnRealServers(t *testing.T) {
	t.Parallel()
	servers, g := five(t)
	const locks = 300
	end := time.Now().Add(time.Minute).UnixMilli() // of all copies, however long it takes to write them
	for _, s := range servers {
		c := redlock.Connect(s.Node(), 1, 5*time.Second)
		pipe := c.Pipeline()
		for i := range locks {
			pipe.Do(context.Background(), "SET", fmt.Sprintf("lock:%d:b", i), token(i), "NX", "PXAT", end)
		}
		if _, err := pipe.Exec(context.Background()); err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
		do(t, s, "RPUSH", "other", "x")                          // not under a pattern
		do(t, s, "SET", "redlockctl:fencing:x", s.Node().Addr()) // of this program
	}
	born := restart(t, servers[0])
	got := firstWrite(t, servers[0])
	if e := got.Sub(born); e < shortBound {
		t.Errorf("open %s after its start, and an attempt may take %s", e, shortBound)
	}
	if !wait(func() bool { return strings.HasPrefix(g.told("rejoined"), "rejoined early: ") }) {
		t.Fatalf("told %q", g.told("rejoined"))
	}
	if want := fmt.Sprintf("rejoined early: %d locks, each with a quorum of copies elsewhere", locks); !strings.HasPrefix(g.told("rejoined"), want) {
		t.Errorf("told %q", g.told("rejoined"))
	}
}

func TestALockThatNeedsTheLostVoteIsWaitedFor(t *testing.T) {
	t.Parallel()
	const ttl = 1500 * time.Millisecond
	servers, g := five(t)
	lockOn(t, "lock:all", token(1), time.Minute, servers...)
	began := time.Now()
	lockOn(t, "lock:quorum", token(2), ttl, servers[:3]...) // the first of which will be lost
	restart(t, servers[0])
	g.becomes("in doubt", func(s restartguard.NodeStatus) bool {
		return s.Phase == restartguard.PhaseFenced && strings.Contains(s.Reason, "waits D: lock lock:quorum has 2 of 3 copies elsewhere")
	})
	got := firstWrite(t, servers[0])
	if e := got.Sub(began); e < ttl {
		t.Errorf("open %s after a lock of %s was taken that needed its vote", e, ttl)
	}
	if text := g.tells("rejoined"); !strings.HasPrefix(text, "rejoined early: 1 locks") {
		t.Errorf("told %q", text)
	}
}

func TestDoubtsOnRealServersMeanD(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*testing.T, []*lab.Server)
		part  string
	}{
		"a node is down":    {func(t *testing.T, s []*lab.Server) { _ = s[4].Kill() }, "unreachable"},
		"a node was wiped":  {func(t *testing.T, s []*lab.Server) { do(t, s[4], "FLUSHALL") }, "fenced"},
		"a key is a hash":   {func(t *testing.T, s []*lab.Server) { do(t, s[4], "HSET", "lock:h", "uuid:1", "1") }, "lock:h is a hash"},
		"a lock has no TTL": {func(t *testing.T, s []*lab.Server) { do(t, s[4], "SET", "lock:old", token(1)) }, "lock:old has 1 of 3"},
		"nobody knows who made it": {func(t *testing.T, s []*lab.Server) { lockOn(t, "lock:x", "mine", time.Minute, s...) },
			"lock:x is not made by any library"},
		"a lock bears this program's name": {func(t *testing.T, s []*lab.Server) { lockOn(t, "redlockctl:mine", token(1), time.Minute, s[4]) },
			"redlockctl:mine is kept beside locks"},
		"a value is no token": {func(t *testing.T, s []*lab.Server) { do(t, s[4], "SET", "lock:x", strings.Repeat("x", 1000)) },
			"too long"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers, g := five(t)
			c.spoil(t, servers)
			restart(t, servers[0])
			g.becomes("in doubt", func(s restartguard.NodeStatus) bool {
				return s.Phase == restartguard.PhaseFenced && strings.Contains(s.Reason, "waits D: ") && strings.Contains(s.Reason, c.part)
			})
			if time.Sleep(3 * shortBound); writes(t, servers[0]) {
				t.Error("opened all the same")
			}
		})
	}
}
