package tui

import (
	"context"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"

	"redlockctl/internal/view"
	"redlockctl/monitor"
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

// The smallest supported terminal.
const (
	minWidth  = 60
	minHeight = 15
)

// Clusters are the clusters that the user may switch to.
type Clusters interface {
	Names() []string
	// Open opens another cluster and closes the present one. It may take as long as the
	// first read.
	Open(ctx context.Context, name string) (Cluster, error)
	// Watch watches all clusters until ctx ends; rows returns their present state, in the
	// order of Names.
	Watch(ctx context.Context) (rows func() []view.ClusterRow)
}

// Cluster is one cluster: what is shown, and the actions.
type Cluster struct {
	Source  source.Source
	Guard   source.Guard   // nil: no guard in this process
	Actions action.Actions // nil: no actions
	Delay   time.Duration  // D: the length of a fence's countdown

	Record func() (source.Recording, error) // opens the record; nil: none
	Audit  func() *view.AuditLog            // reads the audit log; nil: none
	// ForceReleased returns when and by whom a lock was force-released that has no copy (l is nil), or
	// another client, and until when its holder may rely on it; empty: it does not, as far
	// as is known. nil: nothing is known.
	ForceReleased func(lock string, l *monitor.Lock, now time.Time) string
}

// model is the only tea.Model: it routes messages, owns focus and layout, and lets the
// pages draw. Only the program's goroutine uses it; commands work on copies.
type model struct {
	*action.Desk // the pages and the actions

	here     Cluster
	clusters Clusters // nil: only one
	feed     source.Feed
	replay   *source.Player // the past that is shown; nil: the present
	audit    source.Watch[*view.AuditLog]
	fleet    source.Watch[[]view.ClusterRow]

	keys      keys.Map
	commands  func() []command.Command // the commands that exist now
	completes input.Completion         // of the filter being typed
	refused   bool                     // that filter has a problem and was confirmed
	learnt    bool                     // its values are known or being collected
	line      *input.Prompt            // the command being typed; nil if none
	typed     bool                     // a typed command runs, not a key

	prefs     *prefs.Keeper
	lasting   bool         // remember how rows are listed
	theme     styles.Theme // from the configuration; "" if none
	noColor   bool
	mouseOn   bool
	clipboard func(ctx context.Context, text string) error
	resumed   <-chan os.Signal
	demo      bool       // the tour is available
	tour      *tour.Tour // nil if it does not run
	hints     bool       // show the hints of a first start

	notice   string // painted
	noticeAt time.Time
	hits     hits
	clicked  time.Time // the last click on a row
	dirty    bool
	view     tea.View
}

// noticeTime is how long a message is shown in the last line.
const noticeTime = 6 * time.Second

// mode returns which keys are active.
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

// selected returns what is under the cursor of the page, while the page has the focus.
func (m *model) selected() page.Selection {
	if m.Dialog != nil || m.line != nil || m.Filtering {
		return page.Selection{}
	}
	return m.Page.Selected()
}

// cursorAt returns the target of an action. A typed command is about one lock, a key about
// the marked ones.
func (m *model) cursorAt() action.CursorAt {
	return action.CursorAt{Selection: m.selected(), Mode: m.mode(), One: m.typed}
}

// shownNow returns the moment that is shown.
func (m *model) shownNow() time.Time {
	if m.replay != nil {
		return m.Latest.At
	}
	return m.ShownAt(m.Now())
}

// hinting reports whether the hints are shown: only on the first page, where esc closes
// them after everything else.
func (m *model) hinting() bool {
	return m.hints && m.H >= 20 && m.Viewed() == page.Overview && m.replay == nil
}

// say shows a message in the last line; s is safe to show.
func (m *model) say(p styles.Paint, s string) {
	if m.W > 0 { // the width is not known before the first frame
		s = m.St.Cut(s, max(1, m.W-2))
	}
	m.notice = p.Of(s)
	m.noticeAt = m.Now()
}

// try runs a binding, or says why it is disabled.
func (m *model) try(b *keys.Binding) tea.Cmd {
	why := b.Disabled()
	switch {
	case why == "":
		return b.Do()
	case b.Typed && m.has(b.Group):
		return m.Refuse(m.withTarget(b), why)
	}
	k, text := b.Text(m.St.ASCII)
	m.say(m.St.Warn, k+" "+text+": "+why)
	return nil
}

// withTarget names what a binding does, and the lock or node under the cursor if it is about
// that.
func (m *model) withTarget(b *keys.Binding) string {
	name, s := b.Help().Desc, m.selected()
	switch {
	case b.Takes&page.ModeOnLock != 0 && s.Lock != nil && len(m.Marked()) == 0:
		name += " " + m.St.Escape(s.Lock.Key.Raw(), 40)
	case b.Takes&page.ModeOnNode != 0 && s.Node != nil:
		name += " " + m.St.Escape(s.Node.Name, 40)
	}
	return name
}

func (m *model) tooSmall() bool { return m.W < minWidth || m.H < minHeight }

func (m *model) whyNoView(v page.Kind) string {
	if v == page.Lab && m.Lab == nil {
		return action.NoLab
	}
	return ""
}

// has reports whether keys of this group exist here.
func (m *model) has(group string) bool {
	return (group != keys.Lab || m.Lab != nil) && (group != keys.Tour || m.demo)
}

func (m *model) seeGuard(g source.GuardState) { m.TakeGuard(g.ID, g.Status, m.here.Delay) }

// hits has the positions of things on the last frame, for the mouse.
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
