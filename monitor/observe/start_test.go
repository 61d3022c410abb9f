package observe

import (
	"testing"
	"time"

	"redlockctl/monitor/clock"
	"redlockctl/monitor/finding"
	"redlockctl/server/announce"
)

// A node that accepts writes right after its restart has no boot fence; one that was not
// seen meanwhile may have been fenced.
func TestARestartThatStartsUnfenced(t *testing.T) {
	for name, c := range map[string]struct {
		fence  string
		uptime string
		want   bool
	}{
		"open at once":          {"0", "0", true},
		"closed":                {"2147483647", "0", false},
		"out of sight for long": {"0", "31", false},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Now()
			w := newTestWorld(t, now, "n1")
			w.answered(0, sight{sent: now, received: now, info: master("uptime_in_seconds", "100"), config: fence("0")}, now)
			if !w.nodes[0].Facts.OpenAt.IsZero() {
				t.Fatal("the first sight is no restart")
			}
			w.answered(0, sight{sent: now, received: now, info: master("run_id", "two", "uptime_in_seconds", c.uptime), config: fence(c.fence)}, now)
			if got := !w.nodes[0].Facts.OpenAt.IsZero(); got != c.want {
				t.Error(got)
			}
		})
	}
}

// The start is never reported later than it was. It comes from the uptime, or from the
// last answer of the previous incarnation; without either it is unknown.
func TestAStartIsNotToldTooLate(t *testing.T) {
	now := time.Now()
	w := newTestWorld(t, now, "n1")
	see := func(at time.Time, run string, more ...string) time.Time {
		w.answered(0, sight{sent: at, received: at, info: master(append(more, "run_id", run)...), config: fence("0")}, at)
		return w.nodes[0].StartedAfter
	}
	if got := see(now, "one"); !got.IsZero() {
		t.Errorf("without an uptime: %s", got.Sub(now))
	}
	if got := see(now.Add(time.Minute), "two", "uptime_in_seconds", "50"); !got.Equal(now.Add(10*time.Second - uptimeBlur)) {
		t.Errorf("by its uptime: %s", got.Sub(now))
	}
	if got := see(now.Add(61*time.Second), "two", "uptime_in_seconds", "0"); !got.Equal(now.Add(10*time.Second - uptimeBlur)) {
		t.Errorf("of the same incarnation: %s", got.Sub(now))
	}
	if got := see(now.Add(62*time.Second), "three", "uptime_in_seconds", "0"); !got.Equal(now.Add(61 * time.Second)) {
		t.Errorf("since the one before answered: %s", got.Sub(now))
	}
	if got := see(now.Add(63*time.Second), "four"); !got.Equal(now.Add(62 * time.Second)) {
		t.Errorf("without an uptime, after another one: %s", got.Sub(now))
	}
}

// A fenced node rejoins when its guards announce it: a view that sees the node for the first
// time says the same as one that saw it start.
func TestAFencedNodeRejoinsAsAnnounced(t *testing.T) {
	now := time.Now()
	rejoins := now.Add(6 * time.Second).Truncate(time.Millisecond)
	guards := &guardsSight{known: true, all: []announce.Guard{{ID: "g", Delay: 6110 * time.Millisecond, MayVote: rejoins}}}
	for name, c := range map[string]struct {
		guards *guardsSight
		want   time.Time
	}{
		"announced":                        {guards, rejoins},
		"the last of two counts":           {&guardsSight{known: true, all: []announce.Guard{{ID: "g", Delay: 6110 * time.Millisecond, MayVote: rejoins.Add(-4 * time.Second)}, {ID: "h", Delay: 6110 * time.Millisecond, MayVote: rejoins}}}, rejoins},
		"nobody waits for more than a day": {&guardsSight{known: true, all: []announce.Guard{{ID: "g", Delay: 6110 * time.Millisecond, MayVote: rejoins}, {ID: "h", Delay: 6110 * time.Millisecond, MayVote: rejoins.Add(25 * time.Hour)}}}, rejoins},
		"not announced":                    {&guardsSight{known: true, all: []announce.Guard{{ID: "g", Delay: 6110 * time.Millisecond}}}, now.Add(-uptimeBlur + 6110*time.Millisecond)},
	} {
		w := newTestWorld(t, now, "n1")
		w.answered(0, sight{sent: now, received: now, server: now, info: master("uptime_in_seconds", "0"), config: fence("2147483647"), guards: c.guards}, now)
		if n := w.nodes[0].snapshot(now, 0, 0); n.RejoinsAfter.Sub(c.want).Abs() > 10*time.Millisecond {
			t.Errorf("%s: in %s, not in %s", name, n.RejoinsAfter.Sub(now), c.want.Sub(now))
		}
	}
}

// A guard on a busy host does not announce for a moment when a node rejoins: that is known all the same,
// until the server restarts, or our own clock may have stood still.
func TestTheTimeToRejoinStaysKnown(t *testing.T) {
	start := time.Now()
	now := start
	rejoins := now.Add(26 * time.Second).Truncate(time.Millisecond)
	w := newTestWorld(t, now, "n1")
	see := func(run string, mayVote time.Time) time.Time {
		now = now.Add(100 * time.Millisecond)
		guards := &guardsSight{known: true, all: []announce.Guard{{ID: "g", Delay: 5 * time.Second, MayVote: mayVote}}}
		w.answered(0, sight{sent: now, received: now, server: now, info: master("run_id", run, "uptime_in_seconds", "0"), config: fence("2147483647"), guards: guards}, now)
		return w.snapshot(now, 1).Nodes[0].RejoinsAfter
	}
	is := func(what string, got, want time.Time) {
		t.Helper()
		if got.Sub(want).Abs() > 10*time.Millisecond {
			t.Errorf("%s: in %s, not in %s", what, got.Sub(start), want.Sub(start))
		}
	}
	is("announced", see("one", rejoins), rejoins)
	is("not announced", see("one", time.Time{}), rejoins)
	is("announced again", see("one", rejoins.Add(time.Second)), rejoins.Add(time.Second))
	if got := see("two", time.Time{}); !got.Before(start.Add(6 * time.Second)) {
		t.Errorf("another incarnation: in %s", got.Sub(start))
	}
	see("two", rejoins)
	w.noteDiscontinuity(clock.Discontinuity{At: now, Jump: time.Hour})
	if got := see("two", time.Time{}); got.Equal(rejoins) {
		t.Error("known although our clock may have stood still")
	}
}

// What a guard on this host remembers of a start counts for that incarnation alone.
func TestARememberedStart(t *testing.T) {
	now := time.Now()
	w := newTestWorld(t, now, "n1")
	see := func(run string) announce.Boot {
		w.answered(0, sight{sent: now, received: now, info: master("run_id", run), config: fence("0")}, now)
		return w.snapshot(now, 1).Nodes[0].Remembered
	}
	w.nodes[0].booted(finding.BootSight{Guarded: true, RunID: "one", Started: announce.BootFenced})
	for _, c := range []struct {
		run  string
		want announce.Boot
	}{{"one", announce.BootFenced}, {"two", announce.BootUnknown}} {
		if got := see(c.run); got != c.want {
			t.Errorf("of %s: %s", c.run, got)
		}
	}
}

// A node starts fenced as its files say; as the memory on this host says only where no guard is seen, of
// which other views know as much.
func TestStartsFencedByMemory(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		memory, guards, want bool
	}{{false, false, true}, {false, true, true}, {true, false, true}, {true, true, false}} {
		w := newTestWorld(t, now, "n1")
		see := sight{sent: now, received: now, info: master("run_id", "one"), config: fence("0")}
		if c.guards {
			see.guards = &guardsSight{known: true, all: []announce.Guard{{ID: "g", Delay: time.Second}}}
		}
		w.answered(0, see, now)
		w.nodes[0].booted(finding.BootSight{Form: finding.BootFirm, ByMemory: c.memory})
		if got := w.snapshot(now, 1).Nodes[0].StartsFenced; got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
}

// A process that was stopped while it awaited the answers does not take the line for thin for long.
func TestTheNextWholeProbeIsNeverFar(t *testing.T) {
	if got := untilWhole(50*time.Millisecond, 5); got != 2*time.Second {
		t.Errorf("on a thin line %s", got)
	}
	if got := untilWhole(14*time.Second, 5); got > 30*time.Second {
		t.Errorf("after a stop %s", got)
	}
}
