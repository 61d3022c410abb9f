package action

import (
	"context"
	"fmt"

	tea "charm.land/bubbletea/v2"

	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/restartguard"
)

func (m *Desk) WhyNoCordon() string {
	return m.whyNotNode(monitor.NodeCordoned, "cordoned already", "cordoned", monitor.NodeServing)
}

func (m *Desk) WhyNoRejoin() string {
	return m.whyNotNode(monitor.NodeServing, "serving already", "rejoined", monitor.NodeCordoned)
}

// whyNotNode is why the node under the cursor cannot be done something to: it is what
// it would become, or in a state that is neither fenced nor the one from which it can.
func (m *Desk) whyNotNode(is monitor.NodeState, already, done string, from monitor.NodeState) string {
	if why := m.WhyNoAction(); why != "" {
		return why
	}
	if why := m.whyNoNode(); why != "" {
		return why
	}
	switch n := m.latestNode(m.On().Node.Name); {
	case n == nil:
		return "the node is gone"
	case n.State == is:
		return m.St.Whole(n.Name) + " is " + already
	case n.State != from && n.State != monitor.NodeFenced:
		return m.St.Whole(n.Name) + " cannot be " + done + ": " + n.State.String()
	}
	return ""
}

func (m *Desk) AskCordon() tea.Cmd {
	name := m.On().Node.Name
	return m.askNode(name, "cordon", "it refuses writes now; O lets it rejoin", m.Actions.Cordon, func() []string {
		c := &m.Latest.Cluster
		out := []string{m.St.Fact("Effect", "it is cordoned: it refuses writes until a person uncordons it; no guard lets it rejoin. Its copies expire, and are not extended")}
		serving := c.Serving
		if n := m.latestNode(name); n != nil && n.State == monitor.NodeServing {
			serving--
		}
		left := fmt.Sprintf("%d of %d nodes go on serving, the quorum is %d", serving, c.N, c.Quorum)
		if serving < c.Quorum {
			left = m.St.Bad.Of(left + ": NOTHING can be locked any more")
		}
		return append(out, m.St.Fact("", left))
	})
}

func (m *Desk) AskRejoin() tea.Cmd {
	name := m.On().Node.Name
	return m.askNode(name, "rejoin", "it accepts writes now", m.Actions.RejoinNow, func() []string {
		out := []string{m.St.Fact("Effect", "it accepts writes and votes at once")}
		s, ok := m.Guards.Status[name]
		n := m.latestNode(name)
		switch {
		case ok && s.Phase == restartguard.PhaseFenced && !s.Until.IsZero() && s.Until.After(m.Now()):
			out = append(out, m.St.Fact("Risk", m.St.Bad.Of("it restarted, and is safe only in "+view.Remaining(s.Until.Sub(m.Now()))+
				": a lock that it forgot can be granted a second time")))
		case n != nil && n.State == monitor.NodeFenced:
			risk := "if it restarted less than D ago, a lock that it forgot can be granted a second time"
			if m.Guards.Delay > 0 {
				risk += " (D = " + view.Span(m.Guards.Delay) + ")"
			}
			out = append(out, m.St.Fact("Risk", m.St.Warn.Of(risk)))
		}
		return out
	})
}

func (m *Desk) askNode(node, verb, done string, do func(ctx context.Context, node, reason string) error, effect func() []string) tea.Cmd {
	shown, c := m.St.Escape(node, 40), m.Confirm(node)
	return m.open(&Dialog{
		title: capital(verb) + " " + shown + " ?",
		Verb:  verb,
		facts: func() []string {
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
		Fields: c.fields(),
		check: func() string {
			if m.latestNode(node) == nil {
				return "the node is gone"
			}
			return c.missing()
		},
		start: func() []step {
			why := c.why()
			return oneStep(func(ctx context.Context) Outcome {
				return Outcome{what: verb + " " + shown, err: do(ctx, node, why), done: done}
			})
		},
	})
}
