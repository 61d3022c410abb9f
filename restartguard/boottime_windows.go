package restartguard

import (
	"time"

	"golang.org/x/sys/windows"
)

// BootTime is a time on a clock that nobody sets; what it says to another
// process means nothing here.
func BootTime() time.Duration { return windows.DurationSinceBoot() }

// BootID is empty: BootTime is not to be relied on by another process.
func BootID() string { return "" }
