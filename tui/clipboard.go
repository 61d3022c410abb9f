package tui

import (
	"context"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"redlockctl/internal/view"
	"redlockctl/server/safetext"
	"redlockctl/tui/styles"
)

// copiedMsg reports the result of writing to this machine's clipboard.
type copiedMsg struct {
	what string
	err  error
}

const (
	// clipboardTime bounds a clipboard program.
	clipboardTime = 2 * time.Second
	// mostCopied is how many bytes all common terminals accept for their clipboard.
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

// copyText returns what y copies here, and how to call it. A name is quoted for a shell, so
// that a paste is always just the name. A text that is too long for a terminal's clipboard
// is not copied: a part of a name would be another name.
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

func (m *model) copyPicked() tea.Cmd {
	text, what := m.copyText()
	m.say(m.St.Info, "copied "+what+": "+m.St.Sentence(strings.ReplaceAll(text, "\n", " "), max(10, m.W-30)))
	return m.copyOut(text, what)
}

// copyPage copies the page as it is shown, for a ticket or a chat.
func (m *model) copyPage() tea.Cmd {
	var b strings.Builder
	lines := m.body()
	for _, l := range lines {
		b.WriteString(strings.TrimRight(styles.Bare(l), " ") + "\n")
	}
	if text := b.String(); len(text) <= mostCopied {
		m.say(m.St.Info, "copied this page as it is shown: "+view.Plural(len(lines), "line"))
		return m.copyOut(text, "the page")
	}
	m.say(m.St.Warn, "this page is too long for the clipboard of a terminal: make the window smaller")
	return nil
}

// copyOut copies a text to the clipboard of the terminal, which works over SSH, and to that of
// this machine if possible.
func (m *model) copyOut(text, what string) tea.Cmd {
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
		m.say(m.St.Warn, msg.what+" may not be in the clipboard: "+m.St.Whole(msg.err.Error()))
	}
}
