package styles

import (
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"redlockctl/internal/view"
	"redlockctl/server/safetext"
)

// Pad makes s exactly w cells wide, left-aligned.
func (g *glyphs) Pad(s string, w int) string {
	n := view.Width(s)
	if n > w {
		s = g.Cut(s, w)
		n = view.Width(s)
	}
	return s + Blanks(w-n)
}

// PadLeft makes s exactly w cells wide, right-aligned.
func (g *glyphs) PadLeft(s string, w int) string {
	n := view.Width(s)
	if n > w {
		s = g.Cut(s, w)
		n = view.Width(s)
	}
	return Blanks(w-n) + s
}

// Bare returns s without its colours, for a row drawn as one block.
func Bare(s string) string { return ansi.Strip(s) }

// Typed paints a line being typed: the text before, at and after its cursor.
func (st *Styles) Typed(before, at, after string) string { return before + st.Cursor.Of(at) + after }

// Blanks returns n blank cells.
func Blanks(n int) string {
	if n <= 0 {
		return ""
	}
	return strings.Repeat(" ", n)
}

// Text renders untrusted text in at most w cells.
func (g *glyphs) Text(t safetext.Text, w int) string { return g.Escape(t.Raw(), w) }

// Token renders a token in at most w cells. Its start and end are enough for a person to
// recognize it.
func (g *glyphs) Token(t safetext.Text, w int) string {
	if t.Empty() {
		return g.None
	}
	if len(t.Raw()) > w {
		w = min(w, 11)
	}
	return g.Text(t, w)
}

// Wrap breaks a line into lines of at most w cells, each in the colours of its part; all
// but the first are indented by indent cells. It breaks at blanks, and within words
// longer than a line: a flag or a name with hyphens stays whole, so that it can be
// copied.
func Wrap(s string, w, indent int) []string {
	if view.Width(s) <= w {
		return []string{s}
	}
	if indent > w/2 {
		indent = 0
	}
	lines := wrapWords(s, w)
	if len(lines) > 1 && indent > 0 {
		rest := strings.TrimLeft(strings.Join(lines[1:], " "), " ")
		lines = lines[:1]
		for _, l := range wrapWords(rest, w-indent) {
			lines = append(lines, Blanks(indent)+l)
		}
	}
	return lines
}

// hyphen replaces hyphens while words are wrapped, which would otherwise break there.
const hyphen = "\ue02d"

func wrapWords(s string, w int) []string {
	if strings.Contains(s, hyphen) {
		return strings.Split(lipgloss.Wrap(s, w, ""), "\n")
	}
	return strings.Split(strings.ReplaceAll(lipgloss.Wrap(strings.ReplaceAll(s, "-", hyphen), w, ""), hyphen, "-"), "\n")
}
