package page

import (
	"time"

	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/restartguard"
)

// Set has all pages and the tables that they share, so that each page has its cursor on the
// same lock and node. It also keeps the live state while the screen is frozen.
type Set struct {
	*Screen
	Latest *monitor.Snapshot // live, even while the screen is frozen
	Guards view.Guard        // live state of the guards
	Frozen freeze

	Nodes    nodeTable
	Locks    lockTable
	LockView *lockView
	Marks    Marks
	Events   eventTable
	findings table[*monitor.Finding, string]
	Past     nodePasts
	began    time.Time // of what is in it

	Trail
	tabs     [NumTabs]Page
	Overview *overview
	Lock     *lockFacts
	Node     *nodeFacts
	Clusters *clustersPage
	Audit    *auditPage
}

// New returns the pages for a screen; lab and help are the texts of two of them.
func New(s *Screen, now time.Time, lab, help func(w int) []string) *Set {
	p := &Set{Screen: s, began: now, Past: nodePasts{}, Marks: Marks{}, Nodes: newNodeTable(), Locks: newLockTable(), Events: newEventTable(), findings: newFindings()}
	p.LockView = newLockView(s.St, func() []monitor.Node { return s.Shown.Nodes })
	p.Nodes.layout.changed, p.findings.layout.changed, p.Events.table.layout.changed = p.Nodes.list, p.findings.list, p.Events.table.list
	p.LockView.layout.changed = func() { p.Locks.SetOrder(p.LockView.layout.Order); p.LockView.Restyle() }
	ev := eventView{s.St}
	table := func() *nodePanel { return &nodePanel{s, &p.Nodes} }
	locks := func() *lockPanel {
		return &lockPanel{Screen: s, locks: &p.Locks, lockView: p.LockView, marks: p.Marks}
	}
	p.Lock = &lockFacts{Screen: s, eventView: ev, events: &p.Events}
	p.Node = &nodeFacts{Screen: s, eventView: ev, events: &p.Events, past: p.Past}
	listed := locks()
	p.Overview = &overview{Screen: s, Filtered: listed, locks: listed, nodes: table(), lock: p.Lock, node: p.Node, events: &p.Events, latest: &latestEvents{Screen: s, eventView: ev}}
	p.Clusters, p.Audit = newClustersPage(s), newAuditPage(s)
	p.tabs = [NumTabs]Page{
		Overview: p.Overview,
		Locks:    &locksPage{lockPanel: locks(), lock: p.Lock},
		Nodes:    &nodesPage{nodePanel: table(), facts: p.Node},
		Events:   &eventsPage{Screen: s, events: &p.Events, eventView: ev},
		Findings: &findingsPage{Screen: s, table: &p.findings},
		Guard:    &guardPage{nodePanel: table(), events: &p.Events, eventView: ev, past: p.Past, began: &p.began},
		Lab:      &labPage{table(), &latestEvents{Screen: s, eventView: ev}, lab},
		Help:     &textPage{Screen: s, text: help},
	}
	p.Trail = Trail{Page: p.Overview, home: p.Overview}
	return p
}

// Layouts returns the layout of each resource.
func (p *Set) Layouts() []*Layout {
	return []*Layout{&p.LockView.layout, p.Nodes.Layout(), p.Events.table.Layout(), p.findings.Layout(), p.Audit.Layout(), p.Clusters.Layout()}
}

// Forget forgets where things were drawn, before a frame is.
func (p *Set) Forget() {
	for _, l := range p.Layouts() {
		l.forget()
	}
}

// Open opens a place; esc returns.
func (p *Set) Open(to Place) {
	if p.Page.Place() != to {
		p.open(to, p.At)
	}
}

// At returns the page of a place, ready to be shown.
func (p *Set) At(to Place) Page {
	switch to.Kind {
	case Lock:
		p.Lock.Watch(to.Name)
		return &lockPage{lockFacts: p.Lock, key: to.Name}
	case Node:
		return &nodePage{nodeFacts: p.Node, name: to.Name}
	case Clusters:
		return p.Clusters
	case Audit:
		return p.Audit
	}
	return p.tabs[to.Kind]
}

// Reset clears the pages for another cluster.
func (p *Set) Reset(now time.Time) {
	order := p.Locks.Order
	p.Locks.abandon()
	p.Locks = newLockTable()
	p.Locks.Order = order
	p.Nodes.set(nil)
	p.Nodes.letGo()
	p.findings.set(nil)
	p.findings.letGo()
	p.Events.clear()
	p.Events.line.Set("")
	p.Events.setFilter(now)
	p.Events.Follow(true)
	clear(p.Past)
	clear(p.Marks)
	p.Lock.Watched, p.Lock.Removal = lockLog{}, removal{}
	p.Audit.Take(nil)
	p.began, p.Frozen, p.Guards = now, freeze{}, view.Guard{}
}

// TakeGuard updates the state of the guard in this process; own is its id, empty if none
// runs, and delay the configured D.
func (p *Set) TakeGuard(own string, status []restartguard.NodeStatus, delay time.Duration) {
	p.Guards = view.NewGuard(own, status)
	p.Guards.Configured = delay
	p.seeGuards()
}

// seeGuards updates the guards in other processes.
func (p *Set) seeGuards() {
	if p.Latest != nil {
		p.Guards.See(p.Latest)
	}
	if !p.Frozen.On() {
		p.drawn = p.Guards
	}
}

// Receive shows a snapshot. changed are the keys of the changed locks, if they are known;
// events are the events since the previous snapshot; nil: those in the snapshot.
func (p *Set) Receive(s *monitor.Snapshot, changed []string, known bool, events []monitor.Event) {
	p.Latest = s
	p.seeGuards()
	p.Past.see(s)
	if events == nil {
		events = s.Events
	}
	p.Events.Add(events)
	p.Lock.Watched.add(events)
	if p.Frozen.On() {
		p.Frozen.miss(changed, known)
		return
	}
	p.show(changed, known)
}

func (p *Set) show(changed []string, known bool) {
	p.Shown = p.Latest
	p.Nodes.take(p.context(), p.Shown.Nodes, false)
	first := p.Shown.Settled.IsZero() && p.Shown.Cluster.Verdict == monitor.VerdictUnknown
	p.Locks.show(p.Shown.Locks, p.Shown.Nodes, changed, known, first)
	p.findings.set(view.Rows(p.Shown.Findings))
}

// Tick runs once a second.
func (p *Set) Tick(now time.Time) {
	p.Past.sample(p.Latest)
	p.Marks.keep(p.Latest.Locks)
	if !p.Frozen.On() {
		p.Nodes.take(p.context(), p.Shown.Nodes, true)
		p.Locks.tick(p.Locks.filter.At(now))
		p.Events.tick(now)
		p.Audit.tick(now)
	}
}

// freeze is the state of a frozen screen.
type freeze struct {
	since time.Time // zero: not frozen
	// missed has the keys of locks that changed since then; lost: too many to keep.
	Missed []string
	lost   bool
}

func (f *freeze) On() bool { return !f.since.IsZero() }

// miss records changes that the frozen screen does not show.
func (f *freeze) miss(changed []string, known bool) {
	if f.Missed = append(f.Missed, changed...); !known || len(f.Missed) > MostChanges {
		f.Missed, f.lost = nil, true
	}
}

// Freeze freezes the screen.
func (p *Set) Freeze(now time.Time) {
	p.Frozen.since = now
	p.Events.show(p.Events.Seq)
}

// Thaw shows the live state again.
func (p *Set) Thaw() {
	missed, known := p.Frozen.Missed, !p.Frozen.lost
	p.Frozen, p.drawn = freeze{}, p.Guards
	p.Events.show(0)
	p.show(missed, known)
}

// ShownAt returns the moment that the screen shows.
func (p *Set) ShownAt(now time.Time) time.Time {
	if p.Frozen.On() {
		return p.Frozen.since
	}
	return now
}

// Recall sets how the nodes changed before the moment that is shown.
func (p *Set) Recall(turns []view.NodeTurn) {
	if len(turns) > 0 {
		p.began = turns[0].At
	}
	p.Past.recall(turns)
}

// Rewind clears all events, for a source at another moment. Cursor, filters and orders stay.
func (p *Set) Rewind(now time.Time) {
	p.Events.clear()
	p.Lock.Watched, p.Lock.Holders.asked, p.Lock.Removal = lockLog{}, time.Time{}, removal{}
	clear(p.Past)
	clear(p.Marks)
	p.began, p.Frozen = now, freeze{}
}
