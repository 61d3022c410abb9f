package view

import "strings"

// Glyphs are the characters beyond letters and digits that stand in cells and facts.
type Glyphs struct {
	ASCII    bool
	Sep      string
	Ellipsis string
	None     string // nothing to show
	Minus    string
	PM       string
	Endless  string   // a time that never ends
	Full     string   // a cell of a bar
	empty    string   // one that is not full
	spark    []string // lowest to highest
	Here     string   // a place in a bar
	Points   string   // at something to its left
	Edge     string   // where a part of a band begins
	Rewind   string   // the past is shown
	Play     string   // and goes on

	On, Half, Off, Wait, Stop, Odd, Unknown          string // states of nodes
	soon, BareMajority, partial, orphan, over, split string // states of locks
	endless, lostMajority                            string
	noCopy, lostCopy                                 string // in a chart of copies
}

// Unicode and ASCII are the glyphs of the screen.
var (
	Unicode = Glyphs{
		Sep: "·", Ellipsis: "…", None: "–", Minus: "−", PM: "±", Endless: "∞", Full: "█", empty: "░", spark: []string{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}, Here: "│", Points: "◂", Edge: "▏", Rewind: "⏪", Play: "▶",
		On: "●", Half: "◐", Off: "✗", Wait: "◌", Stop: "■", Odd: "▲", Unknown: "?",
		soon: "◕", BareMajority: "○", partial: "◌", orphan: "◆", over: "▲", split: "◇", endless: "∞", lostMajority: "◔", noCopy: "·", lostCopy: "×",
	}
	ASCII = Glyphs{
		ASCII: true,
		Sep:   "|", Ellipsis: "..", None: "-", Minus: "-", PM: "+-", Endless: "inf", Full: "#", empty: ".", spark: []string{"_", ".", "-", "~", "=", "+", "*", "#"}, Here: "|", Points: "<", Edge: "|", Rewind: "<<", Play: ">",
		On: "*", Half: "%", Off: "x", Wait: "~", Stop: "H", Odd: "!", Unknown: "?",
		soon: ",", BareMajority: "o", partial: "~", orphan: "#", over: "^", split: "Y", endless: "8", lostMajority: "c", noCopy: ".", lostCopy: "x",
	}
)

// Plain are the glyphs of tables that programs may read too: what is missing is a
// hyphen, and a number's minus is one.
func Plain(ascii bool) *Glyphs {
	g := Unicode
	if ascii {
		g = ASCII
	}
	g.None, g.Minus, g.Endless = "-", "-", "no TTL"
	return &g
}

// onlyASCII replaces the few characters of our own sentences that ASCII lacks.
var onlyASCII = strings.NewReplacer("…", "..", "≥", ">=", "×", "x", "–", "-", "−", "-", "→", "->", "·", "|", "±", "+-", "∞", "inf", "◇", "Y")

// Our is a sentence of the program itself.
func (g *Glyphs) Our(s string) string {
	if g.ASCII {
		return onlyASCII.Replace(s)
	}
	return s
}
