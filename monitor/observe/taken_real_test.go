package observe_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"redlockctl/internal/lab"
	"redlockctl/internal/lab/labtest"
	"redlockctl/monitor"
	"redlockctl/monitor/observe"
	"redlockctl/redlock"
)

// A node-redlock lock of several keys stays one lock when it is revoked key by key, and
// force-release then removes all of it.
func TestARevokedLockOfSeveralKeysStaysOne(t *testing.T) {
	servers := labtest.Servers(t, 3)
	nodes := labtest.Nodes(servers)
	c, err := redlock.New(nodes, redlock.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	const token = "00f1e2d3c4b5a69788796a5b4c3d2e1f"
	keys := []string{"a", "b", "c"}
	for _, s := range servers {
		for _, k := range keys {
			do(t, s, "set", k, token, "px", 60000)
		}
	}
	m := watch(t, nodes, observe.Options{})
	settled(t, m)
	until(t, m, "one lock of three keys", func(s *monitor.Snapshot) bool {
		l := lock(s, "a")
		return s.Locks.Len() == 1 && l != nil && len(l.Keys()) == 3 && l.State == monitor.LockHeld
	})
	for _, k := range keys {
		if _, err := c.Revoke(t.Context(), k, token, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	s := until(t, m, "one revoked lock", func(s *monitor.Snapshot) bool {
		l := lock(s, "a")
		return s.Locks.Len() == 1 && l != nil && len(l.Keys()) == 3 && l.State == monitor.LockRevoked
	})
	// Another grant has another tombstone.
	if other := lock(s, "a").Holder.Raw(); !redlock.IsTombstone(other) {
		t.Errorf("the holder is %q", other)
	}
}

// Setting value and TTL by two commands raises no alarm; a copy that stays without TTL
// does. A number without TTL is never called a lock without TTL.
func TestSetThenExpireIsNoAlarm(t *testing.T) {
	servers := labtest.Servers(t, 3)
	m := watch(t, labtest.Nodes(servers), observe.Options{})
	settled(t, m)
	// A busy machine may take too long for a client of this kind: then another one tries.
	var old string
	for try, took := 0, time.Second; took > 150*time.Millisecond; try++ {
		if try == 20 {
			t.Fatalf("no client was in time: the last took %s", took)
		}
		old = fmt.Sprint("old:", try)
		begun := time.Now()
		for _, s := range servers {
			do(t, s, "setnx", old, "pattern")
		}
		until(t, m, "old without TTL", func(s *monitor.Snapshot) bool {
			l := lock(s, old)
			return l != nil && l.State == monitor.LockNoTTL
		})
		for _, s := range servers {
			do(t, s, "expire", old, 60)
		}
		until(t, m, "old with a TTL", func(s *monitor.Snapshot) bool { return lock(s, old).State == monitor.LockHeld })
		took = time.Since(begun)
	}
	for _, s := range servers {
		do(t, s, "setnx", "stuck", "pattern")
		do(t, s, "incr", "fencing-token-counter")
	}
	s := until(t, m, "the alarm of the one that stays", func(s *monitor.Snapshot) bool { return event(s, "no TTL") != nil })
	for _, e := range s.Events {
		if e.Kind == "no TTL" && e.Key.Raw() == old {
			t.Errorf("an alarm of %s: %s", e.Key, e.Text)
		}
	}
	if l := lock(s, "fencing-token-counter"); l == nil || l.State != monitor.LockNotALock || l.Form == nil || l.Form.Refused == "" {
		t.Errorf("the counter is %+v", l)
	}
	for _, f := range s.Findings {
		if f.ID == "no-ttl-lock" && (f.Count > 1 || f.Key.Raw() != "stuck") {
			t.Errorf("%+v", f)
		}
	}
}

// A minority copy without TTL does not block, and is not reported as blocking.
func TestAnEndlessMinorityDoesNotBlock(t *testing.T) {
	servers := labtest.Servers(t, 5)
	nodes := labtest.Nodes(servers)
	do(t, servers[4], "set", "job", "left behind")
	m := watch(t, nodes, observe.Options{})
	settled(t, m)
	s := until(t, m, "the finding", func(s *monitor.Snapshot) bool { return found(s, "endless-copy", "") })
	if l := lock(s, "job"); l.State != monitor.LockNoTTL || found(s, "no-ttl-lock", "") ||
		l.EndlessText(s.Serves) != "no TTL on 1 of 5 nodes: it never expires there; the others can still grant the lock, but fewer of them may fail" {
		t.Error(describe(s), l.EndlessText(s.Serves))
	}
	c, err := redlock.New(nodes, redlock.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	l, err := c.Acquire(t.Context(), "job", 5*time.Second)
	if err != nil {
		t.Fatalf("it blocks: %v", err)
	}
	if _, err := l.Release(t.Context()); err != nil {
		t.Error(err)
	}
	do(t, servers[3], "set", "job", "left behind")
	do(t, servers[2], "set", "job", "left behind")
	s = until(t, m, "the danger", func(s *monitor.Snapshot) bool { return found(s, "no-ttl-lock", "") })
	if _, block := lock(s, "job").Endless(s.Serves); !block {
		t.Error(describe(s))
	}
}

// A lock without TTL that was granted on three of five nodes stays a danger when one of them is killed, also for
// who looks for the first time then, and when that one is fenced after its start: until it serves, nobody else
// can get in, and the holder relies on the lock without end.
func TestALockWithoutTTLStaysADangerWhileANodeIsDown(t *testing.T) {
	servers := labtest.Servers(t, 5)
	m := watch(t, labtest.Nodes(servers), observe.Options{})
	settled(t, m)
	for _, s := range servers[:3] {
		do(t, s, "set", "job", "token", "nx")
	}
	until(t, m, "the danger", func(s *monitor.Snapshot) bool { return found(s, "no-ttl-lock", "") })
	if err := servers[1].Kill(); err != nil {
		t.Fatal(err)
	}
	check := func(m *observe.Monitor, state monitor.NodeState) {
		t.Helper()
		held, findings := state == monitor.NodeFenced, 0
		// The findings are checked each second: look for as long as another one needs to be raised.
		s := until(t, m, "n2 "+state.String(), func(s *monitor.Snapshot) bool {
			if s.Nodes[1].State != state || !found(s, "no-ttl-lock", "") || found(s, "lost-majority", "") != held {
				findings = 0
				return false
			}
			findings++
			return s.At.Sub(s.Nodes[1].Since) > 4*time.Second && findings > 1
		})
		l := lock(s, "job")
		if l.State != monitor.LockNoTTL || !l.ReliedOn() || !l.HeldUntil().IsZero() || l.MayBeHeld() == held || found(s, "endless-copy", "") || s.Cluster.Verdict != monitor.VerdictDanger ||
			!strings.Contains(l.EndlessText(s.Serves), "held without end; nobody else gets the lock unless") {
			t.Error(l.EndlessText(s.Serves), describe(s))
		}
		if e := event(s, "cleared"); e != nil && strings.Contains(e.Text.Raw(), "no-ttl-lock") {
			t.Error(e.Text)
		}
	}
	check(m, monitor.NodeDown)
	late := watch(t, labtest.Nodes(servers), observe.Options{})
	settled(t, late)
	check(late, monitor.NodeDown)
	if err := servers[1].Start(lab.BootFence...); err != nil {
		t.Fatal(err)
	}
	check(m, monitor.NodeFenced)
	if e := event(m.Snapshot(), "restart"); e == nil || !strings.HasSuffix(e.Text.Raw(), "1 lost its majority: held without end") {
		t.Error(describe(m.Snapshot()))
	}
	for i := range m.Snapshot().Findings {
		if f := m.Snapshot().Findings[i]; f.ID == "lost-majority" && (!strings.Contains(f.Consequence, "without end") || strings.Contains(f.Consequence, "expire")) {
			t.Error(f.Consequence)
		}
	}
}
