package finding

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"redlockctl/monitor"
	"redlockctl/monitor/clock"
	"redlockctl/redlock"
	"redlockctl/server/safetext"
)

var findingEpoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// scene is a healthy cluster that a test breaks.
type scene struct {
	*monitor.Snapshot
	opt           Options
	guard         *monitor.GuardView
	boots         map[string]BootSight
	discontinuity clock.Discontinuity
	forced        []monitor.Forced
}

func goodScene() *scene {
	s := &scene{Snapshot: &monitor.Snapshot{At: findingEpoch, Cluster: monitor.Cluster{
		Name: "test", N: 5, Quorum: 3, MaxTTL: 30 * time.Second, Serving: 5, Verdict: monitor.VerdictSafe, CanLose: 2,
	}}}
	s.opt = Options{MaxMemory: 1 << 30, NodeTimeout: redlock.DefaultNodeTimeout}
	s.guard = &monitor.GuardView{Nodes: map[string]monitor.GuardedNode{}}
	for i := range 5 {
		f := monitor.UnknownFacts()
		f.AppendOnly, f.AppendFsync, f.SaveKnown, f.MaxMemory, f.MaxLag = "no", "everysec", true, 0, 10
		f.Evicted, f.Refused, f.Saves, f.BackgroundSaves, f.Rewrites, f.ConfigRewrites, f.ACLSaves = 0, 0, 0, 0, 0, 0, 0
		n := monitor.Node{
			Name: fmt.Sprintf("n%d", i+1), Addr: fmt.Sprintf("10.0.0.%d:6379", i+1), State: monitor.NodeServing, Since: findingEpoch, GuardsKnown: true,
			RunID: fmt.Sprintf("run%d", i+1), Role: "master", Eviction: "noeviction", UsedMemory: 1 << 20, Facts: f,
			Drift: monitor.Drift{Valid: true, PPM: float64(20 * i), Bound: 2},
		}
		for range 60 {
			n.RTTs = append(n.RTTs, time.Millisecond)
		}
		s.Nodes = append(s.Nodes, n)
		s.guard.Nodes[n.Name] = monitor.GuardedNode{Known: true, Verified: true}
	}
	s.Locks = monitor.NewLocks(lockOf("job:1", monitor.LockHeld, "a", "a", "a", "a", "a"))
	return s
}

// lockOf makes a lock with these tokens on the nodes; "" is no copy.
func lockOf(key string, state monitor.LockState, tokens ...string) monitor.Lock {
	l := monitor.Lock{Key: safetext.New(key), State: state}.Timed(findingEpoch, time.Time{})
	seen := map[string]int{}
	var copies []monitor.Copy
	for _, t := range tokens {
		c := monitor.Copy{State: monitor.CopyAbsent}
		if t != "" {
			c = monitor.Copy{State: monitor.CopyPresent, Type: "string", Token: safetext.New(t), Len: int64(len(t)), Expires: findingEpoch.Add(20 * time.Second)}
			if state == monitor.LockNoTTL {
				c.Expires = time.Time{}
			}
			seen[t]++
			l.Held = max(l.Held, seen[t])
			if l.Held == seen[t] {
				l.Holder = c.Token
			}
		}
		copies = append(copies, c)
	}
	l.Copies = monitor.PackCopies(copies...)
	l.Tokens = len(seen)
	return l
}

// lostLock was granted on three of five nodes, and all three lost their copies.
func lostLock() monitor.Lock {
	l := lockOf("job:3", monitor.LockLostMajority, "", "", "", "", "")
	gone := monitor.Copy{State: monitor.CopyLost, Type: "string", Token: safetext.New("a"), Len: 1, Expires: findingEpoch.Add(time.Minute)}
	l.Copies = monitor.PackCopies(gone, gone, gone, monitor.Copy{}, monitor.Copy{})
	l.Holder, l.Lost = gone.Token, 3
	return l.Until(gone.Expires)
}

// changed returns these copies with the copy on node i changed.
func changed(copies monitor.Copies, i int, change func(c *monitor.Copy)) monitor.Copies {
	var list []monitor.Copy
	for k, c := range copies.All() {
		if k == i {
			change(&c)
		}
		list = append(list, c)
	}
	return monitor.PackCopies(list...)
}

// film checks the scene repeatedly; change is called before each check with the time
// since the start.
func film(t *testing.T, s *scene, d time.Duration, change func(s *scene, at time.Duration)) (events []monitor.Event, last []monitor.Finding) {
	t.Helper()
	f := New(s.opt)
	var counted monitor.Locks
	var counts monitor.Counts
	for at := time.Duration(0); at <= d; at += 250 * time.Millisecond {
		if change != nil {
			change(s, at)
		}
		now := *s.Snapshot
		now.At = findingEpoch.Add(at)
		if now.Locks != counted {
			f.locks.coverAll()
			counted, counts = now.Locks, monitor.Counts{}
			for l := range now.Locks.All() {
				counts[l.State]++
			}
		}
		now.Counts = counts
		f.opt, f.discontinuity = s.opt, s.discontinuity
		f.guard, f.boots = nil, s.boots
		f.Forced(s.forced)
		if g := s.guard; g != nil {
			f.guard = func() monitor.GuardView { return *g }
		}
		last = f.Look(&now, func(e monitor.Event) { events = append(events, e) })
	}
	return events, last
}

func names(fs []monitor.Finding) (out []string) {
	for _, f := range fs {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %s", f.Severity, f.ID, f.Node)))
	}
	return out
}
