// Package action is what a person does on the screen: the dialogs that ask, the
// actions that run, and the locks that were acquired here. It knows no key and no
// layout, and reaches servers through [Actions] and [Lab] alone.
package action

import (
	"context"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"redlockctl/internal/operator"
	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/tui/page"
	"redlockctl/tui/styles"
)

// actionTimeout bounds a step: retries of an acquire, or the proof of a fence.
const actionTimeout = 15 * time.Second

// Desk is what a person does to locks and nodes: the dialog that asks, the action
// that runs, and the locks that were acquired here. It knows no key and no layout.
type Desk struct {
	*page.Set // actions are about the latest snapshot, also while the screen is frozen
	Ctx       context.Context
	Now       func() time.Time
	Actions   Actions                    // nil: there is nothing to act with
	Lab       Lab                        // nil: there is none
	On        func() CursorAt            // what an action is about
	Say       func(styles.Paint, string) // tells in a line; the text is safe to show
	Off       string                     // why no action is possible at all; "": they are

	Dialog  *Dialog
	Result  *Dialog // of the action that ended last, until it has been seen; it takes no key from the page
	Busy    int     // steps on their way
	Running Running
	Mine    map[string]Grant // locks acquired by hand, by key
	// watching is the lock whose holder is asked for; empty: none.
	watching string
	Forced   bool   // a lock was force-released
	Losses   []loss // of those that were kept, and that nobody has seen yet
}

// CursorAt is where the cursor is when an action is asked for.
type CursorAt struct {
	page.Selection
	Mode page.Mode
	One  bool // it is about that lock, also where others are marked
}

// open shows a dialog. The order of the table stands still until it is closed.
func (m *Desk) open(d *Dialog) tea.Cmd {
	m.Dialog = d
	m.Locks.Pin(true)
	return nil
}

func (m *Desk) CloseDialog() tea.Cmd {
	m.Dialog = nil
	m.Locks.Pin(false)
	return nil
}

// Submit is enter in a dialog: the action, if nothing is missing.
func (m *Desk) Submit() tea.Cmd {
	d := m.Dialog
	switch {
	case d.missing() != "":
		d.Pressed = true
		return nil
	case d.start == nil:
		return d.then()
	}
	d.began, d.steps = m.Now(), d.start()
	return m.runStep(d)
}

// Finished is the outcome of a step.
type Finished struct {
	of *Dialog
	Outcome
}

// runStep runs the step that is next.
func (m *Desk) runStep(d *Dialog) tea.Cmd {
	m.Busy++
	run, ctx := d.steps[d.at].run, m.Ctx
	return func() tea.Msg {
		if !m.Running.Begin() {
			return nil
		}
		defer m.Running.End()
		ctx, cancel := context.WithTimeout(ctx, actionTimeout)
		defer cancel()
		return Finished{d, run(ctx)}
	}
}

// Finish takes the outcome of a step.
func (m *Desk) Finish(f Finished) tea.Cmd {
	m.Busy--
	d, o := f.of, &f.Outcome
	if o.apply != nil {
		o.apply()
	}
	m.Forced = m.Forced || o.err == nil && strings.HasPrefix(o.what, operator.ForceRelease.String()+" ")
	if d.then != nil && o.err == nil {
		return d.then()
	}
	if m.Dialog != d { // it was sent to the background: a line must do
		if o.err != nil {
			m.Say(m.St.Bad, o.what+": failed: "+m.St.Whole(o.err.Error()))
		} else {
			m.Say(m.St.Good, o.what+": done")
		}
		return nil
	}
	d.steps[d.at].end = o
	d.at++
	if d.running() {
		return m.runStep(d)
	}
	d.ended, d.Drawn, d.Scroll = true, time.Time{}, 0
	failed, _ := d.counts()
	d.failed = failed > 0
	m.Result = d
	return m.CloseDialog()
}

// Results go away by themselves: those of what failed later.
const (
	doneTime   = 12 * time.Second
	failedTime = time.Minute
)

// ExpireResult ends a result that has been on the screen for long enough.
func (m *Desk) ExpireResult() {
	d := m.Result
	switch {
	case d == nil || d.Drawn.IsZero():
	case m.Now().Sub(d.Drawn) >= failedTime, !d.failed && m.Now().Sub(d.Drawn) >= doneTime:
		m.Result = nil
	}
}

// ResultKey takes a key while a result is on the screen, and reports whether it was
// for that alone: any key closes it, and most go on to the page.
func (m *Desk) ResultKey(key string) bool {
	d := m.Result
	if d == nil {
		return false
	}
	seen := d.listens(m.Now()) // not typed for what was there before
	switch key {
	case "pgdown", "pgup":
		if d.long {
			d.Scroll = max(0, d.Scroll+map[string]int{"pgdown": 3, "pgup": -3}[key])
			return true
		}
	case "esc", "enter", "q":
		if seen {
			m.Result = nil
		}
		return true
	}
	if seen {
		m.Result = nil
	}
	return false
}

// LeaveWork is esc while an action runs: one step goes on in the background, of
// several the one that runs is the last.
func (m *Desk) LeaveWork() tea.Cmd {
	if d := m.Dialog; d.Did != "" {
		d.stopped = true
		return nil
	}
	return m.CloseDialog()
}

// Why an action is refused before it is asked for. The refusals that matter are
// made again where commands are sent.

func (m *Desk) WhyNoAction() string {
	switch {
	case m.Off != "":
		return m.Off
	case m.Actions == nil:
		return "there is nothing here to act with"
	case m.Actions.ReadOnly():
		return "read-only: actions are refused"
	case m.Busy > 0:
		return "an action is still running"
	}
	return ""
}

func (m *Desk) whyNoLock() string {
	if why := m.WhyNoAction(); why != "" {
		return why
	}
	switch on := m.On(); {
	case on.Mode&page.ModeOnLock == 0:
		return "go to the locks first: tab, or 2"
	case on.Lock == nil:
		return "no lock under the cursor"
	}
	return ""
}

func (m *Desk) whyNoNode() string {
	switch on := m.On(); {
	case on.Mode&page.ModeOnNode == 0:
		return "go to the nodes first: tab, or 3"
	case on.Node == nil:
		return "no node under the cursor"
	}
	return ""
}

// LatestLock and latestNode look into the latest snapshot, also while the
// screen is frozen: nobody acts on an old one.
func (m *Desk) LatestLock(key string) *monitor.Lock { return m.Latest.Locks.Get(key) }

func (m *Desk) latestNode(name string) *monitor.Node { return m.Latest.Node(name) }

const noReason = "a reason is missing: it is written to the audit log"

// confirmation is what a dangerous action wants: a reason, and the name that it is
// about, typed.
type confirmation struct {
	reason, typed *field
	Want          string
}

// Confirm asks for a reason and for raw as it is shown, or the end of one that is too
// long to type.
func (m *Desk) Confirm(raw string) *confirmation {
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
		return "the name is missing: type " + c.Want
	case typed != c.Want:
		return "that is not the name: type " + c.Want
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

// Marked are the marked locks that an action is about; nil: it is about the one
// under the cursor. A command that is typed is about the one that it names, and
// what is done on a lock's own page is about that lock, whatever is marked.
func (m *Desk) Marked() []string {
	if on := m.On(); on.One || len(m.Marks) == 0 || on.Mode&page.ModeLock != 0 {
		return nil
	}
	return m.Marks.Sorted()
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
