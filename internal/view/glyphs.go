package view

import "strings"

// Glyphs are the symbols in cells and facts.
type Glyphs struct {
	ASCII    bool
	Sep      string
	Ellipsis string
	None     string // nothing to show
	Minus    string
	PM       string
	Endless  string   // a time that never ends
	Full     string   // a cell of a bar
	empty    string   // an empty cell of a bar
	spark    []string // lowest to highest
	Here     string   // a place in a bar
	Points   string   // at something to its left
	Edge     string   // the beginning of a part of a band
	Rewind   string   // the past is shown
	Play     string   // and goes on
	Verified string   // seen, and right
	Up, Down string   // sorted with the least first, or the greatest

	On, Half, Off, Wait, Stop, Odd, Unknown          string // states of nodes
	soon, BareMajority, partial, orphan, over, split string // states of locks
	endless, lostMajority                            string
	noCopy, lostCopy                                 string // in a chart of copies
}

// Unicode and ASCII are the glyphs of the screen.
var (
	Unicode = Glyphs{
		Sep: "·", Ellipsis: "…", None: "–", Minus: "−", PM: "±", Endless: "∞", Full: "█", empty: "░", spark: []string{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}, Here: "│", Points: "◂", Edge: "▏", Rewind: "⏪", Play: "▶", Verified: "✓", Up: "↑", Down: "↓",
		On: "●", Half: "◐", Off: "✗", Wait: "◌", Stop: "■", Odd: "▲", Unknown: "?",
		soon: "◕", BareMajority: "○", partial: "◌", orphan: "◆", over: "◷", split: "◇", endless: "∞", lostMajority: "◔", noCopy: "·", lostCopy: "×",
	}
	ASCII = Glyphs{
		ASCII: true,
		Sep:   "|", Ellipsis: "..", None: "-", Minus: "-", PM: "+-", Endless: "inf", Full: "#", empty: ".", spark: []string{"_", ".", "-", "~", "=", "+", "*", "#"}, Here: "|", Points: "<", Edge: "|", Rewind: "<<", Play: ">", Verified: "+", Up: "^", Down: "v",
		On: "*", Half: "%", Off: "x", Wait: "~", Stop: "H", Odd: "!", Unknown: "?",
		soon: ",", BareMajority: "o", partial: "~", orphan: "#", over: "^", split: "Y", endless: "8", lostMajority: "c", noCopy: ".", lostCopy: "x",
	}
)

// Plain returns the glyphs of tables that programs may read: a missing value is a hyphen,
// and so is a minus sign.
func Plain(ascii bool) *Glyphs {
	g := Unicode
	if ascii {
		g = ASCII
	}
	g.None, g.Minus, g.Endless = "-", "-", "no TTL"
	return &g
}

// onlyASCII replaces the non-ASCII characters of the program's own sentences.
var onlyASCII = strings.NewReplacer("…", "..", "≥", ">=", "×", "x", "–", "-", "−", "-", "→", "->", "·", "|", "±", "+-", "∞", "inf", "◇", "Y")

// Our renders a sentence of the program itself.
func (g *Glyphs) Our(s string) string {
	if g.ASCII {
		return onlyASCII.Replace(s)
	}
	return s
}
