package redlock

import (
	"time"

	"golang.org/x/sys/unix"
)

// suspended is for how long the machine has slept since it was started: what
// CLOCK_BOOTTIME counts and CLOCK_MONOTONIC, on which Go's time is based, does
// not. It is exact to the time between two readings of a clock; of a few tries
// the one that was interrupted least counts. 0 where the clocks cannot be read.
func suspended() time.Duration {
	const good, tries = 20 * time.Microsecond, 5
	var best, slept time.Duration
	for try := range tries {
		before, err1 := clock(unix.CLOCK_MONOTONIC)
		boot, err2 := clock(unix.CLOCK_BOOTTIME)
		after, err3 := clock(unix.CLOCK_MONOTONIC)
		if err1 != nil || err2 != nil || err3 != nil {
			return 0
		}
		if took := after - before; try == 0 || took < best {
			best, slept = took, boot-before-took/2
		}
		if best <= good {
			break
		}
	}
	return slept
}

func clock(id int32) (time.Duration, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(id, &t); err != nil {
		return 0, err
	}
	return time.Duration(t.Nano()), nil
}
