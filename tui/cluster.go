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
	case m.Busy > 0 || m.moving:
		m.say(m.St.Warn, "something is still running")
		return nil
	case len(m.Mine) > 0:
		m.say(m.St.Warn, view.Plural(len(m.Mine), "lock")+" acquired here: release them first, or let them end")
		return nil
	}
	return m.AskLeave("Change to "+m.St.Escape(name, 40)+" ?", "change the cluster", func() tea.Cmd {
		m.CloseDialog()
		return m.openCluster(name)
	})
}

// openCluster opens another cluster in place of this one.
func (m *model) openCluster(name string) tea.Cmd {
	m.moving = true
	m.say(m.St.Info, "opening "+m.St.Escape(name, 40)+m.St.Ellipsis)
	all, ctx := m.opt.Clusters, m.Ctx
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(ctx, clusterTime)
		defer cancel()
		c, err := all.Open(ctx, name)
		return clusterMsg{name, c, err}
	}
}
