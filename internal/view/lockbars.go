package view

import (
	"slices"
	"strings"
	"time"

	"redlockctl/monitor"
)

// CopyBar is the remaining time of a copy on one node.
type CopyBar struct {
	Node  string
	State Cell // of the node
	Left  Cell // the remaining time, in words
	Bar   Cell // the remaining time, on an axis that all nodes share
	Held  bool // there probably is a copy
	Note  Cell // may be empty

	ends time.Time
}

// FoldBars draws copies of which at least three are alike in one line: how many they are, the
// least and the greatest remaining time, and the nodes.
func FoldBars(bars []CopyBar) (folded []CopyBar) {
	alike := func(a, b *CopyBar) bool {
		return a.State == b.State && a.Held == b.Held && a.Note == b.Note && a.ends.IsZero() == b.ends.IsZero() && (!a.ends.IsZero() || a.Left == b.Left)
	}
	done := make([]bool, len(bars))
	for i := range bars {
		if done[i] {
			continue
		}
		var group []*CopyBar
		var at []int
		for k := i; k < len(bars); k++ {
			if b := &bars[k]; !done[k] && alike(b, &bars[i]) {
				group, at = append(group, b), append(at, k)
			}
		}
		if len(group) < 3 {
			folded = append(folded, bars[i])
			continue
		}
		names := make([]string, len(group))
		for j, b := range group {
			done[at[j]], names[j] = true, b.Node
		}
		byEnd := func(a, b *CopyBar) int { return a.ends.Compare(b.ends) }
		one, last := *slices.MinFunc(group, byEnd), slices.MaxFunc(group, byEnd)
		if last.Left.Text != one.Left.Text {
			one.Left.Text += " to " + last.Left.Text
		}
		if one.Node = Plural(len(group), "node"); one.Note.Text != "" {
			one.Note.Text += ":"
		}
		one.Note.Text = strings.TrimSpace(one.Note.Text + " " + strings.Join(names, " "))
		folded = append(folded, one)
	}
	return folded
}

// LockBars returns the copies of a lock as bars on an axis of w cells and this length;
// without bars if there is no axis.
func LockBars(c *Context, l *monitor.Lock, axis time.Duration, w int) []CopyBar {
	cells := func(end time.Time) int {
		if axis <= 0 {
			return 0
		}
		return min(w, int(float64(w)*float64(max(0, end.Sub(c.Now)))/float64(axis)))
	}
	ends, mark := w, -1
	end := l.HeldUntil()
	if !end.IsZero() {
		ends = cells(end)
	}
	// Copies that agree end in another order after each extension: the first of them has the
	// mark, so that it stays where it is.
	for i, one := range l.Copies.All() {
		if one.State == monitor.CopyPresent && one.Token == l.Holder && !end.IsZero() && one.Expires.Sub(end).Abs() <= agree {
			mark = i
			break
		}
	}
	bars := make([]CopyBar, 0, l.Copies.Len())
	for i, one := range l.Copies.All() {
		if i >= len(c.Snap.Nodes) {
			break
		}
		n := &c.Snap.Nodes[i]
		bar := CopyBar{Node: c.Name(n.Name), State: c.NodeState(n.State), Left: Cell{Text: c.None, Tone: Dim}}
		switch one.State {
		case monitor.CopySeen:
			bar.Held, bar.Left = true, Cell{Text: "a copy; when it expired was not recorded"}
			if one.Token != l.Holder {
				bar.Note = Cell{Text: "of " + c.Token(one.Token), Tone: Bad}
			}
		case monitor.CopyPresent:
			bar.Held = true
			full := w
			bar.Left = Cell{Text: "no TTL", Tone: Bad}
			if !one.Expires.IsZero() {
				bar.Left, bar.ends = Cell{Text: Left(one.Expires.Sub(c.Now))}, one.Expires
			}
			switch {
			case axis == 0:
				full = 0
			case !one.Expires.IsZero():
				full = cells(one.Expires)
			}
			bar.Bar = Cell{Text: strings.Repeat(c.Full, full), Tone: c.LockStateOf(l).Tone}
			if full > ends { // a copy that outlives the majority marks the majority's end
				bar.Bar.Text = strings.Repeat(c.Full, ends) + c.Here + strings.Repeat(c.Full, full-ends-1)
			}
			switch {
			case c.Snap.LeftOver(l, i):
				bar.Bar.Tone, bar.Note = Dim, Cell{Text: "left over, " + n.State.String(), Tone: Dim}
			case one.Token != l.Holder:
				bar.Bar.Tone, bar.Note.Text = Bad, "of "+c.Token(one.Token)
			case i == mark:
				bar.Note.Text = c.Points + " the majority ends here"
				if l.State == monitor.LockRevoked {
					bar.Note.Text = c.Points + " others can get in from here"
				}
				if l.MajorityEnd().IsZero() {
					bar.Note.Text = c.Points + " held until here"
				}
			}
			if cutShort(c, l, i) {
				bar.Note = Cell{Text: strings.TrimSpace(bar.Note.Text + " clock stepped"), Tone: Warn}
			}
			if one.Type != "" && one.Type != "string" && one.Token.Empty() {
				bar.Note.Text = "a " + c.Whole(one.Type)
			}
		case monitor.CopyLost:
			bar.Note = Cell{Text: lostText(c, n, one), Tone: Warn}
		case monitor.CopyAbsent:
			bar.Note = Cell{Text: "no copy", Tone: Dim}
			if n.State != monitor.NodeServing {
				bar.Note.Text += ", " + n.State.String()
			}
		case monitor.CopyUnread:
			bar.Note = Cell{Text: c.Ellipsis + " " + UnknownCopy(c, n, l, i), Tone: Warn}
		default:
			bar.Note = Cell{Text: "? " + n.State.String() + ": " + UnknownCopy(c, n, l, i), Tone: Warn}
		}
		bars = append(bars, bar)
	}
	return bars
}

// lostText says when and why a copy was lost, as far as that is known, and the present state of
// its node: "lost 22:17:04 (restart), fenced 18s".
func lostText(c *Context, n *monitor.Node, one monitor.Copy) string {
	text := "lost "
	if !one.LostAt.IsZero() {
		text += Clock(one.LostAt) + " "
	}
	if why := one.Cause.String(); why != "" {
		text += "(" + why + ")"
	}
	text = strings.TrimSuffix(text, " ") + ", " + n.State.String()
	if left, ok := c.Guard.Countdown(n, c.Now); ok {
		text += " " + Remaining(left)
	} else if n.State == monitor.NodeFenced && n.RejoinsAfter.After(c.Now) {
		text += " " + c.Our("≥") + Remaining(n.RejoinsAfter.Sub(c.Now))
	}
	return text
}

// UnknownCopy describes the copy of a lock on node i, n, which does not answer.
func UnknownCopy(c *Context, n *monitor.Node, l *monitor.Lock, i int) string {
	one := l.Copies.At(i)
	if n.State.Answers() && one.State == monitor.CopyUnknown {
		return "not recorded: a copy may have been there"
	}
	if one.State == monitor.CopyUnread && one.Type == "" {
		return "not read yet: a copy may be there"
	}
	end := one.Expires
	if end.IsZero() {
		if !one.Token.Empty() {
			return "the copy that was seen there has no TTL"
		}
		for _, other := range l.Copies.All() { // a client sets the same on all nodes
			if other.State == monitor.CopyPresent && other.Token == l.Holder && other.Expires.IsZero() {
				return "a copy there, if any, may have no TTL"
			}
		}
		most := c.Snap.Cluster.MaxTTL
		if most <= 0 || n.Since.IsZero() {
			return "a copy may be there"
		}
		end = n.Since.Add(most) // of a copy that was set just before the node went silent
		if until := l.HeldUntil(); l.MayBeHeld() && until.Before(end) && !until.IsZero() {
			end = until // a vote there counts until then
		}
	}
	if farAway(end, c.Now) {
		return "a copy there, if any, never expires"
	}
	if end.Before(c.Now) {
		return "a copy there, if any, expired by " + Clock(end) + " unless extended"
	}
	return "a copy there, if any, expires by " + Clock(end) + " unless extended"
}

// Axis returns a round span that contains the remaining time of all copies; zero if no
// copy is known to expire.
func Axis(c *Context, l *monitor.Lock) time.Duration {
	var d time.Duration
	expires := false
	for _, one := range l.Copies.All() {
		if one.State == monitor.CopyPresent && !one.Expires.IsZero() && !farAway(one.Expires, c.Now) {
			d, expires = max(d, one.Expires.Sub(c.Now)), true
		}
	}
	if !expires {
		return 0
	}
	for _, axis := range []time.Duration{1, 2, 4, 6, 10, 20, 30, 60, 120, 240, 600, 1200, 1800} {
		if d <= axis*time.Second {
			return axis * time.Second
		}
	}
	const h = time.Hour
	axis := h
	for axis < d && axis < 1<<20*h {
		axis *= 2
	}
	return axis
}

// AxisLabels labels the start, the middle and the end of an axis of w cells.
func AxisLabels(d time.Duration, w int) string {
	label := func(d time.Duration) string {
		if d%time.Second == 0 && d >= 100*time.Second || d >= time.Hour {
			return Age(d)
		}
		return d.String()
	}
	half, end := label(d/2), label(d)
	s := "now"
	s += strings.Repeat(" ", max(0, w/2-len(s))) + half
	return s + strings.Repeat(" ", max(0, w-len(s)-len(end))) + end
}
