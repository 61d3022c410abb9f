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
	strong, dim        paint
	good, warn, bad    paint
	info, title, label paint
	cursor, banner     paint
}

// newStyles is the palette. Only the sixteen ANSI colours are used, so that
// the terminal's own theme decides what they look like, and no state is told
// by its colour alone: each has a glyph and a word.
func newStyles(ascii, noColor bool) styles {
	s := lipgloss.NewStyle
	colored := func(c lipgloss.Style, col color.Color) lipgloss.Style {
		if noColor {
			return c
		}
		return c.Foreground(col)
	}
	red, green, yellow, cyan := lipgloss.Red, lipgloss.Green, lipgloss.Yellow, lipgloss.Cyan
	st := styles{
		glyphs: unicodeGlyphs,
		strong: newPaint(s().Bold(true)),
		dim:    newPaint(s().Faint(true)),
		good:   newPaint(colored(s(), green)),
		warn:   newPaint(colored(s().Bold(true), yellow)),
		bad:    newPaint(colored(s().Bold(true), red)),
		info:   newPaint(colored(s(), cyan)),
		title:  newPaint(s().Bold(true)),
		label:  newPaint(s().Faint(true)),
		cursor: newPaint(s().Reverse(true)),
		banner: newPaint(colored(s().Reverse(true).Bold(true), yellow)),
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

	on, half, off, wait, stop, odd, unknown  string // states of nodes
	soon, bare, partial, orphan, over, split string // states of locks
}

var unicodeGlyphs = glyphs{
	spark:   []string{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"},
	barFull: "█", barEmpty: "░",
	pointer: "▸", rule: "─", sep: "·", ellipsis: "…", none: "–", minus: "−", pm: "±", infinity: "∞", mark: "◂", times: "×", here: "│",
	on: "●", half: "◐", off: "✗", wait: "◌", stop: "■", odd: "▲", unknown: "?",
	soon: "◔", bare: "○", partial: "◌", orphan: "◆", over: "▲", split: "◇",
}

var asciiGlyphs = glyphs{
	ascii:   true,
	spark:   []string{"_", ".", "-", "~", "=", "+", "*", "#"},
	barFull: "#", barEmpty: ".",
	pointer: ">", rule: "-", sep: "|", ellipsis: "..", none: "-", minus: "-", pm: "+-", infinity: "inf", mark: "<", times: "x", here: "|",
	on: "*", half: "%", off: "x", wait: "~", stop: "H", odd: "!", unknown: "?",
	soon: ",", bare: "o", partial: "~", orphan: "#", over: "^", split: "Y",
}

// verdict is the glyph, word and colour of a verdict.
func (st *styles) verdict(v monitor.Verdict) (glyph, word string, p paint) {
	word = strings.ToUpper(v.String())
	switch v {
	case monitor.VerdictSafe:
		return st.on, word, st.good
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

// lock is the glyph and colour of a lock's state; the word is its String.
func (st *styles) lock(s monitor.LockState) (string, paint) {
	switch s {
	case monitor.LockHeld:
		return st.on, st.good
	case monitor.LockExpiring:
		return st.soon, st.good
	case monitor.LockBare:
		return st.bare, st.warn
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
