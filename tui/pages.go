package tui

import (
	"time"

	"redlockctl/monitor"
	"redlockctl/restartguard"
)

// pages are all pages, the tables that they share, so that the cursor is on the
// same lock and the same node whichever page lists them, and what goes on while
// the screen is frozen.
type pages struct {
	*screen
	latest *monitor.Snapshot // also while the screen is frozen
	guards fenceView         // the same of the guards
	frozen freeze

	nodes    nodeTable
	locks    lockTable
	lockView *lockView
	marks    marks
	events   eventTable
	findings findingTable
	past     nodePasts
	began    time.Time // of what is in it

	tabs     [numTabs]page
	overview *overview
	lock     *lockFacts
	node     *nodeFacts
}

// newPages makes the pages that draw a screen; lab and help are the texts of two.
func newPages(s *screen, now time.Time, lab, help func(w int) []string) *pages {
	p := &pages{screen: s, began: now, past: nodePasts{}, marks: marks{}, locks: newLockTable(), events: newEventTable(), lockView: newLockView(s.st)}
	ev, nv := eventView{s.st}, nodeView{s.st}
	table := func() *nodePanel { return &nodePanel{screen: s, nodes: &p.nodes, nodeView: nv} }
	locks := func() *lockPanel {
		return &lockPanel{screen: s, locks: &p.locks, lockView: p.lockView, marks: p.marks}
	}
	p.lock = &lockFacts{screen: s, lockView: p.lockView, eventView: ev, events: &p.events}
	p.node = &nodeFacts{screen: s, nodeView: nv, eventView: ev, events: &p.events, past: p.past}
	p.overview = &overview{screen: s, locks: locks(), nodes: table(), lock: p.lock, node: p.node}
	p.tabs = [numTabs]page{
		viewOverview: p.overview,
		viewLocks:    &locksPage{locks()},
		viewNodes:    &nodesPage{table(), p.node},
		viewEvents:   &eventsPage{screen: s, events: &p.events, eventView: ev},
		viewFindings: &findingsPage{screen: s, findings: &p.findings},
		viewGuard:    &guardPage{nodePanel: table(), events: &p.events, eventView: ev, past: p.past, began: &p.began},
		viewLab:      &labPage{table(), lab},
		viewHelp:     &textPage{screen: s, text: help},
	}
	return p
}

// at is the page of a place, ready to be looked at.
func (p *pages) at(to place) page {
	switch to.kind {
	case viewLock:
		p.lock.watch(to.name)
		return &lockPage{lockFacts: p.lock, key: to.name}
	case viewNode:
		return &nodePage{nodeFacts: p.node, name: to.name}
	}
	return p.tabs[to.kind]
}

// reset empties the pages for another cluster.
func (p *pages) reset(now time.Time) {
	order := p.locks.order
	p.locks = newLockTable()
	p.locks.order = order
	p.nodes, p.findings, p.events = nodeTable{}, findingTable{}, newEventTable()
	clear(p.past)
	clear(p.marks)
	p.lock.watched = lockLog{}
	p.began, p.frozen, p.guards = now, freeze{}, fenceView{}
}

// takeGuards takes in what the guard in this process says; delay is the configured D.
func (p *pages) takeGuards(g guardState, delay time.Duration) {
	p.guards.configured = delay
	p.guards.status = make(map[string]restartguard.NodeStatus, len(g.status))
	for _, s := range g.status {
		p.guards.status[s.Node] = s
	}
	p.guards.list, p.guards.own, p.guards.guarded = g.status, g.id, g.id != ""
	p.seeGuards()
}

// seeGuards takes in the guards elsewhere.
func (p *pages) seeGuards() {
	if p.latest != nil {
		p.guards.see(p.latest)
	}
	if !p.frozen.on() {
		p.drawn = p.guards
	}
}

// receive takes in a snapshot. changed are the keys of the locks in which it differs
// from the one before, if they are known; events those that came since, nil: those
// that it has.
func (p *pages) receive(s *monitor.Snapshot, changed []string, known bool, events []monitor.Event) {
	p.latest = s
	p.seeGuards()
	p.past.see(s)
	if events == nil {
		events = s.Events
	}
	p.events.add(events)
	p.lock.watched.add(events)
	if p.frozen.on() {
		p.frozen.miss(changed, known)
		return
	}
	p.show(changed, known)
}

func (p *pages) show(changed []string, known bool) {
	p.shown = p.latest
	p.nodes.set(p.shown.Nodes, false)
	p.locks.show(p.shown.Locks, p.shown.Nodes, changed, known)
	p.findings.set(p.shown.Findings)
}

// tick is a second that has passed.
func (p *pages) tick(now time.Time) {
	p.past.sample(p.latest)
	p.marks.keep(p.latest.Locks)
	if !p.frozen.on() {
		p.nodes.set(p.shown.Nodes, true)
		p.locks.tick(p.locks.filter.At(now))
	}
}

// freeze is a screen that stands still while the rest goes on.
type freeze struct {
	since time.Time // zero: it does not
	// missed are the locks that changed since then; lost: so many that they were
	// not kept.
	missed []string
	lost   bool
}

func (f *freeze) on() bool { return !f.since.IsZero() }

// miss takes in what the screen does not show.
func (f *freeze) miss(changed []string, known bool) {
	if f.missed = append(f.missed, changed...); !known || len(f.missed) > mostChanges {
		f.missed, f.lost = nil, true
	}
}

// freeze has the screen stand still.
func (p *pages) freeze(now time.Time) {
	p.frozen.since = now
	p.events.until = p.events.seq
}

// thaw shows what went on meanwhile.
func (p *pages) thaw() {
	missed, known := p.frozen.missed, !p.frozen.lost
	p.frozen, p.events.until, p.drawn = freeze{}, 0, p.guards
	p.show(missed, known)
}

// shownAt is the moment that the screen shows.
func (p *pages) shownAt(now time.Time) time.Time {
	if p.frozen.on() {
		return p.frozen.since
	}
	return now
}
