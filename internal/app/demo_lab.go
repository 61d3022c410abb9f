package app

import (
	"context"
	"fmt"
	"slices"
	"time"

	"redlockctl/internal/lab"
	"redlockctl/internal/safetext"
	"redlockctl/monitor"
	"redlockctl/redlock"
	"redlockctl/tui/action"
)

// demoLab is what the screen of the demo can do to its masters besides crashing
// them.
type demoLab struct {
	*crasher
	wrong *lab.Wrong
}

func (l demoLab) Cannot(action string) string {
	if _, ok := l.cluster.(lab.Shifter); !ok && action == "skew" {
		return "its masters have no clock of their own"
	}
	return ""
}

func (c *crasher) find(name string) (int, error) {
	i := slices.IndexFunc(c.cluster.Nodes(), func(n *redlock.Node) bool { return n.Name() == name })
	if i < 0 {
		return 0, fmt.Errorf("there is no node %q", name)
	}
	return i, nil
}

func (c *crasher) tell(kind, name, format string, args ...any) {
	c.note(monitor.Event{At: time.Now(), Level: monitor.LevelNotice, Kind: kind, Node: name, Text: safetext.New(name + " " + fmt.Sprintf(format, args...))})
}

func (l demoLab) StopNode(name string) error { return l.pause(name, true) }

func (l demoLab) ContinueNode(name string) error { return l.pause(name, false) }

func (l demoLab) pause(name string, still bool) error {
	i, err := l.find(name)
	if err != nil {
		return err
	}
	if !still {
		l.tell("lab", name, "goes on")
		return l.cluster.Resume(i)
	}
	if err := l.cluster.Pause(i); err != nil {
		return err
	}
	l.tell("lab", name, "was stopped by the demo: it answers nothing")
	return nil
}

// flushTimeout bounds a FLUSHALL of a node that may hang.
const flushTimeout = 2 * time.Second

func (l demoLab) FlushNode(name string) error {
	i, err := l.find(name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	client := l.cluster.Nodes()[i].Client(1, flushTimeout)
	defer client.Close()
	if err := client.FlushAll(ctx).Err(); err != nil {
		return err
	}
	l.tell("lab", name, "was flushed by the demo: its locks are gone")
	return nil
}

func (l demoLab) SkewNode(name string, by time.Duration) error {
	i, err := l.find(name)
	if err != nil {
		return err
	}
	clocks, ok := l.cluster.(lab.Shifter)
	if !ok {
		return fmt.Errorf("%s has no clock of its own", name)
	}
	if err := clocks.Shift(i, by); err != nil {
		return err
	}
	l.tell("lab", name, "had its clock moved by %s by the demo", by)
	return nil
}

func (l demoLab) ClientKinds() (kinds []action.ClientKind) {
	for _, k := range lab.WrongKinds() {
		kinds = append(kinds, action.ClientKind{Name: k.Name, Does: k.Does, Running: l.wrong.Running(k.Name)})
	}
	return kinds
}

func (l demoLab) StartClients(kind string, n int) error { return l.wrong.Start(kind, n) }
