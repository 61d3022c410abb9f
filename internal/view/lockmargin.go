package view

import (
	"slices"
	"strconv"
	"strings"

	"redlockctl/monitor"
)

// MarginFacts returns who else can get a lock before its holder's end, and how many copies
// it may lose and still be extended; or, if nobody relies on the lock, from when a client can get it.
func MarginFacts(c *Context, l *monitor.Lock) []Fact {
	if !l.ReliedOn() {
		return freeFacts(c, l)
	}
	a := c.access(l)
	text, tone := accessText(c, l, &a)
	facts := []Fact{{"Margin", "another client can get in: " + text, tone}}
	silent := silentCopies(c, l)
	switch {
	case a.Spare < 0 && a.Spare+len(silent) >= 0:
		return append(facts, Fact{"", "whether it can be extended is not known: no answer from " + strings.Join(silent, " "), Warn})
	case a.Spare < 0:
		return append(facts, Fact{"", "cannot be extended", Warn})
	case a.Spare == 0:
		return append(facts, Fact{"", "can be extended while no more nodes are lost", Warn})
	}
	return append(facts, Fact{Text: "can be extended while at most " + Plural(a.Spare, "more node is", "more nodes are") + " lost"})
}

// freeFacts returns from when a client can get a lock of which copies are left that nobody relies on.
func freeFacts(c *Context, l *monitor.Lock) []Fact {
	from, known := c.Snap.FreeFrom(l)
	switch {
	case l.State != monitor.LockOrphaned && !l.Nobody || !known:
		return nil
	case from.After(c.Now):
		return []Fact{{Label: "Free", Text: "for another client from " + endClock(from, c.Now) + " (" + Left(from.Sub(c.Now)) + ")"}}
	}
	return []Fact{{Label: "Free", Text: "for another client now: a quorum of nodes serves without a copy"}}
}

// silentCopies returns the nodes that do not answer and may have a copy of the holder.
func silentCopies(c *Context, l *monitor.Lock) (names []string) {
	for i := range min(len(c.Snap.Nodes), l.Copies.Len()) {
		n, one := &c.Snap.Nodes[i], l.Copies.At(i)
		unknown := one.State == monitor.CopyUnknown || one.State == monitor.CopyUnread
		if !n.State.Answers() && unknown && (one.Token.Empty() || one.Token == l.Holder) {
			names = append(names, c.Name(n.Name))
		}
	}
	return names
}

func accessText(c *Context, l *monitor.Lock, a *monitor.Access) (string, Tone) {
	end := l.HeldUntil()
	least := "not before " + endClock(end, c.Now)
	if end.IsZero() || farAway(end, c.Now) {
		least = "never"
	}
	switch {
	case a.Now:
		return "now", Bad
	case a.Perhaps:
		return "maybe now: " + unsureText(c, l, a), Warn
	case !a.From.IsZero():
		return "from " + Clock(a.From) + ", when " + openingText(c, l, a), Warn
	case a.Restarts == 1:
		return "after 1 more restart of a node " + unproven(c, l, "that is "), Warn
	case a.Restarts > 1:
		return "after " + strconv.Itoa(a.Restarts) + " more restarts of nodes " + unproven(c, l, "that are "), None
	}
	return least, None
}

// openingText says what lets another client get in at a.From: a fenced node rejoins, or a copy expires
// before the others.
func openingText(c *Context, l *monitor.Lock, a *monitor.Access) string {
	text := "fenced nodes rejoin"
	for i := range c.Snap.Nodes {
		n := &c.Snap.Nodes[i]
		if n.State == monitor.NodeFenced && n.RejoinsAfter.Equal(a.From) {
			return c.Name(n.Name) + " rejoins"
		}
		if i < l.Copies.Len() && l.Copies.At(i).Expires.Equal(a.From) {
			text = "the copy on " + c.Name(n.Name) + " expires"
		}
	}
	return text
}

// unproven says why a node may vote twice when it restarts.
func unproven(c *Context, l *monitor.Lock, are string) string {
	if l.Lasting() {
		return "with a copy: a fence does not last as long"
	}
	if slices.ContainsFunc(c.Snap.Nodes, func(n monitor.Node) bool { return len(n.Guards) > 0 || !n.GuardsKnown }) {
		return are + "not verified to start fenced"
	}
	return are + "not guarded"
}

// unsureText says why it is not known whether another client can get a lock.
func unsureText(c *Context, l *monitor.Lock, a *monitor.Access) string {
	var parts, silent []string
	if e := l.Earlier; e != nil {
		parts = append(parts, "the holder of "+c.Token(e.Token)+" may rely on it")
	}
	for _, i := range a.Unsure {
		n := &c.Snap.Nodes[i]
		why := " is " + n.State.String()
		switch {
		case !n.State.Answers():
			silent = append(silent, c.Name(n.Name))
			continue
		case l.Copies.At(i).State == monitor.CopyUnread:
			why = " is being read"
		case !l.Copies.At(i).Token.Empty() && l.Copies.At(i).Token != l.Holder:
			why = " has a copy of another token, which may reach a quorum with it"
		case n.State == monitor.NodeServing:
			why = " has another key of this name"
		case n.State == monitor.NodeFenced:
			why = " is fenced, and it is not known until when"
		}
		parts = append(parts, c.Name(n.Name)+why)
	}
	switch len(silent) {
	case 0:
	case 1:
		parts = append(parts, silent[0]+" does not answer")
	default:
		parts = append(parts, strings.Join(silent, " ")+" do not answer")
	}
	return strings.Join(parts, ", ")
}
