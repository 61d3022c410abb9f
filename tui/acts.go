package tui

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/restartguard"
	"redlockctl/tui/page"
)

// actTimeout bounds an act: retries of an acquire, or the proof of a fence.
const actTimeout = 15 * time.Second

// running counts the acts on their way, so that the program does not end
// between an act and the record of its outcome, and the locks that are kept.
type running struct {
	mu     sync.Mutex
	n      int
	closed bool
	idle   chan struct{} // closed when n is 0 after closed
	kept   []Kept
}

func newRunning() *running { return &running{idle: make(chan struct{})} }

// begin tells if an act may start.
func (r *running) begin() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.n++
	return true
}

func (r *running) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.n--; r.n == 0 && r.closed {
		close(r.idle)
	}
}

// close lets no further act begin and waits for those that run, at most for
// limit.
func (r *running) close(limit time.Duration) {
	r.mu.Lock()
	if !r.closed {
		r.closed = true
		if r.n == 0 {
			close(r.idle)
		}
	}
	r.mu.Unlock()
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-r.idle:
	case <-t.C:
	}
}

// Why an act is refused before it is asked for. The refusals that matter are
// made again where commands are sent.

func (m *model) whyNoAct() string {
	switch {
	case m.opt.Actions == nil:
		return "there is nothing here to act with"
	case m.opt.Actions.ReadOnly():
		return "read-only: acts are refused"
	case m.busy > 0:
		return "an act is still running"
	}
	return ""
}

func (m *model) whyNoLock() string {
	if why := m.whyNoAct(); why != "" {
		return why
	}
	if m.mode()&page.ModeOnLock == 0 {
		return "go to the locks first: tab, or 2"
	}
	if m.selected().Lock == nil {
		return "no lock under the cursor"
	}
	return ""
}

func (m *model) whyNoNode() string {
	if why := m.whyNoAct(); why != "" {
		return why
	}
	return m.whyNoPickedNode()
}

func (m *model) whyNoPickedNode() string {
	if m.mode()&page.ModeOnNode == 0 {
		return "go to the nodes first: tab, or 3"
	}
	if m.selected().Node == nil {
		return "no node under the cursor"
	}
	return ""
}

func (m *model) whyNoFence() string {
	if why := m.whyNoNode(); why != "" {
		return why
	}
	n := m.latestNode(m.selected().Node.Name)
	switch {
	case n == nil:
		return "the node is gone"
	case n.State == monitor.NodeHeld:
		return m.St.Whole(n.Name) + " is held already"
	case n.State == monitor.NodeServing || n.State == monitor.NodeFenced:
		return ""
	}
	return m.St.Whole(n.Name) + " cannot be fenced: " + n.State.String()
}

func (m *model) whyNoOpen() string {
	if why := m.whyNoNode(); why != "" {
		return why
	}
	n := m.latestNode(m.selected().Node.Name)
	switch {
	case n == nil:
		return "the node is gone"
	case n.State == monitor.NodeServing:
		return m.St.Whole(n.Name) + " is open already"
	case n.State == monitor.NodeHeld || n.State == monitor.NodeFenced:
		return ""
	}
	return m.St.Whole(n.Name) + " cannot be opened: " + n.State.String()
}

// latestLock and latestNode look into the latest snapshot, also while the
// screen is frozen: nobody acts on an old picture.
func (m *model) latestLock(key string) *monitor.Lock {
	return m.Latest.Locks.Get(key)
}

func (m *model) latestNode(name string) *monitor.Node { return page.NodeOf(m.Latest, name) }

// confirmation is what has to be typed to confirm an act on raw: its name as it
// is shown, or the end of one that is too long to type.
func (m *model) confirmation(raw string) (text, label string) {
	const most, tail = 40, 12
	shown := m.St.Name(raw)
	if view.Width(shown) <= most {
		return shown, "Type the name to confirm"
	}
	end := view.CutLeft(shown, tail)
	return end, fmt.Sprintf("Type its last %d characters", view.Width(end))
}

func missingName(typed, want string) string {
	if typed == want {
		return ""
	}
	if typed == "" {
		return "the name is missing: type " + want
	}
	return "that is not the name: type " + want
}

func missingReason(reason string) string {
	if strings.TrimSpace(reason) == "" {
		return "a reason is missing: it is written to the audit log"
	}
	return ""
}

func (m *model) askFence() tea.Cmd {
	name := m.selected().Node.Name
	return m.askNode(name, "Fence", "fence", func() []string {
		c := &m.Latest.Cluster
		out := []string{m.St.Fact("Effect", "it is held: it refuses writes until a person opens it, and no guard lifts that; its copies run out, and are not extended")}
		serving := c.Serving
		if n := m.latestNode(name); n != nil && n.State == monitor.NodeServing {
			serving--
		}
		left := fmt.Sprintf("%d of %d nodes go on serving, the quorum is %d", serving, c.N, c.Quorum)
		if serving < c.Quorum {
			return append(out, m.St.Fact("", m.St.Bad.Of(left+": NOTHING can be locked any more")))
		}
		return append(out, m.St.Fact("", left))
	}, func(ctx context.Context, a Actions, reason string) error { return a.FenceNode(ctx, name, reason) },
		"it refuses writes now; O opens it again")
}

func (m *model) askOpen() tea.Cmd {
	name := m.selected().Node.Name
	return m.askNode(name, "Open", "open", func() []string {
		out := []string{m.St.Fact("Effect", "it accepts writes and votes at once")}
		s, ok := m.Guards.Status[name]
		n := m.latestNode(name)
		switch {
		case ok && s.Phase == restartguard.PhaseClosed && !s.Until.IsZero() && s.Until.After(m.now()):
			out = append(out, m.St.Fact("Risk", m.St.Bad.Of("it restarted, and is safe only in "+view.Remaining(s.Until.Sub(m.now()))+
				": a lock that it forgot can be granted a second time")))
		case n != nil && n.State == monitor.NodeFenced:
			risk := "if it restarted less than D ago, a lock that it forgot can be granted a second time"
			if m.Guards.Delay > 0 {
				risk += " (D = " + view.Span(m.Guards.Delay) + ")"
			}
			out = append(out, m.St.Fact("Risk", m.St.Warn.Of(risk)))
		}
		return out
	}, func(ctx context.Context, a Actions, reason string) error { return a.OpenNode(ctx, name, reason) },
		"it accepts writes now")
}

func (m *model) askNode(node, title, verb string, effect func() []string, do func(context.Context, Actions, string) error, done string) tea.Cmd {
	shown := m.St.Escape(node, 40)
	want, label := m.confirmation(node)
	reason, typed := newField("Reason", ""), newField(label, "")
	return m.openDialog(&dialog{
		title:  title + " " + shown + " ?",
		verb:   verb,
		danger: true,
		facts: func(int) []string {
			var out []string
			if n := m.latestNode(node); n != nil {
				now := n.State.String()
				if !n.Since.IsZero() {
					now += " since " + view.Clock(n.Since)
				}
				out = append(out, m.St.Fact("Now", now+", "+view.Count(n.Locks)+" copies"))
			}
			return append(out, effect()...)
		},
		fields: []*field{reason, typed},
		check: func() string {
			if m.latestNode(node) == nil {
				return "the node is gone"
			}
			if why := missingReason(reason.String()); why != "" {
				return why
			}
			return missingName(typed.String(), want)
		},
		start: func() func(context.Context) outcome {
			acts, why := m.opt.Actions, strings.TrimSpace(reason.String())
			return func(ctx context.Context) outcome {
				return outcome{what: verb + " " + shown, err: do(ctx, acts, why), done: done}
			}
		},
	})
}
