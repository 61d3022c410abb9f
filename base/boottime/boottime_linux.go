// Package boottime reads the clock of the machine's boot, which nobody sets.
package boottime

import (
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Now returns the time since the machine was booted, on a clock that nobody sets and that goes on
// while the machine is suspended. It outlasts this process, see [ID].
func Now() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

// ID identifies the boot in which Now means something, with the time namespace and its offset,
// because the number of a namespace is used again after its end. It is empty if that is not known.
func ID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	space, err := os.Readlink("/proc/self/ns/time")
	if err != nil {
		space = "" // a kernel without time namespaces
	}
	shift, err := os.ReadFile("/proc/self/timens_offsets")
	if err != nil {
		shift = nil
	}
	return strings.TrimSpace(string(id)) + " " + space + " " + strings.Join(strings.Fields(string(shift)), " ")
}
