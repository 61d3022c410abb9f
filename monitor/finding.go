package monitor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"redlockctl/internal/safetext"
)

// Severity of a finding.
type Severity uint8

const (
	SeverityInfo    Severity = iota // good to know; breaks nothing
	SeverityWarning                 // a margin of safety is gone
	SeverityDanger                  // two clients may hold one lock, or nothing can be locked
)

// String is the severity as the screen and JSON show it.
func (s Severity) String() string { return [...]string{"info", "warning", "danger"}[s] }

// Level is the level of the event that tells of a finding of this severity.
func (s Severity) Level() Level { return [...]Level{LevelInfo, LevelNotice, LevelAlarm}[s] }

// Finding is an assumption of Redlock that does not hold now on this cluster.
type Finding struct {
	// ID names the kind of finding for good: "immortal-lock". ID and Node
	// together name one finding. docs/findings.md explains each.
	ID       string
	Severity Severity
	Node     string        // where it concerns one node
	Key      safetext.Text // of locks: the first that it concerns
	Count    int           // of locks: how many it concerns
	Since    time.Time     // first seen

	Title       string        // what is found, in a few words
	Evidence    safetext.Text // what was seen
	Consequence string        // why it matters
	Remedy      string        // what to do
}

// known is all that findings are made of: a moment of the cluster.
type known struct {
	*Snapshot
	opt   Options
	guard *GuardSight // nil: no guard in this process
	boots map[string]BootSight
	tilt  tilt // the last of our own
	// locks are those that have been in a bad state for long enough to be told, by
	// their kind.
	locks map[int]badLocks
	// shortest is the smallest TTL that locks were taken with lately; 0: unknown.
	shortest time.Duration
	// since is, by node, what has happened there since it was first looked at.
	since []happened
}

// A check looks for the findings of one kind, and tells each of them. How long
// they must be seen before they are told, and how long they must be gone before
// they are taken back, keeps a finding from flickering.
type check struct {
	id     string
	after  time.Duration
	before time.Duration
	find   func(k known, tell func(Finding))
}

// The patience of checks: what a server says of its settings is certain at
// once, what is measured or may pass on its own is not.
const (
	certain  = 0
	agreed   = 500 * time.Millisecond // of several nodes: all were heard
	settles  = 2 * time.Second        // longer than it takes the probes to agree
	measured = 5 * time.Second
	calms    = 10 * time.Second
	// flapping: a finding that comes back within it stays for twice as long after
	// it has gone, and so on.
	flapping = time.Minute
	// lookEvery is the least time between two looks.
	lookEvery = 200 * time.Millisecond
)

// findings keeps the findings of a cluster: a pure step machine over moments.
type findings struct {
	checks  []check
	open    map[findingName]*openFinding
	locks   lockWatch
	nodes   []nodeWatch
	guard   func() GuardSight
	sight   *GuardSight // as last told by guard
	boots   map[string]BootSight
	tilt    tilt
	looked  time.Time
	current []Finding
}

type findingName struct{ id, node string }

// openFinding is a finding that was seen, told or not.
type openFinding struct {
	Finding
	check *check
	told  bool
	last  time.Time // when it was last seen
	grave time.Time // when it was last seen as grave as it is told
	flaps int       // how often it came back soon
	gone  time.Time // when it was taken back; zero: it was not
}

func newFindings() *findings {
	return &findings{checks: allChecks(), open: map[findingName]*openFinding{}}
}

// look takes in a moment of the cluster and returns what holds now, the gravest
// first. emit is told of findings that open and close. The snapshot is that of a
// settled view; its own findings are not looked at.
func (f *findings) look(s *Snapshot, opt Options, emit func(Event)) []Finding {
	now := s.At
	if !f.looked.IsZero() && now.Sub(f.looked) < lookEvery {
		return f.current
	}
	f.looked = now
	k := known{Snapshot: s, opt: opt, tilt: f.tilt, since: f.happened(s), boots: f.boots}
	k.locks, k.shortest = f.locks.look(s, opt)
	if f.guard != nil {
		g := f.guard()
		f.sight = &g
		k.guard = f.sight
	}
	for i := range f.checks {
		c := &f.checks[i]
		if c.after >= measured && k.tilt.recent(now, measured) {
			continue // what was measured before says nothing
		}
		c.find(k, func(found Finding) { f.saw(c, found, now) })
	}
	for _, o := range f.sorted() {
		f.settle(o, now, emit)
	}
	f.current = nil
	for _, o := range f.sorted() {
		if o.told {
			f.current = append(f.current, o.Finding)
		}
	}
	return f.current
}

// saw takes note of a finding that holds now.
func (f *findings) saw(c *check, found Finding, now time.Time) {
	found.ID = c.id
	name := findingName{found.ID, found.Node}
	o := f.open[name]
	switch {
	case o == nil:
		o = &openFinding{check: c}
		found.Since = now
		f.open[name] = o
	case !o.gone.IsZero(): // it is back
		o.flaps = min(o.flaps+1, 5)
		o.gone = time.Time{}
		found.Since = now
	default:
		found.Since = o.Since
	}
	if o.told && found.Severity < o.Severity && now.Sub(o.grave) < max(c.before, settles) {
		found.Severity = o.Severity
	} else {
		o.grave = now
	}
	o.Finding, o.last = found, now
}

// settle tells a finding that has lasted, and takes one back that has gone.
func (f *findings) settle(o *openFinding, now time.Time, emit func(Event)) {
	name := findingName{o.ID, o.Node}
	hold := o.check.before << o.flaps
	switch {
	case !o.gone.IsZero():
		if now.Sub(o.gone) > flapping {
			delete(f.open, name)
		}
	case o.last.Equal(now):
		if !o.told && now.Sub(o.Since) >= o.check.after {
			o.told = true
			emit(findingEvent(o.Finding, "finding opened", now))
		}
	case !o.told:
		// It was not there for long enough, and has to begin anew.
		delete(f.open, name)
	case now.Sub(o.last) >= hold:
		o.told, o.gone = false, now
		emit(findingEvent(o.Finding, "finding closed", now))
	}
}

// ripening reports whether a danger that was first seen before until is still to be told.
func (f *findings) ripening(until time.Time) bool {
	for _, o := range f.open {
		if !o.told && o.gone.IsZero() && o.Severity == SeverityDanger && o.check.after < measured && o.Since.Before(until) {
			return true
		}
	}
	return false
}

// sorted are all findings, the gravest first, then in the order of the checks,
// so that the list does not jump about.
func (f *findings) sorted() []*openFinding {
	all := slices.Collect(maps.Values(f.open))
	order := func(o *openFinding) int {
		return slices.IndexFunc(f.checks, func(c check) bool { return c.id == o.ID })
	}
	slices.SortFunc(all, func(a, b *openFinding) int {
		return cmp.Or(cmp.Compare(b.Severity, a.Severity), cmp.Compare(order(a), order(b)), cmp.Compare(a.Node, b.Node))
	})
	return all
}

func findingEvent(o Finding, kind string, now time.Time) Event {
	text := o.Title
	if kind == "finding closed" {
		text = "no more: " + text
	}
	if o.Node != "" {
		text = o.Node + ": " + text
	}
	return Event{
		At: now, Level: o.Severity.Level(), Kind: kind, Node: o.Node, Key: o.Key,
		Text: safetext.New(fmt.Sprintf("%s [%s %s]", text, o.Severity, o.ID)),
	}
}
