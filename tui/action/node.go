package action

import (
	"context"
	"slices"

	tea "charm.land/bubbletea/v2"

	"redlockctl/internal/view"
	"redlockctl/monitor"
)

// nodeStates says why actions on a node in these states are refused; "": allowed.
type nodeStates map[monitor.NodeState]string

func (m *Desk) WhyNoCordon() string {
	return m.whyNotNode("cannot be cordoned: ", nodeStates{monitor.NodeServing: "", monitor.NodeFenced: "", monitor.NodeCordoned: "is cordoned already"})
}

func (m *Desk) WhyNoUncordon() string {
	fenced := "is not cordoned but fenced: "
	if on := m.On(); on.Node != nil {
		n := m.latestNode(on.Node.Name)
		if n != nil && view.MayServe(n, m.Now()) != "" {
			fenced += view.MayServe(n, m.Now())
		} else {
			fenced += "no guard is seen there: start one, or J lets it rejoin by hand"
		}
	}
	return m.whyNotNode("is not cordoned: ", nodeStates{monitor.NodeCordoned: "", monitor.NodeFenced: fenced})
}

func (m *Desk) WhyNoRejoin() string {
	return m.whyNotNode("cannot rejoin: ", nodeStates{monitor.NodeFenced: "", monitor.NodeServing: "is serving already", monitor.NodeCordoned: "is cordoned: U uncordons it"})
}

// whyNotNode says why an action on the node under the cursor is refused, by the node's
// state.
func (m *Desk) whyNotNode(other string, says nodeStates) string {
	if why := m.WhyNoAction(); why != "" {
		return why
	}
	if why := m.whyNoNode(); why != "" {
		return why
	}
	n := m.latestNode(m.On().Node.Name)
	if n == nil {
		return "the node is gone"
	}
	why, known := says[n.State]
	switch {
	case !known:
		return m.St.Whole(n.Name) + " " + other + n.State.String()
	case why != "":
		return m.St.Whole(n.Name) + " " + why
	}
	return ""
}

func (m *Desk) AskCordon() tea.Cmd {
	name := m.On().Node.Name
	asked := m.askNode(name, "cordon", "it refuses writes now; U uncordons it", m.Actions.Cordon, m.cordonFacts(name))
	m.amendOutcome(func(o *Outcome) { o.over = m.uncordoned(name) })
	return asked
}

// cordonFacts says what cordoning a node means; it reads all locks once for each snapshot.
func (m *Desk) cordonFacts(name string) func() []view.Fact {
	var of *monitor.Snapshot
	var facts []view.Fact
	return func() []view.Fact {
		if of != m.Latest {
			of, facts = m.Latest, view.CordonFacts(m.Latest, name)
		}
		return slices.Clip(facts)
	}
}

// AskDrain cordons a node, to be restarted when it is empty. Its result waits until it is.
func (m *Desk) AskDrain() tea.Cmd {
	name := m.On().Node.Name
	facts := m.cordonFacts(name)
	asked := m.askNode(name, "drain", "when it is empty: restart it, then uncordon it (U)", m.Actions.Drain, func() []view.Fact {
		return append(facts(),
			view.Fact{Label: "Then", Text: "when its last copy has ended a restart forgets nothing: it rejoins as soon as it is uncordoned"})
	})
	seen, empty := false, false
	m.amendOutcome(func(o *Outcome) {
		o.over = m.uncordoned(name)
		o.rest = func() string {
			n := m.latestNode(name)
			left := view.DrainLeft(n, m.Now())
			switch cordoned := n != nil && n.State == monitor.NodeCordoned; {
			case cordoned:
				seen, empty = true, left == ""
			case seen && !empty && n != nil && n.State.Answers():
				return view.DrainCutShort(n)
			case seen:
				return "" // it is uncordoned or restarted
			}
			return left
		}
	})
	return asked
}

// amendOutcome has the outcome of the dialog's step say more.
func (m *Desk) amendOutcome(amend func(*Outcome)) {
	start := m.Dialog.start
	m.Dialog.start = func() []step {
		steps := start()
		run := steps[0].run
		steps[0].run = func(ctx context.Context) Outcome {
			o := run(ctx)
			amend(&o)
			return o
		}
		return steps
	}
}

// uncordoned returns a function, asked for each screen, that says that a node which was seen cordoned is
// not any more; one that does not answer may be.
func (m *Desk) uncordoned(name string) func() string {
	seen := false
	return func() string {
		n := m.latestNode(name)
		switch {
		case n == nil:
		case n.State == monitor.NodeCordoned:
			seen = true
		case seen && n.State == monitor.NodeServing:
			return "it is not cordoned any more: it is serving, and may have new copies"
		case seen && n.State == monitor.NodeFenced:
			return "it is not cordoned any more, but fenced"
		}
		return ""
	}
}

func (m *Desk) AskUncordon() tea.Cmd {
	name := m.On().Node.Name
	return m.askNode(name, "uncordon", "its guards let it rejoin when it may vote", m.Actions.Uncordon, func() []view.Fact {
		return view.UncordonFacts(m.latestNode(name), m.Now())
	})
}

func (m *Desk) AskRejoin() tea.Cmd {
	name := m.On().Node.Name
	asked := m.askNode(name, "rejoin", "it accepts writes now", m.Actions.RejoinNow, m.rejoinFacts(name))
	m.Dialog.danger = true
	return asked
}

func (m *Desk) rejoinFacts(name string) func() []view.Fact {
	return func() []view.Fact { return view.RejoinFacts(&m.Guards, name, m.Now()) }
}

func (m *Desk) askNode(node, verb, done string, do func(ctx context.Context, node, reason string) error, effect func() []view.Fact) tea.Cmd {
	shown, c := m.St.Escape(node, 40), m.Confirm(node)
	return m.open(&Dialog{
		title: capital(verb) + " " + shown + "?",
		Verb:  verb,
		facts: func() []string {
			var out []string
			if n := m.latestNode(node); n != nil {
				now := n.State.String()
				if !n.Older && !n.Since.IsZero() {
					now += " since " + view.Clock(n.Since)
				}
				out = append(out, m.St.Fact("Now", now+", "+view.Plural(n.Locks, "copy", "copies")))
			}
			for _, f := range effect() {
				out = append(out, m.St.Fact(f.Label, m.St.Paint(f.Tone).Of(f.Text)))
			}
			return out
		},
		Fields: c.fields(),
		check: func() string {
			if m.latestNode(node) == nil {
				return "the node is gone"
			}
			return ""
		},
		start: func() []step {
			why := c.why()
			return oneStep(func(ctx context.Context) Outcome {
				return Outcome{what: verb + " " + shown, err: do(ctx, node, why), done: done}
			})
		},
	})
}
