package run

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"redlockctl/redlock"
)

// endingDriver is the part of [ending] that endsInTime uses; mutants override it.
type endingDriver interface {
	step(now time.Time, state redlock.KeeperState, until time.Time) (syscall.Signal, time.Time)
}

// Mutants of ending: each breaks one rule.
type (
	waitsForLoss struct{ *ending } // ignores uncertainty
	forgetsKill  struct{ *ending }
	fullPatience struct{ *ending } // always waits the whole time from SIGTERM to SIGKILL
	relents      struct{ *ending } // stops ending when the lock is extended after all
)

func (e waitsForLoss) step(now time.Time, state redlock.KeeperState, until time.Time) (syscall.Signal, time.Time) {
	if state != redlock.Lost {
		return 0, until
	}
	return e.ending.step(now, state, until)
}

func (e forgetsKill) step(now time.Time, state redlock.KeeperState, until time.Time) (syscall.Signal, time.Time) {
	s, wake := e.ending.step(now, state, until)
	if s == syscall.SIGKILL {
		s = 0
	}
	return s, wake
}

func (e fullPatience) step(now time.Time, state redlock.KeeperState, until time.Time) (syscall.Signal, time.Time) {
	return e.ending.step(now, state, until.Add(time.Hour))
}

func (e relents) step(now time.Time, state redlock.KeeperState, until time.Time) (syscall.Signal, time.Time) {
	if state == redlock.Held {
		return 0, until
	}
	return e.ending.step(now, state, until)
}

// endsInTime drives an ending through a random lock. It checks that a command which ignores
// SIGTERM is dead before the validity ends, and that it had as much time for SIGTERM as
// there was.
func endsInTime(seed uint64, mutant func(*ending) endingDriver) error {
	rnd := rand.New(rand.NewPCG(seed, 5))
	ttl := time.Duration(1+rnd.IntN(60)) * time.Second
	e := &ending{killAfter: time.Duration(rnd.Float64() * float64(ttl/2)), margin: endMargin(ttl)}
	d := mutant(e)
	now := time.Unix(1e9, 0)
	until := now.Add(ttl - ttl/100)
	state := redlock.Held
	failing := now.Add(time.Duration(rnd.Int64N(int64(10 * ttl)))) // extensions begin to fail
	recovers := rnd.IntN(3) == 0                                   // extensions work again after SIGTERM
	taken := failing.Add(time.Duration(rnd.Int64N(int64(ttl))))    // the token is found to be gone
	if rnd.IntN(2) == 0 {
		taken = until.Add(time.Hour * 1000)
	}
	next := now.Add(ttl / 3) // next extension
	var termed time.Time
	var patience time.Duration // time left when SIGTERM was sent
	for range 1000 {
		if !now.Before(until) && state != redlock.Lost {
			state = redlock.Lost
		}
		s, wake := d.step(now, state, until)
		switch s {
		case syscall.SIGTERM:
			if !termed.IsZero() {
				return errors.New("SIGTERM twice")
			}
			if state == redlock.Held {
				return fmt.Errorf("ended with %s of validity left, though nothing failed", until.Sub(now))
			}
			termed, patience = now, min(e.killAfter, until.Sub(now)-e.margin)
		case syscall.SIGKILL:
			switch {
			case until.Sub(now) < e.margin:
				return fmt.Errorf("SIGKILL %s before the end of validity", until.Sub(now))
			case termed.IsZero():
				return errors.New("SIGKILL without SIGTERM")
			case now.Sub(termed) < patience:
				return fmt.Errorf("SIGKILL %s after SIGTERM, there was time for %s", now.Sub(termed), patience)
			case now.Sub(termed) > e.killAfter:
				return fmt.Errorf("SIGKILL %s after SIGTERM, want %s", now.Sub(termed), e.killAfter)
			}
			return nil
		}
		if wake.Before(now) {
			return errors.New("it asks to be woken in the past")
		}
		// The earliest event comes next.
		for _, at := range []time.Time{next, taken, until} {
			if at.After(now) && at.Before(wake) {
				wake = at
			}
		}
		now = wake
		if now.Equal(taken) {
			state = redlock.Lost
		}
		if !now.Before(next) {
			next = now.Add(ttl / 30)
			if state != redlock.Lost {
				switch {
				case now.Before(failing), recovers && !termed.IsZero():
					state, until, next = redlock.Held, now.Add(ttl-ttl/100), now.Add(ttl/3)
				default:
					state = redlock.Uncertain
				}
			}
		}
	}
	return errors.New("never killed")
}

func TestEndingIsInTime(t *testing.T) {
	const seeds = 2000
	for seed := range uint64(seeds) {
		if err := endsInTime(seed, func(e *ending) endingDriver { return e }); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	for name, mutant := range map[string]func(*ending) endingDriver{
		"waits for the loss":     func(e *ending) endingDriver { return waitsForLoss{e} },
		"never kills":            func(e *ending) endingDriver { return forgetsKill{e} },
		"patient beyond the end": func(e *ending) endingDriver { return fullPatience{e} },
		"relents":                func(e *ending) endingDriver { return relents{e} },
		"no margin":              func(e *ending) endingDriver { return &ending{killAfter: e.killAfter} },
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(seeds) {
				if err := endsInTime(seed, mutant); err != nil {
					t.Logf("seed %d: %v", seed, err)
					return
				}
			}
			t.Error("not noticed")
		})
	}
}

// TestEndingAfterASleep: a process that was stopped or asleep past the time for SIGTERM
// sends SIGKILL at once.
func TestEndingAfterASleep(t *testing.T) {
	now := time.Unix(1e9, 0)
	for _, late := range []time.Duration{-50 * time.Millisecond, 0, time.Hour} {
		e := &ending{killAfter: 5 * time.Second, margin: 50 * time.Millisecond}
		if s, _ := e.step(now.Add(late), redlock.Lost, now); s != syscall.SIGKILL || !e.begun() {
			t.Errorf("%s after the end of validity: %v", late, s)
		}
	}
}

func TestKillAfterFitsIntoTheTTL(t *testing.T) {
	for _, test := range []struct {
		name  string
		given time.Duration
		set   bool
		ttl   time.Duration
		want  time.Duration // negative: an error is expected
	}{
		{"the default", 0, false, 30 * time.Second, 5 * time.Second},
		{"the default of a short TTL", 0, false, 2 * time.Second, 500 * time.Millisecond},
		{"at once", 0, true, 30 * time.Second, 0},
		{"half of the TTL", 15 * time.Second, true, 30 * time.Second, 15 * time.Second},
		{"more than that", 15*time.Second + 1, true, 30 * time.Second, -1},
		{"negative", -1, true, 30 * time.Second, -1},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := KillAfter(test.given, test.set, test.ttl)
			if refused := err != nil; refused != (test.want < 0) || !refused && got != test.want {
				t.Errorf("%s, %v", got, err)
			}
		})
	}
}

func TestExitCode(t *testing.T) {
	for status, want := range map[syscall.WaitStatus]int{0: 0, 3 << 8: 3, syscall.WaitStatus(syscall.SIGSEGV): 139} {
		if got := exitCode(status); got != want {
			t.Errorf("status %#x: %d, want %d", status, got, want)
		}
	}
}
