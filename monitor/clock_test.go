package monitor

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// wallClock is a node's clock: an offset at time 0 and a rate.
type wallClock struct {
	offset time.Duration
	ppm    float64
}

func (w wallClock) at(mono time.Duration) time.Duration {
	return w.offset + time.Duration(float64(mono)*w.ppm*1e-6)
}

// sample reads the clock at a moment within a round trip that begins at mono.
func (w wallClock) sample(base time.Time, mono, there, back time.Duration) clockSample {
	sent := base.Add(mono)
	received := sent.Add(there + back)
	server := base.Add(mono + there + w.at(mono+there)).Truncate(time.Microsecond)
	return sampleClock(base, base, sent, received, server)
}

func TestOffsetAndDriftLieWithinTheirBounds(t *testing.T) {
	base := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	trip := rapid.IntRange(0, 3_000_000) // ns, one way
	rapid.Check(t, func(t *rapid.T) {
		w := wallClock{
			offset: time.Duration(rapid.Int64Range(-int64(time.Hour), int64(time.Hour)).Draw(t, "offset")),
			ppm:    rapid.Float64Range(-400, 400).Draw(t, "ppm"),
		}
		var c clock
		var mono time.Duration
		for range rapid.IntRange(1, 400).Draw(t, "samples") {
			mono += 200 * time.Millisecond
			_, stepped, _ := c.observe(w.sample(base, mono, time.Duration(trip.Draw(t, "there")), time.Duration(trip.Draw(t, "back"))))
			if stepped {
				t.Fatal("a step of a steady clock")
			}
			at := mono + 100*time.Millisecond
			if e := c.estimate(at); !e.Valid || abs(e.Offset-w.at(at)) > e.Bound+time.Microsecond {
				t.Fatalf("offset %s ± %s, not %s", e.Offset, e.Bound, w.at(at))
			}
			d := c.drift()
			if want := mono > leastSpan+time.Second; want && !d.Valid {
				t.Fatalf("no drift after %s", mono)
			}
			if d.Valid && math.Abs(d.PPM-w.ppm) > d.Bound+0.01 {
				t.Fatalf("drift %f ± %f, not %f", d.PPM, d.Bound, w.ppm)
			}
		}
	})
}

// With the jitter of a loopback the drift is known to a fraction of a ppm after
// a minute.
func TestDriftAfterAMinute(t *testing.T) {
	base := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	w := wallClock{offset: -3 * time.Second, ppm: 37.25}
	var c clock
	rnd := uint64(1)
	jitter := func() time.Duration { // 20 to 120 µs
		rnd = rnd*6364136223846793005 + 1442695040888963407
		return time.Duration(20_000 + rnd>>33%100_000)
	}
	for k := range 300 {
		c.observe(w.sample(base, time.Duration(k)*200*time.Millisecond, jitter(), jitter()))
	}
	if d := c.drift(); !d.Valid || math.Abs(d.PPM-w.ppm) > 1 || d.Bound > 5 {
		t.Errorf("%+v", d)
	}
}

func TestAStepIsSeenByItsSecondSample(t *testing.T) {
	base := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, by := range []time.Duration{20 * time.Millisecond, -20 * time.Millisecond, time.Hour, -time.Hour} {
		w := wallClock{offset: time.Second, ppm: 20}
		var c clock
		mono := time.Duration(0)
		read := func() (time.Duration, bool, bool) {
			mono += 200 * time.Millisecond
			return c.observe(w.sample(base, mono, 300*time.Microsecond, 100*time.Microsecond))
		}
		for range 60 {
			read()
		}
		w.offset += by
		if _, stepped, suspect := read(); stepped || !suspect {
			t.Error("the first sample after a step is a suspicion")
		}
		got, stepped, _ := read()
		if !stepped || abs(got-by) > time.Millisecond {
			t.Errorf("%s, %t, not %s", got, stepped, by)
		}
		if e := c.estimate(mono); abs(e.Offset-w.at(mono)) > e.Bound || c.drift().Valid {
			t.Errorf("%+v %+v: the history before the step counts still", e, c.drift())
		}
	}
}

func TestOneBadSampleIsNoStep(t *testing.T) {
	base := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	good, bad := wallClock{offset: time.Second}, wallClock{offset: 2 * time.Second}
	var c clock
	for k := range 100 {
		w := good
		if k%10 == 9 {
			w = bad
		}
		if _, stepped, _ := c.observe(w.sample(base, time.Duration(k)*200*time.Millisecond, 1000, 1000)); stepped {
			t.Fatal("a step")
		}
	}
	if e := c.estimate(20 * time.Second); abs(e.Offset-time.Second) > e.Bound {
		t.Errorf("%+v", e)
	}
}

// A sample that took long says little: it lies within its own bound.
func TestASlowAnswerIsNoStep(t *testing.T) {
	base := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	w := wallClock{}
	var c clock
	for k := range 100 {
		there := 100 * time.Microsecond
		if k > 50 {
			there = 400 * time.Millisecond
		}
		if _, stepped, suspect := c.observe(w.sample(base, time.Duration(k)*time.Second, there, 0)); stepped || suspect {
			t.Fatal("a step")
		}
	}
}

func TestAChangeOfRateBeginsANewHistory(t *testing.T) {
	base := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	w := wallClock{}
	var c clock
	for k := range 900 {
		mono := time.Duration(k) * 200 * time.Millisecond
		if k == 300 { // slewing begins; the clock goes on from where it is
			w = wallClock{offset: -time.Duration(float64(mono) * 300e-6), ppm: 300}
		}
		if _, stepped, _ := c.observe(w.sample(base, mono, 100*time.Microsecond, 100*time.Microsecond)); stepped {
			t.Fatal("slewing is no step")
		}
	}
	if d := c.drift(); !d.Valid || math.Abs(d.PPM-300) > d.Bound+0.01 {
		t.Errorf("%+v", d)
	}
}

func TestOurOwnClock(t *testing.T) {
	var o ownClock
	mono := time.Duration(0)
	check := func(skew time.Duration) (time.Duration, bool) {
		mono += 250 * time.Millisecond
		return o.check(mono+skew, mono)
	}
	for k := range 100 { // slewed by 500 ppm
		if _, ok := check(time.Duration(k) * 125 * time.Microsecond); ok {
			t.Fatal("slewing is no jump")
		}
	}
	if _, ok := check(time.Second); ok {
		t.Error("one look is enough")
	}
	if _, ok := check(12 * time.Millisecond); ok {
		t.Error("a look that was interrupted counts")
	}
	check(time.Hour)
	if jump, ok := check(time.Hour); !ok || abs(jump-time.Hour) > 20*time.Millisecond {
		t.Error(jump, ok)
	}
	if _, ok := check(time.Hour); ok {
		t.Error("told twice")
	}
}
