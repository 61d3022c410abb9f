package tui

import (
	"context"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"redlockctl/internal/view"
	"redlockctl/tui/page"
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

func (m *model) clusterNames(string) []string { return m.opt.Clusters.Names() }

// fleet looks at all clusters while their page is shown.
type fleet struct {
	stop context.CancelFunc // nil: it does not
	turn int                // grows with each look: what an old one still brings is not shown
}

// fleetPace is the time between two pictures of all clusters.
const fleetPace = time.Second / 2

// clustersMsg is what is known of all clusters.
type clustersMsg struct {
	turn int
	rows []view.ClusterRow
	next tea.Cmd
}

func (m *model) openClusters(string) tea.Cmd {
	return m.open(page.Place{Kind: page.Clusters})
}

// lookAtClusters begins to look at all clusters where their page is shown, and ends it
// elsewhere.
func (m *model) lookAtClusters() tea.Cmd {
	if m.fleet.turn++; m.fleet.stop != nil {
		m.fleet.stop()
		m.fleet.stop = nil
	}
	if m.viewed() != page.Clusters {
		return nil
	}
	ctx, stop := context.WithCancel(m.Ctx)
	m.fleet.stop = stop
	if m.Set.Clusters.Name == "" {
		m.Set.Clusters.Name = m.Shown.Cluster.Name
	}
	all, turn := m.opt.Clusters, m.fleet.turn
	return func() tea.Msg {
		rows := all.Watch(ctx)
		var next tea.Cmd
		next = func() tea.Msg {
			if !(feed{ctx: ctx}).sleep(fleetPace) {
				return nil
			}
			return clustersMsg{turn, rows(), next}
		}
		return clustersMsg{turn, rows(), next}
	}
}

// takeClusters takes in what is known of all clusters, and waits for more.
func (m *model) takeClusters(msg clustersMsg) tea.Cmd {
	if msg.turn != m.fleet.turn {
		return nil
	}
	if !m.Frozen.On() || len(m.Set.Clusters.All) == 0 {
		m.Set.Clusters.Take(msg.rows)
	}
	return msg.next
}

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
