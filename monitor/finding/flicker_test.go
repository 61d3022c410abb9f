package finding

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"redlockctl/monitor"
	"redlockctl/monitor/clock"
)

// A finding is reported once when it opens and once when it closes. One that comes and
// goes stays open until it has been gone for some time.
func TestAFindingDoesNotFlicker(t *testing.T) {
	for name, c := range map[string]struct {
		on   func(at time.Duration) bool
		want string // the events in seconds
	}{
		"opens and closes": {func(at time.Duration) bool { return at >= 5*time.Second && at < 10*time.Second }, "opened 5, closed 11.75"},
		"every other look": {func(at time.Duration) bool { return at%(500*time.Millisecond) == 0 && at < 20*time.Second }, "opened 0, closed 21.5"},
		"every five seconds, for a second: it stays for longer and longer": {
			func(at time.Duration) bool { return at%(5*time.Second) < time.Second && at < 40*time.Second }, "opened 0, closed 2.75, opened 5, closed 9.75, opened 10, closed 43.75"},
	} {
		t.Run(name, func(t *testing.T) {
			events, _ := film(t, goodScene(), time.Minute, func(s *scene, at time.Duration) {
				s.Nodes[0].Replicas = 0
				if c.on(at) {
					s.Nodes[0].Replicas = 1
				}
			})
			var got []string
			for _, e := range events {
				got = append(got, fmt.Sprintf("%s %v", strings.TrimPrefix(e.Kind, "finding "), e.At.Sub(findingEpoch).Seconds()))
				if e.Node != "n1" || e.Level != monitor.LevelNotice || !strings.Contains(e.Text.Raw(), "n1: ") {
					t.Errorf("%+v", e)
				}
			}
			if s := strings.Join(got, ", "); s != c.want {
				t.Error(s)
			}
		})
	}
}

// A danger that has passed is cleared as soon the fifth time as the first: the verdict does not show it any more.
func TestADangerDoesNotOutlastItself(t *testing.T) {
	events, _ := film(t, goodScene(), time.Minute, func(s *scene, at time.Duration) {
		s.Cluster.Verdict, s.Cluster.CanLose = monitor.VerdictSafe, 2
		if at%(10*time.Second) < 3*time.Second && at < 50*time.Second {
			s.Cluster.Verdict, s.Cluster.CanLose = monitor.VerdictUnavailable, -1
		}
	})
	var closed []float64
	for _, e := range events {
		if e.Kind == "finding closed" && e.Node == "" {
			closed = append(closed, e.At.Sub(findingEpoch).Seconds())
		}
	}
	if len(closed) != 5 || closed[4] > 46 {
		t.Errorf("closed at %v: %v", closed, events)
	}
}

// A node that is down is not told as cleared while no-quorum or not-seen stands for it, but when it
// answers; one that goes down meanwhile has no finding of its own until a quorum is seen.
func TestANodeIsDownUntilItAnswers(t *testing.T) {
	for name, few := range map[string]func(c *monitor.Cluster){
		"no quorum": func(c *monitor.Cluster) { c.Verdict = monitor.VerdictUnavailable },
		"not seen":  func(c *monitor.Cluster) { c.Verdict, c.NotSeen = monitor.VerdictUnknown, true },
	} {
		events, left := film(t, goodScene(), time.Minute, func(s *scene, at time.Duration) {
			down := func(i int, from, to time.Duration) {
				if s.Nodes[i].State = monitor.NodeServing; at >= from && at < to {
					s.Nodes[i].State = monitor.NodeDown
				}
			}
			down(1, 0, 30*time.Second) // back while too few are seen
			down(2, 0, 50*time.Second)
			down(3, 10*time.Second, 50*time.Second)
			if s.Cluster.Verdict, s.Cluster.NotSeen = monitor.VerdictDegraded, false; at >= 10*time.Second && at < 40*time.Second {
				few(&s.Cluster)
			}
		})
		var got []string
		for _, e := range events {
			if e.Node != "" {
				got = append(got, fmt.Sprintf("%s %s %v", e.Node, strings.TrimPrefix(e.Kind, "finding "), e.At.Sub(findingEpoch).Seconds()))
			}
		}
		slices.Sort(got)
		if s := strings.Join(got, ", "); len(left) > 0 || s != "n2 closed 31.75, n2 opened 2, n3 closed 51.75, n3 opened 2, n4 closed 51.75, n4 opened 42" {
			t.Errorf("%s: %s, left %v", name, s, names(left))
		}
	}
}

// A finding that becomes more severe says so at once, and becomes less severe slowly.
func TestSeverityDoesNotFlicker(t *testing.T) {
	var seen []monitor.Severity
	s := goodScene()
	f := New(s.opt)
	for at := time.Duration(0); at < 10*time.Second; at += 250 * time.Millisecond {
		s.Nodes[0].Eviction, s.Nodes[0].Facts.MaxMemory = "volatile-lru", 0
		if at%(500*time.Millisecond) == 0 && at < 5*time.Second {
			s.Nodes[0].Facts.MaxMemory = 1 << 30
		}
		now := *s.Snapshot
		now.At = findingEpoch.Add(at)
		for _, x := range f.Look(&now, func(monitor.Event) {}) {
			if x.ID == "eviction-policy" && (len(seen) == 0 || seen[len(seen)-1] != x.Severity) {
				seen = append(seen, x.Severity)
			}
		}
	}
	if !slices.Equal(seen, []monitor.Severity{monitor.SeverityDanger, monitor.SeverityInfo}) {
		t.Error(seen)
	}
}

// While this process is stopped, nothing is checked: a problem seen just before has not
// lasted for that time, and one not seen just after is not gone.
func TestNothingRipensWhileNobodyLooks(t *testing.T) {
	s := goodScene()
	s.opt.Meant = []string{"no-guard"}
	f := New(s.opt)
	var told []string
	look := func(at time.Duration) {
		s.At = findingEpoch.Add(at)
		f.Look(s.Snapshot, func(e monitor.Event) { told = append(told, e.Kind+" "+e.Text.Raw()) })
	}
	split := func(key string) monitor.Lock { return lockOf(key, monitor.LockSplit, "a", "a", "a", "b", "b") }
	good := s.Locks
	look(0)
	told = nil
	s.Locks = monitor.NewLocks(split("job:1"))
	f.Note([]string{"job:1"})
	look(time.Second)
	f.Discontinued(clock.Discontinuity{At: findingEpoch.Add(11 * time.Second), Gap: 10 * time.Second})
	if look(11100 * time.Millisecond); len(told) != 1 || !strings.Contains(told[0], "console-stopped") {
		t.Fatalf("%q", told)
	}
	told = nil
	for at := 11300 * time.Millisecond; at < 14*time.Second; at += 200 * time.Millisecond {
		look(at)
	}
	if len(told) != 1 || !strings.Contains(told[0], "several-tokens") {
		t.Fatalf("%q", told)
	}
	told = nil
	f.Discontinued(clock.Discontinuity{At: findingEpoch.Add(30 * time.Second), Gap: 10 * time.Second})
	s.Locks = good // its copies must be read again
	look(30 * time.Second)
	look(32 * time.Second)
	s.Locks = monitor.NewLocks(split("job:1"))
	f.Note([]string{"job:1"})
	look(33 * time.Second)
	look(34 * time.Second)
	look(36 * time.Second)
	if len(told) != 0 {
		t.Errorf("%q", told)
	}
	s.Locks = good
	look(37 * time.Second)
	if look(40 * time.Second); len(told) != 1 || !strings.Contains(told[0], "cleared") {
		t.Errorf("%q", told)
	}
}

// severest returns the severity of the boot fence's finding of n4 at each moment while it is there,
// for a node that restarts.
func severest(t *testing.T, says func(s *scene, at time.Duration), restart time.Duration) map[time.Duration]monitor.Severity {
	t.Helper()
	open, s := map[time.Duration]monitor.Severity{}, goodScene()
	s.Nodes[3].StartedAfter = findingEpoch.Add(-time.Minute)
	f := New(s.opt)
	f.guard = func() monitor.GuardView { return *s.guard }
	for at := time.Duration(0); at <= 12*time.Second; at += 250 * time.Millisecond {
		s.Nodes[3].RunID = "earlier"
		if at >= restart {
			s.Nodes[3].RunID, s.Nodes[3].StartedAfter = "later", findingEpoch.Add(restart)
		}
		says(s, at)
		now := *s.Snapshot
		now.At, f.boots = findingEpoch.Add(at), s.boots
		for _, one := range f.Look(&now, func(monitor.Event) {}) {
			if one.ID == "boot-fence" && one.Node == "n4" {
				open[at] = one.Severity
			}
		}
	}
	return open
}
