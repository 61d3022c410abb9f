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

// Outcome is how a step ended.
type Outcome struct {
	what  string // "force-release orders:42", safe to show
	words map[redlock.Status]string
	nodes []redlock.NodeResult
	err   error
	done  string        // the message without an error
	rest  func() string // what it still waits for, asked in the program's goroutine; nil or "": nothing
	over  func() string // why done does not hold any more, asked there too; nil or "": it does
	also  []string      // results for further keys of the lock, safe to show
	apply func()        // updates the model, in the program's goroutine; may be nil
}

// partly reports whether a failed action changed something.
func (o *Outcome) partly() bool {
	return slices.ContainsFunc(o.nodes, func(n redlock.NodeResult) bool { return n.Status == redlock.StatusOK })
}

// waits says what a successful action still waits for; empty: nothing.
func (o *Outcome) waits() string {
	if o.rest == nil || o.err != nil {
		return ""
	}
	return o.rest()
}

// advice returns the message of a successful action, or why it does not hold any more, unless what the
// action waits for says that.
func (o *Outcome) advice(waits string) string {
	if o.over == nil {
		return o.done
	}
	switch over := o.over(); {
	case over == "":
		return o.done
	case waits != "":
		return ""
	default:
		return over
	}
}

// gone reports whether the lock had already ended, so there was nothing to remove.
func (o *Outcome) gone() bool { return errors.Is(o.err, redlock.ErrNotHeld) }

// silent names the nodes that may still have a copy, and until when; "" if none.
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
	return "a copy may remain " + strings.Join(names, ", ")
}

// lines reports the result on each node.
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
		waits, how := o.waits(), ": done"
		if p = &st.Good; o.silent(st) != "" || waits != "" {
			p, glyph = &st.Warn, st.Half
		}
		if waits != "" {
			how = ": not yet done"
			body = indented(waits, w, 2)
		}
		title = glyph + " " + st.Cut(o.what, w-8-view.Width(how)) + how
		if advice := o.advice(waits); advice != "" {
			body = append(body, indented(advice, w, 2)...)
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

// nodeResult reports the result on one node, in several lines if something went wrong.
func nodeResult(st *styles.Styles, n redlock.NodeResult, words map[redlock.Status]string, name, w int, now time.Time) []string {
	glyph, p := st.Off, st.Bad
	switch n.Status {
	case redlock.StatusOK:
		glyph, p = st.On, st.Good
	case redlock.StatusAbsent:
		glyph, p = st.BareMajority, styles.Paint{}
	case redlock.StatusHeld:
		if words[n.Status] != "" { // the node was not part of the action
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
	if n.Status == redlock.StatusHeld && redlock.IsTombstone(n.Token) {
		parts = append(parts, "a tombstone, left alone")
	} else if s := words[n.Status]; s != "" {
		parts = append(parts, s)
	}
	if left := n.MayLiveUntil.Sub(now); !n.MayLiveUntil.IsZero() && left > 0 {
		parts = append(parts, "a copy may remain there until "+view.Clock(n.MayLiveUntil)+" ("+view.Remaining(left)+")")
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

// missingRight says what to do if the user lacks a right.
const missingRight = "redlockctl config acl operator prints the rights that its user needs, unless its guard has fenced it"

// hanging returns a text after a heading, with a hanging indent.
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

// indented wraps a text into lines of w cells with a space at both ends.
func indented(text string, w, indent int) (lines []string) {
	for _, l := range styles.Wrap(text, w-2, indent) {
		lines = append(lines, " "+l)
	}
	return lines
}
