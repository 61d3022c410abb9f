//go:build !linux

package boottime

import (
	"time"

	"golang.org/x/sys/unix"
)

// Now is a time on a clock that nobody sets; what it says to another
// process means nothing here.
func Now() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

// ID is empty: Now is not to be relied on by another process.
func ID() string { return "" }
