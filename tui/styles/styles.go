// Package styles is how the screen paints, cuts and escapes text: one palette, one set
// of glyphs, and the width of each in cells. Text from servers reaches the screen
// through [Styles.Escape] and its kin (cell.go), and in no other way.
package styles

import (
	"strings"

	"charm.land/lipgloss/v2"

	"redlockctl/internal/view"
)

// Paint is a style as the escape sequences around a text. Lip Gloss makes it
// once; a frame then only joins strings.
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

// Styles is all that a part of the screen needs to draw: colours and glyphs.
type Styles struct {
	glyphs
	Look               Look
	Strong, Dim        Paint
	Good, Warn, Bad    Paint
	Info, Title, Label Paint
	Cursor, Banner     Paint
}

// Border is the characters around a pane.
type Border struct{ TopLeft, TopRight, BottomLeft, BottomRight, Rule, Side string }

// glyphs is every character beyond letters and digits that the screen draws.
type glyphs struct {
	view.Glyphs
	Pointer string
	Rule    string
	Thin    Border
	Heavy   Border // of what has the focus
	Times   string
	Marked  string // a row that was marked
	Closed  string // a time in which a node had no vote
	Gone    string // a time in which a node was down
	Open    string // a time in which a node served
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

// Paint is the style of a tone.
func (st *Styles) Paint(t view.Tone) Paint {
	return [...]Paint{view.None: {}, view.Good: st.Good, view.Info: st.Info, view.Warn: st.Warn, view.Bad: st.Bad, view.Dim: st.Dim, view.Strong: st.Strong}[t]
}
