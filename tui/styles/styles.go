// Package styles paints, cuts and escapes text for the screen: one palette, one set of
// glyphs, and the width of each in cells. Text from servers reaches the screen only
// through [Styles.Escape] and similar functions in cell.go.
package styles

import (
	"strings"

	"charm.land/lipgloss/v2"

	"redlockctl/internal/view"
)

// Paint is a style as the escape sequences around a text. Lip Gloss makes it once; a
// frame then only joins strings.
type Paint struct{ Open, Close string }

func newPaint(s lipgloss.Style) Paint {
	open, end, _ := strings.Cut(s.Render("x"), "x")
	return Paint{open, end}
}

// Of paints s.
func (p Paint) Of(s string) string {
	if p.Open == "" || s == "" {
		return s
	}
	return p.Open + s + p.Close
}

// Under paints a line that has colours of its own on this background.
func (p Paint) Under(line string) string {
	if p.Open == "" {
		return line
	}
	return p.Open + strings.ReplaceAll(line, reset, reset+p.Open) + reset
}

// reset ends all colours.
const reset = "\x1b[m"

// Styles has all that a part of the screen needs to draw: colours and glyphs.
type Styles struct {
	glyphs
	Look               Look
	Strong, Dim        Paint
	Good, Warn, Bad    Paint
	Info, Title, Label Paint
	Cursor, Banner     Paint
	Row                Paint // the selected row: a background under the colours of its cells, or a line
	rowHead            Paint // its beginning, if the row has no background
}

// Selected paints the selected row: its first cell and the others, which keep their colours.
func (st *Styles) Selected(head, rest string) string {
	if st.rowHead.Open != "" {
		head = st.rowHead.Of(Bare(head))
	}
	return st.Row.Under(head + rest)
}

// Border has the characters around a pane.
type Border struct{ TopLeft, TopRight, BottomLeft, BottomRight, Rule, Side string }

// glyphs has all characters on the screen except letters and digits.
type glyphs struct {
	view.Glyphs
	Pointer string
	Rule    string
	Thin    Border
	Heavy   Border // of the pane with the focus
	Times   string
	Marked  string // a marked row
	Closed  string // a time when a node had no vote
	Gone    string // a time when a node was down
	Open    string // a time when a node served
}

var unicodeGlyphs = glyphs{
	Glyphs: view.Unicode,
	Thin:   Border{"╭", "╮", "╰", "╯", "─", "│"}, Heavy: Border{"┏", "┓", "┗", "┛", "━", "┃"},
	Pointer: "▸", Rule: "─", Times: "×", Marked: "■", Closed: "▒", Gone: "×", Open: "─",
}

var asciiGlyphs = glyphs{
	Glyphs: view.ASCII,
	Thin:   Border{"+", "+", "+", "+", "-", "|"}, Heavy: Border{"#", "#", "#", "#", "=", "#"},
	Pointer: ">", Rule: "-", Times: "x", Marked: "*", Closed: "%", Gone: "x", Open: "-",
}

// Paint returns the style of a tone.
func (st *Styles) Paint(t view.Tone) Paint {
	return [...]Paint{view.None: {}, view.Good: st.Good, view.Info: st.Info, view.Warn: st.Warn, view.Bad: st.Bad, view.Dim: st.Dim, view.Strong: st.Strong}[t]
}
