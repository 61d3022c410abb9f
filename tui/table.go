package tui

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/tui/page"
	"redlockctl/tui/prefs"
)

// lay lists the locks of a cluster as they were left the last time. What is not known here is
// left out, and said; so is what hides or moves what needs a person.
func (m *model) lay(s *monitor.Snapshot) {
	m.table = prefs.Table{}
	name := s.Cluster.Name
	if m.lasting && name != "" {
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

// keepTable keeps how the locks of this cluster are listed; nodes that have no name together are
// none.
func (m *model) keepTable() tea.Cmd {
	name := m.Shown.Cluster.Name
	switch {
	case !m.lasting || name == "":
		return nil
	case m.replay != nil && m.replay.Only:
		return nil // who looks into a record leaves the console of the cluster as it is
	}
	chosen := prefs.Table{Columns: slices.Clone(m.table.Columns), Wide: m.table.Wide, Sort: m.table.Sort}
	return m.prefs.Keep(func(p *prefs.Preferences) { p.List(name, chosen) })
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

func (m *model) whyNoSort() string {
	if m.mode()&page.ModeLocks == 0 {
		return "it is for the table of locks"
	}
	return ""
}

func (m *model) nextOrder() tea.Cmd {
	all := page.Orders()
	return m.sortBy(all[(slices.Index(all, m.Locks.Order.Column())+1)%len(all)])
}

func (m *model) turnOrder() tea.Cmd { return m.sortBy(m.Locks.Order.Reversed()) }

func (m *model) sortBy(o page.Order) tea.Cmd {
	m.Locks.SetOrder(o)
	m.say(m.St.Info, "sorted: "+o.String())
	m.table.Sort = string(o)
	if o == page.OrderNeeds {
		m.table.Sort = ""
	}
	return m.keepTable()
}

func (m *model) toggleWide() tea.Cmd {
	m.table.Wide = !m.table.Wide
	m.LockView.Choose(m.table.Columns, m.table.Wide)
	return m.keepTable()
}

func (m *model) columnWords(string) []string {
	words := append([]string{"default"}, page.LockWords(true)...)
	for _, w := range page.LockWords(true) {
		words = append(words, "+"+w, "-"+w)
	}
	return words
}

// columnsBy chooses columns: these, or those until now with some more or less.
func (m *model) columnsBy(text string) tea.Cmd {
	said := strings.Fields(strings.ReplaceAll(text, ",", " "))
	set := slices.Clone(m.LockView.Chosen)
	if m.table.Wide {
		m.LockView.Choose(m.table.Columns, false)
		set = slices.Clone(m.LockView.Chosen)
	}
	if len(said) == 0 {
		m.say(m.St.Info, "columns: "+strings.Join(m.LockView.Chosen, " "))
		return nil
	}
	whole := false
	for _, w := range said {
		name := strings.TrimLeft(w, "+-")
		if w == "default" {
			set, whole = page.LockWords(false), false
			continue
		}
		name, err := view.WordOf(name, page.LockWords(true))
		switch {
		case err != nil:
			m.say(m.St.Bad, m.St.Our(err.Error()))
			return nil
		case w[0] == '-':
			set = slices.DeleteFunc(set, func(s string) bool { return s == name })
			continue
		case w[0] != '+' && !whole:
			set, whole = nil, true
		}
		set = append(set, name)
	}
	words := slices.DeleteFunc(page.LockWords(true), func(w string) bool { return !slices.Contains(set, w) })
	m.table.Columns, m.table.Wide = words, false
	if slices.Equal(words, page.LockWords(false)) {
		m.table.Columns = nil
	}
	m.LockView.Choose(words, false)
	if m.LockView.HidesState() {
		m.say(m.St.Warn, "without STATE nobody sees what needs a person: :columns default")
	}
	return m.keepTable()
}
