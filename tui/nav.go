package tui

import (
	"slices"

	tea "charm.land/bubbletea/v2"

	"redlockctl/internal/view"
	"redlockctl/tui/action"
	"redlockctl/tui/page"
)

// mostTrail bounds how far back one can go.
const mostTrail = 20

// open goes to a place; esc comes back from it.
func (m *model) open(to page.Place) tea.Cmd {
	if m.page.Place() == to {
		return nil
	}
	// Where one was before is not gone to a second time: esc would walk in circles.
	for i, p := range m.trail {
		if p.Place() == to {
			m.trail = m.trail[:i]
			return m.arrive(p)
		}
	}
	m.trail = append(m.trail, m.page)
	if len(m.trail) > mostTrail {
		m.trail = m.trail[1:]
	}
	return m.arrive(m.Set.At(to))
}

func (m *model) arrive(p page.Page) tea.Cmd {
	m.page = p
	m.filtering = false
	if d, ok := p.(page.Detailed); ok {
		*d.Detail() = false
	}
	if m.viewed() == page.Findings {
		m.Findings.GoTo(0) // the gravest
	}
	return tea.Batch(m.lookAtClusters(), m.lookAtAudit())
}

// goTo is open for one of the pages that have a number.
func (m *model) goTo(v page.Kind) tea.Cmd {
	if why := m.whyNoView(v); why != "" {
		m.say(m.St.Warn, v.String()+": "+why)
		return nil
	}
	return m.open(page.Place{Kind: v})
}

func (m *model) whyNoView(v page.Kind) string {
	if v == page.Lab && m.Lab == nil {
		return action.NoLab
	}
	return ""
}

// turn goes to the page d tabs further; from the page of one lock or node back to
// its list, or on from there.
func (m *model) turn(d int) tea.Cmd {
	v := m.viewed()
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

// back closes what is open: a detail, the page, a filter.
func (m *model) back() tea.Cmd {
	if d, ok := m.page.(page.Detailed); ok && *d.Detail() {
		*d.Detail() = false
		return nil
	}
	home := m.viewed() == page.Overview
	switch f, ok := m.page.(page.Filtered); {
	case ok && f.FilterSource() != "":
		return m.clearFilter()
	case home:
		return nil
	case len(m.trail) == 0:
		return m.arrive(m.Overview)
	}
	last := m.trail[len(m.trail)-1]
	m.trail = m.trail[:len(m.trail)-1]
	return m.arrive(last)
}

func (m *model) tab() tea.Cmd {
	if m.viewed() != page.Overview {
		return m.turn(1)
	}
	m.Overview.TurnFocus()
	return nil
}

// enter opens what is under the cursor: below it where there is a place for it,
// else on a page of its own.
func (m *model) enter() tea.Cmd {
	d, ok := m.page.(page.Detailed)
	if !ok {
		return m.openPicked()
	}
	*d.Detail() = !*d.Detail()
	if l := m.selected().Lock; l != nil && *d.Detail() {
		m.Locks.Chosen = true // what is looked at stays under the cursor
		m.Lock.Watch(l.Key.Raw())
	}
	return nil
}

func (m *model) whyNoOpenPicked() string {
	mode := m.mode()
	if mode&(page.ModeLock|page.ModeNode|page.ModeHelp) != 0 {
		return "it is open"
	}
	switch key, node := m.selected().About(); {
	case key != "" || node != "" || m.selected().Cluster != "":
		return ""
	case mode == page.ModeLocks && m.selected().Lock == nil:
		return "no lock under the cursor"
	case mode&page.ModeOnNode != 0:
		return "no node under the cursor"
	case mode&(page.ModeEvents|page.ModeFindings|page.ModeAudit) != 0:
		return "it is about no lock and no node"
	}
	return ""
}

// openPicked opens what is under the cursor on a page of its own.
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
		return m.open(page.Place{Kind: page.Lock, Name: key})
	}
	return m.open(page.Place{Kind: page.Node, Name: node})
}

// escape is esc on a page: first of all what was lost has been seen.
func (m *model) escape() tea.Cmd {
	switch {
	case len(m.Losses) > 0:
		m.Losses = nil
		return nil
	case m.hinting():
		m.hints = false
		return nil
	}
	return m.back()
}

func (m *model) whyNoFilter() string {
	if _, ok := m.page.(page.Filtered); !ok {
		return "there is nothing to filter on this page: 2 are the locks, 4 the events, :audit show the log"
	}
	return ""
}

func (m *model) openFilter() tea.Cmd {
	m.filtering = true
	m.completes.typed()
	f := m.page.(page.Filtered)
	f.FilterLine().End()
	return learn(f)
}

// valuesMsg are the values that a filter of locks may ask for.
type valuesMsg struct{ values page.Values }

// learn looks for the values that a filter may ask for; of many rows aside.
func learn(f page.Filtered) tea.Cmd {
	look := f.FilterLearn()
	if look == nil {
		return nil
	}
	return func() tea.Msg { return valuesMsg{look()} }
}

// know takes in values that were looked for aside.
func (m *model) know(msg valuesMsg) {
	m.Locks.Know(msg.values)
	if m.filtering && m.completes.offer < 0 {
		m.completes.typed()
	}
	if m.line != nil && m.line.offer < 0 {
		m.line.typed()
	}
}

// completeFilter puts the next of what the filter may become into its line.
func completeFilter(d int) func(*model) tea.Cmd {
	return func(m *model) tea.Cmd {
		f := m.page.(page.Filtered)
		m.completes.complete(f.FilterLine(), f.FilterOffers, d)
		f.Filter(m.shownNow())
		return nil
	}
}

// completeLine puts the next of what the command may become into its line.
func completeLine(d int) func(*model) tea.Cmd {
	return func(m *model) tea.Cmd {
		m.line.complete(&m.line.Line, m.offers, d)
		return nil
	}
}

func (m *model) keepFilter() tea.Cmd { m.filtering = false; return nil }

func (m *model) clearFilter() tea.Cmd {
	m.filtering = false
	f := m.page.(page.Filtered)
	f.FilterLine().Set("")
	f.Filter(m.Now())
	return nil
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

func (m *model) toggleHelp() tea.Cmd {
	if m.viewed() == page.Help {
		return m.back()
	}
	return m.goTo(page.Help)
}

// leave leaves what is shown: the help, or the program.
func (m *model) leave() tea.Cmd {
	if m.viewed() == page.Help && !m.typed {
		return m.back()
	}
	return m.AskQuit()
}

func (m *model) whyNoLeave() string {
	if m.viewed() == page.Help && !m.typed {
		return ""
	}
	return m.WhyNoQuit()
}

func (m *model) turnOrder() tea.Cmd { return m.sortBy(m.Locks.Order.Reversed()) }

// whyNoSuspend is why this process may not be stopped: what it holds would end.
func (m *model) whyNoSuspend() string {
	if n := len(m.Mine); n > 0 {
		return view.Plural(n, "lock") + " acquired here: nothing would extend them"
	}
	return ""
}

func (m *model) sortBy(o page.Order) tea.Cmd {
	m.Locks.SetOrder(o)
	m.say(m.St.Info, "sorted: "+o.String())
	m.table.Sort = string(o)
	if o == page.OrderNeeds {
		m.table.Sort = ""
	}
	return m.keepTable()
}

func (m *model) toggleFreeze() tea.Cmd {
	if m.replay != nil {
		return m.togglePlay()
	}
	if m.Frozen.On() {
		m.Thaw()
	} else {
		m.Freeze(m.Now())
	}
	return nil
}

func (m *model) toggleFollow() tea.Cmd {
	m.Events.Follow = !m.Events.Follow
	if m.Events.Follow {
		m.say(m.St.Info, "following the newest event")
	}
	return nil
}

func (m *model) whyNoFollow() string {
	if m.viewed() != page.Events {
		return "only the page of events follows: 4"
	}
	return ""
}

func (m *model) toggleWide() tea.Cmd {
	m.table.Wide = !m.table.Wide
	m.LockView.Choose(m.table.Columns, m.table.Wide)
	return m.keepTable()
}

// save keeps the preferences as they are now.
func (m *model) save() tea.Cmd { return m.saver.save(m.prefs, &m.Running) }
