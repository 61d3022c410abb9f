package redlock_test

import (
	"testing"
	"time"

	"redlockctl/internal/lab/labtest"
	"redlockctl/redlock"
)

// TestFencingTokenOutlivesAClockThatWasAhead: the clock of a master is three days
// ahead for one grant and is corrected then. A day without use later the next
// number is greater all the same: no counter expires before the clock of its node
// has passed it.
func TestFencingTokenOutlivesAClockThatWasAhead(t *testing.T) {
	servers := labtest.ClockServers(t, 3)
	c := open(t, servers, patient())
	shift := func(i int, by time.Duration) {
		t.Helper()
		if err := servers[i].SetClock(by, 1); err != nil {
			t.Fatal(err)
		}
	}
	const ahead = 72 * time.Hour
	shift(0, ahead)
	next := func() uint64 {
		t.Helper()
		l, err := c.AcquireFenced(t.Context(), "job", 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Release(t.Context(), "job", l.Token()); err != nil {
			t.Fatal(err)
		}
		return l.FencingToken()
	}
	var last uint64
	for tries := 0; last < uint64(time.Now().Add(ahead-time.Hour).UnixMicro()); tries++ {
		if tries == 100 {
			t.Fatal("the master that is ahead is never among those whose numbers count")
		}
		last = next()
	}
	for i := range servers {
		shift(i, 25*time.Hour)
	}
	// The master that was ahead has its counter for longer: the others must, too.
	if err := servers[0].Kill(); err != nil {
		t.Fatal(err)
	}
	if n := next(); n <= last {
		t.Errorf("%d after %d: back by %s", n, last, time.Duration(last-n)*time.Microsecond)
	}
	// It does expire: when the clocks have passed the number by a day.
	shift(1, 4*24*time.Hour+time.Hour)
	shift(2, 4*24*time.Hour+time.Hour)
	for _, n := range labtest.Nodes(servers)[1:] {
		r := redlock.Connect(n, 1, 2*time.Second)
		defer r.Close()
		if keys, err := r.Exists(t.Context(), "redlockctl:fencing:job").Result(); err != nil || keys != 0 {
			t.Errorf("%s: %d counters are left, %v", n.Name(), keys, err)
		}
	}
}
