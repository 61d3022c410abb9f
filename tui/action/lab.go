package action

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"redlockctl/base/crash"
	"redlockctl/internal/view"
)

const NoLab = "there is a lab only in redlockctl demo"

// WhyNoLab says why an action of the lab is not possible now; "" if it is.
func (m *Desk) WhyNoLab(action string) string {
	switch {
	case m.Off != "":
		return m.Off
	case m.Lab == nil:
		return NoLab
	case m.Lab.Cannot(action) != "":
		return "this lab cannot: " + m.Lab.Cannot(action)
	case m.Busy > 0:
		return "an action is still running"
	}
	return m.whyNoNode()
}

// labAction describes an action on a node of the lab.
type labAction struct {
	Shows  string // what it demonstrates, for the page of the lab
	effect string
	done   string
}

var LabActions = map[string]labAction{
	"crash": {
		"a restart that forgets all votes: boot fence and guard act",
		"it dies as by SIGKILL, forgets its locks, and comes back empty and fenced a moment later",
		"watch it come back fenced",
	},
	"stop": {
		"a node that hangs; the others still grant locks",
		"as by SIGSTOP: it keeps its data and connections, and answers nothing until it is continued",
		"it answers nothing until it is continued: Z",
	},
	"continue": {
		"and comes back",
		"it goes on where it was stopped",
		"its clock went on while it stood still: what has expired is gone",
	},
	"flush": {
		"lost votes without a restart",
		"it forgets every lock while it runs, as by FLUSHALL: unlike a restart no boot fence keeps it out",
		"its locks are gone, and nothing fenced it",
	},
	"skew": {Shows: "a clock that jumps: copies that end too early or too late"},
}

// inLab returns a step for a function without a context; it stops waiting when the step's
// context ends.
func inLab(what, done string, do func() error) []step {
	return oneStep(func(ctx context.Context) Outcome {
		o := Outcome{what: what, done: done}
		end := make(chan error, 1)
		crash.Go(func() { end <- do() })
		select {
		case o.err = <-end:
		case <-ctx.Done():
			o.err = errors.New("the lab did not answer in time")
		}
		return o
	})
}

// AskLab opens the dialog of a lab action on the node under the cursor.
func (m *Desk) AskLab(action string) tea.Cmd {
	if action == "skew" {
		return m.askSkew()
	}
	a, lab, node := LabActions[action], m.Lab, m.On().Node.Name
	shown := m.St.Escape(node, 40)
	return m.open(&Dialog{
		title: capital(action) + " " + shown + "?",
		Verb:  action + " it",
		facts: func() []string {
			out := []string{m.St.Fact("Effect", a.effect)}
			if action == "crash" && m.Guards.Delay > 0 && m.Guards.Here {
				out = append(out, m.St.Fact("", "the guard lets it rejoin after D = "+view.Span(m.Guards.Delay)))
			}
			return out
		},
		start: func() []step { return inLab(action+" "+shown, a.done, func() error { return lab.Do(action, node) }) },
	})
}

func (m *Desk) askSkew() tea.Cmd {
	node, lab := m.On().Node.Name, m.Lab
	shown := m.St.Escape(node, 40)
	by := newField("By", "+2s")
	parse := func() (time.Duration, error) {
		return time.ParseDuration(strings.TrimPrefix(by.text(), "+"))
	}
	by.check = func() string {
		if d, err := parse(); err != nil || d == 0 {
			return "how far: +2s, -500ms"
		}
		return ""
	}
	return m.open(&Dialog{
		title:  "Skew the clock of " + shown + "?",
		Verb:   "move its clock",
		Fields: []*field{by},
		facts: func() []string {
			return []string{m.St.Fact("Effect", "its clock jumps: forward, and its copies end too early; backward, and they live too long")}
		},
		start: func() []step {
			d, _ := parse()
			return inLab(fmt.Sprintf("skew %s by %s", shown, d), "watch its offset, and the TTLs of its copies", func() error { return lab.SkewNode(node, d) })
		},
	})
}
