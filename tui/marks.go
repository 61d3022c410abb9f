package tui

import (
	"context"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"redlockctl/internal/safetext"
	"redlockctl/internal/view"
	"redlockctl/monitor"
)

// marks are the keys of the locks that a person has marked, to act on several.
type marks map[string]bool

// mostMarks bounds them: nobody reads the results of more.
const mostMarks = 1000

// sorted are the marked keys in order.
func (k marks) sorted() []string {
	keys := make([]string, 0, len(k))
	for key := range k {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// keep forgets the marks of locks that are gone: one that comes again under the
// same name is another one.
func (k marks) keep(locks monitor.Locks) {
	for key := range k {
		if locks.Get(key) == nil {
			delete(k, key)
		}
	}
}

func (m *model) whyNoMark() string {
	switch {
	case m.mode()&modeOnLock == 0:
		return "only locks are marked"
	case m.selected().lock == nil:
		return "no lock under the cursor"
	case len(m.marks) >= mostMarks && !m.marks[m.selected().lock.Key.Raw()]:
		return view.Count(mostMarks) + " are marked: that is the most"
	}
	return ""
}

func (m *model) toggleMark() tea.Cmd {
	key := m.selected().lock.Key.Raw()
	if m.marks[key] {
		delete(m.marks, key)
	} else {
		m.marks[key] = true
	}
	if m.mode() == modeLocks {
		m.locks.move(1)
	}
	return nil
}

func (m *model) whyNoMarks() string {
	if len(m.marks) == 0 {
		return "none is marked"
	}
	return ""
}

func (m *model) clearMarks() tea.Cmd {
	clear(m.marks)
	return nil
}

// markAll marks what is listed, as far as it may; it tells how many it marked.
func (m *model) markAll() int {
	n := 0
	for i := 0; i < m.locks.len() && len(m.marks) < mostMarks; i++ {
		if key := m.locks.listing().at(i).Key.Raw(); !m.marks[key] {
			m.marks[key] = true
			n++
		}
	}
	return n
}

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
	case s.lock != nil:
		return s.lock.Key.Word(), "the name"
	case s.node != nil:
		return safetext.Escape(s.node.Addr), "the address of " + m.st.Escape(s.node.Name, 20)
	case s.event != nil:
		return s.event.At.Format(time.RFC3339) + " " + s.event.Text.String(), "the event"
	case s.finding != nil:
		f := s.finding
		return strings.Join([]string{f.Title, f.Evidence.String(), f.Consequence, f.Remedy}, "\n"), "the finding"
	}
	return "", ""
}

// copyPicked puts what is under the cursor into the clipboard: it asks the
// terminal, which works over SSH, and the machine where there is a way.
func (m *model) copyPicked() tea.Cmd {
	text, what := m.copyText()
	m.say(m.st.Info, "copied "+what+": "+m.st.Sentence(strings.ReplaceAll(text, "\n", " "), max(10, m.w-30)))
	osc := tea.SetClipboard(text)
	put := m.opt.Clipboard
	if put == nil {
		return osc
	}
	ctx := m.ctx
	return tea.Batch(osc, func() tea.Msg {
		ctx, cancel := context.WithTimeout(ctx, clipboardTime)
		defer cancel()
		return copiedMsg{what, put(ctx, text)}
	})
}

func (m *model) copied(msg copiedMsg) {
	if msg.err != nil {
		m.say(m.st.Warn, msg.what+" went to the terminal only: "+m.st.Whole(msg.err.Error()))
	}
}
