package tui

import (
	"time"

	tea "charm.land/bubbletea/v2"

	"redlockctl/tui/input"
	"redlockctl/tui/page"
	"redlockctl/tui/styles"
)

// The smallest terminal that the screen fits.
const (
	minWidth  = 60
	minHeight = 15
)

// model is the only tea.Model: it routes messages, owns focus and layout, and
// lets its pages draw. All of it is touched by the program's goroutine alone;
// commands work on what they were given.
type model struct {
	*desk // what is shown, and what is done to it
	opt   Options
	feed  feed
	keys  keyMap

	page  page.Page
	trail []page.Page // where esc leads back to

	filtering bool
	line      *commandLine
	typed     bool // what is done is a command that was typed, not a key
	prefs     Preferences
	saver     *saver
	moving    bool // another cluster is being opened

	notice   string // painted
	noticeAt time.Time
	hits     hits
	dirty    bool
	view     tea.View
}

// noticeTime is how long a message stands in the last line.
const noticeTime = 6 * time.Second

// mode is which keys are listened to.
func (m *model) mode() page.Mode {
	switch {
	case m.dialog != nil:
		return m.dialog.mode()
	case m.line != nil:
		return page.ModeCommand
	case m.filtering:
		return page.ModeFilter
	}
	return m.page.Mode()
}

// selected is what the cursor of the page is on, while the page has the keys.
func (m *model) selected() page.Selection {
	if m.dialog != nil || m.line != nil || m.filtering {
		return page.Selection{}
	}
	return m.page.Selected()
}

// cursorAt is what an action is about. A command that is typed is about one lock,
// its key about those that are marked.
func (m *model) cursorAt() cursorAt { return cursorAt{m.selected(), m.mode(), m.typed} }

// viewed is what kind of page is shown.
func (m *model) viewed() page.Kind { return m.page.Place().Kind }

// editor is the line that takes letters now; nil where none does.
func (m *model) editor() *input.Line {
	switch m.mode() {
	case page.ModeFilter:
		return m.page.(page.Filtered).FilterLine()
	case page.ModeCommand:
		return &m.line.Line
	case page.ModeDialog:
		if f := m.dialog.focused(); f != nil && f.choices == nil {
			return &f.Line
		}
	}
	return nil
}

// say puts a message into the last line; s is safe to show.
func (m *model) say(p styles.Paint, s string) {
	if m.W > 0 { // before the first frame the width is not known, and frame cuts it
		s = m.St.Cut(s, max(1, m.W-2))
	}
	m.notice = p.Of(s)
	m.noticeAt = m.now()
}

func (m *model) tooSmall() bool { return m.W < minWidth || m.H < minHeight }

// hits is where things are on the last frame, for the mouse.
type hits struct {
	base   int // first line of the page
	tabRow int
	tabs   []tabHit
}

type tabHit struct {
	from, to int // columns
	view     page.Kind
}

func (h *hits) reset() { *h = hits{tabRow: -1, tabs: h.tabs[:0]} }
