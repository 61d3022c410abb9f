package observe

import (
	"slices"
	"testing"
	"time"

	"redlockctl/monitor"
	"redlockctl/server/announce"
)

// A guard announces the step of a clock that it saw. A view that begins later says the same of it, and does not
// announce it: it would never end.
func TestAStepIsAnnounced(t *testing.T) {
	const ttl = 28 * time.Second
	for _, by := range []time.Duration{12 * time.Second, -20 * time.Second} {
		start := time.Now()
		guard := newTestWorldWith(t, Options{MaxTTL: ttl}, start, "n1", "n2", "n3")
		now, ahead, said := start, [3]time.Duration{}, [3][]string{}
		answer := func(w *world) {
			w.beat = func() time.Time { return now }
			for i := range said {
				s := sight{sent: now, received: now.Add(time.Millisecond), server: now.Add(ahead[i]), info: master(), config: fence("0")}
				s.guards = &guardsSight{known: true, locks: announce.DecodeLocks(said[i]), step: announce.DecodeStep(said[i])}
				w.answered(i, s, now)
			}
			w.tick(now)
		}
		pass := func(d time.Duration) {
			for end := now.Add(d); now.Before(end); now = now.Add(200 * time.Millisecond) {
				answer(guard)
				for i := range said {
					said[i] = guard.vouches(i, now)
				}
			}
		}
		step := func(w *world) monitor.Facts { return w.nodes[0].Facts }
		pass(10 * time.Second)
		ahead[0] = by
		at := now
		pass(3 * time.Second)
		first := slices.Clone(said[0])
		pass(3 * time.Second)
		if !slices.Equal(first, said[0]) || len(first) != 1 {
			t.Errorf("%s: it is announced anew: %q, %q", by, first, said[0])
		}
		look := newTestWorldWith(t, Options{MaxTTL: ttl}, now, "n1", "n2", "n3")
		answer(look)
		if f := step(look); (f.StepBy-by).Abs() > 2*time.Millisecond || f.StepAt.Sub(at).Abs() > time.Second {
			t.Errorf("%s: it heard of a step by %s at %s, not at %s", by, f.StepBy, f.StepAt, at)
		}
		if len(look.vouches(0, now)) != 0 {
			t.Errorf("%s: %q", by, look.vouches(0, now))
		}
		was := step(look)
		answer(look)
		if step(look) != was {
			t.Errorf("%s: it heard of it again", by)
		}
		if !look.nodes[1].Facts.StepAt.IsZero() {
			t.Errorf("%s: another node's clock", by)
		}
		pass(2 * time.Minute)
		if len(said[0]) != 0 {
			t.Errorf("%s: it is still announced: %q", by, said[0])
		}
	}
}
