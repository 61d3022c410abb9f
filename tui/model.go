package tui

import (
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"redlockctl/tui/action"
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
	*action.Desk // what is shown, and what is done to it
	opt          Options
	feed         feed
	keys         keyMap

	page  page.Page
	trail []page.Page // where esc leads back to

	filtering bool
	completes completion // of the filter that is typed
	line      *commandLine
	typed     bool // what is done is a command that was typed, not a key
	prefs     Preferences
	table     Table // of this cluster, in prefs if it is kept
	saver     *saver
	moving    bool    // another cluster is being opened
	replay    *replay // the past that is shown; nil: it is the present
	fleet     fleet
	// auditTurn grows with each look at the audit log: what an old one still brings is
	// not shown.
	auditTurn int
	tour      *tour // nil: none is under way
	hints     bool  // those of a first start are shown

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
	case m.Dialog != nil:
		return m.Dialog.Mode()
	case m.line != nil:
		return page.ModeCommand
	case m.filtering:
		return page.ModeFilter
	}
	return m.page.Mode()
}

// selected is what the cursor of the page is on, while the page has the keys.
func (m *model) selected() page.Selection {
	if m.Dialog != nil || m.line != nil || m.filtering {
		return page.Selection{}
	}
	return m.page.Selected()
}

// cursorAt is what an action is about. A command that is typed is about one lock,
// its key about those that are marked.
func (m *model) cursorAt() action.CursorAt {
	return action.CursorAt{Selection: m.selected(), Mode: m.mode(), One: m.typed}
}

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
		if f := m.Dialog.Focused(); f != nil && f.Choices == nil {
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
	m.noticeAt = m.Now()
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

func (m *model) seeGuard(g guardState) { m.TakeGuard(g.id, g.status, m.opt.Delay) }

// binding is one key and all that is known of it.
type binding struct {
	key.Binding
	in     page.Mode
	group  string
	brief  page.Mode            // where it is in the key line
	danger bool                 // changes something on a server
	name   string               // as a command; "": it is none
	takes  page.Mode            // what its command may be told to be about: a lock or a node
	why    func(*model) string  // why it is disabled now; nil or "": it is not
	says   func(*model) string  // help that depends on what is open; nil: Binding.Help
	do     func(*model) tea.Cmd // nil: it is a key of the line that is typed
}

// keyMap is every key of the program. The keys that are obeyed, the help page,
// the key line and many commands are all made from it.
type keyMap []binding

const (
	groupMove   = "Moving"
	groupLook   = "Looking"
	groupPast   = "Back in time"
	groupAct    = "Acting"
	groupLab    = "In the lab"
	groupTour   = "On the tour"
	groupDialog = "In a dialog"
	groupEdit   = "Typing"
)

// disabled is why the binding does nothing now, or "".
func (b *binding) disabled(m *model) string {
	if b.why == nil {
		return ""
	}
	return b.why(m)
}

func (b *binding) help(m *model) (keys, text string) {
	h := b.Help()
	text = h.Desc
	if b.says != nil {
		text = b.says(m)
	}
	keys = h.Key
	if m.St.ASCII {
		keys = strings.NewReplacer("↑", "up", "↓", "down", "←", "left", "→", "right").Replace(keys)
	}
	return keys, text
}

// try does what a binding does, or says why not.
func (m *model) try(b *binding) tea.Cmd {
	if why := b.disabled(m); why != "" {
		k, text := b.help(m)
		m.say(m.St.Warn, k+" "+text+": "+why)
		return nil
	}
	return b.do(m)
}
