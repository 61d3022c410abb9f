package monitor

import "slices"

// NodeStateOf is the state of this name, as a record has it; unknown for any other.
func NodeStateOf(name string) NodeState {
	return NodeState(max(0, slices.Index(nodeStateNames[:], name)))
}

// LockStateOf is the state of this name, and reports whether there is one.
func LockStateOf(name string) (LockState, bool) {
	i := slices.Index(lockStateNames[:], name)
	return LockState(max(0, i)), i >= 0
}

// VerdictOf is the verdict of this name; unknown for any other.
func VerdictOf(name string) Verdict {
	for v := VerdictUnknown; v <= VerdictUnavailable; v++ {
		if v.String() == name {
			return v
		}
	}
	return VerdictUnknown
}

// SeverityOf is the severity of this name; danger for any other: better too loud.
func SeverityOf(name string) Severity {
	for s := SeverityInfo; s <= SeverityDanger; s++ {
		if s.String() == name {
			return s
		}
	}
	return SeverityDanger
}

// LocksUnrecorded is why locks are unread at a moment of the past at which nobody recorded them, and
// AdviceRecordLocks how they are.
const (
	LocksUnrecorded   = "its locks were not recorded"
	AdviceRecordLocks = "`redlockctl guard --watch-locks` records them, and so does the console"
)

// Unrecorded reports whether this is a moment of the past at which nobody recorded locks.
func (s *Snapshot) Unrecorded() bool {
	return slices.ContainsFunc(s.Nodes, func(n Node) bool { return n.WhyUnread == LocksUnrecorded })
}

// Recall makes a snapshot of the past whole, of which the nodes, the locks and the
// verdict are set: what follows from them is counted. unread is why the locks are not
// known; empty: they are.
func (s *Snapshot) Recall(unread string) {
	s.countNodes()
	s.Complete = unread == ""
	for i := range s.Nodes {
		if s.Nodes[i].WhyUnread = unread; unread == "" {
			s.Nodes[i].Read = 1
		}
	}
	for l := range s.Locks.All() {
		s.Counts[l.State]++
		for i, c := range l.Copies.All() {
			if i < len(s.Nodes) && c.ofLock() {
				s.Nodes[i].Locks++
			}
		}
	}
}
