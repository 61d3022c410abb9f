package view

import (
	"testing"
	"time"

	"redlockctl/monitor"
	"redlockctl/monitor/monitortest"
)

// From when another client can get a lock on which nobody relies: copies expire, fenced nodes rejoin.
func TestFromWhenALockIsFree(t *testing.T) {
	for name, c := range map[string]struct {
		state  monitor.LockState
		nobody bool
		copies string
		fenced []int // they rejoin in twelve seconds
		late   bool  // they should have rejoined
		want   string
	}{
		"a minority is left":                {monitor.LockOrphaned, false, "9 8 - - -", nil, false, "for another client now: a quorum of nodes serves without a copy"},
		"it is left on a quorum":            {monitor.LockOrphaned, false, "9 8 7 6 -", nil, false, "for another client from 12:03:17 (7.0s)"},
		"several tokens, none has a quorum": {monitor.LockSplit, true, "9b 8b 7 6 5b", nil, false, "for another client from 12:03:17 (7.0s)"},
		"nodes are fenced":                  {monitor.LockOrphaned, false, "9 8 - - -", []int{2, 3}, false, "for another client from 12:03:19 (9.0s)"},
		"more nodes are fenced":             {monitor.LockOrphaned, false, "9 - - - -", []int{0, 1, 2}, false, "for another client from 12:03:22 (12.0s)"},
		"nodes are fenced for longer":       {monitor.LockOrphaned, false, "9 - - - -", []int{0, 1, 2}, true, ""},
		"copies have no TTL":                {monitor.LockNoTTL, true, "i i i 6 -", nil, false, ""},
		"somebody relies on it":             {monitor.LockHeld, false, "9 9 9 9 9", nil, false, ""},
	} {
		s := monitortest.Safe(monitortest.Epoch)
		l := monitortest.LockOf(s.At, "import", c.state, monitortest.TokenA, c.copies)
		l.Nobody = c.nobody
		for _, i := range c.fenced {
			s.Nodes[i].State, s.Nodes[i].RejoinsAfter = monitor.NodeFenced, s.At.Add(12*time.Second)
			if c.late {
				s.Nodes[i].RejoinsAfter = s.At.Add(-time.Second)
			}
		}
		got := ""
		for _, f := range MarginFacts(&Context{Glyphs: &Unicode, Snap: s, Now: s.At}, &l) {
			if f.Label == "Free" {
				got = f.Text
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, not %q", name, got, c.want)
		}
	}
}

// A copy that is left over on a fenced node gives nobody a vote, so it makes nobody get in.
func TestALeftOverCopyOnAFencedNodeLetsNobodyIn(t *testing.T) {
	s := monitortest.Safe(monitortest.Epoch)
	l := monitortest.LockOf(s.At, "import", monitor.LockLostMajority, monitortest.TokenA, "9 8 - - 7b").Until(s.At.Add(8 * time.Second))
	s.Nodes[4].State, s.Nodes[4].RejoinsAfter = monitor.NodeFenced, s.At.Add(12*time.Second)
	s.Nodes[3].State = monitor.NodeCordoned
	if a := s.Access(&l); a.Now || a.Perhaps || len(a.Unsure) > 0 {
		t.Errorf("%+v", a)
	}
}
