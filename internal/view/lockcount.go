package view

import (
	"fmt"
	"slices"
	"strings"

	"redlockctl/monitor"
)

// Answering is how many nodes tell what is on them.
func Answering(s *monitor.Snapshot) (n int) {
	for i := range s.Nodes {
		switch s.Nodes[i].State {
		case monitor.NodeServing, monitor.NodeFenced, monitor.NodeCordoned:
			n++
		}
	}
	return n
}

// NoLocks says why a table of locks is empty.
func NoLocks(s *monitor.Snapshot) string {
	switch n := Answering(s); {
	case s.Unrecorded():
		return "locks were not recorded then: " + monitor.AdviceRecordLocks
	case n == 0:
		return "no node answers: what is locked is not known"
	case !s.Complete:
		return "no locks among the keys that have been read"
	case n == len(s.Nodes):
		return "no locks"
	default:
		return fmt.Sprintf("no locks on the %d of %d nodes that answer", n, len(s.Nodes))
	}
}

// LocksText is the number of locks, and how many are in which state, the most
// urgent first.
func LocksText(s *monitor.Snapshot) string {
	by := s.Counts
	var parts []string
	for st := range monitor.LockStates() {
		if by[st] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", by[st], st))
		}
	}
	slices.Reverse(parts)
	count := fmt.Sprintf("%d (%s)", by.Total(), strings.Join(parts, ", "))
	switch {
	case s.Unrecorded():
		return "not recorded"
	case Answering(s) == 0:
		return "unknown: no node answers"
	case len(parts) == 0 && s.Complete:
		return "none"
	case len(parts) == 0:
		return "none among the keys that have been read"
	case !s.Complete:
		return count + " among the keys that have been read"
	}
	return count
}
