package attempt

import "time"

// SettleTime is how long a copy that was put back has to be known to be there
// before a confirmed extension makes it count. Whoever takes a lock from its
// holder (see redlock.Client.ForceRelease) counts only answers that come within half of
// that.
const SettleTime = 2 * time.Second

// Copies is what the holder of a lock knows of its copies: on which nodes one is
// missing that may be put back, and which of those that were put back count. It is
// a pure step machine: no clock, no goroutine, no connection. The documentation of
// package redlock has the rules and the argument. One goroutine at a time.
type Copies struct{ nodes []copyAt }

// copyAt is the copy on one node.
type copyAt struct {
	// where is the last incarnation of the node in which a copy may have been; "":
	// none ever was.
	where string
	// vague: a copy may have been there in an incarnation that is not known.
	vague bool
	// missing: the last extension found none, in incarnation seen.
	missing bool
	seen    string
	// fresh: it was put back, or acquired without an answer in time, and does not count yet;
	// known is when it was first known to be there, zero: not yet.
	fresh bool
	known time.Time
}

// Reset forgets everything. There are n nodes, none of which was ever asked.
func (c *Copies) Reset(n int) {
	if cap(c.nodes) < n {
		c.nodes = make([]copyAt, n)
	}
	c.nodes = c.nodes[:n]
	clear(c.nodes)
}

// May takes note that a copy may be on a node since it was asked for in an
// incarnation; "": it is not known in which.
func (c *Copies) May(node int, incarnation string) {
	at := &c.nodes[node]
	at.missing = false
	at.vague = incarnation == ""
	if incarnation != "" {
		at.where = incarnation
	}
}

// Voted takes note that the acquisition was answered in time, with a copy.
func (c *Copies) Voted(node int, incarnation string) {
	c.May(node, incarnation)
	c.nodes[node].fresh, c.nodes[node].known = false, time.Time{}
}

// Unanswered takes note that the acquisition has reached a node, perhaps, which did
// not answer in time: the copy may come at any moment, also behind a force-release
// that found none there. So it counts when one that is put back would.
func (c *Copies) Unanswered(node int, incarnation string) {
	c.Repaired(node, StatusSlow, true, incarnation, time.Time{})
}

// Counts reports whether the copy on a node counts for an extension.
func (c *Copies) Counts(node int) bool { return c == nil || !c.nodes[node].fresh }

// Extended takes in what a node answered to an extension: [StatusOK], that a copy
// is there, [StatusAbsent], that there is none, or anything else, which tells
// nothing.
func (c *Copies) Extended(node int, s Status, incarnation string, at time.Time) {
	m := &c.nodes[node]
	switch s {
	case StatusOK:
		c.May(node, incarnation)
		if m.fresh && m.known.IsZero() {
			m.known = at
		}
	case StatusAbsent:
		m.missing, m.seen, m.fresh, m.known = true, incarnation, false, time.Time{}
		if m.vague && incarnation != "" {
			// It may have been in this very incarnation, where it was deleted.
			m.where, m.vague = incarnation, false
		}
	case StatusHeld:
		m.missing = false
	}
}

// Confirmed takes note that an extension was granted of which nothing was sent
// before start: what had settled by then counts from now on. It comes before the
// copies that are missing are put back, and behind all answers that are known.
func (c *Copies) Confirmed(start time.Time) {
	for i := range c.nodes {
		if m := &c.nodes[i]; m.fresh && !m.known.IsZero() && !start.Before(m.known.Add(SettleTime)) {
			m.fresh, m.known = false, time.Time{}
		}
	}
}

// Missing reports whether the copy on a node may be put back, behind an extension
// that was granted: there is none, and there cannot have been one in this
// incarnation of the node, so that nobody has deleted it there.
func (c *Copies) Missing(node int) bool {
	m := &c.nodes[node]
	return m.missing && !m.vague && m.seen != "" && m.seen != m.where
}

// Absent reports whether the last extension found no copy on a node.
func (c *Copies) Absent(node int) bool { return c.nodes[node].missing }

// Repaired takes in what became of putting a copy back: the status that the node
// answered, and whether it may have reached it, in which incarnation.
func (c *Copies) Repaired(node int, s Status, sent bool, incarnation string, at time.Time) {
	m := &c.nodes[node]
	switch {
	case s == StatusOK:
		c.May(node, incarnation)
		m.fresh, m.known = true, at
	case sent && !s.Answered():
		c.May(node, incarnation)
		m.fresh, m.known = true, time.Time{}
	}
}

// Settling reports whether a copy was put back that does not count yet, or is still
// to be put back.
func (c *Copies) Settling() bool {
	for i := range c.nodes {
		if c.nodes[i].fresh || c.Missing(i) {
			return true
		}
	}
	return false
}

// Known is what [Copies] knows of one node, as a value: for a model that visits states.
type Known struct{ at copyAt }

// Of is what is known of a node.
func (c *Copies) Of(node int) Known { return Known{c.nodes[node]} }

// Set makes k what is known of a node.
func (c *Copies) Set(node int, k Known) { c.nodes[node] = k.at }
