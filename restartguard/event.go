package restartguard

import "time"

// Event is something that the guard saw or did.
type Event struct {
	At   time.Time
	Node string
	// Kind is a word for programs:
	//   - losses: "restart", "wiped", "role", "clock", "evicted", "restored"
	//   - a node: "first contact", "waiting", "fenced", "rejoined", "cordoned", "exposed",
	//     "unreachable", "reachable", "denied", "clock back", "clock unseen"
	//   - the cluster, without a node: "no quorum", "quorum"
	//   - the guard: "memory", "same server" (two nodes are one), "moved" (a host name leads to
	//     another server), "in-flight command" (a command may still arrive), "delays" (the D of
	//     another guard differs), "announce" (guards cannot see each other)
	Kind string
	// Text is a sentence without the node's name, safe to print.
	Text string
	// Alarm: a node that must not vote does or did, or the guard cannot do what it should. Bad news
	// by their kind (all losses but restarts, "exposed", "unreachable", "no quorum", "memory") need
	// no Alarm.
	Alarm bool
}
