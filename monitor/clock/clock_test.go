package clock

import (
	"math"
	"math/rand/v2"
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

// sample reads the clock at a moment within a round trip that starts at mono.
func (w wallClock) sample(base time.Time, mono, there, back time.Duration) Sample {
	sent := base.Add(mono)
	received := sent.Add(there + back)
	server := base.Add(mono + there + w.at(mono+there)).Truncate(time.Microsecond)
	return NewSample(base, base, sent, received, server)
}

func TestOffsetAndDriftLieWithinTheirBounds(t *testing.T) {
	base := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	trip := rapid.IntRange(0, 3_000_000) // ns, one way
	rapid.Check(t, func(t *rapid.T) {
		w := wallClock{
			offset: time.Duration(rapid.Int64Range(-int64(time.Hour), int64(time.Hour)).Draw(t, "offset")),
			ppm:    rapid.Float64Range(-400, 400).Draw(t, "ppm"),
		}
		var c Clock
		var mono time.Duration
		for range rapid.IntRange(1, 400).Draw(t, "samples") {
			mono += 200 * time.Millisecond
			_, stepped, _ := c.Observe(w.sample(base, mono, time.Duration(trip.Draw(t, "there")), time.Duration(trip.Draw(t, "back"))))
			if stepped {
				t.Fatal("a step of a steady clock")
			}
			at := mono + 100*time.Millisecond
			if e := c.Estimate(at); !e.Valid || (e.Offset-w.at(at)).Abs() > e.Bound+time.Microsecond {
				t.Fatalf("offset %s ± %s, not %s", e.Offset, e.Bound, w.at(at))
			}
			d := c.Drift()
			if want := mono > leastSpan+time.Second; want && !d.Valid {
				t.Fatalf("no drift after %s", mono)
			}
			if d.Valid && math.Abs(d.PPM-w.ppm) > d.Bound+0.01 {
				t.Fatalf("drift %f ± %f, not %f", d.PPM, d.Bound, w.ppm)
			}
		}
	})
}

// trip returns the one-way time of a round trip on a loaded machine: usually tens of
// microseconds, sometimes milliseconds.
func trip(rnd *rand.Rand) time.Duration {
	d := 20*time.Microsecond + time.Duration(rnd.ExpFloat64()*float64(60*time.Microsecond))
	switch rnd.IntN(50) {
	case 0, 1, 2, 3, 4:
		d += time.Duration(rnd.ExpFloat64() * float64(time.Millisecond))
	case 5:
		d += time.Duration(rnd.ExpFloat64() * float64(20*time.Millisecond))
	}
	return d
}

// Under the jitter of a loaded loopback, the drift is known to 1 ppm rms after a minute,
// and its bound holds.
func TestDriftAfterAMinute(t *testing.T) {
	base := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	const runs = 20
	var squares, worst float64
	for seed := range uint64(runs) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		w := wallClock{offset: -3 * time.Second, ppm: 400*rnd.Float64() - 200}
		var c Clock
		for k := range 300 {
			if _, stepped, _ := c.Observe(w.sample(base, time.Duration(k)*200*time.Millisecond, trip(rnd), trip(rnd))); stepped {
				t.Fatal("a step")
			}
		}
		d := c.Drift()
		off := d.PPM - w.ppm
		if !d.Valid || math.Abs(off) > d.Bound {
			t.Fatalf("%+v, not %f", d, w.ppm)
		}
		squares += off * off
		worst = max(worst, math.Abs(off))
	}
	rms := math.Sqrt(squares / runs)
	t.Logf("drift after a minute: %.2f ppm rms, %.2f at worst", rms, worst)
	if rms > 1 {
		t.Errorf("%f ppm rms", rms)
	}
}

// A step of 20 ms is seen within 300 ms by the probe's own schedule: a sample
// every 200 ms, and one soon after a suspicious one.
func TestAStepIsSeenSoon(t *testing.T) {
	base := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		w := wallClock{offset: time.Second, ppm: 100*rnd.Float64() - 50}
		by := 20 * time.Millisecond
		if seed%2 == 1 {
			by = -by
		}
		at := 10*time.Second + time.Duration(rnd.Int64N(int64(10*time.Second)))
		var c Clock
		var seen time.Duration
		moved := false
		for mono := time.Duration(0); mono < at+time.Second && seen == 0; {
			if mono >= at && !moved {
				w.offset, moved = w.offset+by, true
			}
			there, back := 20*time.Microsecond+time.Duration(rnd.ExpFloat64()*float64(200*time.Microsecond)), 50*time.Microsecond
			_, stepped, suspect := c.Observe(w.sample(base, mono, there, back))
			if stepped {
				seen = mono + there + back
			}
			pause := 200 * time.Millisecond
			if suspect {
				pause = 20 * time.Millisecond
			}
			mono += pause
		}
		if took := seen - at; seen == 0 || took < 0 || took > 300*time.Millisecond {
			t.Fatalf("seen after %s", took)
		}
	}
}

// There is no false step in an hour of jitter at the probe's pace, nor in a day with
// pauses, stalls and a time daemon that changes the rate.
func TestNoFalseStep(t *testing.T) {
	base := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		every, whole time.Duration
		nasty        bool
	}{
		"an hour":        {200 * time.Millisecond, time.Hour, false},
		"an hour, nasty": {200 * time.Millisecond, time.Hour, true},
		"a day, nasty":   {2 * time.Second, 24 * time.Hour, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rnd := rand.New(rand.NewPCG(3, 3))
			w := wallClock{offset: 42 * time.Second, ppm: 30}
			var k Clock
			for mono := time.Duration(0); mono < c.whole; mono += c.every {
				there, back := trip(rnd), trip(rnd)
				if c.nasty {
					switch rnd.IntN(1000) {
					case 0, 1: // slewed, perhaps unobserved: the clock continues from its value
						ppm := 1000*rnd.Float64() - 500
						w.offset += time.Duration(float64(mono) * (w.ppm - ppm) * 1e-6)
						w.ppm = ppm
						mono += time.Duration(rnd.Int64N(2)) * time.Duration(rnd.Int64N(int64(5*time.Minute)))
					case 2, 3, 4: // a stall one way, or both
						there += time.Duration(rnd.Int64N(int64(time.Second)))
						back += time.Duration(rnd.Int64N(2)) * time.Duration(rnd.Int64N(int64(time.Second)))
					}
				}
				if by, stepped, _ := k.Observe(w.sample(base, mono, there, back)); stepped {
					t.Fatalf("a step of %s after %s", by, mono)
				}
				if e := k.Estimate(mono); (e.Offset - w.at(mono)).Abs() > e.Bound+StepMargin {
					t.Fatalf("offset %s ± %s, not %s", e.Offset, e.Bound, w.at(mono))
				}
			}
		})
	}
}

func TestAStepIsSeenByItsSecondSample(t *testing.T) {
	base := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, by := range []time.Duration{20 * time.Millisecond, -20 * time.Millisecond, time.Hour, -time.Hour} {
		w := wallClock{offset: time.Second, ppm: 20}
		var c Clock
		mono := time.Duration(0)
		read := func() (time.Duration, bool, bool) {
			mono += 200 * time.Millisecond
			return c.Observe(w.sample(base, mono, 300*time.Microsecond, 100*time.Microsecond))
		}
		for range 60 {
			read()
		}
		w.offset += by
		if _, stepped, suspect := read(); stepped || !suspect {
			t.Error("the first sample after a step is a suspicion")
		}
		got, stepped, _ := read()
		if !stepped || (got-by).Abs() > time.Millisecond {
			t.Errorf("%s, %t, not %s", got, stepped, by)
		}
		if e := c.Estimate(mono); (e.Offset-w.at(mono)).Abs() > e.Bound || c.Drift().Valid {
			t.Errorf("%+v %+v: the history before the step counts still", e, c.Drift())
		}
	}
}

func TestOneBadSampleIsNoStep(t *testing.T) {
	base := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	good, bad := wallClock{offset: time.Second}, wallClock{offset: 2 * time.Second}
	var c Clock
	for k := range 100 {
		w := good
		if k%10 == 9 {
			w = bad
		}
		if _, stepped, _ := c.Observe(w.sample(base, time.Duration(k)*200*time.Millisecond, 1000, 1000)); stepped {
			t.Fatal("a step")
		}
	}
	if e := c.Estimate(20 * time.Second); (e.Offset - time.Second).Abs() > e.Bound {
		t.Errorf("%+v", e)
	}
}

// A slow sample says little: it lies within its own bound.
func TestASlowAnswerIsNoStep(t *testing.T) {
	base := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	w := wallClock{}
	var c Clock
	for k := range 100 {
		there := 100 * time.Microsecond
		if k > 50 {
			there = 400 * time.Millisecond
		}
		if _, stepped, suspect := c.Observe(w.sample(base, time.Duration(k)*time.Second, there, 0)); stepped || suspect {
			t.Fatal("a step")
		}
	}
}

func TestAChangeOfRateBeginsANewHistory(t *testing.T) {
	base := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	w := wallClock{}
	var c Clock
	for k := range 900 {
		mono := time.Duration(k) * 200 * time.Millisecond
		if k == 300 { // slewing starts; the clock continues from its value
			w = wallClock{offset: -time.Duration(float64(mono) * 300e-6), ppm: 300}
		}
		if _, stepped, _ := c.Observe(w.sample(base, mono, 100*time.Microsecond, 100*time.Microsecond)); stepped {
			t.Fatal("slewing is no step")
		}
	}
	if d := c.Drift(); !d.Valid || math.Abs(d.PPM-300) > d.Bound+0.01 {
		t.Errorf("%+v", d)
	}
}

// This process was stopped if it sent no heartbeat for longer than the probes allow; the
// time before the first heartbeat does not count.
func TestOurOwnStop(t *testing.T) {
	var o Own
	most := 2 * time.Second
	for _, c := range []struct {
		at   time.Duration
		want bool
	}{{10 * time.Second, false}, {10200 * time.Millisecond, false}, {12 * time.Second, false}, {14001 * time.Millisecond, true}, {14 * time.Second, false}, {16001 * time.Millisecond, false}, {time.Hour, true}, {time.Hour, false}} {
		if _, got := o.Alive(c.at, most); got != c.want {
			t.Errorf("%s: %t", c.at, got)
		}
	}
}

func TestOurOwnClock(t *testing.T) {
	var o Own
	mono := time.Duration(0)
	check := func(skew time.Duration) (time.Duration, bool) {
		mono += 250 * time.Millisecond
		return o.Check(mono+skew, mono)
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
	if jump, ok := check(time.Hour); !ok || (jump-time.Hour).Abs() > 20*time.Millisecond {
		t.Error(jump, ok)
	}
	if _, ok := check(time.Hour); ok {
		t.Error("told twice")
	}
}
