// Package styles is how the screen paints, cuts and escapes text: one palette, one set
// of glyphs, and the width of each in cells. Text from servers reaches the screen
// through [Styles.Escape] and its kin (cell.go), and in no other way.
package styles

import (
	"image/color"
	"strings"

	"charm.land/lipgloss/v2"

	"redlockctl/monitor"
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
	Theme              Theme
	Strong, Dim        Paint
	Good, Warn, Bad    Paint
	Info, Title, Label Paint
	Cursor, Banner     Paint
}

// Theme is which colours the screen uses.
type Theme string

// Themes. Only the sixteen ANSI colours are used, so that the terminal's own
// scheme decides what they look like.
const (
	ThemeDark  Theme = "dark"  // for a dark background; the default
	ThemeLight Theme = "light" // for a light one: without yellow and cyan, which nobody can read there
	ThemeNone  Theme = "none"  // no colour; bold, faint and reverse stay
)

// Themes are all themes.
func Themes() []Theme { return []Theme{ThemeDark, ThemeLight, ThemeNone} }

// palette is the colours of a theme; nil is the terminal's own.
type palette struct{ good, warn, bad, info color.Color }

func (t Theme) palette() palette {
	switch t {
	case ThemeNone:
		return palette{}
	case ThemeLight:
		return palette{good: lipgloss.Green, warn: lipgloss.Magenta, bad: lipgloss.Red, info: lipgloss.Blue}
	default:
		return palette{good: lipgloss.Green, warn: lipgloss.Yellow, bad: lipgloss.Red, info: lipgloss.Cyan}
	}
}

// New makes all styles out of a palette. No state is told by its colour
// alone: each has a glyph and a word.
func New(ascii bool, theme Theme) Styles {
	s, p := lipgloss.NewStyle, theme.palette()
	colored := func(c lipgloss.Style, col color.Color) lipgloss.Style {
		if col == nil {
			return c
		}
		return c.Foreground(col)
	}
	st := Styles{
		glyphs: unicodeGlyphs,
		Theme:  theme,
		Strong: newPaint(s().Bold(true)),
		Dim:    newPaint(s().Faint(true)),
		Good:   newPaint(colored(s(), p.good)),
		Warn:   newPaint(colored(s().Bold(true), p.warn)),
		Bad:    newPaint(colored(s().Bold(true), p.bad)),
		Info:   newPaint(colored(s(), p.info)),
		Title:  newPaint(s().Bold(true)),
		Label:  newPaint(s().Faint(true)),
		Cursor: newPaint(s().Reverse(true)),
		Banner: newPaint(colored(s().Reverse(true).Bold(true), p.warn)),
	}
	if ascii {
		st.glyphs = asciiGlyphs
	}
	return st
}

// glyphs is every character beyond letters and digits that the screen draws.
type glyphs struct {
	Ascii    bool
	spark    []string // lowest to highest
	BarFull  string
	barEmpty string
	Pointer  string
	Rule     string
	Sep      string
	Ellipsis string
	None     string // nothing to show
	minus    string
	Pm       string
	Infinity string
	Mark     string // points at something to its left
	Times    string
	Here     string // a place on an axis
	Marked   string // a row that was marked
	Closed   string // a time in which a node had no vote
	Gone     string // a time in which a node was down
	Open     string // a time in which a node served

	On, Half, Off, Wait, stop, Odd, unknown  string // states of nodes
	soon, Bare, partial, orphan, over, split string // states of locks
}

var unicodeGlyphs = glyphs{
	spark:   []string{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"},
	BarFull: "█", barEmpty: "░",
	Pointer: "▸", Rule: "─", Sep: "·", Ellipsis: "…", None: "–", minus: "−", Pm: "±", Infinity: "∞", Mark: "◂", Times: "×", Here: "│",
	Marked: "■", Closed: "▒", Gone: "×", Open: "─",
	On: "●", Half: "◐", Off: "✗", Wait: "◌", stop: "■", Odd: "▲", unknown: "?",
	soon: "◔", Bare: "○", partial: "◌", orphan: "◆", over: "▲", split: "◇",
}

var asciiGlyphs = glyphs{
	Ascii:   true,
	spark:   []string{"_", ".", "-", "~", "=", "+", "*", "#"},
	BarFull: "#", barEmpty: ".",
	Pointer: ">", Rule: "-", Sep: "|", Ellipsis: "..", None: "-", minus: "-", Pm: "+-", Infinity: "inf", Mark: "<", Times: "x", Here: "|",
	Marked: "*", Closed: "%", Gone: "x", Open: "-",
	On: "*", Half: "%", Off: "x", Wait: "~", stop: "H", Odd: "!", unknown: "?",
	soon: ",", Bare: "o", partial: "~", orphan: "#", over: "^", split: "Y",
}

// Verdict is the glyph, word and colour of a verdict.
func (st *Styles) Verdict(s *monitor.Snapshot) (glyph, word string, p Paint) {
	word = strings.ToUpper(s.Cluster.Verdict.String())
	switch s.Cluster.Verdict {
	case monitor.VerdictSafe:
		return st.On, word, st.Good
	case monitor.VerdictUnprotected:
		return st.Half, word, st.Warn
	case monitor.VerdictDanger:
		return st.Odd, word, st.Bad
	case monitor.VerdictDegraded:
		return st.Half, word, st.Warn
	case monitor.VerdictUnavailable:
		return st.Off, word, st.Bad
	default:
		return st.unknown, word, st.Dim
	}
}

// Node is the glyph and colour of a node's state; the word is its String.
func (st *Styles) Node(s monitor.NodeState) (string, Paint) {
	switch s {
	case monitor.NodeServing:
		return st.On, st.Good
	case monitor.NodeFenced:
		return st.Half, st.Warn
	case monitor.NodeHeld:
		return st.stop, st.Warn
	case monitor.NodeLoading, monitor.NodeSlow:
		return st.Wait, st.Warn
	case monitor.NodeWrongRole, monitor.NodeDenied:
		return st.Odd, st.Bad
	case monitor.NodeDown:
		return st.Off, st.Bad
	default:
		return st.unknown, st.Dim
	}
}

// Severity is the glyph, word and colour of a finding.
func (st *Styles) Severity(s monitor.Severity) (glyph, word string, p Paint) {
	switch s {
	case monitor.SeverityDanger:
		return st.Off, s.String(), st.Bad
	case monitor.SeverityWarning:
		return st.Odd, s.String(), st.Warn
	default:
		return st.Sep, s.String(), Paint{}
	}
}

// Lock is the glyph and colour of a lock's state; the word is its String.
func (st *Styles) Lock(s monitor.LockState) (string, Paint) {
	switch s {
	case monitor.LockHeld:
		return st.On, st.Good
	case monitor.LockExpiring:
		return st.soon, st.Good
	case monitor.LockBare:
		return st.Bare, st.Warn
	case monitor.LockRevoked:
		return st.stop, st.Warn
	case monitor.LockPartial:
		return st.partial, st.Info
	case monitor.LockNotALock:
		return st.None, st.Dim
	case monitor.LockOrphan:
		return st.orphan, st.Bad
	case monitor.LockOverTTL:
		return st.over, st.Warn
	case monitor.LockSplit:
		return st.split, st.Bad
	case monitor.LockImmortal:
		if st.Ascii {
			return "8", st.Bad
		}
		return st.Infinity, st.Bad
	default:
		return st.unknown, st.Dim
	}
}
