package input

import "strings"

// Completion is what a line that is typed may become.
type Completion struct {
	Offers []string // whole lines; of what was typed
	From   string   // what was typed
	At     int      // which one stands there; -1: what was typed
	known  bool     // they were asked for since
	spaced bool     // a blank was put behind it
}

// Typed forgets what hung on the line before the last letter.
func (c *Completion) Typed() { *c = Completion{At: -1} }

// Ask asks for what the line may become, once for each that is typed.
func (c *Completion) Ask(line *Line, offers func(string) []string) {
	if !c.known {
		*c = Completion{Offers: offers(line.String()), known: true, From: line.String(), At: -1, spaced: c.spaced}
	}
}

// Complete puts the next of what the last word may become into the line.
func (c *Completion) Complete(line *Line, offers func(string) []string, d int) {
	c.Ask(line, offers)
	n := len(c.Offers)
	if n == 0 {
		return
	}
	if c.At < 0 && d < 0 {
		c.At = 0
	}
	c.At = (c.At + d + n) % n
	line.Set(c.Offers[c.At])
	if n == 1 { // it is done: a blank, and what comes next can be asked for
		done := !strings.HasSuffix(c.Offers[0], ":") && !strings.HasSuffix(c.Offers[0], "<") && !strings.HasSuffix(c.Offers[0], ">")
		if done {
			line.Paste(" ")
		}
		c.Typed()
		c.spaced = done
	}
}

// Join takes the blank back that was put behind a value, before a sign that another value
// follows.
func (c *Completion) Join(line *Line, letter string) {
	if c.spaced && letter == "|" {
		line.Set(strings.TrimSuffix(line.String(), " "))
	}
	c.spaced = false
}
