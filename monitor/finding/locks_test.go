package finding

import (
	"fmt"
	"redlockctl/monitor"
	"redlockctl/server/lockform"
	"slices"
	"strings"
	"testing"
	"time"
)

// A check costs the same however many locks there are: it covers them in turn, and finds
// the last one too.
func TestBadLocksAreFoundAmongMany(t *testing.T) {
	many := make([]monitor.Lock, 0, 3*lookAtLocks)
	for i := range 3 * lookAtLocks {
		many = append(many, lockOf(fmt.Sprintf("k%09d", i), monitor.LockHeld, "a", "a", "a", "a", "a"))
	}
	bad := lockOf("z", monitor.LockOrphaned, "a", "", "", "", "")
	locks := monitor.NewLocks(append(many, bad)...)
	_, got := film(t, goodScene(), 6*time.Second, func(s *scene, _ time.Duration) { s.Locks = locks })
	if len(got) != 1 || got[0].Key.Raw() != "z" || got[0].Count != 1 {
		t.Errorf("%+v", got)
	}
	// More bad locks than are kept are still counted.
	for i := range many {
		many[i].State = monitor.LockOrphaned
	}
	locks = monitor.NewLocks(many...)
	_, got = film(t, goodScene(), 6*time.Second, func(s *scene, _ time.Duration) { s.Locks = locks })
	if len(got) != 1 || got[0].Count != len(many) {
		t.Errorf("%+v", got)
	}
}

// A finding's title is singular if it is about one lock, one key or one node.
func TestTitlesCount(t *testing.T) {
	states := map[monitor.LockState][2]string{
		monitor.LockSplit:    {"a lock with several tokens", "locks with several tokens"},
		monitor.LockNoTTL:    {"a lock without a TTL", "locks without a TTL"},
		monitor.LockOverTTL:  {"a lock with a TTL above the cluster's maximum", "locks with a TTL above the cluster's maximum"},
		monitor.LockOrphaned: {"orphaned copies of a lock", "orphaned copies of locks"},
		monitor.LockNotALock: {"a key under the lock patterns that is not a lock", "keys under the lock patterns that are not locks"},
	}
	for state, want := range states {
		var locks []monitor.Lock
		for i, title := range want {
			locks = append(locks, lockOf(fmt.Sprint("k", i), state, "a", "a", "a", "", ""))
			_, got := film(t, goodScene(), 6*time.Second, func(s *scene, _ time.Duration) { s.Locks = monitor.NewLocks(locks...) })
			if len(got) != 1 || got[0].Title != title || got[0].Count != i+1 {
				t.Errorf("%s, %d of them: %+v", state, i+1, got)
			}
		}
	}
	for n, want := range map[int][3]string{
		1: {"a replica is attached", "a key was evicted", "start of n1 not seen yet"},
		2: {"replicas attached", "keys were evicted", "start of n1, n2 not seen yet"},
	} {
		s := goodScene()
		s.Nodes[0].Replicas, s.Nodes[0].Facts.Evicted = n, int64(n)
		for i := range n {
			s.guard.Nodes[s.Nodes[i].Name] = monitor.GuardedNode{}
		}
		_, got := film(t, s, 6*time.Second, nil)
		for _, title := range want {
			if !slices.ContainsFunc(got, func(f monitor.Finding) bool { return f.Title == title }) {
				t.Errorf("%d: no %q in %+v", n, title, got)
			}
		}
	}
}

// Beside a node of which nothing is known, those whose files say that they start fenced are not named.
func TestStartsThatFilesShowAreNotNamed(t *testing.T) {
	s := goodScene()
	for i := range 2 {
		s.guard.Nodes[s.Nodes[i].Name] = monitor.GuardedNode{}
	}
	s.Nodes[0].StartsFenced = true
	_, got := film(t, s, 6*time.Second, nil)
	if len(got) != 1 || got[0].Title != "start of n2 not seen yet" || got[0].Severity != monitor.SeverityWarning {
		t.Errorf("%+v", got)
	}
}

// Once all have been checked, a change is still found at once.
func TestABadLockIsFoundWhenItChanges(t *testing.T) {
	s := goodScene()
	many := make([]monitor.Lock, 0, lookAtLocks+1)
	for i := range lookAtLocks + 1 {
		many = append(many, lockOf(fmt.Sprintf("k%09d", i), monitor.LockHeld, "a", "a", "a", "a", "a"))
	}
	var w lockWatch
	s.Locks = monitor.NewLocks(many...)
	w.look(s.Snapshot, s.opt.NodeTimeout)
	w.look(s.Snapshot, s.opt.NodeTimeout)
	many[lookAtLocks] = lockOf("z", monitor.LockOrphaned, "a", "", "", "", "")
	s.Locks = monitor.NewLocks(many...)
	if w.look(s.Snapshot, s.opt.NodeTimeout); len(w.bad) != 0 {
		t.Error("it looked at all of them again")
	}
	w.note([]string{"z", "gone"})
	if w.look(s.Snapshot, s.opt.NodeTimeout); len(w.bad) != 1 {
		t.Error("not found")
	}
	// Too many changes are not recorded: all locks are checked.
	w = lockWatch{slowly: true, cursor: "y"}
	w.note(make([]string, changesSeen+1))
	w.look(s.Snapshot, s.opt.NodeTimeout)
	if w.look(s.Snapshot, s.opt.NodeTimeout); len(w.bad) != 1 {
		t.Error("not found among all")
	}
}

// The shortest TTL is that of a tenth of the new locks: locks that were seen late or
// existed before do not count.
func TestTheSmallestTTLInUse(t *testing.T) {
	s := goodScene()
	for i := range s.Nodes {
		s.Nodes[i].RTTs = slices.Repeat([]time.Duration{60 * time.Millisecond}, 60)
	}
	var locks []monitor.Lock
	_, got := film(t, s, 40*time.Second, func(s *scene, at time.Duration) {
		now := findingEpoch.Add(at)
		for k := range 3 {
			l := lockOf(fmt.Sprint("job:", at, k), monitor.LockHeld, "a", "a", "a", "a", "a")
			ttl := 10 * time.Second
			if k == 0 && at < 20*time.Second {
				ttl = 200 * time.Millisecond
			}
			l = l.Timed(now.Add(-10*time.Millisecond), time.Time{})
			for i := range l.Copies.Len() {
				l.Copies = changed(l.Copies, i, func(c *monitor.Copy) { c.Expires = l.Since().Add(ttl) })
			}
			locks = append(locks, l)
		}
		locks = slices.DeleteFunc(locks, func(l monitor.Lock) bool { return l.Copies.At(0).Expires.Before(now) })
		s.Locks = monitor.NewLocks(locks...)
	})
	if len(got) != 1 || got[0].ID != "slow-attempts" || !strings.Contains(got[0].Evidence.Raw(), "the smallest TTL in use is 2") {
		t.Errorf("%+v", got)
	}
}

// What a library keeps beside its locks is not reported as a foreign key.
func TestCompanionsAreNotForeign(t *testing.T) {
	for want, form := range map[bool]*lockform.Form{true: nil, false: {Library: "Redisson", Companion: true}} {
		l := lockOf("queue", monitor.LockNotALock, "a", "", "", "", "")
		l.Form = form
		if kinds, _ := new(lockWatch).kindsOf(&l); kinds[badForeign] != want {
			t.Errorf("%+v: foreign: %t", form, kinds[badForeign])
		}
	}
}

// A lock with a TTL above the maximum still has one when its state becomes a worse one.
func TestATTLAboveTheMaximumIsNotClearedByAWorseState(t *testing.T) {
	for _, worse := range []monitor.LockState{monitor.LockSplit, monitor.LockNoTTL, monitor.LockLostMajority} {
		events, last := film(t, goodScene(), 20*time.Second, func(s *scene, at time.Duration) {
			l := lockOf("k", monitor.LockOverTTL, "a", "a", "a", "a", "a")
			if at >= 5*time.Second {
				l.State = worse
			}
			l.Over = at < 12*time.Second
			s.Locks = monitor.NewLocks(l)
		})
		var at []time.Duration
		for _, e := range events {
			if strings.HasPrefix(e.Text.Raw(), "cleared: a lock with a TTL above") {
				at = append(at, e.At.Sub(findingEpoch))
			}
		}
		if len(at) != 1 || at[0] < 12*time.Second || slices.Contains(names(last), "danger over-ttl") {
			t.Errorf("%s: cleared after %s, at the end %v", worse, at, names(last))
		}
	}
}

// A lock that was force-released is a warning while the next client has it and the former holder may rely
// on it.
func TestForceReleasedLocks(t *testing.T) {
	end := findingEpoch.Add(4 * time.Second)
	forced := func(lock, token string, until time.Time) monitor.Forced {
		return monitor.Forced{Action: monitor.Action{Actor: "ops@host", Reason: "host burnt", At: findingEpoch}, Lock: lock, Until: until,
			Took: func(one string) bool { return one == token }}
	}
	held := monitor.NewLocks(lockOf("job:1", monitor.LockHeld, "b", "b", "b", "b", "b"), lockOf("job:2", monitor.LockHeld, "b", "b", "b", "", ""))
	for name, c := range map[string]struct {
		forced []monitor.Forced
		locks  monitor.Locks
		after  time.Duration
		says   string // in the evidence; empty: there is no finding
	}{
		"the next client has it":        {[]monitor.Forced{forced("job:1", "a", end)}, held, 3 * time.Second, "job:1: " + forced("", "", end).Told(end) + ", and another client has it now"},
		"of several, the first by name": {[]monitor.Forced{forced("job:2", "a", end), forced("job:1", "a", end)}, held, 3 * time.Second, "2; the first: job:1: "},
		"twice":                         {[]monitor.Forced{forced("job:1", "a", end), forced("job:1", "c", time.Time{})}, held, 3 * time.Second, "rely on it without end, and"},
		"the former holder's end":       {[]monitor.Forced{forced("job:1", "a", end)}, held, 4 * time.Second, ""},
		"its holder has it again":       {[]monitor.Forced{forced("job:1", "b", end)}, held, 3 * time.Second, ""},
		"nobody has it":                 {[]monitor.Forced{forced("job:3", "a", end)}, held, 3 * time.Second, ""},
		"nobody relies on what is left": {[]monitor.Forced{forced("job:1", "a", end)},
			monitor.NewLocks(lockOf("job:1", monitor.LockOrphaned, "b", "", "", "", "")), 3 * time.Second, ""},
	} {
		s := goodScene()
		s.Locks, s.forced = c.locks, c.forced
		_, got := film(t, s, c.after, nil)
		i := slices.IndexFunc(got, func(f monitor.Finding) bool { return f.ID == "force-released" })
		switch {
		case (i >= 0) != (c.says != ""):
			t.Errorf("%s: %v", name, names(got))
		case i >= 0 && (!strings.Contains(got[i].Evidence.Raw(), c.says) || got[i].Severity != monitor.SeverityWarning || got[i].Key.Raw() != "job:1"):
			t.Errorf("%s: %+v", name, got[i])
		}
	}
}
