package redlock

import (
	"sync"
	"time"
)

// shortestSleep is the shortest time that counts as a suspension of the machine: the
// clocks that measure it are not read at the same moment.
const shortestSleep = time.Millisecond

// sleptSince is how long the machine was suspended since suspended returned before.
func sleptSince(before time.Duration, suspended func() time.Duration) time.Duration {
	if d := suspended() - before; d >= shortestSleep {
		return d
	}
	return 0
}

// sleepClock reads how long the machine was suspended, at most once per sleepFresh,
// because that takes system calls. It still misses no suspension: meanwhile the wall
// clock advances and the monotonic clock does not, and both are read without a system
// call. If they disagree about the time since the last reading, it reads again. The
// wall clock decides nothing else.
type sleepClock struct {
	read func() time.Duration
	born time.Time

	mu   sync.Mutex   // a leaf: see the package's order of locks in client.go
	last sleepReading // zero: none yet
}

// sleepFresh is how long a reading counts.
const sleepFresh = time.Millisecond

type sleepReading struct {
	awake time.Duration // on the monotonic clock
	wall  int64         // in nanoseconds
	slept time.Duration
}

func newSleepClock(read func() time.Duration) *sleepClock {
	return &sleepClock{read: read, born: time.Now()}
}

// suspended is how long the machine was suspended in all.
func (c *sleepClock) suspended() time.Duration { return c.at(time.Now()) }

func (c *sleepClock) at(now time.Time) time.Duration {
	r := sleepReading{awake: now.Sub(c.born), wall: now.UnixNano()}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last.wall != 0 {
		awake := r.awake - c.last.awake
		apart := time.Duration(r.wall-c.last.wall) - awake
		if awake < sleepFresh && apart.Abs() < shortestSleep/2 {
			return c.last.slept
		}
	}
	r.slept = c.read()
	c.last = r
	return r.slept
}
