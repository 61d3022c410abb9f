package page

// lockPage is one lock.
type lockPage struct {
	*lockFacts
	key string
	reading
}

func (p *lockPage) Place() Place { return Place{Lock, p.key} }

func (p *lockPage) Mode() Mode { return ModeLock }

func (p *lockPage) Selected() Selection { return Selection{Lock: p.Shown.Locks.Get(p.key)} }

func (p *lockPage) Lines(h int) []string {
	l, n := p.Shown.Locks.Get(p.key), h-p.chrome()
	if l != nil && p.wide() {
		return p.beside(p.W*3/5, h,
			func(h int) []string {
				title, lines := p.pane(l, 0)
				return p.frame(Pane{Title: title, Right: p.ends(l), Focused: true}, p.inSight(p.St, lines, n), h)
			},
			func(h int) []string {
				return p.eventsPane("Events", p.lockEvents(p.In(), n), h)
			})
	}
	if l != nil {
		title, lines := p.pane(l, n)
		return p.frame(Pane{Title: title, Right: p.ends(l), Focused: true}, p.inSight(p.St, lines, n), h)
	}
	p.Watch(p.key)
	title := p.St.Escape(p.key, max(8, p.W/2)) + " " + p.St.Thin.Rule + " " + p.St.Off + " gone: no node has a copy of it"
	return p.frame(Pane{Title: title, Focused: true}, p.inSight(p.St, append(p.Holders.lines(p.Screen, p.key, p.In()), p.lockEvents(p.In(), n)...), n), h)
}
