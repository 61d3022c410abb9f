package monitor

import "time"

// Action is what an operator did, as the audit log of this machine has it.
type Action struct {
	Act           string // "force-release", "revoke", "node drain", …
	Actor, Reason string
	At            time.Time // of its last entry in the audit log; zero: unknown
	Only          []string  // of a removal that failed: the nodes that obeyed; nil: it did not fail
	// Undecided: several such actions are under way, and which one did it is not known yet.
	Undecided bool
}

// KeepsOut reports whether it cordons a node.
func (a Action) KeepsOut() bool { return a.Act == "node cordon" || a.Act == "node drain" }

// Leads reports whether it leads a node from one state to another.
func (a Action) Leads(from, to NodeState) bool {
	switch to {
	case NodeCordoned:
		return a.KeepsOut()
	case NodeFenced, NodeServing:
		return a.Act == "node uncordon" && from == NodeCordoned || a.Act == "node rejoin" && to == NodeServing && (from == NodeFenced || from == NodeCordoned)
	}
	return false
}

// By says who did it, and why: " by ops@host: host burnt down".
func (a Action) By() string {
	if a.Reason == "" {
		return " by " + a.Actor
	}
	return " by " + a.Actor + ": " + a.Reason
}
