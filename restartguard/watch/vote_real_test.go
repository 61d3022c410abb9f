package watch_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/internal/lab"
	"redlockctl/internal/lab/labtest"
	"redlockctl/restartguard"
	"redlockctl/restartguard/memory"
	"redlockctl/restartguard/oneshot"
	"redlockctl/restartguard/watch"
	"redlockctl/server/announce"
	"redlockctl/server/fences"
)

func memoryIn(t *testing.T, dir string) *memory.Store {
	t.Helper()
	m, err := memory.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

var startsFenced = []string{"--min-replicas-to-write", "2147483647", "--min-replicas-max-lag", "10"}

// A guard that restarts while it is cut off from the one with the greater D keeps that D, also
// where all that it knew of nodes is gone.
func TestADelayOutlivesTheGuardThatHeardIt(t *testing.T) {
	s := labtest.Servers(t, 1, startsFenced...)[0]
	const short, long = 200 * time.Millisecond, 2 * time.Second
	dir := t.TempDir()
	m := memoryIn(t, dir)
	right := guard(t, watch.Config{Delay: long}, s.Node())
	old := guard(t, watch.Config{Delay: short, Memory: m}, s.Node())
	old.becomes("that it knows of the other", func(st restartguard.NodeStatus) bool { return st.Delay == long })
	right.stop()
	old.stop()
	_ = m.Close()
	if err := os.Remove(filepath.Join(dir, "guard.json")); err != nil {
		t.Fatal(err)
	}
	m = memoryIn(t, dir)
	again := guard(t, watch.Config{Delay: short, Memory: m}, s.Node())
	again.becomes("that it knows of the other still", func(st restartguard.NodeStatus) bool { return st.Delay == long })
	born := restart(t, s)
	for !writes(t, s) {
		time.Sleep(time.Millisecond)
	}
	notBefore(t, long, born, time.Now())

	gone, err := memory.ForgetDelay(dir, right.ID()[:6])
	if err != nil || len(gone) != 1 || gone[0].Delay != long {
		t.Fatalf("%+v, %v", gone, err)
	}
	again.becomes("that an operator had it forgotten", func(st restartguard.NodeStatus) bool { return st.Delay == short })
	if all, err := memory.ReadDelays(dir); err != nil || len(all) != 0 {
		t.Errorf("on disk: %+v, %v", all, err)
	}
	if gone, err := memory.ForgetDelay(dir, "nobody"); err != nil || len(gone) != 0 {
		t.Errorf("%+v, %v", gone, err)
	}
}

func uncordon(t *testing.T, s *lab.Server) {
	t.Helper()
	if err := oneshot.Uncordon(t.Context(), s.Node(), fences.Method{}); err != nil {
		t.Fatal(err)
	}
}

func cordon(t *testing.T, s *lab.Server) {
	t.Helper()
	if err := oneshot.Cordon(t.Context(), s.Node(), fences.Method{}); err != nil {
		t.Fatal(err)
	}
	if kept, err := oneshot.AwaitKept(t.Context(), s.Node(), fences.Method{}); err != nil || !kept {
		t.Fatalf("kept: %v, %v", kept, err)
	}
}

// A guard that is ready to let a node rejoin waits for one that began to watch it later, and says until
// when.
func TestAGuardSaysForHowLongItWaitsForAnother(t *testing.T) {
	s := labtest.Servers(t, 1, startsFenced...)[0]
	const d = 3 * time.Second
	first := guard(t, watch.Config{Delay: d}, s.Node())
	first.becomes("fenced", func(st restartguard.NodeStatus) bool { return !st.Until.IsZero() })
	alone := first.Status()[0].Until
	first.becomes("waiting for a while", func(st restartguard.NodeStatus) bool { return time.Until(st.Until) < d-700*time.Millisecond })
	second := guard(t, watch.Config{Delay: d}, s.Node())
	second.becomes("fenced", func(st restartguard.NodeStatus) bool { return !st.Until.IsZero() })
	first.becomes("that it waits for the other", func(st restartguard.NodeStatus) bool { return st.Until.Sub(alone) > 600*time.Millisecond })
	if a, b := first.Status()[0].Until, second.Status()[0].Until; a.Sub(b).Abs() > 100*time.Millisecond {
		t.Errorf("they say %s and %s", a, b)
	}
	second.stop()
	first.becomes("that the other is gone", func(st restartguard.NodeStatus) bool { return st.Until.Equal(alone) })
}

// Neither a restart before the cordon nor one while it lasts is forgotten by an uncordon.
func TestUncordonCancelsNoDelay(t *testing.T) {
	for name, restarts := range map[string]bool{"a restart before": false, "a restart while cordoned": true} {
		t.Run(name, func(t *testing.T) {
			s := fenced(t)
			const d = time.Second
			g := guard(t, watch.Config{Delay: d}, s.Node())
			g.reaches(restartguard.PhaseServing)
			var born time.Time
			if !restarts {
				born = restart(t, s)
				g.reaches(restartguard.PhaseFenced)
			}
			cordon(t, s)
			if restarts {
				born = restart(t, s)
				old := g.Status()[0].RunID
				g.becomes("cordoned again", func(st restartguard.NodeStatus) bool {
					return st.Phase == restartguard.PhaseCordoned && st.RunID != old || !st.Until.IsZero()
				})
				cordon(t, s)
			}
			if until := g.Status()[0].Until; until.Before(born.Add(d)) {
				t.Errorf("a cordoned node is shown to be free to serve %s after its restart", until.Sub(born))
			}
			uncordon(t, s)
			for !writes(t, s) {
				time.Sleep(time.Millisecond)
			}
			notBefore(t, d, born, time.Now())
			if took := time.Since(born); took > 3*d {
				t.Errorf("it waited %s, not by the deadline from before", took)
			}
		})
	}
}

// A cordon that was set less than one poll before a crash outlives it, where the command has returned.
func TestACordonOutlivesACrash(t *testing.T) {
	s := fenced(t)
	g := guard(t, watch.Config{Delay: 200 * time.Millisecond, Poll: time.Second}, s.Node())
	g.reaches(restartguard.PhaseServing)
	cordon(t, s)
	restart(t, s)
	time.Sleep(time.Second)
	if writes(t, s) {
		t.Error("it serves")
	}
}

// A node without a copy forgets nothing when it restarts.
func TestADrainedNodeRejoinsAtOnce(t *testing.T) {
	s := fenced(t)
	const d = 4 * time.Second
	g := guard(t, watch.Config{Delay: d, Patterns: []string{"*"}}, s.Node())
	g.reaches(restartguard.PhaseServing)
	trusted := time.Now().Add(d) // what it lost before it was met nobody knows
	do(t, s, "SET", "lock", "token", "PX", 700)
	cordon(t, s)
	time.Sleep(200 * time.Millisecond)
	if g.Status()[0].Drained {
		t.Error("drained with a copy")
	}
	g.becomes("drained", func(st restartguard.NodeStatus) bool { return st.Drained })
	time.Sleep(time.Until(trusted))
	old, born := g.Status()[0].RunID, restart(t, s)
	g.becomes("cordoned again", func(st restartguard.NodeStatus) bool {
		return st.Phase == restartguard.PhaseCordoned && st.RunID != old
	})
	uncordon(t, s)
	for !writes(t, s) {
		time.Sleep(time.Millisecond)
	}
	if took := time.Since(born); took > d/2 {
		t.Errorf("it has waited %s", took)
	}
}

// A fence that somebody removes before its time is an alarm.
func TestAFenceThatIsRemovedEarlyIsAnAlarm(t *testing.T) {
	s := fenced(t)
	g := guard(t, watch.Config{Delay: 5 * time.Second}, s.Node())
	g.reaches(restartguard.PhaseServing)
	restart(t, s)
	g.reaches(restartguard.PhaseFenced)
	if err := oneshot.RejoinNow(t.Context(), s.Node(), fences.Method{}); err != nil {
		t.Fatal(err)
	}
	g.reaches(restartguard.PhaseServing)
	if text := g.tells("rejoined"); !strings.Contains(text, " early") {
		t.Errorf("told %q", text)
	}
	announces(t, s, "when it may vote", func(all []announce.Guard) bool {
		return len(all) == 1 && all[0].MayVote.After(time.Now().Add(3*time.Second))
	})
}

// Two guards, and a FLUSHALL whose trace CONFIG RESETSTAT removes before one of them has looked again: it waits for the
// other, which saw the flush.
func TestAGuardWaitsForOneThatSawALossThatItMissed(t *testing.T) {
	const d = 8 * time.Second // enough for the other guard to look meanwhile, on a busy machine
	s := fenced(t)
	proxy := labtest.NewProxy(t, s)
	saw := guard(t, watch.Config{Delay: d}, s.Node())
	missed := guard(t, watch.Config{Delay: d, Timeout: 10 * time.Second}, proxy.Node())
	saw.reaches(restartguard.PhaseServing)
	missed.reaches(restartguard.PhaseServing)
	restart(t, s)
	saw.reaches(restartguard.PhaseFenced)
	missed.reaches(restartguard.PhaseFenced)
	do(t, s, "CONFIG", "RESETSTAT")
	if !wait(func() bool { return commandCalls(t, s, "time") >= 6 }) { // both look again, at counters that are small now
		t.Fatal("the guards do not look")
	}
	proxy.Hold(labtest.ToServer)
	saw.reaches(restartguard.PhaseServing)
	do(t, s, "FLUSHALL")
	until := saw.becomes("closed and proven", func(st restartguard.NodeStatus) bool {
		return st.Phase == restartguard.PhaseFenced && st.Proven
	}).Until
	do(t, s, "CONFIG", "RESETSTAT")
	for range 300 {
		do(t, s, "PING")
	}
	proxy.Resume()
	waits := false
	for time.Until(until) > 100*time.Millisecond {
		if writes(t, s) {
			t.Fatalf("it serves %s before the guard that saw the flush lets it", time.Until(until))
		}
		waits = waits || strings.Contains(missed.Status()[0].Reason, "another guard lets it vote later")
		time.Sleep(2 * time.Millisecond)
	}
	if !waits {
		t.Errorf("the guard that missed it says %q", missed.Status()[0].Reason)
	}
	saw.reaches(restartguard.PhaseServing)
}

// Who announces that it waits for years keeps no node fenced; who announces a minute does.
func TestAGuardWaitsForOthersADayAtMost(t *testing.T) {
	for _, wait := range []time.Duration{time.Minute, 2 * announce.MostDelay} {
		s := fenced(t)
		g := guard(t, watch.Config{Delay: 300 * time.Millisecond}, s.Node())
		g.reaches(restartguard.PhaseServing)
		restart(t, s)
		other := announce.Guard{ID: "other", Delay: 300 * time.Millisecond, MayVote: time.Now().Add(wait)}
		c := redis.NewClient(&redis.Options{Addr: s.Addr()})
		defer c.Close()
		sub := c.Subscribe(t.Context(), other.Channel())
		defer sub.Close()
		if _, err := sub.Receive(t.Context()); err != nil {
			t.Fatal(err)
		}
		if wait > announce.MostDelay {
			g.reaches(restartguard.PhaseServing)
		} else {
			g.becomes("waiting for the other", func(st restartguard.NodeStatus) bool {
				return st.Phase == restartguard.PhaseFenced && strings.Contains(st.Reason, "another guard lets it vote later")
			})
			if until := g.Status()[0].Until; other.MayVote.Sub(until).Abs() > time.Second {
				t.Errorf("it says that the node rejoins at %s, and waits until %s", until, other.MayVote)
			}
		}
	}
}

// Who cordons a node and waits until a guard keeps the cordon does not override who ends it meanwhile.
func TestAnUncordonIsNotOverridden(t *testing.T) {
	s := fenced(t)
	g := guard(t, watch.Config{Delay: time.Second}, s.Node())
	g.reaches(restartguard.PhaseServing)
	g.stop()
	if err := oneshot.Cordon(t.Context(), s.Node(), fences.Method{}); err != nil {
		t.Fatal(err)
	}
	uncordon(t, s)
	if kept, err := oneshot.AwaitKept(t.Context(), s.Node(), fences.Method{}); kept || !errors.Is(err, oneshot.ErrNotFenced) {
		t.Errorf("kept: %v, %v", kept, err)
	}
	is, err := oneshot.Inspect(t.Context(), s.Node(), fences.Method{})
	if _, cordoned := is.Fenced(); err != nil || cordoned {
		t.Errorf("cordoned: %v, %v", cordoned, err)
	}
}
