package styles

import (
	"cmp"
	"fmt"
	"image/color"
	"strconv"

	"charm.land/lipgloss/v2"
)

// Theme is which colours the screen uses.
type Theme string

// Themes. A theme says for which background its colours are; the background itself is
// the terminal's.
const (
	ThemeANSI              Theme = "ansi"       // the terminal's own sixteen, for a dark background; the default
	ThemeANSILight         Theme = "ansi-light" // the same without yellow and cyan, which nobody can read on a light one
	ThemeDark              Theme = "dark"
	ThemeLight             Theme = "light"
	ThemeHighContrast      Theme = "high-contrast" // nothing is faint, and all is bold
	ThemeHighContrastLight Theme = "high-contrast-light"
	ThemeColorBlind        Theme = "color-blind" // without red and green beside each other, for deuteranopia and protanopia
	ThemeColorBlindLight   Theme = "color-blind-light"
	ThemeNone              Theme = "none" // no colour; bold, faint and reverse stay
)

// Palette is the colours of a screen by what they say; nil is the theme's own, and in a
// theme the terminal's.
type Palette struct{ Good, Info, Warn, Bad color.Color }

// theme is what is known of a theme.
type theme struct {
	name    Theme
	colors  Palette // out of the 256 that no terminal redefines
	sixteen Palette // where the terminal has no more
	strong  bool    // of high contrast
}

var (
	onDark  = Palette{Good: lipgloss.Green, Info: lipgloss.Cyan, Warn: lipgloss.Yellow, Bad: lipgloss.Red}
	onLight = Palette{Good: lipgloss.Green, Info: lipgloss.Blue, Warn: lipgloss.Magenta, Bad: lipgloss.Red}
	bright  = Palette{Good: lipgloss.BrightGreen, Info: lipgloss.BrightCyan, Warn: lipgloss.BrightYellow, Bad: lipgloss.BrightRed}
)

// themes are all themes, in the order in which they are offered.
var themes = []theme{
	{name: ThemeANSI, colors: onDark, sixteen: onDark},
	{name: ThemeANSILight, colors: onLight, sixteen: onLight},
	{name: ThemeDark, colors: indexed(114, 80, 221, 210), sixteen: onDark},
	{name: ThemeLight, colors: indexed(22, 25, 94, 124), sixteen: onLight},
	{name: ThemeHighContrast, colors: indexed(46, 51, 226, 210), sixteen: bright, strong: true},
	{name: ThemeHighContrastLight, colors: indexed(22, 24, 90, 88), sixteen: onLight, strong: true},
	{name: ThemeColorBlind, colors: indexed(75, 159, 226, 209),
		sixteen: Palette{Good: lipgloss.BrightBlue, Info: lipgloss.BrightCyan, Warn: lipgloss.BrightYellow, Bad: lipgloss.Red}},
	{name: ThemeColorBlindLight, colors: indexed(62, 23, 94, 52),
		sixteen: Palette{Good: lipgloss.Blue, Info: lipgloss.BrightBlack, Warn: lipgloss.Magenta, Bad: lipgloss.Red}},
	{name: ThemeNone},
}

// indexed is a palette out of the 256 colours.
func indexed(good, info, warn, bad uint8) Palette {
	return Palette{Good: of256(good), Info: of256(info), Warn: of256(warn), Bad: of256(bad)}
}

func of256(i uint8) color.Color { return lipgloss.ANSIColor(i) }

// Themes are the names of all themes.
func Themes() (names []Theme) {
	for _, t := range themes {
		names = append(names, t.name)
	}
	return names
}

// find is the theme of a name; the default for one that is unknown.
func (t Theme) find() theme {
	for _, known := range themes {
		if known.name == t {
			return known
		}
	}
	return themes[0]
}

// Color is a colour as a person writes it: #rrggbb, or the number of one of a terminal's
// 256. "" is nil.
func Color(word string) (color.Color, error) {
	if word == "" {
		return nil, nil
	}
	if i, err := strconv.ParseUint(word, 10, 8); err == nil {
		return of256(uint8(i)), nil
	}
	if rgb, err := strconv.ParseUint(word[1:], 16, 24); err == nil && word[0] == '#' && len(word) == 7 {
		return color.RGBA{R: uint8(rgb >> 16), G: uint8(rgb >> 8), B: uint8(rgb), A: 0xff}, nil
	}
	return nil, fmt.Errorf("%q is not a colour: write #rrggbb, or a number from 0 to 255", word)
}

// over is p with the colours of q where p has none.
func (p Palette) over(q Palette) Palette {
	return Palette{Good: cmp.Or(p.Good, q.Good), Info: cmp.Or(p.Info, q.Info), Warn: cmp.Or(p.Warn, q.Warn), Bad: cmp.Or(p.Bad, q.Bad)}
}

// Look is how a person wants the screen to look.
type Look struct {
	Theme   Theme
	Own     Palette // single colours in place of the theme's, but of ThemeNone
	ASCII   bool    // ASCII characters only
	Sixteen bool    // the terminal has no more colours
}

// New makes all styles of a look. No state is told by its colour alone: each has a
// glyph and a word.
func New(look Look) Styles {
	t, s := look.Theme.find(), lipgloss.NewStyle
	p := t.colors
	if look.Sixteen {
		p = t.sixteen
	}
	if t.name != ThemeNone {
		p = look.Own.over(p)
	}
	colored := func(c lipgloss.Style, col color.Color) lipgloss.Style {
		if col == nil {
			return c
		}
		return c.Foreground(col)
	}
	st := Styles{
		glyphs: unicodeGlyphs,
		Look:   look,
		Strong: newPaint(s().Bold(true)),
		Dim:    newPaint(s().Faint(!t.strong)),
		Good:   newPaint(colored(s().Bold(t.strong), p.Good)),
		Warn:   newPaint(colored(s().Bold(true), p.Warn)),
		Bad:    newPaint(colored(s().Bold(true), p.Bad)),
		Info:   newPaint(colored(s().Bold(t.strong), p.Info)),
		Title:  newPaint(s().Bold(true)),
		Label:  newPaint(s().Faint(!t.strong)),
		Cursor: newPaint(s().Reverse(true)),
		Banner: newPaint(colored(s().Reverse(true).Bold(true), p.Warn)),
	}
	if look.ASCII {
		st.glyphs = asciiGlyphs
	}
	return st
}
