package redlock

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestSleepDuringAnAttempt: the time that the machine sleeps counts in an attempt,
// which is granted no later than its deadline by any clock.
func TestSleepDuringAnAttempt(t *testing.T) {
	for name, x := range map[string]struct {
		slept time.Duration
		want  error
	}{
		"within the node timeout":  {30 * time.Millisecond, nil},
		"beyond the node timeout":  {60 * time.Millisecond, ErrNoQuorum},
		"beyond the validity":      {time.Minute, ErrExpired},
		"not at all":               {0, nil},
		"too short to be measured": {shortestSleep / 2, nil},
	} {
		t.Run(name, func(t *testing.T) {
			inMemory(t, 3, func(t *testing.T, nodes []*memNode, c *Client) {
				sleep := sleepy(c)
				for _, n := range nodes {
					n.away(10)
				}
				time.AfterFunc(5*time.Millisecond, func() { sleep(x.slept) })
				begin := time.Now()
				l, err := c.TryAcquire(t.Context(), "a", 10*time.Second)
				if !errors.Is(err, x.want) {
					t.Fatal(err)
				}
				if err == nil && l.Until().After(begin.Add(10*time.Second-c.opt.Drift(10*time.Second)-x.slept+shortestSleep)) {
					t.Errorf("valid until %s after the start", l.Until().Sub(begin))
				}
				time.Sleep(time.Second)
				if err != nil && (nodes[0].live() > 0 || nodes[1].live() > 0 || nodes[2].live() > 0) {
					t.Error("copies are left")
				}
			})
		})
	}
}

// TestSleepClock: it asks the system once in a while, and at once after a sleep.
func TestSleepClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads, slept := 0, time.Duration(0)
		c := newSleepClock(func() time.Duration { reads++; return slept })
		now := time.Now()
		for range 1000 {
			c.at(now)
			now = now.Add(time.Microsecond)
		}
		if reads > 2 {
			t.Errorf("read %d times in a millisecond", reads)
		}
		slept = time.Hour
		c.last.wall -= int64(time.Hour) // as if the wall clock alone had gone on since
		if got := c.at(now); got != time.Hour {
			t.Errorf("%s after a sleep of an hour", got)
		}
		if got := c.at(now.Add(sleepFresh)); got != time.Hour {
			t.Error(got)
		}
	})
}

func BenchmarkValid(b *testing.B) {
	l := &Lock{client: &Client{suspended: newSleepClock(suspended).suspended}, until: time.Now().Add(time.Hour)}
	for b.Loop() {
		if !l.Valid(time.Now()) {
			b.Fatal("not valid")
		}
	}
}
