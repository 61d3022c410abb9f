package observe_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"redlockctl/internal/lab"
	"redlockctl/internal/lab/labtest"
	"redlockctl/monitor"
	"redlockctl/monitor/observe"
	"redlockctl/redlock"
)

// behind puts a proxy in front of a server with many locks, so slow that a full read
// takes a while.
func behind(t *testing.T, keys int) (*lab.Server, *labtest.Proxy, *observe.Monitor) {
	t.Helper()
	srv := labtest.Servers(t, 1)[0]
	do(t, srv, "eval", "for i = 1, ARGV[1] do redis.call('SET', 'k' .. i, 'old', 'PX', 3600000) end return 1", 0, keys)
	p := labtest.NewProxy(t, srv)
	p.Delay(labtest.ToClient, 2*time.Millisecond, 3*time.Millisecond)
	m := watch(t, []*redlock.Node{p.Node()}, slow)
	settled(t, m)
	until(t, m, "all of it", func(s *monitor.Snapshot) bool { return s.Complete && s.Locks.Len() == keys })
	return srv, p, m
}

func change(t *testing.T, srv *lab.Server, keys int) {
	t.Helper()
	do(t, srv, "eval", "for i = 1, ARGV[1] do redis.call('SET', 'k' .. i, 'new', 'PX', 3600000) end return 1", 0, keys)
}

// changed reports whether a snapshot shows the first keys as change left them.
func changed(s *monitor.Snapshot, keys int) bool {
	for i := range keys {
		if l := lock(s, fmt.Sprint("k", i+1)); l == nil || l.Holder.Raw() != "new" {
			return false
		}
	}
	return true
}

// Changes during a gap of the feed are not pushed. Until they have been read, the view is
// not complete.
func TestWhatABrokenFeedMissedIsReadBeforeTheViewIsComplete(t *testing.T) {
	srv, p, m := behind(t, 4000)
	p.Hold(labtest.ToClient)
	change(t, srv, 35)
	p.Drop()
	p.Resume()
	broken := time.Now()
	incomplete := false
	until(t, m, "the changes", func(s *monitor.Snapshot) bool {
		incomplete = incomplete || !s.Complete
		return changed(s, 35)
	})
	t.Logf("shown after %s", time.Since(broken))
	if !incomplete {
		t.Error("the view was complete all the time")
	}
}

// If a node reports its changes late, the view soon counts as not complete, however long
// the timeout is.
func TestAViewWhoseChangesAreLateIsNotComplete(t *testing.T) {
	srv := labtest.Servers(t, 1)[0]
	do(t, srv, "set", "k1", "old", "px", 3600000)
	p := labtest.NewProxy(t, srv)
	m := watch(t, []*redlock.Node{p.Node()}, observe.Options{ScanEvery: time.Hour, Timeout: time.Minute})
	settled(t, m)
	until(t, m, "proof", func(s *monitor.Snapshot) bool { return s.Complete && !s.Nodes[0].UpTo.IsZero() })
	release := p.StrandFeeds(labtest.ToClient)
	change(t, srv, 1)
	then := time.Now()
	s := until(t, m, "what is late", func(s *monitor.Snapshot) bool { return !s.Complete })
	if changed(s, 1) || s.Nodes[0].UpTo.After(then) {
		t.Error(describe(s))
	}
	if u := s.Unread(); len(u) != 1 || !strings.Contains(u[0].Why, "late") {
		t.Errorf("%v", u)
	}
	release()
	until(t, m, "the change", func(s *monitor.Snapshot) bool {
		if s.Nodes[0].UpTo.After(then) && !changed(s, 1) {
			t.Fatal("said to be read, and is not:\n" + describe(s))
		}
		return s.Complete && changed(s, 1)
	})
}

// A change that is never reported is found by comparison, and the whole node is read
// again.
func TestChangesThatAreNotToldAreFound(t *testing.T) {
	set := func(key, token string) []any { return []any{"set", key, token, "px", 3600000} }
	for name, c := range map[string][2][]any{ // a change, and its opposite
		"another token":     {set("k1", "new"), set("k1", "old")},
		"another end":       {{"pexpire", "k1", 600000}, {"pexpire", "k1", 3600000}},
		"a key that went":   {{"del", "k1"}, set("k1", "old")},
		"a key that is new": {set("k9", "new"), {"del", "k9"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := labtest.Servers(t, 1)[0]
			do(t, srv, "set", "k1", "old", "px", 3600000)
			do(t, srv, "set", "k2", "old", "px", 3600000)
			p := labtest.NewProxy(t, srv)
			m := watch(t, []*redlock.Node{p.Node()}, slow)
			settled(t, m)
			until(t, m, "proof", func(s *monitor.Snapshot) bool { return s.Complete && s.Locks.Len() == 2 && !s.Nodes[0].UpTo.IsZero() })
			// While all changes are reported, the comparison finds nothing.
			do(t, srv, "set", "k2", "new", "px", 3600000)
			until(t, m, "a change", func(s *monitor.Snapshot) bool { return lock(s, "k2").Holder.Raw() == "new" })
			p.LoseChanges(true)
			do(t, srv, c[0]...)
			at, next := time.Now(), 1
			s := until(t, m, "the finding", func(s *monitor.Snapshot) bool {
				// On a busy machine the feed may have ended and all have been read again.
				if s.Complete && time.Since(at) > 15*time.Second && equal(t, s, []*lab.Server{srv}) {
					do(t, srv, c[next]...)
					at, next = time.Now(), 1-next
				}
				return slices.ContainsFunc(s.Findings, func(f monitor.Finding) bool { return f.ID == "unreported-changes" && f.Node == "n1" && !f.Key.Empty() })
			})
			until(t, m, "what is there", func(s *monitor.Snapshot) bool { return s.Complete && equal(t, s, []*lab.Server{srv}) })
			if at := s.Nodes[0].Facts.UnreportedAt; at.IsZero() {
				t.Error(describe(s))
			}
		})
	}
}
