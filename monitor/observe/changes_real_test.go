package observe_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/base/race"
	"redlockctl/internal/lab"
	"redlockctl/internal/lab/labtest"
	"redlockctl/monitor"
	"redlockctl/monitor/observe"
	"redlockctl/redlock"
	"redlockctl/server/serverinfo"
)

// slow reads everything so rarely that a test sees only what the server pushed.
var slow = observe.Options{ScanEvery: time.Hour}

func TestANodeTellsOfItsChanges(t *testing.T) {
	servers := labtest.Servers(t, 3)
	m := watch(t, labtest.Nodes(servers), slow)
	s := settled(t, m)
	if len(s.Nodes[0].Notes) != 0 {
		t.Fatal(describe(s))
	}
	for _, srv := range servers {
		do(t, srv, "set", "job:1", "token", "px", 60000)
	}
	s = until(t, m, "the lock", func(s *monitor.Snapshot) bool {
		l := lock(s, "job:1")
		return l != nil && l.State == monitor.LockHeld && l.Held == 3
	})
	version := s.Version
	for _, srv := range servers {
		do(t, srv, "pexpire", "job:1", "90000")
	}
	until(t, m, "its extension", func(s *monitor.Snapshot) bool {
		l := lock(s, "job:1")
		return l != nil && l.MajorityEnd().Sub(s.At) > 80*time.Second
	})
	if keys, ok := m.ChangedSince(version); !ok || len(keys) != 1 || keys[0] != "job:1" {
		t.Errorf("%q %t", keys, ok)
	}
	// A copy that stays missing is confirmed by nodes that push nothing.
	do(t, servers[0], "del", "job:1")
	do(t, servers[1], "del", "job:1")
	until(t, m, "two copies less", func(s *monitor.Snapshot) bool { return lock(s, "job:1").State == monitor.LockLostMajority })
	do(t, servers[2], "set", "job:1", "other", "px", 60000)
	do(t, servers[1], "set", "job:1", "another", "px", 60000)
	until(t, m, "a split", func(s *monitor.Snapshot) bool { return lock(s, "job:1").State == monitor.LockSplit })
	until(t, m, "the alarm", func(s *monitor.Snapshot) bool { return event(s, "split") != nil })
	var kinds []string
	for _, e := range m.History("job:1")[:5] {
		kinds = append(kinds, e.Kind)
	}
	if got := strings.Join(kinds, ","); got != "acquired,extended,lost majority,released,split" {
		t.Error(got)
	}
	if all, missed := m.EventsSince(0); missed != 0 || len(all) != len(m.Snapshot().Events) {
		t.Error(len(all), missed)
	}
}

func TestAFlushAndABrokenFeedLeaveNoGap(t *testing.T) {
	servers := labtest.Servers(t, 3)
	m := watch(t, labtest.Nodes(servers), slow)
	settled(t, m)
	for k := range 3 {
		for _, srv := range servers {
			do(t, srv, "set", fmt.Sprint("job:", k), "token", "px", 60000)
		}
	}
	until(t, m, "three locks", func(s *monitor.Snapshot) bool { return s.Locks.Len() == 3 && s.Nodes[0].Locks == 3 })
	do(t, servers[0], "flushall")
	until(t, m, "none on n1", func(s *monitor.Snapshot) bool {
		l := lock(s, "job:1")
		return s.Nodes[0].Locks == 0 && l != nil && l.Copies.At(0).State == monitor.CopyLost
	})
	do(t, servers[0], "set", "job:9", "token", "px", 60000)
	do(t, servers[0], "client", "kill", "type", "normal")
	do(t, servers[0], "del", "job:9")
	do(t, servers[0], "set", "job:8", "token", "px", 60000)
	until(t, m, "what happened meanwhile", func(s *monitor.Snapshot) bool {
		return lock(s, "job:9") == nil && lock(s, "job:8") != nil && s.Nodes[0].Locks == 1
	})
}

// A revoked lock holds nothing. Its tombstones beside copies that its holder left are no
// split.
func TestARevokedLockIsShownAsSuch(t *testing.T) {
	servers := labtest.Servers(t, 5)
	m := watch(t, labtest.Nodes(servers), slow)
	settled(t, m)
	for _, srv := range servers {
		do(t, srv, "set", "job:1", "token", "px", 60000)
	}
	until(t, m, "the lock", func(s *monitor.Snapshot) bool { l := lock(s, "job:1"); return l != nil && l.Held == 5 })
	c, err := redlock.New(labtest.Nodes(servers), redlock.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := c.Revoke(t.Context(), "job:1", "token", time.Minute); err != nil {
		t.Fatal(err)
	}
	s := until(t, m, "it revoked", func(s *monitor.Snapshot) bool {
		return lock(s, "job:1").State == monitor.LockRevoked && event(s, "revoked") != nil
	})
	for _, kind := range []string{"released", "split", "orphaned", "lost majority"} {
		if event(s, kind) != nil {
			t.Error(describe(s))
		}
	}
	// One copy that the revocation did not reach makes no split.
	do(t, servers[4], "set", "job:1", "token", "px", 60000)
	until(t, m, "the copy that is left", func(s *monitor.Snapshot) bool { return lock(s, "job:1").Copies.At(4).Token.Raw() == "token" })
	time.Sleep(200 * time.Millisecond) // in this time, all nodes would have confirmed a split
	if s := m.Snapshot(); lock(s, "job:1").State != monitor.LockRevoked {
		t.Error(describe(s))
	}
}

// Each fallback for seeing changes works, and the node's row names it.
func TestFallbacksOfChanges(t *testing.T) {
	servers := labtest.Servers(t, 1)
	user := func(name string, rules ...any) *redlock.Node {
		do(t, servers[0], append([]any{"acl", "setuser", name, "on", ">p", "~*", "&*", "+@all"}, rules...)...)
		return node(t, name, &redis.Options{Addr: servers[0].Addr(), Username: name, Password: "p"})
	}
	for name, c := range map[string]struct {
		node *redlock.Node
		note string
	}{
		"tracking denied":  {user("mute", "-client|tracking"), "scanning alone: its user may not use CLIENT TRACKING"},
		"EVALSHA_RO alone": {user("short", "-evalsha_ro"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := watch(t, []*redlock.Node{c.node}, observe.Options{})
			s := settled(t, m)
			notes := strings.Join(s.Nodes[0].Notes, "; ")
			if !strings.Contains(notes, c.note) || c.note == "" && notes != "" {
				t.Errorf("%q", notes)
			}
			do(t, servers[0], "set", "job:"+name, "token", "px", 60000)
			until(t, m, "a change", func(s *monitor.Snapshot) bool { return lock(s, "job:"+name) != nil })
		})
	}
}

// These rights are enough for an observer.
func TestTheLeastRightsDo(t *testing.T) {
	servers := labtest.Servers(t, 1)
	do(t, servers[0], "acl", "setuser", "observer", "on", ">p", "resetkeys", "%R~job:*", "resetchannels", "-@all",
		"+hello", "+auth", "+ping", "+select", "+client|tracking", "+time", "+info", "+config|get", "+scan", "+type", "+pttl",
		"+strlen", "+getrange", "+hlen", "+llen", "+scard", "+zcard", "+xlen", "+hkeys", "+memory|usage",
		"+evalsha_ro", "+eval_ro", "+pubsub|channels")
	n := node(t, "n1", &redis.Options{Addr: servers[0].Addr(), Username: "observer", Password: "p"})
	m := watch(t, []*redlock.Node{n}, observe.Options{LockPatterns: []string{"job:*"}, ScanEvery: time.Hour})
	s := settled(t, m)
	if len(s.Nodes[0].Notes) != 0 || s.Nodes[0].State != monitor.NodeServing {
		t.Fatal(describe(s))
	}
	do(t, servers[0], "hset", "job:h", "8f1c3f5e-5a0c-4f6e-9f55-2f3f0f7c1a11:42", "1")
	do(t, servers[0], "set", "job:1", "token", "px", 60000)
	s = until(t, m, "changes", func(s *monitor.Snapshot) bool { return lock(s, "job:1") != nil && lock(s, "job:h") != nil })
	if l := lock(s, "job:h"); l.Form == nil || l.State == monitor.LockNotALock || l.Holder.Empty() {
		t.Error(describe(s))
	}
}

// Servers with other work: their changes are not copied, and if there are too many, the
// feed is closed.
func TestAFloodOfOtherChangesEndsTheFeed(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	servers := labtest.Servers(t, 1)
	m := watch(t, labtest.Nodes(servers), observe.Options{LockPatterns: []string{"*:lock"}})
	settled(t, m)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		c := redlock.Connect(servers[0].Node(), 1, 5*time.Second)
		defer c.Close()
		for ctx.Err() == nil {
			_ = c.Eval(ctx, "for i=1,10000 do redis.call('set','noise'..i,i) end", nil).Err()
		}
	}()
	defer func() { cancel(); <-done }()
	until(t, m, "a note", func(s *monitor.Snapshot) bool {
		return len(s.Nodes[0].Notes) == 1 && strings.Contains(s.Nodes[0].Notes[0], "scanning alone: too many changes")
	})
	do(t, servers[0], "set", "a:lock", "token", "px", 60000)
	until(t, m, "a lock", func(s *monitor.Snapshot) bool { return lock(s, "a:lock") != nil })
}

// A server that reports no changes is read again and again, for at most a fifth of the time,
// however many keys it has.
func TestScanningAloneHasABoundInCPU(t *testing.T) {
	srv := labtest.Servers(t, 1)[0]
	fill(t, []*lab.Server{srv}, 20_000, 0)
	do(t, srv, "acl", "setuser", "mute", "on", ">p", "~*", "&*", "+@all", "-client|tracking")
	m := watch(t, []*redlock.Node{node(t, "mute", &redis.Options{Addr: srv.Addr(), Username: "mute", Password: "p"})}, observe.Options{})
	settled(t, m)
	used := func() time.Duration {
		info := do(t, srv, "info", "cpu").(string)
		var sum float64
		for _, name := range []string{"used_cpu_sys", "used_cpu_user"} {
			v, err := strconv.ParseFloat(serverinfo.Field(info, name), 64)
			if err != nil {
				t.Fatal(err)
			}
			sum += v
		}
		return time.Duration(sum * float64(time.Second))
	}
	begun, before := time.Now(), used()
	time.Sleep(3 * time.Second)
	share := float64(used()-before) / float64(time.Since(begun))
	t.Logf("%.1f %% of a core", 100*share)
	if share > 0.25 { // and the probes
		t.Errorf("%.0f %% of a core", 100*share)
	}
}
