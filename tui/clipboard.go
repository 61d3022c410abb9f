package tui

import (
	"context"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"redlockctl/internal/safetext"
	"redlockctl/internal/view"
)

// copiedMsg tells that the clipboard of this machine was tried.
type copiedMsg struct {
	what string
	err  error
}

const (
	// clipboardTime bounds a program that puts text into the clipboard.
	clipboardTime = 2 * time.Second
	// mostCopied is as many bytes as every common terminal takes for its clipboard.
	mostCopied = 48 << 10
)

func (m *model) whyNoCopy() string {
	switch text, what := m.copyText(); {
	case text == "":
		return "there is nothing here to copy"
	case len(text) > mostCopied:
		return what + " has " + view.Count(len(text)) + " bytes: too long for the clipboard of a terminal"
	}
	return ""
}

// copyText is what y copies here, and what to call it. A name is copied as a word of
// a shell, so that a paste is the name of this lock and does nothing else. What is too long for the clipboard
// of a terminal is not copied at all: a part of a name is another name.
func (m *model) copyText() (text, what string) {
	switch s := m.selected(); {
	case s.Lock != nil:
		return s.Lock.Key.Word(), "the name"
	case s.Node != nil:
		return safetext.Escape(s.Node.Addr), "the address of " + m.St.Escape(s.Node.Name, 20)
	case s.Audit != nil:
		return strings.Join([]string{s.Audit.Time.Format(time.RFC3339), m.St.Whole(s.Audit.Actor), m.St.Whole(s.Audit.Act), m.St.Whole(s.Audit.Target), m.St.Whole(s.Audit.Phase)}, " "), "the entry"
	case s.Event != nil:
		return s.Event.At.Format(time.RFC3339) + " " + s.Event.Text.String(), "the event"
	case s.Finding != nil:
		f := s.Finding
		return strings.Join([]string{f.Title, f.Evidence.String(), f.Consequence, f.Remedy}, "\n"), "the finding"
	}
	return "", ""
}

// copyPicked puts what is under the cursor into the clipboard: it asks the
// terminal, which works over SSH, and the machine where there is a way.
func (m *model) copyPicked() tea.Cmd {
	text, what := m.copyText()
	m.say(m.St.Info, "copied "+what+": "+m.St.Sentence(strings.ReplaceAll(text, "\n", " "), max(10, m.W-30)))
	osc := tea.SetClipboard(text)
	put := m.clipboard
	if put == nil {
		return osc
	}
	ctx := m.Ctx
	return tea.Batch(osc, func() tea.Msg {
		ctx, cancel := context.WithTimeout(ctx, clipboardTime)
		defer cancel()
		return copiedMsg{what, put(ctx, text)}
	})
}

func (m *model) copied(msg copiedMsg) {
	if msg.err != nil {
		m.say(m.St.Warn, msg.what+" went to the terminal only: "+m.St.Whole(msg.err.Error()))
	}
}
