package redlock

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// keepMachine is what a driver needs of a [keeping]; mutants override it.
type keepMachine interface {
	next(now time.Time) (keepAction, time.Time)
	expire(now time.Time)
	extended(now, until time.Time, random float64)
	failed(now time.Time, err error, random float64)
	sees() *keepPlan
}

func (k *keepPlan) sees() *keepPlan { return k }

// Mutants of the machine, each of which breaks a rule.
type (
	endsWithTTL     struct{ *keepPlan }
	ignoresNotHeld  struct{ *keepPlan }
	revives         struct{ *keepPlan }
	countsNothing   struct{ *keepPlan }
	sleepsPastEnd   struct{ *keepPlan }
	neverTriesAgain struct{ *keepPlan }
	triesAgainLate  struct{ *keepPlan }
	forgetsTrouble  struct{ *keepPlan }
	extendsLate     struct{ *keepPlan }
)

func (k endsWithTTL) extended(now, until time.Time, random float64) {
	k.keepPlan.extended(now, until.Add(k.allowance), random)
}

func (k ignoresNotHeld) failed(now time.Time, err error, random float64) {
	k.keepPlan.failed(now, ErrNoQuorum, random)
}

func (k revives) extended(now, until time.Time, random float64) {
	k.keepPlan.extended(now, until, random)
	k.state, k.until = Held, until
}

func (k countsNothing) extended(now, until time.Time, random float64) {
	k.keepPlan.extended(now, until, random)
	k.made = 0
}

func (k sleepsPastEnd) next(now time.Time) (keepAction, time.Time) {
	act, wake := k.keepPlan.next(now)
	return act, wake.Add(time.Second)
}

func (k neverTriesAgain) failed(now time.Time, err error, random float64) {
	k.keepPlan.failed(now, err, random)
	k.due = time.Time{}
}

func (k triesAgainLate) failed(now time.Time, err error, random float64) {
	k.keepPlan.failed(now, err, random)
	k.due = now.Add(k.every)
}

func (k forgetsTrouble) failed(now time.Time, err error, random float64) {
	k.keepPlan.failed(now, err, random)
	if k.state == Uncertain {
		k.state = Held
	}
}

func (k extendsLate) extended(now, until time.Time, random float64) {
	k.keepPlan.extended(now, until, random)
	k.due = k.due.Add(k.every)
}

// driveKeeping drives a machine through random outcomes, and compares its answers with
// the truth.
func driveKeeping(seed uint64, mutant func(*keepPlan) keepMachine) error {
	rnd := rand.New(rand.NewPCG(seed, 3))
	ttl := time.Duration(1+rnd.IntN(60)) * time.Second
	allowance := ttl/100 + 2*time.Millisecond
	now := time.Unix(1e9, 0)
	limit := rnd.IntN(3) * 5
	until := now.Add(ttl - allowance)
	k := &keepPlan{ttl: ttl, allowance: allowance, every: ttl / 3, extensions: limit, until: until}
	k.plan(rnd.Float64())
	m := mutant(k)
	// The truth: until, and these.
	lost, uncertain := false, false
	made := 0
	last, failed := now, now // the beginning of the last extension, and the end of the last one that failed
	trouble := rnd.Float64()
	for step := range 400 {
		act, wake := m.next(now)
		over := lost || !now.Before(until)
		want := Held
		switch {
		case over:
			want = Lost
		case uncertain:
			want = Uncertain
		}
		if k.state != want {
			return fmt.Errorf("step %d: it says %s, it is %s", step, k.state, want)
		}
		switch {
		case over || limit > 0 && made >= limit:
		case !uncertain && now.Sub(last) > ttl/3, uncertain && now.Sub(failed) > min(ttl/30, time.Second):
			return fmt.Errorf("step %d: it is %s after the last extension, and %s after the last failure", step, now.Sub(last), now.Sub(failed))
		}
		switch {
		case act == keepEnd:
			if !over {
				return fmt.Errorf("step %d: ended while it is held", step)
			}
			return nil
		case act == keepWait:
			if wake.After(until) || !wake.After(now) {
				return fmt.Errorf("step %d: waits until %s after the end of validity", step, wake.Sub(until))
			}
			now = wake
			continue
		case limit > 0 && made >= limit:
			return fmt.Errorf("step %d: one extension more than %d", step, limit)
		}
		start := now
		now = now.Add(time.Duration(rnd.Int64N(int64(ttl / 10))))
		if rnd.IntN(3) == 0 {
			m.expire(now)
		}
		inTime := now.Before(until)
		switch r := rnd.Float64(); {
		case r > trouble: // the core takes care that it is in time, but a machine must not rely on it
			last = start
			m.extended(now, start.Add(ttl-allowance), rnd.Float64())
			if inTime {
				made, uncertain, until = made+1, false, start.Add(ttl-allowance)
			}
		case rnd.IntN(20) == 0:
			m.failed(now, &Error{Kind: ErrNotHeld}, rnd.Float64())
			lost = true
		default:
			m.failed(now, &Error{Kind: []error{ErrNoQuorum, ErrExpired}[rnd.IntN(2)]}, rnd.Float64())
			failed, uncertain = now, true
		}
		if !inTime {
			lost = true
		}
	}
	return nil
}

func TestKeepingMachine(t *testing.T) {
	const seeds = 2000
	for seed := range uint64(seeds) {
		if err := driveKeeping(seed, func(k *keepPlan) keepMachine { return k }); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	for name, mutant := range map[string]func(*keepPlan) keepMachine{
		"ends with the TTL":           func(k *keepPlan) keepMachine { return endsWithTTL{k} },
		"a token that is gone may be": func(k *keepPlan) keepMachine { return ignoresNotHeld{k} },
		"an extension revives":        func(k *keepPlan) keepMachine { return revives{k} },
		"counts no extension":         func(k *keepPlan) keepMachine { return countsNothing{k} },
		"sleeps past the end":         func(k *keepPlan) keepMachine { return sleepsPastEnd{k} },
		"never tries again":           func(k *keepPlan) keepMachine { return neverTriesAgain{k} },
		"tries again as usual":        func(k *keepPlan) keepMachine { return triesAgainLate{k} },
		"a failure is not told":       func(k *keepPlan) keepMachine { return forgetsTrouble{k} },
		"extends at two thirds":       func(k *keepPlan) keepMachine { return extendsLate{k} },
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(seeds) {
				if err := driveKeeping(seed, mutant); err != nil {
					t.Logf("seed %d: %v", seed, err)
					return
				}
			}
			t.Error("not noticed")
		})
	}
}
