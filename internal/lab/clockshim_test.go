package lab_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"redlockctl/internal/lab"
	"redlockctl/internal/lab/labtest"
)

// serverTime is what TIME says, and how far that is from this process's wall
// clock, at least and at most.
func serverTime(t *testing.T, s *lab.Server) (least, most time.Duration) {
	t.Helper()
	before := time.Now().UnixMicro()
	answer, err := s.Do(t.Context(), "TIME")
	after := time.Now().UnixMicro()
	if err != nil {
		t.Fatal(err)
	}
	var parts [2]int64
	for i, p := range answer.([]any) {
		if parts[i], err = strconv.ParseInt(fmt.Sprint(p), 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	at := parts[0]*1e6 + parts[1]
	return time.Duration(at-after) * time.Microsecond, time.Duration(at-before) * time.Microsecond
}

// isOff fails unless the server's clock may be off by d. A millisecond is allowed,
// since a server answers with the time that it last read.
func isOff(t *testing.T, s *lab.Server, d time.Duration) {
	t.Helper()
	least, most := serverTime(t, s)
	if d < least-time.Millisecond || d > most+time.Millisecond {
		t.Errorf("off by %s to %s, not by %s", least, most, d)
	}
}

func TestClockSteps(t *testing.T) {
	s := labtest.ClockServers(t, 1)[0]
	isOff(t, s, 0)
	for _, offset := range []time.Duration{time.Second, -time.Second, 30 * time.Second, 0} {
		if err := s.SetClock(offset, 1); err != nil {
			t.Fatal(err)
		}
		isOff(t, s, offset)
	}
}

func TestClockRate(t *testing.T) {
	s := labtest.ClockServers(t, 1)[0]
	from := time.Now()
	if err := s.SetClock(0, 1.01); err != nil {
		t.Fatal(err)
	}
	set := time.Now()
	time.Sleep(500 * time.Millisecond) // the clock of a real server has to run
	asked := time.Now()
	least, most := serverTime(t, s)
	// At the time of the reading the rate has been in force for this long.
	short, long := asked.Sub(set), time.Since(from)
	if most+time.Millisecond < short/100 || least-time.Millisecond > long/100 {
		t.Errorf("off by %s to %s after %s to %s at a rate of 1.01", least, most, short, long)
	}
	for _, rate := range []float64{0, -1, 11} {
		if err := s.SetClock(0, rate); err == nil {
			t.Errorf("a rate of %g was accepted", rate)
		}
	}
}

// A forward step ends a lock before its time, and a clock that was set stays so
// over a restart.
func TestClockStepExpires(t *testing.T) {
	s := labtest.ClockServers(t, 1)[0]
	for _, lock := range []struct{ name, ttl string }{{"short", "20000"}, {"long", "60000"}} {
		if _, err := s.Do(t.Context(), "SET", lock.name, "token", "NX", "PX", lock.ttl); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.SetClock(30*time.Second, 1); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Do(t.Context(), "EXISTS", "short"); err != nil || n != int64(0) {
		t.Errorf("a lock of 20s after a step of 30s: %v %v", n, err)
	}
	switch left, err := s.Do(t.Context(), "PTTL", "long"); {
	case err != nil:
		t.Error(err)
	case left.(int64) < 1 || left.(int64) > 30000:
		t.Errorf("a lock of 60s has %v ms left after a step of 30s", left)
	}
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	isOff(t, s, 30*time.Second)
}

// The monotonic clock of the server, and with it its event loop, does not see
// the steps: a server that is set back goes on working.
func TestClockBackwards(t *testing.T) {
	s := labtest.ClockServers(t, 1)[0]
	for _, offset := range []time.Duration{-time.Hour, time.Hour, -time.Hour} {
		if err := s.SetClock(offset, 1); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		_, err := s.Do(ctx, "BLPOP", "nothing", "0.05")
		cancel()
		if err == nil || err.Error() != "redis: nil" {
			t.Errorf("BLPOP at %s: %v", offset, err)
		}
	}
}

func TestClockOfTheMachine(t *testing.T) {
	s := labtest.Servers(t, 1)[0]
	if err := s.SetClock(time.Second, 1); !errors.Is(err, lab.ErrNoClock) {
		t.Errorf("a server without a clock of its own: %v", err)
	}
}
