package monitor

import "slices"

// NodeStateOf returns the state with this name in a record; unknown for any other name.
func NodeStateOf(name string) NodeState {
	return NodeState(max(0, slices.Index(nodeStateNames[:], name)))
}

// LockStateOf returns the state with this name, and reports whether there is one.
func LockStateOf(name string) (LockState, bool) {
	i := slices.Index(lockStateNames[:], name)
	return LockState(max(0, i)), i >= 0
}

// VerdictOf returns the verdict with this name; unknown for any other name.
func VerdictOf(name string) Verdict {
	for v := VerdictUnknown; v <= VerdictUnavailable; v++ {
		if v.String() == name {
			return v
		}
	}
	return VerdictUnknown
}

// SeverityOf returns the severity with this name; danger for any other name, to be on the
// safe side.
func SeverityOf(name string) Severity {
	for s := SeverityInfo; s <= SeverityDanger; s++ {
		if s.String() == name {
			return s
		}
	}
	return SeverityDanger
}

// LocksUnrecorded says why locks are unknown at a time when they were not recorded, and
// AdviceRecordLocks how to record them.
const (
	LocksUnrecorded   = "its locks were not recorded"
	AdviceRecordLocks = "`redlockctl guard --watch-locks` records them; so does a console on a machine where no guard records"
)

// NothingRecorded is why everything is unknown at a time when nobody recorded.
const NothingRecorded = "nothing was recorded then"

// InGap reports whether this snapshot is of a time when nobody recorded: nothing is known, and there
// is nothing to count.
func (s *Snapshot) InGap() bool {
	return s.Cluster.Verdict == VerdictUnknown && s.Cluster.Reason == NothingRecorded
}

// Unrecorded reports whether this snapshot is of a time when locks were not recorded.
func (s *Snapshot) Unrecorded() bool {
	return slices.ContainsFunc(s.Nodes, func(n Node) bool { return n.WhyUnread == LocksUnrecorded })
}

// Recall completes a snapshot of the past that has nodes, locks, findings and verdict: it
// counts what follows from them. unread says why the locks are unknown; empty: they are known.
func (s *Snapshot) Recall(unread string) {
	s.countNodes()
	for _, f := range s.Findings {
		if n := s.Node(f.Node); n != nil && f.ID == ServesEarlyID && n.State == NodeServing {
			n.Early = true
		}
	}
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
