package page

import (
	"fmt"
	"strings"
	"time"

	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/tui/styles"
)

// header draws the first line: which cluster, and its verdict; in words where
// no line below says it in full.
type header struct{ st *styles.Styles }

func (h *header) line(s *monitor.Snapshot, w int, now time.Time, f *view.Guard, brief bool) string {
	st, c := h.st, &s.Cluster
	glyph, word, p := st.Verdict(s)
	name := st.Escape(c.Name, max(8, w/4))
	reason := h.reason(s, now, f, false)
	lose := ""
	switch {
	case c.Verdict == monitor.VerdictUnknown:
	case c.Verdict == monitor.VerdictUnavailable || c.CanLose < 0:
		lose = "nothing can be locked"
	default:
		lose = fmt.Sprintf("can lose %d", c.CanLose)
	}
	if brief {
		reason, lose = "", ""
	}
	sep := " " + st.Sep + " "
	facts := []string{fmt.Sprintf("%d masters", c.N), fmt.Sprintf("quorum %d", c.Quorum)}
	if c.MaxTTL > 0 {
		facts = append(facts, "max TTL "+view.Span(c.MaxTTL))
	}
	all := facts
	if who := f.Protectors(); who != "" {
		all = append(facts[:len(facts):len(facts)], who+", D "+view.Span(f.Delay))
	}
	verdict := p.Of(glyph + " " + word)
	join := func(parts ...string) string {
		var in []string
		for _, s := range parts {
			if s != "" {
				in = append(in, s)
			}
		}
		return strings.Join(in, "  ")
	}
	tail := func(reason, lose string) string {
		switch {
		case reason == "":
			return join(verdict, lose)
		case lose == "":
			return join(verdict, reason)
		default:
			return join(verdict, reason+sep+lose)
		}
	}
	up := fmt.Sprintf("%s %d/%d up", name, c.Serving, c.N)
	// From the widest that fits: what is said last goes first.
	for _, try := range [][2]string{
		{st.Strong.Of(" redlockctl") + "  " + name + sep + strings.Join(all, sep), tail(reason, lose)},
		{" " + st.Strong.Of(name) + sep + strings.Join(all, sep), tail(reason, lose)},
		{" " + st.Strong.Of(name) + sep + strings.Join(all, sep), tail(reason, "")},
		{st.Strong.Of(" redlockctl") + "  " + name + sep + strings.Join(facts, sep), tail(reason, lose)},
		{" " + st.Strong.Of(name) + sep + strings.Join(facts, sep), tail(reason, lose)},
		{" " + st.Strong.Of(name) + sep + strings.Join(facts, sep), tail(reason, "")},
		{" " + st.Strong.Of(up), tail(reason, lose)},
	} {
		if gap := w - view.Width(try[0]) - view.Width(try[1]) - 1; gap >= 2 {
			return try[0] + styles.Blanks(gap) + try[1] + " "
		}
	}
	left := " " + st.Strong.Of(up) + "  "
	return st.Cut(left+tail(st.Cut(reason, max(4, w-view.Width(left)-view.Width(verdict)-3)), ""), w)
}

// reason is why the verdict is not safe, the worst first, with the countdown of a
// fence that is known here; named: with the first danger by its name.
func (h *header) reason(s *monitor.Snapshot, now time.Time, f *view.Guard, named bool) string {
	c := &s.Cluster
	if c.Verdict == monitor.VerdictUnknown {
		return h.st.Sentence(c.Reason, 200)
	}
	var parts []string
	if n := s.Dangers(); n > 0 && c.Verdict == monitor.VerdictDanger {
		said := view.Plural(n, "danger")
		if first := h.st.Sentence(s.Findings[0].Title, 100); n == 1 && (named || c.Absent == "") {
			said = first
		} else if n == 1 {
			said = "" // the word says it, and the rest wants the room
		} else if named {
			said += ", the first: " + first
		}
		if said != "" {
			parts = append(parts, said)
		}
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.State == monitor.NodeServing {
			continue
		}
		t := h.st.Escape(n.Name, 12) + " " + n.State.String()
		if left, ok := f.Countdown(n, now); ok {
			t += " " + view.Remaining(left)
		}
		parts = append(parts, t)
	}
	switch {
	case c.Missing == "" || c.Verdict == monitor.VerdictUnavailable:
	case len(parts) == 0:
		return h.st.Sentence(c.Missing, 200)
	default: // there is no room for more
		parts = append(parts, "not protected")
	}
	return strings.Join(parts, ", ")
}
