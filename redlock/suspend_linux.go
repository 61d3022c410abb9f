package redlock

import (
	"time"

	"golang.org/x/sys/unix"
)

// suspended is how long the machine was suspended since it was started: CLOCK_BOOTTIME
// counts that time, and CLOCK_MONOTONIC, which Go uses, does not. It is exact to the
// time between the two readings; of a few tries the fastest counts. It is 0 if the
// clocks cannot be read.
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
