package observe

import (
	"time"

	"redlockctl/monitor"
)

// noteBirth takes note of how the server of a new incarnation was met.
func noteBirth(f *monitor.Facts, state monitor.NodeState, uptime time.Duration, at time.Time) {
	f.OpenAt = time.Time{}
	// Who was out of sight for longer may have waited closed, and been opened.
	if state == monitor.NodeServing && uptime <= youngLife {
		f.OpenAt = at
	}
}

// youngLife is the age up to which an open server has not waited closed: no D
// is that short that a guard could have opened it.
const youngLife = 2 * time.Second
