// Package action has the dialogs of the screen, the actions that run, and the locks that
// were acquired here. It does not know keys or layout, and reaches servers only through
// [Actions] and [Lab].
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

// actionTimeout bounds a step, such as the retries of an acquire.
const actionTimeout = 15 * time.Second

// Desk has the open dialog, the running action, and the locks that were acquired here.
type Desk struct {
	*page.Set // actions use the latest snapshot, even if the screen is frozen
	Ctx       context.Context
	Now       func() time.Time
	Actions   Actions                    // nil: no actions are possible
	Lab       Lab                        // nil: there is none
	On        func() CursorAt            // the target of an action
	Say       func(styles.Paint, string) // shows a message; the text is safe to show
	Off       string                     // why no action is possible; "" if actions are
	Moving    bool                       // another cluster is being opened in place of this one

	Dialog  *Dialog
	Result  *Dialog // of the last action, until it has been seen; keys still go to the page
	Busy    int     // running steps
	Running Running
	Mine    map[string]Grant // locks acquired by hand, by key
	// watching is the lock whose holder is being looked for, safe to show; empty if none.
	watching     string
	watchingKey  string
	watchingFrom time.Time
	told         *whoNote // the last answer, until it is closed
	unanswered   *whoNote // the last search that gave no answer; nil: it gave one
	Forced       bool     // a lock was force-released
	Losses       []loss   // kept locks that were lost, until the user has seen it
}

// CursorAt is where the cursor is when an action is asked for.
type CursorAt struct {
	page.Selection
	Mode page.Mode
	One  bool // the action is about this lock, even if others are marked
}

// open shows a dialog. The order of the table is frozen until it is closed.
func (m *Desk) open(d *Dialog) tea.Cmd {
	m.Dialog = d
	m.Locks.Pin(true)
	return nil
}

// openOnLock shows a dialog about the lock under the cursor, or the marked ones: the cursor stays
// where it is when it is closed.
func (m *Desk) openOnLock(d *Dialog) tea.Cmd {
	m.Locks.Chosen = true
	return m.open(d)
}

// Refuse says in a dialog why an action is not possible. Text that was meant for the dialog of
// the action goes nowhere, and is not taken for keys.
func (m *Desk) Refuse(what, why string) tea.Cmd {
	open := m.open
	if m.On().Lock != nil {
		open = m.openOnLock
	}
	return open(&Dialog{
		title:   m.St.Off + " " + what + ": refused",
		Verb:    "close",
		Refusal: true,
		facts:   func() []string { return []string{m.St.Fact("Why", m.St.Our(why))} },
		then:    m.CloseDialog,
	})
}

func (m *Desk) CloseDialog() tea.Cmd {
	m.Dialog = nil
	m.Locks.Pin(false)
	return nil
}

// Submit handles enter in a dialog: it starts the action, or moves to the first field in
// which something is missing.
func (m *Desk) Submit() tea.Cmd {
	d := m.Dialog
	if missing, at := d.missing(); missing != "" {
		d.Pressed = true
		if at >= 0 {
			d.Focus = at
		}
		return nil
	}
	if d.start == nil {
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

// runStep runs the next step.
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

// Finish handles the outcome of a step.
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
	if m.Dialog != d { // it runs in the background: show a message
		if o.err != nil {
			m.Say(m.St.Bad, o.what+": failed: "+m.St.Whole(o.err.Error()))
		} else if waits := o.waits(); waits != "" {
			m.Say(m.St.Warn, o.what+": not yet done: "+waits)
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

// Results disappear by themselves; failures stay longer.
const (
	doneTime   = 12 * time.Second
	failedTime = time.Minute
)

// ExpireResult closes a result or an answer that has been on the screen long enough.
func (m *Desk) ExpireResult() {
	if m.told != nil && m.Now().Sub(m.told.at) >= noteTime {
		m.told = nil
	}
	d := m.Result
	switch {
	case d == nil || d.Drawn.IsZero():
	case d.waits():
		d.waited = m.Now()
	case m.Now().Sub(d.shown()) >= failedTime, !d.failed && m.Now().Sub(d.shown()) >= doneTime:
		m.Result = nil
	}
}

// ResultKey handles a key while a result is shown, and reports whether only the result
// uses it: any key closes the result, and most also go to the page.
func (m *Desk) ResultKey(key string) bool {
	d := m.Result
	if d == nil {
		return false
	}
	seen := d.listens(m.Now()) // the key was not meant for the previous screen
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

// LeaveWork handles esc while an action runs: a single step continues in the background;
// of several steps, the running one is the last.
func (m *Desk) LeaveWork() tea.Cmd {
	if d := m.Dialog; d.Did != "" {
		d.stopped = true
		return nil
	}
	return m.CloseDialog()
}

// Why an action is refused before a dialog opens. The checks that matter are repeated
// where commands are sent.

func (m *Desk) WhyNoAction() string {
	switch {
	case m.Off != "":
		return m.Off
	case m.Moving:
		return "another cluster is being opened"
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

// LatestLock and latestNode use the latest snapshot, even if the screen is frozen, so
// that nobody acts on old data.
func (m *Desk) LatestLock(key string) *monitor.Lock { return m.Latest.Locks.Get(key) }

func (m *Desk) latestNode(name string) *monitor.Node { return m.Latest.Node(name) }

// confirmation has the inputs of a dangerous action: a reason and the typed name.
type confirmation struct {
	reason, typed *field
	Want          string
}

// Confirm asks for a reason, and for raw as it is shown, or only its end if it is too long
// to type.
func (m *Desk) Confirm(raw string) *confirmation {
	const most, tail = 40, 12
	want, label := m.St.Name(raw), "Type the name to confirm"
	if view.Width(want) > most {
		want = view.CutLeft(want, tail)
		label = fmt.Sprintf("Type its last %d characters", view.Width(want))
	}
	typed := newField(label, "")
	typed.check = func() string {
		switch typed.String() {
		case "":
			return "the name is missing: type " + want
		case want:
			return ""
		}
		return "that is not the name: type " + want
	}
	return &confirmation{reasonField(), typed, want}
}

// reasonField returns a field for the reason of an action.
func reasonField() *field {
	f := newField("Reason", "")
	f.check = func() string {
		if f.text() == "" {
			return "a reason is missing: it is written to the audit log"
		}
		return ""
	}
	return f
}

func (c *confirmation) fields() []*field { return []*field{c.reason, c.typed} }

// why returns the reason.
func (c *confirmation) why() string { return c.reason.text() }

// bounded is how many names a dialog lists.
const bounded = 12

// someOf lists the first texts, and the number of the others.
func someOf(texts []string, most int) string {
	s := strings.Join(texts[:min(len(texts), most)], "; ")
	if more := len(texts) - most; more > 0 {
		s += "; and " + view.Count(more) + " more"
	}
	return s
}

// Marked returns the marked locks that an action is about; nil if it is about the one
// under the cursor. A typed command is about the lock that it names, and an action on a
// lock's own page is about that lock, whatever is marked.
func (m *Desk) Marked() []string {
	if on := m.On(); on.One || len(m.Marks) == 0 || on.Mode&page.ModeLock != 0 {
		return nil
	}
	return m.Marks.Sorted()
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
