package tui

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"redlockctl/tui/command"
	"redlockctl/tui/keys"
	"redlockctl/tui/page"
)

// cliPages maps pages to commands of the CLI with another name.
var cliPages = map[string]page.Kind{"status": page.Overview, "watch": page.Events, "doctor": page.Findings, "guard status": page.Guard}

// commandsNow returns all commands of the prompt: pages, actions and switches of the key
// map, and commands with an argument. They have the same names as in the CLI.
func (m *model) commandsNow() []command.Command {
	goTo := func(v page.Kind) func(string) tea.Cmd { return func(string) tea.Cmd { return m.goTo(v) } }
	out := []command.Command{
		{Name: "locks", Takes: "[NAME]", Help: "the locks, or the page of one", Next: m.lockNames, Do: m.openLock},
		{Name: "nodes", Takes: "[NODE]", Help: "the nodes, or the page of one", Next: m.nodeNames, Do: m.openNode},
		{Name: "replay", Takes: "MOMENT", Help: "what was seen then: 03:12, yesterday 03:12, 2h ago", Do: m.replayAt},
		{Name: "filter", Takes: command.Terms, Help: "list only these locks, or events or actions on their pages; alone: all", Next: m.filterPage().FilterOffers, Do: m.filterBy},
		{Name: "sort", Takes: "ORDER", Help: "this table by a column, or COLUMN:desc; default: as it was", Next: m.sortWords, Do: m.sortWord},
		{Name: "columns", Takes: command.Names, Help: "those of this table: a b c, or +a -b, or default", Next: m.columnWords, Do: m.columnsBy},
		{Name: "mark", Takes: "all", Help: "mark the lock under the cursor, or all that are listed; none unmarks", Next: func(string) []string { return []string{"all", "none"} }, Do: m.markBy},
		{Name: "theme", Takes: "NAME", Help: "the colours of the screen", Next: themeWords, Do: m.themeBy},
		{Name: "ascii", Help: "ASCII characters only, or all of them again", Do: m.toggleASCII},
		{Name: "mouse", Help: "clicks and the wheel, or the terminal's own selection again", Do: m.toggleMouse},
	}
	for v := range page.NumTabs {
		if m.whyNoView(v) == "" && v != page.Locks && v != page.Nodes {
			out = append(out, command.Command{Name: v.String(), Help: "go to this page", Do: goTo(v)})
		}
	}
	for name, v := range cliPages {
		out = append(out, command.Command{Name: name, Help: "the page " + v.String(), Do: goTo(v)})
	}
	if m.here.Audit != nil {
		out = append(out, command.Command{Name: "audit show", Help: "who did what, with which outcome, and whether the log is intact",
			Do: func(string) tea.Cmd { return m.open(page.Audit, "") }})
	}
	if m.severalClusters() {
		out = append(out,
			command.Command{Name: "clusters status", Help: "all clusters: verdict, locks, the worst finding", Do: m.openClusters},
			command.Command{Name: "cluster", Takes: "NAME", Help: "change to another cluster", Next: m.clusterNames, Do: m.changeCluster})
	}
	for i := range m.keys {
		b := &m.keys[i]
		if b.Name == "" || !m.has(b.Group) {
			continue
		}
		c := command.Command{Name: b.Name, Help: "as the key " + b.Help().Key, Do: func(what string) tea.Cmd { return m.doBinding(b, what) }}
		switch {
		case b.Takes&page.ModeOnLock != 0:
			c.Takes, c.Next = "[NAME]", m.lockNames
		case b.Takes&page.ModeOnNode != 0 && b.Takes != page.ModeLab:
			c.Takes, c.Next = "[NODE]", m.nodeNames
		}
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b command.Command) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// doBinding runs the binding of a key, on the named lock or node if there is one.
func (m *model) doBinding(b *keys.Binding, what string) tea.Cmd {
	if what != "" {
		var why string
		if b.Takes&page.ModeOnLock != 0 {
			why = m.pickLock(what)
		} else {
			why = m.pickNode(what)
		}
		if why != "" {
			if b.Typed {
				return m.Refuse(b.Name, why)
			}
			m.say(m.St.Bad, b.Name+": "+why)
			return nil
		}
	}
	if b.In&m.mode() == 0 { // the key works on another page only
		if b.In&page.ModeLab != 0 {
			m.goTo(page.Lab)
		} else if b.In&page.ModeOnNode != 0 {
			m.goTo(page.Nodes)
		}
	}
	m.typed = true
	defer func() { m.typed = false }()
	return m.try(b)
}
