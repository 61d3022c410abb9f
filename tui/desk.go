package tui

import (
	"context"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/tui/page"
	"redlockctl/tui/styles"
)

// actionTimeout bounds a step: retries of an acquire, or the proof of a fence.
const actionTimeout = 15 * time.Second

// desk is what a person does to locks and nodes: the dialog that asks, the action
// that runs, and the locks that were acquired here. It knows no key and no layout.
type desk struct {
	*page.Set // actions are about the latest snapshot, also while the screen is frozen
	ctx       context.Context
	now       func() time.Time
	actions   Actions                    // nil: there is nothing to act with
	lab       Lab                        // nil: there is none
	on        func() cursorAt            // what an action is about
	say       func(styles.Paint, string) // tells in a line; the text is safe to show

	dialog  *dialog
	busy    int // steps on their way
	running running
	mine    map[string]grant // locks acquired by hand, by key
	losses  []loss           // of those that were kept, and that nobody has seen yet
}

// cursorAt is where the cursor is when an action is asked for.
type cursorAt struct {
	page.Selection
	mode page.Mode
	one  bool // it is about that lock, also where others are marked
}

// open shows a dialog. The order of the table stands still until it is closed.
func (m *desk) open(d *dialog) tea.Cmd {
	m.dialog = d
	m.Locks.Pin(true)
	return nil
}

func (m *desk) closeDialog() tea.Cmd {
	m.dialog = nil
	m.Locks.Pin(false)
	return nil
}

// submit is enter in a dialog: the action, if nothing is missing.
func (m *desk) submit() tea.Cmd {
	d := m.dialog
	switch {
	case d.missing() != "":
		d.pressed = true
		return nil
	case d.start == nil:
		return d.then()
	}
	d.began, d.steps = m.now(), d.start()
	return m.runStep(d)
}

// finished is the outcome of a step.
type finished struct {
	of *dialog
	outcome
}

// runStep runs the step that is next.
func (m *desk) runStep(d *dialog) tea.Cmd {
	m.busy++
	run, ctx := d.steps[d.at].run, m.ctx
	return func() tea.Msg {
		if !m.running.begin() {
			return nil
		}
		defer m.running.end()
		ctx, cancel := context.WithTimeout(ctx, actionTimeout)
		defer cancel()
		return finished{d, run(ctx)}
	}
}

// finish takes the outcome of a step.
func (m *desk) finish(f finished) tea.Cmd {
	m.busy--
	d, o := f.of, &f.outcome
	if o.apply != nil {
		o.apply()
	}
	if d.then != nil && o.err == nil {
		return d.then()
	}
	if m.dialog != d { // it was sent to the background: a line must do
		if o.err != nil {
			m.say(m.St.Bad, o.what+": failed: "+m.St.Whole(o.err.Error()))
		} else {
			m.say(m.St.Good, o.what+": done")
		}
		return nil
	}
	d.steps[d.at].end = o
	d.at++
	if d.running() {
		return m.runStep(d)
	}
	d.ended, d.drawn, d.scroll = true, time.Time{}, 0
	return nil
}

// leaveWork is esc while an action runs: one step goes on in the background, of
// several the one that runs is the last.
func (m *desk) leaveWork() tea.Cmd {
	if d := m.dialog; d.did != "" {
		d.stopped = true
		return nil
	}
	return m.closeDialog()
}

// Why an action is refused before it is asked for. The refusals that matter are
// made again where commands are sent.

func (m *desk) whyNoAction() string {
	switch {
	case m.actions == nil:
		return "there is nothing here to act with"
	case m.actions.ReadOnly():
		return "read-only: acts are refused"
	case m.busy > 0:
		return "an act is still running"
	}
	return ""
}

func (m *desk) whyNoLock() string {
	if why := m.whyNoAction(); why != "" {
		return why
	}
	switch on := m.on(); {
	case on.mode&page.ModeOnLock == 0:
		return "go to the locks first: tab, or 2"
	case on.Lock == nil:
		return "no lock under the cursor"
	}
	return ""
}

func (m *desk) whyNoNode() string {
	switch on := m.on(); {
	case on.mode&page.ModeOnNode == 0:
		return "go to the nodes first: tab, or 3"
	case on.Node == nil:
		return "no node under the cursor"
	}
	return ""
}

// latestLock and latestNode look into the latest snapshot, also while the
// screen is frozen: nobody acts on an old one.
func (m *desk) latestLock(key string) *monitor.Lock { return m.Latest.Locks.Get(key) }

func (m *desk) latestNode(name string) *monitor.Node { return page.NodeOf(m.Latest, name) }

const noReason = "a reason is missing: it is written to the audit log"

// confirmation is what a dangerous action wants: a reason, and the name that it is
// about, typed.
type confirmation struct {
	reason, typed *field
	want          string
}

// confirm asks for a reason and for raw as it is shown, or the end of one that is too
// long to type.
func (m *desk) confirm(raw string) *confirmation {
	const most, tail = 40, 12
	want, label := m.St.Name(raw), "Type the name to confirm"
	if view.Width(want) > most {
		want = view.CutLeft(want, tail)
		label = fmt.Sprintf("Type its last %d characters", view.Width(want))
	}
	return &confirmation{newField("Reason", ""), newField(label, ""), want}
}

func (c *confirmation) fields() []*field { return []*field{c.reason, c.typed} }

// why is the reason.
func (c *confirmation) why() string { return strings.TrimSpace(c.reason.String()) }

// missing is what is still missing.
func (c *confirmation) missing() string {
	switch typed := c.typed.String(); {
	case c.why() == "":
		return noReason
	case typed == "":
		return "the name is missing: type " + c.want
	case typed != c.want:
		return "that is not the name: type " + c.want
	}
	return ""
}

// bounded is how many names a dialog lists.
const bounded = 12

// someOf are the first of texts, and how many more there are.
func someOf(texts []string, most int) string {
	s := strings.Join(texts[:min(len(texts), most)], "; ")
	if more := len(texts) - most; more > 0 {
		s += "; and " + view.Count(more) + " more"
	}
	return s
}

// marked are the marked locks that an action is about; nil: it is about the one
// under the cursor. A command that is typed is about the one that it names, and
// what is done on a lock's own page is about that lock, whatever is marked.
func (m *desk) marked() []string {
	if on := m.on(); on.one || len(m.Marks) == 0 || on.mode&page.ModeLock != 0 {
		return nil
	}
	return m.Marks.Sorted()
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
