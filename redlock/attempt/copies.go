package attempt

import "time"

// SettleTime is how long a copy that was put back must be known to exist before a
// confirmed extension makes it count. A forced removal (see
// redlock.Client.ForceRelease) counts only answers that come within half of that.
const SettleTime = 2 * time.Second

// Copies is what the holder of a lock knows of its copies: which missing ones may be
// put back, and which of those that were put back count. It is a pure step machine: no
// clock, no goroutine, no connection. The documentation of package redlock has the
// rules and the proof. Use it from one goroutine at a time.
type Copies struct{ nodes []copyAt }

// copyAt is the copy on one node.
type copyAt struct {
	// where is the last incarnation of the node that may have had a copy; "": none had
	// one.
	where string
	// vague: an unknown incarnation may have had a copy.
	vague bool
	// missing: the last extension found none, in incarnation seen.
	missing bool
	seen    string
	// fresh: it was put back, or acquired without an answer in time, and does not count yet;
	// known is when it was first known to be there, zero: not yet.
	fresh bool
	known time.Time
	// refused: the last extension found it, and the node refused to write. ends is the earliest
	// end that it has by itself; zero: not known.
	refused bool
	ends    time.Time
}

// Reset forgets everything: n nodes, none of them asked so far.
func (c *Copies) Reset(n int) {
	if cap(c.nodes) < n {
		c.nodes = make([]copyAt, n)
	}
	c.nodes = c.nodes[:n]
	clear(c.nodes)
}

// May records that a node may have a copy since it was asked in this incarnation; "":
// not known in which.
func (c *Copies) May(node int, incarnation string) {
	at := &c.nodes[node]
	at.missing, at.refused = false, false
	at.vague = incarnation == ""
	if incarnation != "" {
		at.where = incarnation
	}
}

// Voted records that a node answered the acquisition in time, with a copy.
func (c *Copies) Voted(node int, incarnation string) {
	c.May(node, incarnation)
	c.nodes[node].fresh, c.nodes[node].known = false, time.Time{}
}

// Unanswered records that the acquisition may have reached a node that did not answer
// in time. Its copy may arrive at any moment, even after a force-release that found
// none. So it counts only when a copy that is put back would count.
func (c *Copies) Unanswered(node int, incarnation string) {
	c.Repaired(node, StatusSlow, true, incarnation, time.Time{})
}

// Counts reports whether the copy on a node counts for an extension.
func (c *Copies) Counts(node int) bool { return c == nil || !c.nodes[node].fresh }

// Extended records a node's answer to an extension: [StatusOK] means that it has a
// copy, [StatusAbsent] that it has none; any other status means nothing. A copy that the
// extension before found on a node that refused to write, and that is missing after its
// own end, has expired: as if this incarnation had never had it.
func (c *Copies) Extended(node int, s Status, incarnation string, at time.Time) {
	m := &c.nodes[node]
	switch s {
	case StatusOK:
		c.May(node, incarnation)
		if m.fresh && m.known.IsZero() {
			m.known = at
		}
	case StatusAbsent:
		if m.refused && incarnation == m.where && !m.ends.IsZero() && !at.Before(m.ends) {
			m.where = ""
		}
		m.refused, m.ends = false, time.Time{}
		m.missing, m.seen, m.fresh, m.known = true, incarnation, false, time.Time{}
		if m.vague && incarnation != "" {
			// The copy may have been in this incarnation, and deleted there.
			m.where, m.vague = incarnation, false
		}
	case StatusHeld:
		m.missing, m.refused = false, false
	default:
		m.refused = false
	}
}

// Refused records that a node's answer to an extension was that the copy is there, but that
// it refuses to write: a fenced node keeps its copies until they expire.
func (c *Copies) Refused(node int, incarnation string) {
	m := &c.nodes[node]
	m.refused = !m.vague && incarnation != "" && incarnation == m.where
}

// Ends records when a copy that a node was asked to take or to extend ends by itself, at the
// earliest; zero: not known, since the node may have done it or not.
func (c *Copies) Ends(node int, at time.Time) {
	if m := &c.nodes[node]; at.IsZero() || at.After(m.ends) {
		m.ends = at
	}
}

// Confirmed records that an extension was granted whose first request was sent at
// start: copies that had settled by then count from now on. Call it after all known
// answers, and before missing copies are put back.
func (c *Copies) Confirmed(start time.Time) {
	for i := range c.nodes {
		if m := &c.nodes[i]; m.fresh && !m.known.IsZero() && !start.Before(m.known.Add(SettleTime)) {
			m.fresh, m.known = false, time.Time{}
		}
	}
}

// Missing reports whether a copy may be put back on a node, after an extension that was
// granted: the node has none, and nobody has deleted it: this incarnation never had one,
// or it expired while the node was fenced (see [Copies.Extended]).
func (c *Copies) Missing(node int) bool {
	m := &c.nodes[node]
	return m.missing && !m.vague && m.seen != "" && m.seen != m.where
}

// Absent reports whether the last extension found no copy on a node.
func (c *Copies) Absent(node int) bool { return c.nodes[node].missing }

// Repaired records the outcome of putting a copy back: the node's status, whether the
// request may have reached it, and in which incarnation.
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

// Settling reports whether a copy that was put back does not count yet, or one is still
// missing.
func (c *Copies) Settling() bool {
	for i := range c.nodes {
		if c.nodes[i].fresh || c.Missing(i) {
			return true
		}
	}
	return false
}

// Known is what [Copies] knows of one node, as a value: for a model that enumerates
// states.
type Known struct{ at copyAt }

// Of returns what is known of a node.
func (c *Copies) Of(node int) Known { return Known{c.nodes[node]} }

// Set replaces what is known of a node by k.
func (c *Copies) Set(node int, k Known) { c.nodes[node] = k.at }
