package view

import (
	"testing"

	"redlockctl/monitor"
	"redlockctl/monitor/monitortest"
)

// Where a majority of the nodes does not answer, or may have lost copies, the text says that locks may have no
// copy on the others.
func TestLocksTextOfFewNodes(t *testing.T) {
	for _, c := range []struct {
		down, held, fenced int
		want               string
	}{
		{0, 1, 0, "1 (1 held)"},
		{2, 0, 0, "none"},
		{3, 1, 0, "1 (1 held) on the 2 of 5 nodes that answer: there may be more"},
		{4, 0, 0, "none on the 1 of 5 nodes that answer: there may be more"},
		{2, 1, 1, "1 (1 held) on the 3 of 5 nodes that answer: there may be more"},
		{0, 1, 3, "1 (1 held)"},
		{5, 0, 0, "unknown: no node answers"},
	} {
		s := &monitor.Snapshot{Complete: true, Cluster: monitor.Cluster{N: 5, Quorum: 3}, Nodes: make([]monitor.Node, 5)}
		s.Counts[monitor.LockHeld] = c.held
		for i := range s.Nodes {
			if s.Nodes[i].State = monitor.NodeServing; i < c.down {
				s.Nodes[i].State = monitor.NodeDown
			} else if i < c.down+c.fenced {
				s.Nodes[i].State = monitor.NodeFenced
			}
		}
		if got := LocksText(s); got != c.want {
			t.Errorf("%d down, %d held: %q, want %q", c.down, c.held, got, c.want)
		}
	}
}

// Copies that are left over on nodes that refuse writes keep nobody out, and the number of orphaned locks says so.
func TestOrphansThatKeepNobodyOut(t *testing.T) {
	for want, copies := range map[string][2]string{
		"2 (2 orphaned)": {"9 - - - -", "- - - 9 -"},
		"2 (2 orphaned, of which 1 keeps nobody out)": {"9 - - - -", "- - - - 9"},
		"2 (2 orphaned that keep nobody out)":         {"- - - - 9", "- - - - 8"},
	} {
		s := monitortest.Safe(monitortest.Epoch)
		s.Complete, s.Locks, s.Counts = true, monitor.NewLocks(), monitor.Counts{}
		s.Nodes[4].State = monitor.NodeCordoned
		for i, key := range []string{"a", "b"} {
			monitortest.Put(s, monitortest.LockOf(monitortest.Epoch, key, monitor.LockOrphaned, monitortest.TokenA, copies[i]))
		}
		if got := LocksText(s); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
