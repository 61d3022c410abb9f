package tui

import (
	"context"
	"errors"
	"fmt"
	"redlockctl/internal/view"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
)

// whyNoLabNode is why nothing can be done to a node of the lab now.
func (m *model) whyNoLabNode() string {
	switch {
	case m.opt.Lab == nil:
		return "there is a lab only in redlockctl demo"
	case m.busy > 0:
		return "an act is still running"
	}
	return m.whyNoPickedNode()
}

func (m *model) whyNoCrash() string { return m.whyNoLabNode() }

const notThisLab = "this lab cannot: "

func (m *model) whyNoStop() string {
	if why := m.whyNoLabNode(); why != "" {
		return why
	}
	if _, ok := m.opt.Lab.(LabStopper); !ok {
		return notThisLab + "start it with --redis-server"
	}
	return ""
}

func (m *model) whyNoSkew() string {
	if why := m.whyNoLabNode(); why != "" {
		return why
	}
	if _, ok := m.opt.Lab.(LabClock); !ok {
		return notThisLab + "its masters have no clock of their own"
	}
	return ""
}

func (m *model) whyNoFlush() string {
	if why := m.whyNoLabNode(); why != "" {
		return why
	}
	if _, ok := m.opt.Lab.(LabFlusher); !ok {
		return notThisLab + "its masters cannot be flushed"
	}
	return ""
}

func (m *model) whyNoClients() string {
	if m.opt.Lab == nil {
		return "there is a lab only in redlockctl demo"
	}
	if c, ok := m.opt.Lab.(LabClients); !ok || len(c.ClientKinds()) == 0 {
		return notThisLab + "it starts no clients"
	}
	if m.busy > 0 {
		return "an act is still running"
	}
	return ""
}

// aside runs something that knows no context: it is waited for no longer than
// ctx lasts.
func aside(what, done string, do func() error) func(context.Context) outcome {
	return func(ctx context.Context) outcome {
		o := outcome{what: what, done: done}
		end := make(chan error, 1)
		go func() { end <- do() }()
		select {
		case o.err = <-end:
		case <-ctx.Done():
			o.err = errors.New("the lab did not answer in time")
		}
		return o
	}
}

// askLab asks before something is done to the node under the cursor.
func (m *model) askLab(verb, done string, effect []string, do func(node string) error) tea.Cmd {
	node := m.selected().Node.Name
	shown := m.St.Escape(node, 40)
	return m.openDialog(&dialog{
		title: strings.ToUpper(verb[:1]) + verb[1:] + " " + shown + " ?",
		verb:  verb + " it",
		facts: func(int) []string {
			out := []string{m.St.Fact("Effect", effect[0])}
			for _, more := range effect[1:] {
				out = append(out, m.St.Fact("", more))
			}
			return out
		},
		check: func() string { return "" },
		start: func() func(context.Context) outcome {
			return aside(verb+" "+shown, done, func() error { return do(node) })
		},
	})
}

func (m *model) askCrash() tea.Cmd {
	effect := []string{"it dies as by SIGKILL, forgets its locks, and comes back empty and fenced a moment later"}
	if m.Guards.Delay > 0 && m.Guards.Guarded {
		effect = append(effect, "the guard lets it rejoin after D = "+view.Span(m.Guards.Delay))
	}
	return m.askLab("crash", "watch it come back fenced", effect, m.opt.Lab.CrashNode)
}

func (m *model) askStop() tea.Cmd {
	return m.askLab("stop", "it answers nothing until it is continued: Z",
		[]string{"as by SIGSTOP: it keeps its data and connections, and answers nothing until it is continued"},
		func(node string) error { return m.opt.Lab.(LabStopper).StopNode(node) })
}

func (m *model) askContinue() tea.Cmd {
	return m.askLab("continue", "its clock went on while it stood still: what has expired is gone",
		[]string{"it goes on where it was stopped"},
		func(node string) error { return m.opt.Lab.(LabStopper).ContinueNode(node) })
}

func (m *model) askFlush() tea.Cmd {
	return m.askLab("flush", "its locks are gone, and nothing closed it",
		[]string{"it forgets every lock while it runs, as by FLUSHALL: unlike a restart no boot fence closes it"},
		func(node string) error { return m.opt.Lab.(LabFlusher).FlushNode(node) })
}

func (m *model) askSkew() tea.Cmd {
	node, clocks := m.selected().Node.Name, m.opt.Lab.(LabClock)
	shown := m.St.Escape(node, 40)
	by := newField("By", "+2s")
	parse := func() (time.Duration, error) {
		return time.ParseDuration(strings.TrimPrefix(strings.TrimSpace(by.String()), "+"))
	}
	return m.openDialog(&dialog{
		title:  "Skew the clock of " + shown + " ?",
		verb:   "move its clock",
		fields: []*field{by},
		facts: func(int) []string {
			return []string{m.St.Fact("Effect", "its clock jumps: forward, and its copies end too early; backward, and they live too long")}
		},
		check: func() string {
			if d, err := parse(); err != nil || d == 0 {
				return "how far: +2s, -500ms"
			}
			return ""
		},
		start: func() func(context.Context) outcome {
			d, _ := parse()
			return aside(fmt.Sprintf("skew %s by %s", shown, d), "watch its offset, and the TTLs of its copies", func() error { return clocks.SkewNode(node, d) })
		},
	})
}

// mostClients bounds the clients that are started at once.
const mostClients = 50

func (m *model) askClients() tea.Cmd {
	lab := m.opt.Lab.(LabClients)
	kinds := lab.ClientKinds()
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.Name
	}
	kind := newField("Kind", names[0])
	number := newField("How many", "1")
	return m.openDialog(&dialog{
		title:  "Start clients that do it wrong",
		verb:   "start them",
		fields: []*field{kind, number},
		facts: func(int) []string {
			var out []string
			for _, k := range kinds {
				text := k.Does
				if k.Running > 0 {
					text += fmt.Sprintf(" (%d at work)", k.Running)
				}
				out = append(out, m.St.Fact(k.Name, text))
			}
			return append(out, m.St.Fact("", "0 ends those of a kind"))
		},
		check: func() string {
			if !slices.Contains(names, strings.TrimSpace(kind.String())) {
				return "a kind is one of " + strings.Join(names, ", ")
			}
			if n, err := strconv.Atoi(strings.TrimSpace(number.String())); err != nil || n < 0 || n > mostClients {
				return fmt.Sprintf("a number from 0 to %d", mostClients)
			}
			return ""
		},
		start: func() func(context.Context) outcome {
			what := strings.TrimSpace(kind.String())
			n, _ := strconv.Atoi(strings.TrimSpace(number.String()))
			return aside(fmt.Sprintf("%d clients that %s", n, what), "watch the locks and the findings", func() error { return lab.StartClients(what, n) })
		},
	})
}

// labLines are the keys of the lab, what each shows or why it is off, and the
// clients that run.
func (m *model) labLines(w int) (lines []string) {
	st := m.St
	for i := range m.keys {
		b := &m.keys[i]
		if b.group != groupLab {
			continue
		}
		k, text := b.help(m)
		line := "   " + st.Strong.Of(st.Pad(k, 4)) + st.Pad(text, 12)
		// While a dialog stands over the page, it alone is why no key acts.
		if why := b.disabled(m); why != "" && m.dialog == nil {
			line += st.Dim.Of("off: " + why)
		} else {
			line += labWords[b.Help().Desc]
		}
		lines = append(lines, st.Cut(line, w))
	}
	if c, ok := m.opt.Lab.(LabClients); ok {
		lines = append(lines, "")
		for _, k := range c.ClientKinds() {
			lines = append(lines, "   "+st.Pad(view.Count(k.Running), 4)+st.Pad(k.Name, 12)+st.Dim.Of(st.Cut(k.Does, w-20)))
		}
	}
	return lines
}

// labWords says what each act of the lab shows.
var labWords = map[string]string{
	"crash":    "a restart that forgets every vote; the boot fence and the guard answer it",
	"stop":     "a node that hangs: the lock algorithm goes on with the others",
	"continue": "and comes back",
	"skew":     "a clock that jumps: copies that end too early or too late",
	"flush":    "lost votes without a restart",
	"clients":  "that leak, overstay or split locks",
}
