package tui

import (
	"image/color"
	"strings"

	"charm.land/lipgloss/v2"

	"redlockctl/monitor"
)

// paint is a style as the escape sequences around a text. Lip Gloss makes it
// once; a frame then only joins strings.
type paint struct{ open, close string }

func newPaint(s lipgloss.Style) paint {
	open, end, _ := strings.Cut(s.Render("x"), "x")
	return paint{open, end}
}

// of paints s.
func (p paint) of(s string) string {
	if p.open == "" || s == "" {
		return s
	}
	return p.open + s + p.close
}

// styles is all that a part of the screen needs to draw: colours and glyphs.
type styles struct {
	glyphs
	theme              Theme
	strong, dim        paint
	good, warn, bad    paint
	info, title, label paint
	cursor, banner     paint
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

// newStyles makes all styles out of a palette. No state is told by its colour
// alone: each has a glyph and a word.
func newStyles(ascii bool, theme Theme) styles {
	s, p := lipgloss.NewStyle, theme.palette()
	colored := func(c lipgloss.Style, col color.Color) lipgloss.Style {
		if col == nil {
			return c
		}
		return c.Foreground(col)
	}
	st := styles{
		glyphs: unicodeGlyphs,
		theme:  theme,
		strong: newPaint(s().Bold(true)),
		dim:    newPaint(s().Faint(true)),
		good:   newPaint(colored(s(), p.good)),
		warn:   newPaint(colored(s().Bold(true), p.warn)),
		bad:    newPaint(colored(s().Bold(true), p.bad)),
		info:   newPaint(colored(s(), p.info)),
		title:  newPaint(s().Bold(true)),
		label:  newPaint(s().Faint(true)),
		cursor: newPaint(s().Reverse(true)),
		banner: newPaint(colored(s().Reverse(true).Bold(true), p.warn)),
	}
	if ascii {
		st.glyphs = asciiGlyphs
	}
	return st
}

// glyphs is every character beyond letters and digits that the screen draws.
type glyphs struct {
	ascii    bool
	spark    []string // lowest to highest
	barFull  string
	barEmpty string
	pointer  string
	rule     string
	sep      string
	ellipsis string
	none     string // nothing to show
	minus    string
	pm       string
	infinity string
	mark     string // points at something to its left
	times    string
	here     string // a place on an axis
	marked   string // a row that was marked
	closed   string // a time in which a node had no vote
	gone     string // a time in which a node was down
	open     string // a time in which a node served

	on, half, off, wait, stop, odd, unknown  string // states of nodes
	soon, bare, partial, orphan, over, split string // states of locks
}

var unicodeGlyphs = glyphs{
	spark:   []string{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"},
	barFull: "█", barEmpty: "░",
	pointer: "▸", rule: "─", sep: "·", ellipsis: "…", none: "–", minus: "−", pm: "±", infinity: "∞", mark: "◂", times: "×", here: "│",
	marked: "■", closed: "▒", gone: "×", open: "─",
	on: "●", half: "◐", off: "✗", wait: "◌", stop: "■", odd: "▲", unknown: "?",
	soon: "◔", bare: "○", partial: "◌", orphan: "◆", over: "▲", split: "◇",
}

var asciiGlyphs = glyphs{
	ascii:   true,
	spark:   []string{"_", ".", "-", "~", "=", "+", "*", "#"},
	barFull: "#", barEmpty: ".",
	pointer: ">", rule: "-", sep: "|", ellipsis: "..", none: "-", minus: "-", pm: "+-", infinity: "inf", mark: "<", times: "x", here: "|",
	marked: "*", closed: "%", gone: "x", open: "-",
	on: "*", half: "%", off: "x", wait: "~", stop: "H", odd: "!", unknown: "?",
	soon: ",", bare: "o", partial: "~", orphan: "#", over: "^", split: "Y",
}

// verdict is the glyph, word and colour of a verdict.
func (st *styles) verdict(s *monitor.Snapshot) (glyph, word string, p paint) {
	word = strings.ToUpper(s.Cluster.Verdict.String())
	switch s.Cluster.Verdict {
	case monitor.VerdictSafe:
		return st.on, word, st.good
	case monitor.VerdictUnprotected:
		return st.half, word, st.warn
	case monitor.VerdictDanger:
		return st.odd, word, st.bad
	case monitor.VerdictDegraded:
		return st.half, word, st.warn
	case monitor.VerdictUnavailable:
		return st.off, word, st.bad
	default:
		return st.unknown, word, st.dim
	}
}

// node is the glyph and colour of a node's state; the word is its String.
func (st *styles) node(s monitor.NodeState) (string, paint) {
	switch s {
	case monitor.NodeServing:
		return st.on, st.good
	case monitor.NodeFenced:
		return st.half, st.warn
	case monitor.NodeHeld:
		return st.stop, st.warn
	case monitor.NodeLoading, monitor.NodeSlow:
		return st.wait, st.warn
	case monitor.NodeWrongRole, monitor.NodeDenied:
		return st.odd, st.bad
	case monitor.NodeDown:
		return st.off, st.bad
	default:
		return st.unknown, st.dim
	}
}

// severity is the glyph, word and colour of a finding.
func (st *styles) severity(s monitor.Severity) (glyph, word string, p paint) {
	switch s {
	case monitor.SeverityDanger:
		return st.off, s.String(), st.bad
	case monitor.SeverityWarning:
		return st.odd, s.String(), st.warn
	default:
		return st.sep, s.String(), paint{}
	}
}

// lock is the glyph and colour of a lock's state; the word is its String.
func (st *styles) lock(s monitor.LockState) (string, paint) {
	switch s {
	case monitor.LockHeld:
		return st.on, st.good
	case monitor.LockExpiring:
		return st.soon, st.good
	case monitor.LockBare:
		return st.bare, st.warn
	case monitor.LockRevoked:
		return st.stop, st.warn
	case monitor.LockPartial:
		return st.partial, st.info
	case monitor.LockNotALock:
		return st.none, st.dim
	case monitor.LockOrphan:
		return st.orphan, st.bad
	case monitor.LockOverTTL:
		return st.over, st.warn
	case monitor.LockSplit:
		return st.split, st.bad
	case monitor.LockImmortal:
		if st.ascii {
			return "8", st.bad
		}
		return st.infinity, st.bad
	default:
		return st.unknown, st.dim
	}
}
