package tui

import (
	"context"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"

	"redlockctl/internal/view"
	"redlockctl/tui/action"
	"redlockctl/tui/command"
	"redlockctl/tui/input"
	"redlockctl/tui/keys"
	"redlockctl/tui/page"
	"redlockctl/tui/prefs"
	"redlockctl/tui/source"
	"redlockctl/tui/styles"
	"redlockctl/tui/tour"
)

// The smallest terminal that the screen fits.
const (
	minWidth  = 60
	minHeight = 15
)

// Clusters are those that a person may change to.
type Clusters interface {
	Names() []string
	// Open opens another cluster and ends with the one before; it may take as long
	// as the first look at it.
	Open(ctx context.Context, name string) (Cluster, error)
	// Watch looks at all of them until ctx ends; rows are what is known of each by
	// now, in the order of Names.
	Watch(ctx context.Context) (rows func() []view.ClusterRow)
}

// Cluster is all that is shown of one cluster, and what acts on it.
type Cluster struct {
	Source  source.Source
	Guard   source.Guard   // nil: no guard runs in this process
	Actions action.Actions // nil: the screen only shows
	Delay   time.Duration  // D: the length of a fence's countdown; where no guard is, it is only named

	Record func() (source.Recording, error) // opens what was recorded of it; nil: nothing is
	Audit  func() *view.AuditLog            // reads the audit log, or knows it still; nil: there is none
}

// model is the only tea.Model: it routes messages, owns focus and layout, and
// lets its pages draw. All of it is touched by the program's goroutine alone;
// commands work on what they were given.
type model struct {
	*action.Desk // what is shown, and what is done to it

	here     Cluster
	clusters Clusters // nil: there is one
	moving   bool     // another cluster is being opened
	feed     source.Feed
	replay   *source.Player // the past that is shown; nil: it is the present
	audit    source.Watch[*view.AuditLog]
	fleet    source.Watch[[]view.ClusterRow]

	keys      keys.Map
	commands  func() []command.Command // those of now
	completes input.Completion         // of the filter that is typed
	learnt    bool                     // the values for it are known, or looked for
	line      *input.Prompt            // the command that is typed; nil: none is
	typed     bool                     // what is done is a command that was typed, not a key

	prefs     *prefs.Keeper
	lasting   bool         // how the rows of a cluster are listed is kept
	theme     styles.Theme // that the configuration names; "": none
	noColor   bool
	mouseOn   bool
	clipboard func(ctx context.Context, text string) error
	resumed   <-chan os.Signal
	demo      bool       // there is a tour
	tour      *tour.Tour // nil: none is under way
	hints     bool       // those of a first start are shown

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
	case m.Filtering:
		return page.ModeFilter
	}
	return m.Page.Mode()
}

// selected is what the cursor of the page is on, while the page has the keys.
func (m *model) selected() page.Selection {
	if m.Dialog != nil || m.line != nil || m.Filtering {
		return page.Selection{}
	}
	return m.Page.Selected()
}

// cursorAt is what an action is about. A command that is typed is about one lock,
// its key about those that are marked.
func (m *model) cursorAt() action.CursorAt {
	return action.CursorAt{Selection: m.selected(), Mode: m.mode(), One: m.typed}
}

// shownNow is the moment that is shown.
func (m *model) shownNow() time.Time {
	if m.replay != nil {
		return m.Latest.At
	}
	return m.ShownAt(m.Now())
}

// hinting reports whether the hints are on the screen: on the first page alone, where
// esc has nothing else to do.
func (m *model) hinting() bool {
	return m.hints && m.H >= 20 && m.Viewed() == page.Overview && m.replay == nil
}

// say puts a message into the last line; s is safe to show.
func (m *model) say(p styles.Paint, s string) {
	if m.W > 0 { // before the first frame the width is not known, and frame cuts it
		s = m.St.Cut(s, max(1, m.W-2))
	}
	m.notice = p.Of(s)
	m.noticeAt = m.Now()
}

// try does what a binding does, or says why not.
func (m *model) try(b *keys.Binding) tea.Cmd {
	if why := b.Disabled(); why != "" {
		k, text := b.Text(m.St.ASCII)
		m.say(m.St.Warn, k+" "+text+": "+why)
		return nil
	}
	return b.Do()
}

func (m *model) tooSmall() bool { return m.W < minWidth || m.H < minHeight }

func (m *model) whyNoView(v page.Kind) string {
	if v == page.Lab && m.Lab == nil {
		return action.NoLab
	}
	return ""
}

// has reports whether keys of this group may work here at all.
func (m *model) has(group string) bool {
	return (group != keys.Lab || m.Lab != nil) && (group != keys.Tour || m.demo)
}

func (m *model) seeGuard(g source.GuardState) { m.TakeGuard(g.ID, g.Status, m.here.Delay) }

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
