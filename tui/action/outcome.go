package action

import (
	"errors"
	"slices"
	"strings"
	"time"

	"redlockctl/internal/view"
	"redlockctl/redlock"
	"redlockctl/tui/styles"
)

// partly reports whether an action that failed did something all the same.
func (o *Outcome) partly() bool {
	return slices.ContainsFunc(o.nodes, func(n redlock.NodeResult) bool { return n.Status == redlock.StatusOK })
}

// gone reports whether the lock had ended by itself before: then nobody holds what
// was to be taken.
func (o *Outcome) gone() bool { return errors.Is(o.err, redlock.ErrNotHeld) }

// silent names the nodes on which a copy may be left, with its end; "": none.
func (o *Outcome) silent(st *styles.Styles) string {
	var names []string
	for _, n := range o.nodes {
		if !n.MayLiveUntil.IsZero() {
			names = append(names, st.Escape(n.Node, 12)+" until "+view.Clock(n.MayLiveUntil))
		}
	}
	if names == nil {
		return ""
	}
	return "a copy may live on " + strings.Join(names, ", ")
}

// lines tell what happened, on each node.
func (o *Outcome) lines(st *styles.Styles, w int, now time.Time) (p *styles.Paint, title string, body []string) {
	nodes := o.nodes
	if o.err != nil {
		how := ": failed"
		if o.partly() {
			how = ": done in part"
		}
		p, title = &st.Bad, st.Off+" "+st.Cut(o.what, w-8-view.Width(how))+how
		body = indented(st.Whole(o.err.Error()), w, 2)
		if e := (*redlock.Error)(nil); len(nodes) == 0 && errors.As(o.err, &e) {
			nodes = e.Nodes
		}
	} else {
		glyph := st.On
		if p = &st.Good; o.silent(st) != "" {
			p, glyph = &st.Warn, st.Half
		}
		title = glyph + " " + st.Cut(o.what, w-14) + ": done"
		if o.done != "" {
			body = indented(o.done, w, 2)
		}
	}
	for _, more := range o.also {
		body = append(body, indented(more, w, 2)...)
	}
	if len(nodes) > 0 && len(body) > 0 {
		body = append(body, "")
	}
	name := 4
	for _, n := range nodes {
		name = max(name, min(12, view.Width(st.Whole(n.Node))))
	}
	for _, n := range nodes {
		body = append(body, nodeResult(st, n, o.words, name, w, now)...)
	}
	return p, title, body
}

// nodeResult is one node's part in an action: a line, or several where there is
// trouble to tell of.
func nodeResult(st *styles.Styles, n redlock.NodeResult, words map[redlock.Status]string, name, w int, now time.Time) []string {
	glyph, p := st.Off, st.Bad
	switch n.Status {
	case redlock.StatusOK:
		glyph, p = st.On, st.Good
	case redlock.StatusAbsent:
		glyph, p = st.BareMajority, styles.Paint{}
	case redlock.StatusHeld:
		if words[n.Status] != "" { // it was to be left alone
			glyph, p = st.BareMajority, styles.Paint{}
		}
	case redlock.StatusUnanswered, redlock.StatusSkipped, redlock.StatusSlow:
		glyph, p = st.Wait, st.Warn
	case redlock.StatusFenced:
		glyph, p = st.Half, st.Warn
	case redlock.StatusDenied:
		glyph, p = st.Odd, st.Bad
	}
	var parts []string
	if s := words[n.Status]; s != "" {
		parts = append(parts, s)
	}
	if left := n.MayLiveUntil.Sub(now); !n.MayLiveUntil.IsZero() && left > 0 {
		parts = append(parts, "a copy may live there until "+view.Clock(n.MayLiveUntil)+" ("+view.Remaining(left)+")")
	}
	if n.Err != nil {
		parts = append(parts, st.Whole(n.Err.Error()))
	}
	if n.Status == redlock.StatusUnanswered && parts == nil {
		parts = append(parts, "it was decided before this node answered")
	}
	if n.Status == redlock.StatusDenied {
		parts = append(parts, missingRight)
	}
	line := " " + st.Pad(st.Escape(n.Node, name), name) + "  " + p.Of(st.Pad(glyph+" "+n.Status.String(), styles.StateWidth)) + "  "
	return hanging(line, strings.Join(parts, "; "), w)
}

// missingRight is what to do about a user that must not do what was asked.
const missingRight = "redlockctl config acl operator prints the rights that its user needs, unless its guard has closed it"

// hanging is a text behind a head, its further lines below its first.
func hanging(head, text string, w int) (lines []string) {
	n := view.Width(head)
	for i, l := range styles.Wrap(text, max(4, w-n-1), 0) {
		if i > 0 {
			head = styles.Blanks(n)
		}
		lines = append(lines, head+l)
	}
	return lines
}

// counts are how many of several locks failed, and how many had ended before.
func (d *Dialog) counts() (failed, gone int) {
	for _, s := range d.steps {
		switch {
		case s.end == nil || s.end.err == nil:
		case s.end.gone():
			gone++
		default:
			failed++
		}
	}
	return failed, gone
}

// summary sums the results for several locks up.
func (d *Dialog) summary(st *styles.Styles) (*styles.Paint, string) {
	failed, gone := d.counts()
	text := view.Plural(d.at-failed-gone, "lock") + " " + d.Did
	p, glyph := &st.Good, st.On
	if gone > 0 {
		text += ", " + view.Count(gone) + " had ended by then"
	}
	if failed > 0 {
		text += ", " + view.Count(failed) + " failed"
		p, glyph = &st.Bad, st.Off
	}
	if left := len(d.steps) - d.at; left > 0 {
		text += ", " + view.Count(left) + " left as they are"
		if failed == 0 {
			p, glyph = &st.Warn, st.Half
		}
	}
	return p, glyph + " " + text
}

// progress is the results for several locks so far, in the order of the names.
func (d *Dialog) progress(st *styles.Styles, w int) (out []string) {
	name := 4
	for _, s := range d.steps {
		name = max(name, min(w/3, view.Width(s.name)))
	}
	for i, s := range d.steps {
		glyph, p, text := st.BareMajority, styles.Paint{}, "not begun"
		switch {
		case s.end == nil && i == d.at && d.running():
			glyph, p, text = st.Wait, st.Info, "working"+st.Ellipsis
		case s.end == nil && d.running():
			return out // what is still to come has nothing to tell
		case s.end == nil:
		case s.end.gone():
			text = "it had ended: nothing of this token was left"
		case s.end.err != nil:
			glyph, p, text = st.Off, st.Bad, st.Whole(s.end.err.Error())
		default:
			glyph, p, text = st.On, st.Good, s.end.done
			if silent := s.end.silent(st); silent != "" {
				glyph, p, text = st.Half, st.Warn, text+"; "+silent
			}
		}
		if s.end != nil {
			text = strings.Join(append([]string{text}, s.end.also...), "; ")
		}
		out = append(out, hanging(" "+p.Of(glyph)+" "+st.Pad(s.name, name)+"  ", text, w)...)
	}
	return out
}
