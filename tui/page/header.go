package page

import (
	"fmt"
	"slices"
	"strings"

	"redlockctl/internal/view"
	"redlockctl/tui/styles"
)

// Header is the first line of the screen: the cluster, and on the right facts about it, or
// the verdict if no line below shows it.
func (s *Screen) Header(on Kind) string {
	st, ctx, w := s.St, s.context(), s.W
	c := &s.Shown.Cluster
	name := st.Escape(c.Name, max(8, w/4))
	sep := " " + st.Sep + " "
	facts := []string{view.Plural(c.N, "node"), fmt.Sprintf("quorum %d", c.Quorum)}
	if c.MaxTTL > 0 {
		facts = append(facts, "max TTL "+view.Span(c.MaxTTL))
	}
	all, brief, least := facts, facts[:2], facts[:1]
	if who := s.drawn.Protectors(); who != "" {
		d := ", D " + view.Span(s.drawn.Delay)
		all = append(facts[:len(facts):len(facts)], who+d)
		few := s.drawn.Number() + d
		brief, least = append(facts[:2:2], few), append(facts[:1:1], few) // D is made of the longest TTL
	}
	if on == Overview && spelt(s.H) {
		left := " " + st.Strong.Of("redlockctl") + "  " + st.Strong.Of(name)
		for _, right := range []string{strings.Join(all, sep), strings.Join(brief, sep), strings.Join(least, sep), least[len(least)-1]} {
			if gap := w - view.Width(left) - view.Width(right) - 1; gap >= 2 {
				return left + styles.Blanks(gap) + st.Dim.Of(right)
			}
		}
		return st.Cut(left, w)
	}
	heads := view.Headlines(ctx)
	first := heads[0]
	for _, h := range heads[1:] { // of each the most important part comes before the rest of the others
		most := h.Parts[0]
		if h.Verdict.Tone == view.Bad { // a danger while too few nodes serve
			most.Brief = strings.ToUpper(h.Verdict.Text)
		}
		first.Parts = slices.Concat(first.Parts[:1], []view.HeadlinePart{most}, first.Parts[1:], h.Parts[1:])
	}
	left := " " + st.Strong.Of(name) + "  " + st.Paint(first.Verdict.Tone).Of(first.Verdict.Sign+" "+strings.ToUpper(first.Verdict.Text)) + "  "
	return left + first.Line(&st.Glyphs, max(4, w-view.Width(left)-1))
}

// verdict draws the headlines, a line for each, the worst first.
func (s *Screen) verdict(heads []view.Headline) (lines []string) {
	st := s.St
	word := 0
	for _, h := range heads {
		word = max(word, view.Width(h.Verdict.Text))
	}
	for i, h := range heads {
		more := ""
		if n := len(s.Shown.Findings); i == 0 && n > 0 && !Tabbed(s.H) { // a tab has their number too
			more = "5: " + view.Plural(n, "finding")
		}
		paint := st.Paint(h.Verdict.Tone)
		left := " " + paint.Of(h.Verdict.Sign+" "+st.Pad(strings.ToUpper(h.Verdict.Text), word)) + "  "
		room := s.W - view.Width(left) - 1
		text := h.Line(&st.Glyphs, room)
		if gap := room - view.Width(text) - view.Width(more); more != "" && gap >= 2 {
			text += styles.Blanks(gap) + st.Dim.Of(more)
		}
		lines = append(lines, left+text)
	}
	return lines
}

// Tabbed reports whether a screen of h lines has the line of pages.
func Tabbed(h int) bool { return h >= 20 }

// spelt reports whether a screen of h lines has room for the verdict in words.
func spelt(h int) bool { return h >= 24 }
