package view

import (
	"math"
	"strings"
	"time"

	"redlockctl/monitor"
)

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
	endless                                          string
	noCopy                                           string // in a chart of copies
}

// Unicode and ASCII are the glyphs of the screen.
var (
	Unicode = Glyphs{
		Sep: "·", Ellipsis: "…", None: "–", Minus: "−", PM: "±", Endless: "∞", Full: "█", empty: "░", spark: []string{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}, Here: "│", Points: "◂", Edge: "▏", Rewind: "⏪", Play: "▶",
		On: "●", Half: "◐", Off: "✗", Wait: "◌", Stop: "■", Odd: "▲", Unknown: "?",
		soon: "◔", BareMajority: "○", partial: "◌", orphan: "◆", over: "▲", split: "◇", endless: "∞", noCopy: "·",
	}
	ASCII = Glyphs{
		ASCII: true,
		Sep:   "|", Ellipsis: "..", None: "-", Minus: "-", PM: "+-", Endless: "inf", Full: "#", empty: ".", spark: []string{"_", ".", "-", "~", "=", "+", "*", "#"}, Here: "|", Points: "<", Edge: "|", Rewind: "<<", Play: ">",
		On: "*", Half: "%", Off: "x", Wait: "~", Stop: "H", Odd: "!", Unknown: "?",
		soon: ",", BareMajority: "o", partial: "~", orphan: "#", over: "^", split: "Y", endless: "8", noCopy: ".",
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

// Verdict is the state of a cluster.
func (g *Glyphs) Verdict(v monitor.Verdict) Cell {
	c := Cell{g.Unknown, v.String(), Dim}
	switch v {
	case monitor.VerdictSafe:
		c.Sign, c.Tone = g.On, Good
	case monitor.VerdictUnprotected, monitor.VerdictDegraded:
		c.Sign, c.Tone = g.Half, Warn
	case monitor.VerdictDanger:
		c.Sign, c.Tone = g.Odd, Bad
	case monitor.VerdictUnavailable:
		c.Sign, c.Tone = g.Off, Bad
	}
	return c
}

// NodeState is the state of a node.
func (g *Glyphs) NodeState(s monitor.NodeState) Cell {
	c := Cell{g.Unknown, s.String(), Dim}
	switch s {
	case monitor.NodeServing:
		c.Sign, c.Tone = g.On, Good
	case monitor.NodeFenced:
		c.Sign, c.Tone = g.Half, Warn
	case monitor.NodeCordoned:
		c.Sign, c.Tone = g.Stop, Warn
	case monitor.NodeLoading, monitor.NodeSlow:
		c.Sign, c.Tone = g.Wait, Warn
	case monitor.NodeWrongRole, monitor.NodeDenied:
		c.Sign, c.Tone = g.Odd, Bad
	case monitor.NodeDown:
		c.Sign, c.Tone = g.Off, Bad
	}
	return c
}

// Severity is the severity of a finding.
func (g *Glyphs) Severity(s monitor.Severity) Cell {
	switch s {
	case monitor.SeverityDanger:
		return Cell{g.Off, s.String(), Bad}
	case monitor.SeverityWarning:
		return Cell{g.Odd, s.String(), Warn}
	}
	return Cell{g.Sep, s.String(), None}
}

// LockState is the state of a lock.
func (g *Glyphs) LockState(s monitor.LockState) Cell {
	c := Cell{g.Unknown, s.String(), Dim}
	switch s {
	case monitor.LockHeld:
		c.Sign, c.Tone = g.On, Good
	case monitor.LockExpiring:
		c.Sign, c.Tone = g.soon, Good
	case monitor.LockBareMajority:
		c.Sign, c.Tone = g.BareMajority, Warn
	case monitor.LockRevoked:
		c.Sign, c.Tone = g.Stop, Warn
	case monitor.LockPartial:
		c.Sign, c.Tone = g.partial, Info
	case monitor.LockNotALock:
		c.Sign = g.None
	case monitor.LockOrphaned:
		c.Sign, c.Tone = g.orphan, Bad
	case monitor.LockOverTTL:
		c.Sign, c.Tone = g.over, Warn
	case monitor.LockSplit:
		c.Sign, c.Tone = g.split, Bad
	case monitor.LockNoTTL:
		c.Sign, c.Tone = g.endless, Bad
	}
	return c
}

// States says what the states of locks mean.
var States = map[monitor.LockState]string{
	monitor.LockHeld:         "a quorum of copies, and some to lose",
	monitor.LockExpiring:     "held, ends within a second",
	monitor.LockBareMajority: "held with margin 0: one more restart lets another client in",
	monitor.LockRevoked:      "taken from its holder: others wait until the TTL expires",
	monitor.LockPartial:      "copies but no majority: being acquired or released",
	monitor.LockNotALock:     "a key under the lock pattern that cannot be a lock",
	monitor.LockOrphaned:     "a minority left behind by a failed or dead client: blocks others until it expires",
	monitor.LockOverTTL:      "lives longer than the cluster's max TTL: the guard's delay does not cover it",
	monitor.LockSplit:        "copies of several tokens; ' marks those that are not the holder's",
	monitor.LockNoTTL:        "a copy without TTL: it never expires by itself",
}

// Needs is how much a state needs a person. States that come and go by themselves
// many times a second are one, so that rows stand still.
func Needs(s monitor.LockState) int {
	switch s {
	case monitor.LockHeld, monitor.LockExpiring, monitor.LockPartial:
		return 0
	}
	return int(s)
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

// Bar draws share (0 to 1) of w cells as full.
func (g *Glyphs) Bar(share float64, w int) string {
	full := int(math.Round(math.Max(0, math.Min(1, share)) * float64(w)))
	return strings.Repeat(g.Full, full) + strings.Repeat(g.empty, w-full)
}

// Sparkline draws the latest w of the round trips, oldest first.
func (g *Glyphs) Sparkline(ds []time.Duration, w int) string {
	if len(ds) == 0 {
		return strings.Repeat(" ", max(0, w-Width(g.None))) + g.None
	}
	ds = ds[max(0, len(ds)-w):]
	low, high := ds[0], ds[0]
	for _, d := range ds {
		low, high = min(low, d), max(high, d)
	}
	// A calm line is a low line: the scale never shows less than a doubling or a
	// millisecond, so that noise does not look like trouble.
	span := max(high-low, low, time.Millisecond)
	var b strings.Builder
	b.WriteString(strings.Repeat(" ", w-len(ds)))
	for _, d := range ds {
		i := int(int64(d-low) * int64(len(g.spark)-1) / int64(span))
		b.WriteString(g.spark[i])
	}
	return b.String()
}
