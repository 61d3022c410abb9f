package input

import "strings"

// Completion cycles through the completions of a line.
type Completion struct {
	Offers []string // completed lines
	From   string   // the line as it was typed
	At     int      // index of the offer that is shown; -1: the line as it was typed
	known  bool     // Offers are those of this line
	spaced bool     // a space was added
}

// Typed resets the completion after the line was edited.
func (c *Completion) Typed() { *c = Completion{At: -1} }

// Ask asks for the completions of the line, once per edit.
func (c *Completion) Ask(line *Line, offers func(string) []string) {
	if !c.known {
		*c = Completion{Offers: offers(line.String()), known: true, From: line.String(), At: -1, spaced: c.spaced}
	}
}

// Complete replaces the line by the next completion, or the previous one if d is −1.
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
	if n == 1 { // complete: add a space for the next word
		done := !strings.HasSuffix(c.Offers[0], ":") && !strings.HasSuffix(c.Offers[0], "<") && !strings.HasSuffix(c.Offers[0], ">")
		if done {
			line.Paste(" ")
		}
		c.Typed()
		c.spaced = done
	}
}

// Join removes the space that was added after a value if letter continues the value.
func (c *Completion) Join(line *Line, letter string) {
	if c.spaced && letter == "|" {
		line.Set(strings.TrimSuffix(line.String(), " "))
	}
	c.spaced = false
}
