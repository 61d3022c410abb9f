package boottime

import (
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// BootTime is the time since the machine was booted, on a clock that nobody
// sets and that goes on while the machine sleeps. It lasts longer than this
// process; see [BootID].
func Now() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

// BootID names the boot in which BootTime means something, with the time
// namespace and by how much that shifts it, since the number of a namespace that has
// ended is given to another; empty if that cannot be told.
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
