package page

import "redlockctl/internal/view"

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
	framed := func(events int) []string {
		pn, lines := p.pane(l, events)
		pn.Focused = true
		return p.frame(pn, p.inSight(p.St, lines, n), h)
	}
	if l != nil && p.wide() {
		return p.beside(p.listWidth(), h,
			func(int) []string { return framed(0) },
			func(h int) []string {
				return p.eventsPane("Events", p.lockEvents(p.In(), n), h)
			})
	}
	if l != nil {
		return framed(n)
	}
	p.Watch(p.key)
	gone := " gone: no node has a copy of it"
	switch silent := len(p.Shown.Nodes) - view.Answering(p.Shown); {
	case silent >= p.Shown.Cluster.Quorum:
		gone = " not seen: no node that answers has a copy of it"
	case silent > 0:
		gone = " gone: no node that answers has a copy of it"
	}
	title := p.St.Escape(p.key, max(8, p.W/2)) + " " + p.St.Thin.Rule + " " + p.St.Off + gone
	lines := p.facts(p.Removal.Facts(&p.St.Glyphs, p.key), p.In())
	lines = append(append(lines, p.Holders.lines(p.Screen, p.key, p.Watched.Events, p.In())...), p.lockEvents(p.In(), n)...)
	return p.frame(Pane{Title: title, Focused: true}, p.inSight(p.St, lines, n), h)
}
