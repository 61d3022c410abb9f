package tui

import (
	"context"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/server/safetext"
	"redlockctl/tui/page"
)

// open opens a place; esc returns.
func (m *model) open(kind page.Kind, name string) tea.Cmd {
	m.Open(page.Place{Kind: kind, Name: name})
	return nil
}

// goTo opens a page with a number.
func (m *model) goTo(v page.Kind) tea.Cmd {
	if why := m.whyNoView(v); why != "" {
		m.say(m.St.Warn, v.String()+": "+why)
		return nil
	}
	return m.open(v, "")
}

// turn opens the page d tabs further. From the page of one lock or node, it counts from
// the list.
func (m *model) turn(d int) tea.Cmd {
	v := m.Viewed()
	if v >= page.NumTabs {
		if v = v.Tab(); d < 0 {
			return m.goTo(v)
		}
	}
	for {
		v = (v + page.Kind(d) + page.NumTabs) % page.NumTabs
		if m.whyNoView(v) == "" {
			return m.goTo(v)
		}
	}
}

func (m *model) tab() tea.Cmd {
	if m.Viewed() != page.Overview {
		return m.turn(1)
	}
	m.Overview.TurnFocus()
	return nil
}

// closeHelp leaves the help, with the reasons or without.
func (m *model) closeHelp() tea.Cmd {
	for m.Viewed() == page.Help {
		m.Back(m.Now())
	}
	return nil
}

// escape handles esc on a page: first it dismisses the list of lost locks and an answer of
// who, last the hints.
func (m *model) escape() tea.Cmd {
	switch {
	case len(m.Losses) > 0:
		m.Losses = nil
	case m.CloseWho():
	case m.Back(m.Now()):
	case m.hinting():
		m.hints = false
	}
	return nil
}

func (m *model) toggleHelp() tea.Cmd {
	if m.Viewed() == page.Help {
		return m.closeHelp()
	}
	return m.goTo(page.Help)
}

// leave closes the help, or quits.
func (m *model) leave() tea.Cmd {
	if m.Viewed() == page.Help && !m.typed {
		return m.closeHelp()
	}
	return m.AskQuit()
}

func (m *model) whyNoLeave() string {
	if m.Viewed() == page.Help && !m.typed {
		return ""
	}
	return m.WhyNoQuit()
}

// whyNoSuspend says why this process may not be suspended: its locks would expire, or its
// guard would stop.
func (m *model) whyNoSuspend() string {
	if n := len(m.Mine); n > 0 {
		return view.Plural(n, "lock") + " acquired here: nothing would extend them"
	}
	return ""
}

// enter shows details of what is under the cursor: below, if the page has room for them,
// otherwise on a separate page.
func (m *model) enter() tea.Cmd {
	shown, ok := m.ToggleDetail()
	if !ok {
		return m.openPicked()
	}
	if l := m.selected().Lock; l != nil && shown {
		m.Locks.Chosen = true // keep the cursor on this lock
		m.Lock.Watch(l.Key.Raw())
	}
	return nil
}

// whyNoEnter says why there is neither a detail to show nor a page to open.
func (m *model) whyNoEnter() string {
	if _, ok := m.ShowsDetail(); ok {
		return ""
	}
	return m.whyNoOpenPicked()
}

func (m *model) whyNoOpenPicked() string {
	mode := m.mode()
	if mode&(page.ModeLock|page.ModeNode|page.ModeHelp) != 0 {
		return "already open"
	}
	switch key, node := m.selected().About(); {
	case key != "" || node != "" || m.selected().Cluster != "":
		return ""
	case mode == page.ModeLocks && m.selected().Lock == nil:
		return "no lock under the cursor"
	case mode&page.ModeOnNode != 0:
		return "no node under the cursor"
	case mode&(page.ModeEvents|page.ModeFindings|page.ModeAudit) != 0:
		return "it is not about a lock or a node"
	}
	return ""
}

// openPicked opens the page of what is under the cursor.
func (m *model) openPicked() tea.Cmd {
	if m.whyNoOpenPicked() != "" {
		return nil
	}
	s := m.selected()
	switch {
	case s.Cluster == m.Shown.Cluster.Name && s.Cluster != "":
		return m.goTo(page.Overview)
	case s.Cluster != "":
		return m.changeCluster(s.Cluster)
	}
	key, node := s.About()
	if key != "" || s.Lock != nil {
		m.Locks.Chosen = m.Locks.Chosen || s.Lock != nil // esc returns to it
		return m.open(page.Lock, key)
	}
	return m.open(page.Node, node)
}

// openLock runs :locks, with or without a name.
func (m *model) openLock(name string) tea.Cmd {
	if name == "" {
		return m.goTo(page.Locks)
	}
	switch {
	case m.Shown.Locks.Get(name) != nil:
		return m.open(page.Lock, name)
	case m.tellsRemovals():
		return m.removalOf(name, true)
	}
	m.sayNoLock(name)
	return nil
}

func (m *model) sayNoLock(name string) { m.say(m.St.Bad, "there is no lock "+m.St.Escape(name, 40)) }

// openNode runs :nodes, with or without a name.
func (m *model) openNode(name string) tea.Cmd {
	if name == "" {
		return m.goTo(page.Nodes)
	}
	if n := m.nodeNamed(name); n != nil {
		return m.open(page.Node, n.Name)
	}
	m.say(m.St.Bad, "there is no node "+m.St.Escape(name, 40))
	return nil
}

// pickLock puts the cursor on a lock.
func (m *model) pickLock(name string) string {
	if m.Page.Place() == (page.Place{Kind: page.Lock, Name: name}) {
		return ""
	}
	if m.Viewed() != page.Overview && m.Viewed() != page.Locks {
		m.goTo(page.Locks)
	}
	if m.Viewed() == page.Overview {
		m.Overview.OnNodes, m.Overview.OnEvents = false, false
	}
	switch {
	case m.Locks.Jump(name):
		return ""
	case m.Shown.Locks.Get(name) != nil:
		return "the filter hides it: esc clears the filter"
	}
	return "there is no lock " + m.St.Escape(name, 40)
}

// pickNode puts the cursor on a node.
func (m *model) pickNode(name string) string {
	n := m.nodeNamed(name)
	if n == nil {
		return "there is no node " + m.St.Escape(name, 40)
	}
	if m.mode()&page.ModeOnNode == 0 || m.mode() == page.ModeNode {
		m.goTo(page.Nodes)
	}
	m.Nodes.Pick(n.Name)
	return ""
}

// nodeNamed returns the node with this name, ignoring case.
func (m *model) nodeNamed(name string) *monitor.Node {
	i := slices.IndexFunc(m.Shown.Nodes, func(n monitor.Node) bool { return strings.EqualFold(n.Name, name) })
	if i < 0 {
		return nil
	}
	return &m.Shown.Nodes[i]
}

// mostNames bounds the names that are offered.
const mostNames = 200

// lockNames returns names of locks with a prefix.
func (m *model) lockNames(word string) (names []string) {
	for l := range m.Shown.Locks.From(word) {
		key := l.Key.Raw()
		if !strings.HasPrefix(key, word) || len(names) >= mostNames {
			break
		}
		if safetext.Escape(key) == key { // others cannot be typed
			names = append(names, key)
		}
	}
	return names
}

func (m *model) nodeNames(string) (names []string) {
	for i := range m.Shown.Nodes {
		names = append(names, m.Shown.Nodes[i].Name)
	}
	return names
}

func (m *model) toggleFollow() tea.Cmd {
	m.Events.Follow(!m.Events.Follows())
	if m.Events.Follows() {
		m.say(m.St.Info, "following the newest event")
	}
	return nil
}

func (m *model) whyNoFollow() string {
	if m.Viewed() != page.Events {
		return "only the page of events follows: 4"
	}
	return m.Events.WhyNoFollow()
}

func (m *model) openClusters(string) tea.Cmd {
	m.Set.Clusters.Begin(m.Shown.Cluster.Name)
	return m.open(page.Clusters, "")
}

func (m *model) severalClusters() bool { return m.clusters != nil && len(m.clusters.Names()) > 1 }

func (m *model) clusterNames(string) []string { return m.clusters.Names() }

// clusterTime bounds switching to another cluster.
const clusterTime = 20 * time.Second

// clusterMsg is the result of opening another cluster.
type clusterMsg struct {
	name    string
	cluster Cluster
	err     error
}

// changeCluster switches to another cluster. It refuses while locks that were acquired here
// are held: nothing but this screen knows their tokens.
func (m *model) changeCluster(name string) tea.Cmd {
	names := m.clusters.Names()
	switch {
	case !slices.Contains(names, name):
		m.say(m.St.Bad, "a cluster is one of "+m.St.Whole(strings.Join(names, ", ")))
		return nil
	case m.Busy > 0 || m.Moving:
		m.say(m.St.Warn, "something is still running")
		return nil
	case len(m.Mine) > 0:
		m.say(m.St.Warn, view.Plural(len(m.Mine), "lock")+" acquired here: release them first, or let them end")
		return nil
	}
	return m.AskLeave("Change to "+m.St.Escape(name, 40)+"?", "change the cluster", func() tea.Cmd {
		m.CloseDialog()
		return m.openCluster(name)
	})
}

// openCluster replaces this cluster by another one.
func (m *model) openCluster(name string) tea.Cmd {
	m.Moving = true
	m.say(m.St.Info, "opening "+m.St.Escape(name, 40)+m.St.Ellipsis)
	all, ctx := m.clusters, m.Ctx
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(ctx, clusterTime)
		defer cancel()
		c, err := all.Open(ctx, name)
		return clusterMsg{name, c, err}
	}
}
