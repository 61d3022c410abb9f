package restartguard

import (
	"fmt"
	"time"
)

// short returns enough of a run_id to distinguish two.
func short(id string) string { return id[:min(4, len(id))] }

// AtMost rounds an upper bound up, so that it is never shown as 0.
func AtMost(d time.Duration) time.Duration {
	unit := time.Millisecond
	if d >= time.Second {
		unit = 10 * time.Millisecond
	}
	if r := d % unit; r > 0 {
		d += unit - r
	}
	return d
}

// Round drops digits that nobody reads.
func Round(d time.Duration) time.Duration {
	if d < time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(10 * time.Millisecond)
}

// Clockless is what a guard cannot do if TIME is denied.
const Clockless = "TIME is denied to the guard: a forward step of its clock ends locks too early, and would go unnoticed"

// Reasons of a node whose fence cannot be read.
const (
	blindlyFenced  = "refuses writes; what fences it cannot be read, so a person must let it rejoin"
	blindlyServing = "its fence cannot be read: not guarded"
)

func SameServer(other string) string {
	return fmt.Sprintf("is the same server as %s, by another address: it has no vote of its own", other)
}
