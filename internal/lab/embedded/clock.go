package embedded

import (
	"sync"
	"time"
)

// Clock is the wall clock of one embedded master: it has an offset from the clock of
// this process and its own rate. It continues through a crash, as the clock of a
// machine does.
type Clock struct {
	mu     sync.Mutex
	anchor time.Time     // a moment of the local clock, with its monotonic reading
	offset time.Duration // from the local clock at the anchor
	ppm    float64       // how much faster it runs
}

// NewClock returns the clock of master i: for each i < 71 a different offset within
// ±3.5 ms, and a rate within ±10 ppm.
func NewClock(i int, now time.Time) *Clock {
	return &Clock{
		anchor: now,
		offset: time.Duration(i*37%71-35) * 100 * time.Microsecond,
		ppm:    float64(i*29%41-20) / 2,
	}
}

// At returns the clock's time at the local time now.
func (c *Clock) At(now time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	elapsed := now.Sub(c.anchor)
	drift := time.Duration(float64(elapsed) * c.ppm / 1e6)
	return c.anchor.Round(0).Add(elapsed + drift + c.offset)
}

// Adjust makes the clock show now + offset at the local time now; its rate stays.
func (c *Clock) Adjust(now time.Time, offset time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.anchor, c.offset = now, offset
}
