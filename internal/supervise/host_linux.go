package supervise

import (
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// host is the clock of this host.
type host struct{ boot string }

// newHost reads which boot this is. A time namespace shifts the clock, so that
// it is part of the name.
func newHost() (host, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return host{}, fmt.Errorf("which boot of the host is this: %w", err)
	}
	boot := strings.TrimSpace(string(id))
	if ns, err := os.Readlink("/proc/self/ns/time"); err == nil {
		boot += " " + ns
	}
	return host{boot}, nil
}

func (h host) now() Moment {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic(err) // every Linux since 2.6.39 has it
	}
	return Moment{Boot: h.boot, At: time.Duration(ts.Nano())}
}
