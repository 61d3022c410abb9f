package restartguard

import (
	"errors"
	"redlockctl/internal/safetext"
	"time"
)

// Event is something the guard saw or did.
type Event struct {
	At   time.Time
	Node string
	// Kind is a word for machines. Of a loss: "restart", "wiped", "role", "clock",
	// "evicted", "restored". Of the node: "first contact", "waiting", "fenced",
	// "rejoined", "cordoned", "exposed", "unreachable", "reachable", "clock back". Of the
	// cluster, without a node: "no quorum", "quorum". Of the guard: "memory",
	// "same server", of two nodes that are one, "in-flight command", of orders that may still be on their way, "delays", of another guard
	// whose D is not this one's, and "announce", where guards cannot see each other.
	Kind string
	// Text is the sentence, without the node's name. Text of a server in it is
	// rendered already, as safetext does.
	Text string
	// Alarm: a node that must not vote does or did, or the guard cannot do to it what
	// it should. Kinds of bad news (losses but restarts, "exposed", "unreachable", "no
	// quorum", "memory") are no less so without.
	Alarm bool
}

// short is enough of a run_id to tell two apart.
func short(id string) string { return id[:min(4, len(id))] }

// AtMost rounds an upper bound, up: what was not nothing is never shown as 0.
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

// round drops digits that nobody reads.
func round(d time.Duration) time.Duration {
	if d < time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(10 * time.Millisecond)
}

// show makes an error fit for a screen: it may hold a server's text.
func show(err error) string {
	if err == nil {
		return ""
	}
	return safetext.Escape(err.Error())
}

// shown makes text of a server or a file fit for a screen.
func shown(s string) string { return show(errors.New(s)) }
