package restartguard

import (
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
	// "same server", of two nodes that are one, "moved", of a name that leads elsewhere, "in-flight command", of orders that may still be on their way, "delays", of another guard
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
