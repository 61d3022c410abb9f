// Package view turns what is known about a cluster into rows and facts, for the console
// and the command line. It does no I/O; a [Tone] is its only style. The columns of each
// resource (see [Column]), the facts of each page, the units and the symbols are declared
// here, once.
//
// Text from a server is escaped here, once: a [Cell] and a [Fact] are safe to print.
package view

import (
	"fmt"
	"math"
	"time"

	"redlockctl/internal/who"
	"redlockctl/monitor"
	"redlockctl/server/safetext"
)

// Context is what cells and facts need besides the row itself.
type Context struct {
	*Glyphs
	Snap  *monitor.Snapshot
	Now   time.Time
	Guard Guard
	// Own reports whether a token was acquired in this console; nil: none was.
	Own func(key, token string) bool
	// Known returns the last answer to who holds a token, nil if nobody asked; it is nil if
	// nobody can ask.
	Known func(token string) *who.Answer
	// Short: cut long tokens in the middle.
	Short bool
	// NoHolder: the column HOLDER has no room, so OWNER shows the token after the sign for an
	// owner who is not known.
	NoHolder bool
	// NoAt: the column AT has no room, and ENDS has room for a time of day.
	NoAt bool
	// NoAbout: there is no column ABOUT, so the sentence of an event names its lock or node.
	NoAbout bool
	// Began: this program has only just started to watch, so nothing is known to be new.
	Began bool
	// Holders are the recorded holders of the lock whose facts are shown: the record may know since
	// when it is held.
	Holders []GrantDoc
	// Tokens are those that the events of the lock name whose facts are shown; see [TokensOf].
	Tokens map[string]safetext.Text
	// until is the earliest time at which a cell made since [Context.Fresh] changes by itself.
	until time.Time
}

// Fresh starts to record when the cells made from now on change by themselves.
func (c *Context) Fresh() { c.until = time.Time{} }

// Until returns the earliest time at which a cell made since [Context.Fresh] changes by
// itself; zero: none does.
func (c *Context) Until() time.Time { return c.until }

// changes records that a text changes at t.
func (c *Context) changes(t time.Time) {
	if c.until.IsZero() || t.Before(c.until) {
		c.until = t
	}
}

func (c *Context) seconds(end time.Time) int {
	c.remaining(end)
	return int(max(0, end.Sub(c.Now)) / time.Second)
}

func (c *Context) remaining(end time.Time) string {
	d := end.Sub(c.Now)
	if farAway(end, c.Now) {
		if c.Short {
			return c.Endless
		}
		return "never"
	}
	switch whole := d.Truncate(time.Second); {
	case whole > 0:
		c.changes(end.Add(1 - whole))
	case d > 0:
		c.changes(end)
	}
	return Remaining(d)
}

func (c *Context) age(since time.Time) string {
	d := max(0, c.Now.Sub(since))
	c.changes(c.Now.Add(time.Second - d%time.Second))
	return Age(d)
}

// since returns " since 22:14:03 (4m12s)"; empty for an unknown moment.
func (c *Context) since(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return " since " + Clock(t) + " (" + c.age(t) + ")"
}

// orNone returns a text, or the glyph for none.
func (c *Context) orNone(text string) Cell {
	if text == "" {
		return Cell{Text: c.None, Tone: Dim}
	}
	return Cell{Text: text}
}

// whoOdds returns the odds of an inference: "p 0.998".
func whoOdds(w *who.Answer) string {
	return fmt.Sprintf("p %.3f", math.Floor(w.P*1000)/1000) // never rounded up
}

// Tone is how urgent a text is. It becomes a colour if there are colours; the text alone
// must say the same.
type Tone uint8

const (
	None Tone = iota
	Good
	Info
	Warn
	Bad
	Dim
	Strong
)

// Cell is a part of a row that is safe to print.
type Cell struct {
	Sign string // a glyph before the text, if there is room
	Text string
	Tone Tone
}

// Fact is a line of a page. Without a label it continues the previous fact.
type Fact struct {
	Label, Text string
	Tone        Tone
}
