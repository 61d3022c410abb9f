package tui

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/tui/page"
)

// keepsTables reports whether the columns and the order of a cluster are kept: not those of a
// demo, and not those of nodes that have no name together.
func (m *model) keepsTables(cluster string) bool {
	return m.opt.Store != nil && !m.opt.Passing && cluster != ""
}

// lay lists the locks of a cluster as they were left the last time. What is not known here is
// left out, and said; so is what hides or moves what needs a person.
func (m *model) lay(s *monitor.Snapshot) {
	m.table = Table{}
	name := s.Cluster.Name
	if m.keepsTables(name) {
		kept, own := m.prefs.Clusters[name]
		if !own {
			kept = m.prefs.Table
		}
		m.table = kept
	}
	var strange []string
	m.table.Columns = slices.DeleteFunc(slices.Clone(m.table.Columns), func(w string) bool {
		known := slices.Contains(page.LockWords(true), w)
		if !known {
			strange = append(strange, "column "+w)
		}
		return !known
	})
	order, ok := page.OrderOf(m.table.Sort, s.Nodes)
	if !ok {
		strange = append(strange, "sort "+m.table.Sort)
	}
	m.LockView.Choose(m.table.Columns, m.table.Wide)
	m.Locks.SetOrder(order)
	switch {
	case strange != nil:
		m.say(m.St.Warn, "of what you chose last time this is not known here, and left out: "+m.St.Whole(strings.Join(strange, ", ")))
	case m.LockView.HidesState():
		m.say(m.St.Warn, "the locks are listed without their STATE, as you left them: :columns default")
	case order != page.OrderNeeds:
		m.say(m.St.Info, "the locks are sorted by "+order.String()+", as you left them: :sort default")
	}
}

// keepTable keeps how the locks of this cluster are listed.
func (m *model) keepTable() tea.Cmd {
	name := m.Shown.Cluster.Name
	if !m.keepsTables(name) {
		return nil
	}
	if m.prefs.Clusters == nil {
		m.prefs.Clusters = map[string]Table{}
	}
	m.prefs.Clusters[name] = Table{slices.Clone(m.table.Columns), m.table.Wide, m.table.Sort}
	m.saver.choose(name)
	return m.save()
}

// unsorted is what takes an order back.
const unsorted = "default"

// sortWords are the orders that a word may become; behind the whole of one, the other way round.
func (m *model) sortWords(word string) []string {
	words := view.SortWords(view.LockColumns(m.Shown.Nodes))
	if slices.Contains(words, strings.ToLower(strings.TrimSuffix(word, ":"))) || strings.Contains(word, ":") {
		for _, w := range slices.Clone(words) {
			words = append(words, w+":desc")
		}
	}
	return append(words, unsorted)
}

// sortWord sorts by what was typed.
func (m *model) sortWord(word string) tea.Cmd {
	if word != "" && strings.HasPrefix(unsorted, word) {
		return m.sortBy(page.OrderNeeds)
	}
	order, err := page.ParseOrder(word, m.Shown.Nodes)
	if err != nil {
		m.say(m.St.Bad, "sort by: "+m.St.Our(m.St.Whole(err.Error())))
		return nil
	}
	return m.sortBy(order)
}
