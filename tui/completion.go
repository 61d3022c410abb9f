package tui

import (
	"strings"

	"redlockctl/internal/filter"
	"redlockctl/internal/view"
	"redlockctl/tui/input"
	"redlockctl/tui/styles"
)

// completion is what a line that is typed may become.
type completion struct {
	offers []string // whole lines; of what was typed
	known  bool     // they were asked for since
	from   string   // what was typed
	offer  int      // which one stands there; -1: what was typed
	spaced bool     // a blank was put behind it
}

// typed forgets what hung on the line before the last letter.
func (c *completion) typed() { *c = completion{offer: -1} }

// ask asks for what the line may become, once for each that is typed.
func (c *completion) ask(line *input.Line, offers func(string) []string) {
	if !c.known {
		*c = completion{offers: offers(line.String()), known: true, from: line.String(), offer: -1, spaced: c.spaced}
	}
}

// complete puts the next of what the last word may become into the line.
func (c *completion) complete(line *input.Line, offers func(string) []string, d int) {
	c.ask(line, offers)
	n := len(c.offers)
	if n == 0 {
		return
	}
	if c.offer < 0 && d < 0 {
		c.offer = 0
	}
	c.offer = (c.offer + d + n) % n
	line.Set(c.offers[c.offer])
	if n == 1 { // it is done: a blank, and what comes next can be asked for
		done := !strings.HasSuffix(c.offers[0], ":") && !strings.HasSuffix(c.offers[0], "<") && !strings.HasSuffix(c.offers[0], ">")
		if done {
			line.Paste(" ")
		}
		c.typed()
		c.spaced = done
	}
}

// join takes the blank back that was put behind a value, before a sign that another value
// follows.
func (c *completion) join(line *input.Line, letter string) {
	if c.spaced && letter == "|" {
		line.Set(strings.TrimSuffix(line.String(), " "))
	}
	c.spaced = false
}

// mostOffered is how many offers are shown at most.
const mostOffered = 12

// view draws a line behind its sign, what it may become, and what is painted for its end.
func (c *completion) view(st *styles.Styles, left string, line *input.Line, offers func(string) []string, right string, w int) string {
	c.ask(line, offers)
	var words []string
	for i, o := range c.offers[:min(len(c.offers), mostOffered)] {
		word := st.Whole(filter.Line(c.from, o))
		if i == c.offer {
			word = st.Cursor.Of(word)
		}
		words = append(words, word)
	}
	hint := strings.Join(words, " ")
	end := view.Width(right)
	if end > 0 {
		end += 2
	}
	room := max((w-end)/2, w-end-view.Width(left)-view.Width(hint)-4)
	text := left + line.View(st, min(room, max(16, view.Width(st.Whole(line.String()))+2)))
	if hint != "" {
		text += "  " + st.Dim.Of(st.Cut(hint, max(0, w-end-view.Width(text)-3)))
	}
	if end > 0 {
		text += styles.Blanks(max(2, w-1-view.Width(text)-end+2)) + right
	}
	return text
}
