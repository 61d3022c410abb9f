package tui

import (
	"redlockctl/tui/input"
	"redlockctl/tui/styles"
)

// commandLine is the line after a colon.
type commandLine struct {
	input.Line
	completion
	history []string
	at      int    // in the history; len(history): the line that was typed
	draft   string // that line, while another is recalled
}

func newCommandLine(history []string) *commandLine {
	return &commandLine{Line: input.New(""), history: history, at: len(history), completion: completion{offer: -1}}
}

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

// view draws the line, and what it may become.
func (l *commandLine) view(st *styles.Styles, offers func(string) []string, w int) string {
	return l.completion.view(st, " : ", &l.Line, offers, "", w)
}
