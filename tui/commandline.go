package tui

import (
	"strings"

	"redlockctl/internal/view"
	"redlockctl/tui/input"
	"redlockctl/tui/styles"
)

// commandLine is the line after a colon.
type commandLine struct {
	input.Line
	history []string
	at      int    // in the history; len(history): the line that was typed
	draft   string // that line, while another is recalled

	offers []string // what the word may become
	offer  int      // which one stands there; -1: what was typed
}

func newCommandLine(history []string) *commandLine {
	return &commandLine{Line: input.New(""), history: history, at: len(history), offer: -1}
}

// typed forgets what hung on the line before the last letter.
func (l *commandLine) typed() { l.offers, l.offer = nil, -1 }

// recall goes d lines along the history.
func (l *commandLine) recall(d int) {
	to := max(0, min(len(l.history), l.at+d))
	if to == l.at {
		return
	}
	if l.at == len(l.history) {
		l.draft = l.String()
	}
	l.at = to
	text := l.draft
	if to < len(l.history) {
		text = l.history[to]
	}
	l.Set(text)
	l.typed()
}

// complete puts the next of what the last word may become into the line.
func (l *commandLine) complete(offers func(string) []string, d int) {
	if l.offers == nil {
		l.offers, l.offer = offers(l.String()), -1
	}
	n := len(l.offers)
	if n == 0 {
		return
	}
	if l.offer < 0 && d < 0 {
		l.offer = 0
	}
	l.offer = (l.offer + d + n) % n
	l.Set(l.offers[l.offer])
	if n == 1 { // it is done: a blank, and what comes next can be asked for
		if !strings.HasSuffix(l.offers[0], ":") && !strings.HasSuffix(l.offers[0], "<") && !strings.HasSuffix(l.offers[0], ">") {
			l.Paste(" ")
		}
		l.typed()
	}
}

// view draws the line, and what it may become.
func (l *commandLine) view(st *styles.Styles, offer func(string) []string, w int) string {
	left := " : "
	offers := l.offers
	if offers == nil {
		offers = offer(l.String())
	}
	hint := ""
	if len(offers) > 0 && l.String() != "" || l.String() == "" {
		var words []string
		head := l.String()[:strings.LastIndexByte(l.String(), ' ')+1]
		for i, o := range offers {
			word, here := strings.CutPrefix(o, head)
			if !here {
				word = o[strings.LastIndexByte(o, ' ')+1:]
			}
			word = st.Whole(word)
			if i == l.offer {
				word = st.Cursor.Of(word)
			}
			words = append(words, word)
			if len(words) >= 12 {
				break
			}
		}
		hint = strings.Join(words, " ")
	}
	room := max(w/2, w-view.Width(left)-view.Width(hint)-4)
	text := l.Line.View(st, min(room, max(16, view.Width(st.Whole(l.String()))+2)))
	line := left + text
	if hint != "" {
		line += "  " + st.Dim.Of(st.Cut(hint, max(0, w-view.Width(line)-3)))
	}
	return line
}
