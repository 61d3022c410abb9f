// Package view makes rows and facts out of what is known of a cluster: what the
// console draws and the command line prints. It does no I/O and knows no style but a
// [Tone]. The columns of each resource are declared once (see [Column]), and so are
// the facts of each page, the units and the signs.
//
// Text from a server is escaped here, once: a [Cell] and a [Fact] are safe to print.
package view

import (
	"fmt"
	"math"
	"time"

	"redlockctl/internal/who"
	"redlockctl/monitor"
)

// Context is all that cells and facts are made of, beside what they are about.
type Context struct {
	*Glyphs
	Snap  *monitor.Snapshot
	Now   time.Time
	Guard Guard
	// Own reports whether a token was acquired in this console; nil: none was.
	Own func(key, token string) bool
	// Known is what was answered to the question who holds a token, nil if it was not
	// asked; itself nil: nobody can ask.
	Known func(token string) *who.Answer
	// Short has long tokens cut in their middle.
	Short bool
	// NoHolder says that there is no room for the column HOLDER: OWNER has the token of a
	// lock whose owner is not known.
	NoHolder bool
	// NoAbout says that there is no column ABOUT: the sentence of an event says what it is about.
	NoAbout bool
	// Began says that the look has only just begun: what was there before it began
	// is not known to be new.
	Began bool
	// until is when a cell that was made since [Context.Fresh] changes by itself.
	until time.Time
}

// Fresh begins to watch for how long the cells that are made from now on stand.
func (c *Context) Fresh() { c.until = time.Time{} }

// Until is when one of the cells made since [Context.Fresh] changes by itself, at
// the earliest; zero: none does.
func (c *Context) Until() time.Time { return c.until }

// changes takes note that a text changes at t.
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

// since is " since 22:14:03 (4m12s)"; empty for a moment that is not known.
func (c *Context) since(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return " since " + Clock(t) + " (" + c.age(t) + ")"
}

// orNone is a text, or the glyph for none.
func (c *Context) orNone(text string) Cell {
	if text == "" {
		return Cell{Text: c.None, Tone: Dim}
	}
	return Cell{Text: text}
}

// WhoMethod says how an answer is known: "inferred p 0.998".
func WhoMethod(w *who.Answer) string {
	if w.Method == who.Inferred {
		return fmt.Sprintf("%s p %.3f", w.Method, math.Floor(w.P*1000)/1000) // never more than it is
	}
	return string(w.Method)
}

// Tone is how urgent a text is. It is shown as a colour where there are colours,
// and never says what the text does not.
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
	Sign string // a glyph before the text, where there is room for glyphs
	Text string
	Tone Tone
}

// Fact is a line of a page. One without a label goes on with the fact before.
type Fact struct {
	Label, Text string
	Tone        Tone
}
