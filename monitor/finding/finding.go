// Package finding looks for what Redlock assumes and does not hold on a cluster. It is a pure step
// machine: snapshots go in, findings and events come out. A check only says what holds now; when that is
// told, or taken back, is decided in one place.
package finding

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"redlockctl/internal/safetext"
	"redlockctl/monitor"
	"redlockctl/monitor/clock"
)

// known is all that findings are made of: a moment of the cluster.
type known struct {
	*monitor.Snapshot
	opt           Options
	guard         *monitor.GuardView // nil: no guard in this process
	boots         map[string]BootSight
	discontinuity clock.Discontinuity // the last of our own
	// locks are those that have been in a bad state for long enough to be told, by
	// their kind.
	locks map[int]badLocks
	// shortest is the smallest TTL that locks were taken with lately; 0: unknown.
	shortest time.Duration
	// since is, by the node's name, what has happened there since it was first looked at.
	since map[string]happened
}

// found is a finding that a check fills in.
type found monitor.Finding

// seen says what was seen; it reports true, for a check to return.
func (f *found) seen(format string, args ...any) bool {
	f.Evidence = safetext.New(fmt.Sprintf(format, args...))
	return true
}

const (
	// flapping: a finding that comes back within it stays for twice as long after
	// it has gone, and so on.
	flapping = time.Minute
	// lookEvery is the least time between two looks.
	lookEvery = 200 * time.Millisecond
)

// Options are what findings have to know of the configuration.
type Options struct {
	// Fences is how nodes are fenced, by name, where it is not by
	// min-replicas-to-write: "acl" or "none", as in the configuration.
	Fences      map[string]string
	Meant       []string // IDs of findings that are not told
	MaxMemory   int64    // bytes that locks may take here
	DriftFactor float64  // of the lock algorithm
	NodeTimeout time.Duration
}

// Findings keeps the findings of a cluster: a pure step machine over moments.
type Findings struct {
	opt           Options
	checks        []check
	open          map[findingName]*openFinding
	locks         lockWatch
	nodes         nodeWatches
	guard         func() monitor.GuardView
	sight         *monitor.GuardView // as last told by guard
	boots         map[string]BootSight
	discontinuity clock.Discontinuity
	looked        time.Time
	current       []monitor.Finding
}

type findingName struct{ id, node string }

// openFinding is a finding that was seen, told or not.
type openFinding struct {
	monitor.Finding
	check *check
	told  bool
	last  time.Time // when it was last seen
	grave time.Time // when it was last seen as grave as it is told
	flaps int       // how often it came back soon
	gone  time.Time // when it was taken back; zero: it was not
}

// Guarded tells of the guard in this process: sight is called with each look.
func (f *Findings) Guarded(sight func() monitor.GuardView) { f.guard = sight }

// Guard is what the guard in this process said at the last look; nil: there is none.
func (f *Findings) Guard() *monitor.GuardView { return f.sight }

// Booted tells how nodes start, by their names.
func (f *Findings) Booted(boots map[string]BootSight) { f.boots = boots }

// Discontinued tells that what was measured before is not to be believed.
func (f *Findings) Discontinued(d clock.Discontinuity) { f.discontinuity = d }

// Note takes in the keys of locks that have changed.
func (f *Findings) Note(keys []string) { f.locks.note(keys) }

// Look takes in a moment of the cluster and returns what holds now, the most severe
// first. emit is told of findings that open and close. The snapshot is that of a
// settled view; its own findings are not looked at.
func (f *Findings) Look(s *monitor.Snapshot, emit func(monitor.Event)) []monitor.Finding {
	now := s.At
	if !f.looked.IsZero() && now.Sub(f.looked) < lookEvery {
		return f.current
	}
	f.looked = now
	k := known{Snapshot: s, opt: f.opt, discontinuity: f.discontinuity, since: f.nodes.happened(s), boots: f.boots}
	k.locks, k.shortest = f.locks.look(s, f.opt.NodeTimeout)
	if f.guard != nil {
		g := f.guard()
		f.sight = &g
		k.guard = f.sight
	}
	for i := range f.checks {
		c := &f.checks[i]
		if c.after >= measured && k.discontinuity.Recent(now, measured) {
			continue // what was measured before says nothing
		}
		declared := monitor.Finding{ID: c.id, Severity: c.severity, Title: c.title, Consequence: c.why, Remedy: c.do}
		c.find(k, declared, func(found monitor.Finding) { f.saw(c, found, now) })
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
func (f *Findings) saw(c *check, found monitor.Finding, now time.Time) {
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
func (f *Findings) settle(o *openFinding, now time.Time, emit func(monitor.Event)) {
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
			emit(o.event("finding opened", now))
		}
	case !o.told:
		// It was not there for long enough, and has to begin anew.
		delete(f.open, name)
	case now.Sub(o.last) >= hold:
		o.told, o.gone = false, now
		emit(o.event("finding closed", now))
	}
}

// Undecided reports whether something that was first seen before until needs more
// time to be told for certain, or the moment now was not looked at.
func (f *Findings) Undecided(now, until time.Time) bool {
	if f.looked != now || f.locks.awaits(now, until, f.opt.NodeTimeout) {
		return true
	}
	for _, o := range f.open {
		if !o.told && o.gone.IsZero() && o.Severity == monitor.SeverityDanger && o.check.after < measured && o.Since.Before(until) {
			return true
		}
	}
	return false
}

// Ripening is how many locks are in a state that is a danger if it lasts, and whether the
// view, complete since then, is too young to tell of what was there.
func (f *Findings) Ripening(now, complete time.Time) (locks int, young bool) {
	return f.locks.ripening, now.Sub(complete) < youngView
}

// sorted are all findings, the most severe first, then in the order of the checks,
// so that the list does not jump about.
func (f *Findings) sorted() []*openFinding {
	all := slices.Collect(maps.Values(f.open))
	order := func(o *openFinding) int {
		return slices.IndexFunc(f.checks, func(c check) bool { return c.id == o.ID })
	}
	slices.SortFunc(all, func(a, b *openFinding) int {
		return cmp.Or(cmp.Compare(b.Severity, a.Severity), cmp.Compare(order(a), order(b)), cmp.Compare(a.Node, b.Node))
	})
	return all
}

func (o *openFinding) event(kind string, now time.Time) monitor.Event {
	text := o.Title
	if kind == "finding closed" {
		text = "cleared: " + text
	}
	if o.Node != "" {
		text = o.Node + ": " + text
	}
	return monitor.Event{
		At: now, Level: o.Severity.Level(), Kind: kind, Node: o.Node, Key: o.Key, Part: o.check.state,
		Text: safetext.New(fmt.Sprintf("%s [%s %s]", text, o.Severity, o.ID)),
	}
}

// check declares a finding: what it is called, what it means, when it is told. The
// console, doctor, JSON and docs/findings.md say what stands here; only what the
// check itself finds out (evidence, another severity, a special case in other words) is added.
type check struct {
	id       string
	part     part
	severity monitor.Severity // as a rule
	title    string           // what is found, in a few words
	why      string           // it matters
	do       string           // to end it
	state    bool             // events of the node's state, or of what it is about, tell it too
	more     string           // for docs/findings.md: when its severity is another one, and what else to know
	// after is how long it must be seen before it is told, before is how long it must
	// be gone before it is taken back: that keeps a finding from flickering.
	after, before time.Duration
	// find tells of what holds now, given the finding as it is declared.
	find func(k known, f monitor.Finding, tell func(monitor.Finding))
}

// The patience of checks: what a server says of its settings is certain at
// once, what is measured or may pass on its own is not.
const (
	certain  = 0
	agreed   = 500 * time.Millisecond // of several nodes: all were heard
	settles  = 2 * time.Second        // longer than it takes the probes to agree
	measured = 5 * time.Second
	calms    = 10 * time.Second
)

// part is the part of docs/findings.md that explains a finding.
type part string

const (
	aboutQuorum part = "Nothing works, or not as it must"
	aboutMemory part = "What a node may forget"
	aboutLocks  part = "Locks"
	aboutTime   part = "Time"
	aboutSight  part = "What cannot be seen"
)

// each is a check of every node by itself. f is the finding as it is declared, of that
// node; find reports whether it holds, and says in f what is special about it.
func each(find func(k known, n *monitor.Node, f *found) bool) func(known, monitor.Finding, func(monitor.Finding)) {
	return func(k known, declared monitor.Finding, tell func(monitor.Finding)) {
		for i := range k.Nodes {
			f := found(declared)
			f.Node = k.Nodes[i].Name
			if find(k, &k.Nodes[i], &f) {
				tell(monitor.Finding(f))
			}
		}
	}
}

// once is a check of the whole cluster.
func once(find func(k known, f *found) bool) func(known, monitor.Finding, func(monitor.Finding)) {
	return func(k known, declared monitor.Finding, tell func(monitor.Finding)) {
		if f := found(declared); find(k, &f) {
			tell(monitor.Finding(f))
		}
	}
}

// BootForm says how a node starts, as far as its files and its command line
// tell.
type BootForm uint8

const (
	BootUnseen   BootForm = iota // they cannot be seen
	BootFirm                     // fenced, whatever the server writes into its files
	BootFragile                  // fenced, until the server rewrites its files
	BootUnfenced                 // unfenced
)

// BootSight is what is known of a node's starts beyond what the node itself
// tells.
type BootSight struct {
	Form BootForm
	// Guarded: a guard remembers the node, so that it fences it after a loss.
	Guarded bool
	// StartedUnfenced: a guard remembers that its present process started unfenced.
	StartedUnfenced bool
	Evidence        string // of Form
	Remedy          string // empty: the usual one
}

// guardOf is what the guard in this process sees of a node.
func (k known) guardOf(node string) (g monitor.GuardedNode, ok bool) {
	if k.guard != nil {
		g, ok = k.guard.Nodes[node]
	}
	return g, ok
}

func guardedBy(k known, node string) bool {
	_, ok := k.guardOf(node)
	return ok
}

// isGuarded reports whether a guard fences the node after a loss: one in this
// process, one that announces itself on the node, or one that remembers it.
func isGuarded(k known, n *monitor.Node) bool {
	return guardedBy(k, n.Name) || len(n.Guards) > 0 || k.boots[n.Name].Guarded
}
