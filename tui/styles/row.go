package styles

import (
	"strings"
	"time"

	"redlockctl/internal/view"
)

const (
	Lead       = 3  // cells before a row: mark, cursor, blank
	StateWidth = 12 // "○ bare maj.", "◌ wrong role"
)

// FactIndent is where the text of a fact starts: after a label of one word.
const FactIndent = 11

// Fact formats a label and its text.
func (st *Styles) Fact(label, text string) string {
	return st.Label.Of(st.Pad(label, FactIndent)) + text
}

// DropBlank removes blank lines.
func DropBlank(lines []string) []string {
	var out []string
	for _, l := range lines {
		if strings.TrimSpace(l) != "" {
			out = append(out, l)
		}
	}
	return out
}

// Fill cuts or extends lines to exactly h lines.
func Fill(lines []string, h int) []string {
	h = max(h, 0)
	return append(lines[:min(len(lines), h)], make([]string, max(0, h-len(lines)))...)
}

// Since formats a time and how long ago it was.
func Since(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	return " since " + view.Clock(t) + " (" + view.Age(now.Sub(t)) + ")"
}
