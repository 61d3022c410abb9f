package restartguard

import (
	"encoding/json"
	"redlockctl/server/fences"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const bootNow = 5 * time.Hour

// waiting is the state of a node that waits, one second into D.
func waiting(t *testing.T) State {
	return newScript(t).sees("a", servingParams).sees("b", fenced).canary(CanaryFenced, fenced).state
}

func TestAGuardGoesOnWhereTheLastOneEnded(t *testing.T) {
	old := waiting(t)
	r := old.Record("addr", fences.Method{}.ID(), epoch.Add(time.Second), bootNow)
	t.Run("in the same boot the deadline stays where it was", func(t *testing.T) {
		// 3 s later by the boot clock, on another process' monotonic clock.
		now := epoch.Add(777 * time.Hour)
		s := &script{t: t, policy: Policy{Delay: testDelay}, state: r.State(now, bootNow+3*time.Second, testDelay, true), now: now}
		s.sees("b", fenced).phase(PhaseFenced).does(proveIt("b"))
		if wait := s.state.Basis.Deadline.Sub(now); wait != testDelay-4*time.Second {
			t.Fatalf("waits for %s", wait)
		}
		s.after(testDelay-4*time.Second-1).sees("b", fenced).does(proveIt("b")).after(1).sees("b", fenced).does(removeIt("b"))
	})
	t.Run("in another boot D counts from now", func(t *testing.T) {
		now := epoch.Add(777 * time.Hour)
		s := &script{t: t, policy: Policy{Delay: testDelay}, state: r.State(now, time.Minute, testDelay, false), now: now}
		if s.state.Basis.Deadline != now.Add(testDelay) {
			t.Fatalf("deadline %s from now", s.state.Basis.Deadline.Sub(now))
		}
		s.sees("b", fenced).phase(PhaseFenced)
		if wait := s.state.Basis.Deadline.Sub(now); wait != testDelay {
			t.Fatalf("waits for %s", wait)
		}
	})
	t.Run("a node that restarted meanwhile waits D from now", func(t *testing.T) {
		now := epoch.Add(777 * time.Hour)
		s := &script{t: t, policy: Policy{Delay: testDelay}, state: r.State(now, bootNow+time.Second, testDelay, true), now: now}
		s.sees("c", servingParams).phase(PhaseExposed).does(raiseIt("c")).told("restart", "b → c")
		if wait := s.state.Basis.Deadline.Sub(now); wait != testDelay {
			t.Fatalf("waits for %s", wait)
		}
	})
	t.Run("a node that was open and restarted meanwhile is closed, also in another boot", func(t *testing.T) {
		open := newScript(t).sees("a", servingParams).state.Record("addr", fences.Method{}.ID(), epoch, bootNow)
		for _, same := range []bool{true, false} {
			s := &script{t: t, policy: Policy{Delay: testDelay}, state: open.State(epoch, bootNow, testDelay, same), now: epoch}
			s.sees("b", servingParams).phase(PhaseExposed).does(raiseIt("b")).until(testDelay)
		}
	})
	t.Run("a node that was being closed is closed", func(t *testing.T) {
		exposed := newScript(t).sees("a", servingParams).sees("b", servingParams).state.Record("addr", fences.Method{}.ID(), epoch, bootNow)
		s := &script{t: t, policy: Policy{Delay: testDelay}, state: exposed.State(epoch, bootNow, testDelay, true), now: epoch}
		s.sees("b", servingParams).phase(PhaseExposed).does(raiseIt("b"))
	})
	t.Run("a hold outlives guard and server", func(t *testing.T) {
		r := newScript(t).sees("a", cordoned).state.Record("addr", fences.Method{}.ID(), epoch, bootNow)
		s := &script{t: t, policy: Policy{Delay: testDelay}, state: r.State(epoch, 1, testDelay, false), now: epoch}
		s.sees("b", fenced).does(cordonIt("b"))
	})
	for name, c := range map[string]struct {
		away, step time.Duration
		loss       bool
	}{
		"a step of the clock behind its back is a loss":          {2 * time.Second, time.Second, true},
		"also after it was away for long":                        {time.Hour, 30 * time.Second, true},
		"a clock that went on is none":                           {2 * time.Second, 0, false},
		"one that drifted apart while nobody looked for an hour": {time.Hour, time.Hour * 2 / 10_000, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newScript(t).wall(tick, 0, time.Millisecond).state.Record("addr", fences.Method{}.ID(), epoch, bootNow)
			s := &script{t: t, policy: Policy{Delay: testDelay}, state: r.State(epoch, r.ClockAt+c.away, testDelay, true)}
			s.wall(tick+c.away, c.step, time.Millisecond) // the first observation shows it
			if s.has("clock", "forward") != c.loss {
				t.Fatalf("%+v", s.events)
			}
		})
	}
	t.Run("a deadline that is further away than D counts as none", func(t *testing.T) {
		r := r
		r.Deadline = bootNow + 1000*time.Hour
		if got := r.State(epoch, bootNow, testDelay, true).Basis.Deadline.Sub(epoch); got != testDelay {
			t.Fatalf("waits for %s", got)
		}
	})
	t.Run("another method has to close what waits", func(t *testing.T) {
		s := &script{t: t, policy: Policy{Delay: testDelay}, state: r.State(epoch, bootNow, testDelay, true).Moved(), now: epoch}
		s.sees("b", servingParams).phase(PhaseExposed).does(raiseIt("b"))
	})
}

// TestMemoryNeverHurries kills the guard at any moment, and lets any time pass,
// on a boot clock that goes on while the monotonic clock stops.
func TestMemoryNeverHurries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		delay := time.Duration(rapid.IntRange(1, 1000).Draw(t, "delay"))
		p := Policy{Delay: delay}
		now, boot := epoch, bootNow
		var s State
		var seen string
		var lost time.Duration // on the boot clock
		bootOK := true
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			d := time.Duration(rapid.IntRange(0, 600).Draw(t, "pass"))
			now, boot = now.Add(d), boot+d
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0: // the guard is killed and starts again, after a while
				r := s.Record("addr", fences.Method{}.ID(), now, boot)
				away := time.Duration(rapid.IntRange(0, 600).Draw(t, "away"))
				boot += away
				now = epoch.Add(time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "clock")))
				if bootOK = rapid.Bool().Draw(t, "same boot"); !bootOK {
					boot = time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(t, "boot"))
					lost = boot // what the other boot said means nothing
				}
				if s.Basis.RunID != "" {
					s = r.State(now, boot, delay, bootOK)
				}
			default:
				run := rapid.SampledFrom([]string{"a", "a", "a", "b"}).Draw(t, "run")
				if run != seen {
					seen, lost = run, boot
				}
				var actions []Action
				s, actions, _ = Step(p, s, Observation{About: Seen, RunID: run, Role: "master", Params: fenced}, now)
				for _, a := range actions {
					if a.Kind == Remove && boot-lost < delay {
						t.Fatalf("a lift %s after the loss, D is %s", boot-lost, delay)
					}
				}
			}
		}
	})
}

func TestRecordKeepsWhatIsDurable(t *testing.T) {
	old := waiting(t)
	old.Basis.Wipes, old.Basis.Evicted, old.Basis.Revert, old.Report.Incarnations, old.Report.Exposed = 3, 4, 1, 5, time.Second
	old.Basis.Pending, old.Basis.Former = InFlightCommand{Sent: true, Removal: true, Conn: 7}, "f"
	back := old.Record("addr", fences.Method{}.ID(), epoch, bootNow).State(epoch, bootNow, testDelay, true)
	if got, want := back.Durable(), old.Durable(); !got.Basis.Deadline.Equal(want.Basis.Deadline) {
		t.Fatalf("deadline %s, want %s", got.Basis.Deadline, want.Basis.Deadline)
	} else if got.Basis.Deadline = want.Basis.Deadline; !reflect.DeepEqual(got, want) {
		t.Fatalf("got  %+v\nwant %+v", got, want)
	}
}

// What earlier versions have written of a node is read.
func TestTheRecordsNamesStay(t *testing.T) {
	const written = `{"addr":"h:1","fence":"min-replicas","run_id":"a","role":"master","wipes":1,"evicted":2,"cause":"restarted","hold":true,"owed":3,
		"revert":4,"known":true,"verified":true,"lives":5,"opened":true,"leaked":true,"open":true,"exposed_ns":6,"at_start":true,
		"boot_exposed_ns":7,"deadline_ns":8,"delay_ns":9,"open_since_ns":10,"last_seen_ns":11,"clock":{"Sent":1,"Got":2,"Wall":3,"Denied":false},
		"clock_at_ns":12,"clock_drift_ns":13,"astray":true,"astray_lift":true,"astray_conn":14,"astray_until_ns":15,"commands":16,
		"former":"f","counter":17,"counter_until_ns":18}`
	var got Record
	if err := json.Unmarshal([]byte(written), &got); err != nil {
		t.Fatal(err)
	}
	want := Record{
		Addr: "h:1", Fence: "min-replicas",
		Incarnation: Incarnation{RunID: "a", Role: "master", Wipes: 1, Evicted: 2, Commands: 16, Former: "f"},
		Cordoned:    true, Owed: 3, Fencing: Fencing{Revert: 4, Leaked: true, Delay: 9},
		Starts: Starts{Known: true, Verified: true, Incarnations: 5, Served: true, Unfenced: true, Exposed: 6, AtStart: true, BootExposed: 7,
			Cause: "restarted"},
		ClockBase: ClockBase{Clock: Reading{Sent: 1, Got: 2, Wall: 3}, ClockAt: 12, ClockDrift: 13},
		Deadline:  8, OpenSince: 10, LastSeen: 11, PendingSent: true, PendingRemoval: true, PendingConn: 14, PendingUntil: 15,
		Counter: 17, CounterUntil: 18,
	}
	if got != want {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}
