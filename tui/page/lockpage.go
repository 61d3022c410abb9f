package page

// lockPage is one lock.
type lockPage struct {
	*lockFacts
	key string
	reading
}

func (m *lockPage) Place() Place { return Place{Lock, m.key} }

func (m *lockPage) Mode() Mode { return ModeLock }

func (m *lockPage) Selected() Selection { return Selection{Lock: m.Shown.Locks.Get(m.key)} }

func (m *lockPage) Lines(h int) []string {
	l, n := m.Shown.Locks.Get(m.key), h-m.chrome()
	if l != nil && m.wide() {
		return m.beside(m.W*3/5, h,
			func(h int) []string {
				title, lines := m.pane(l, 0)
				return m.frame(Pane{Title: title, Right: m.ends(l), Focused: true}, m.inSight(m.St, lines, n), h)
			},
			func(h int) []string {
				return m.eventsPane(m.lockEvents(m.In(), n), h)
			})
	}
	if l != nil {
		title, lines := m.pane(l, n)
		return m.frame(Pane{Title: title, Right: m.ends(l), Focused: true}, m.inSight(m.St, lines, n), h)
	}
	m.Watch(m.key)
	title := m.St.Escape(m.key, max(8, m.W/2)) + " " + m.St.Thin.Rule + " " + m.St.Off + " gone: no node has a copy of it"
	return m.frame(Pane{Title: title, Focused: true}, m.inSight(m.St, append(m.Holders.lines(m.Screen, m.key, m.In()), m.lockEvents(m.In(), n)...), n), h)
}
