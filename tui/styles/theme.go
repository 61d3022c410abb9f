package styles

import (
	"cmp"
	"fmt"
	"image/color"
	"strconv"

	"charm.land/lipgloss/v2"
)

// Theme names the colours of the screen.
type Theme string

// Themes. Each has colours for a dark or a light background; the background itself is the
// terminal's.
const (
	ThemeANSI              Theme = "ansi"       // the terminal's own sixteen colours, for a dark background; the default
	ThemeANSILight         Theme = "ansi-light" // the same without yellow and cyan, which are unreadable on a light background
	ThemeDark              Theme = "dark"
	ThemeLight             Theme = "light"
	ThemeHighContrast      Theme = "high-contrast" // no faint text; all is bold
	ThemeHighContrastLight Theme = "high-contrast-light"
	ThemeColorBlind        Theme = "color-blind" // does not use red and green together; for deuteranopia and protanopia
	ThemeColorBlindLight   Theme = "color-blind-light"
	ThemeNone              Theme = "none" // no colour; bold, faint and reverse stay
)

// Palette has the colours of a screen by meaning; nil means the theme's colour, and in a
// theme the terminal's.
type Palette struct{ Good, Info, Warn, Bad color.Color }

// theme is the definition of a theme.
type theme struct {
	name    Theme
	colors  Palette // from the 256 colours that no terminal redefines
	sixteen Palette // if the terminal has only sixteen
	strong  bool    // high contrast
	light   bool    // for a light background
}

var (
	onDark  = Palette{Good: lipgloss.Green, Info: lipgloss.Cyan, Warn: lipgloss.Yellow, Bad: lipgloss.Red}
	onLight = Palette{Good: lipgloss.Green, Info: lipgloss.Blue, Warn: lipgloss.Magenta, Bad: lipgloss.Red}
	bright  = Palette{Good: lipgloss.BrightGreen, Info: lipgloss.BrightCyan, Warn: lipgloss.BrightYellow, Bad: lipgloss.BrightRed}
)

// themes lists all themes, in the order in which they are offered.
var themes = []theme{
	{name: ThemeANSI, colors: onDark, sixteen: onDark},
	{name: ThemeANSILight, colors: onLight, sixteen: onLight, light: true},
	{name: ThemeDark, colors: indexed(114, 80, 221, 210), sixteen: onDark},
	{name: ThemeLight, colors: indexed(22, 25, 94, 124), sixteen: onLight, light: true},
	{name: ThemeHighContrast, colors: indexed(46, 51, 226, 210), sixteen: bright, strong: true},
	{name: ThemeHighContrastLight, colors: indexed(22, 24, 90, 88), sixteen: onLight, strong: true, light: true},
	{name: ThemeColorBlind, colors: indexed(75, 159, 226, 209),
		sixteen: Palette{Good: lipgloss.BrightBlue, Info: lipgloss.BrightCyan, Warn: lipgloss.BrightYellow, Bad: lipgloss.Red}},
	{name: ThemeColorBlindLight, light: true, colors: indexed(62, 23, 94, 52),
		sixteen: Palette{Good: lipgloss.Blue, Info: lipgloss.BrightBlack, Warn: lipgloss.Magenta, Bad: lipgloss.Red}},
	{name: ThemeNone},
}

// indexed makes a palette from the 256 colours.
func indexed(good, info, warn, bad uint8) Palette {
	return Palette{Good: of256(good), Info: of256(info), Warn: of256(warn), Bad: of256(bad)}
}

// Backgrounds of the selected row. With high contrast, sixteen colours or none it is
// underlined, and its beginning reversed: on a solid background its bars and glyphs could
// not be read.
const (
	tintDark  = uint8(237)
	tintLight = uint8(253)
)

func of256(i uint8) color.Color { return lipgloss.ANSIColor(i) }

// Themes returns the names of all themes.
func Themes() (names []Theme) {
	for _, t := range themes {
		names = append(names, t.name)
	}
	return names
}

// find returns the theme with this name; the default for an unknown name.
func (t Theme) find() theme {
	for _, known := range themes {
		if known.name == t {
			return known
		}
	}
	return themes[0]
}

// Color parses a colour: #rrggbb, or the number of one of the terminal's 256. "" is nil.
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

// over returns p with the colours of q where p has none.
func (p Palette) over(q Palette) Palette {
	return Palette{Good: cmp.Or(p.Good, q.Good), Info: cmp.Or(p.Info, q.Info), Warn: cmp.Or(p.Warn, q.Warn), Bad: cmp.Or(p.Bad, q.Bad)}
}

// Look is the look of the screen that the user wants.
type Look struct {
	Theme   Theme
	Own     Palette // replaces single colours of the theme, except of ThemeNone
	ASCII   bool    // ASCII characters only
	Sixteen bool    // the terminal has only sixteen colours
}

// New makes all styles of a look. No state is shown by colour alone: each has a glyph and
// a word.
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
	st.Row, st.rowHead = newPaint(s().Underline(true)), st.Cursor
	if t.name != ThemeNone && !t.strong && !look.Sixteen {
		tint := tintDark
		if t.light {
			tint = tintLight
		}
		st.Row, st.rowHead = newPaint(s().Background(of256(tint))), Paint{}
	}
	if look.ASCII {
		st.glyphs = asciiGlyphs
	}
	return st
}
