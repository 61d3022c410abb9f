package tui

import (
	"context"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"redlockctl/internal/view"
)

// clusterTime bounds the change to another cluster.
const clusterTime = 20 * time.Second

// clusterMsg is another cluster that was opened.
type clusterMsg struct {
	name    string
	cluster Cluster
	err     error
}

func (m *model) severalClusters() bool {
	return m.opt.Clusters != nil && len(m.opt.Clusters.Names()) > 1
}

func (m *model) clusterNames() []string { return m.opt.Clusters.Names() }

// changeCluster opens another cluster. Locks that were acquired here are
// released first: nothing but this screen knows their tokens.
func (m *model) changeCluster(name string) tea.Cmd {
	names := m.opt.Clusters.Names()
	switch {
	case !slices.Contains(names, name):
		m.say(m.St.Bad, "a cluster is one of "+m.St.Whole(strings.Join(names, ", ")))
		return nil
	case m.busy > 0 || m.moving:
		m.say(m.St.Warn, "something is still running")
		return nil
	case len(m.mine) > 0:
		m.say(m.St.Warn, view.Plural(len(m.mine), "lock")+" acquired here: release them first, or let them end")
		return nil
	}
	return m.askLeave("Change to "+m.St.Escape(name, 40)+" ?", "change the cluster", func() tea.Cmd {
		m.closeDialog()
		return m.openCluster(name)
	})
}

// openCluster opens another cluster in place of this one.
func (m *model) openCluster(name string) tea.Cmd {
	m.moving = true
	m.say(m.St.Info, "opening "+m.St.Escape(name, 40)+m.St.Ellipsis)
	all, ctx := m.opt.Clusters, m.ctx
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(ctx, clusterTime)
		defer cancel()
		c, err := all.Open(ctx, name)
		return clusterMsg{name, c, err}
	}
}

// moved shows the other cluster.
func (m *model) moved(msg clusterMsg) tea.Cmd {
	m.moving = false
	if msg.err != nil {
		m.say(m.St.Bad, m.St.Escape(msg.name, 40)+" cannot be opened: "+m.St.Whole(msg.err.Error()))
		return nil
	}
	c := msg.cluster
	m.actions, m.opt.Delay = c.Actions, c.Delay
	m.feed.source, m.feed.guard = c.Source, c.Guard
	m.feed.cluster++
	m.trail, m.dialog, m.line = nil, nil, nil
	m.Reset(m.now())
	m.arrive(m.Overview)
	m.seeGuard(m.feed.status())
	m.Set.Receive(c.Source.Snapshot(), nil, false, nil)
	m.say(m.St.Good, "this is "+m.St.Escape(msg.name, 40))
	return tea.Batch(m.feed.next(m.Latest, m.Events.Seq, 0), m.feed.tick())
}
