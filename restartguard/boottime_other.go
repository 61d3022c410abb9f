//go:build !linux

package restartguard

import (
	"time"

	"golang.org/x/sys/unix"
)

// BootTime is a time on a clock that nobody sets; what it says to another
// process means nothing here.
func BootTime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

// BootID is empty: BootTime is not to be relied on by another process.
func BootID() string { return "" }
