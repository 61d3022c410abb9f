package world

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"redlockctl/proof/sim/schedule"
)

func TestTheQueueIsInOrderOfTimeAndThenOfPushing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q queue
		q.reset()
		in, left := 0, 0
		var last event
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "push") {
				// Nothing is ever pushed into the past.
				q.push(event{at: last.at + time.Duration(rapid.IntRange(0, 5).Draw(t, "at")), x: time.Duration(in)})
				in++
				left++
				continue
			}
			e, ok := q.pop()
			if ok != (left > 0) {
				t.Fatalf("pop says %t with %d inside", ok, left)
			}
			if !ok {
				continue
			}
			left--
			if less(&e, &last) && last.seq != e.seq {
				t.Fatalf("%+v after %+v", e, last)
			}
			last = e
		}
	})
}

func TestAClockCanBeReadBackwards(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := clock{
			ppm:    int64(rapid.IntRange(-schedule.MaxPPM, schedule.MaxPPM).Draw(t, "ppm")),
			offset: time.Duration(rapid.Int64Range(-int64(time.Hour), int64(time.Hour)).Draw(t, "offset")),
		}
		local := time.Duration(rapid.Int64Range(0, int64(10*schedule.Horizon)).Draw(t, "local"))
		w := c.when(local)
		if c.at(w) > local || c.at(w+1) <= local {
			t.Fatalf("at %d the clock shows %d, and then %d; not %d", w, c.at(w), c.at(w+1), local)
		}
	})
}
