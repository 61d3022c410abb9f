// Package finding looks for Redlock assumptions that do not hold on a cluster. It is a pure step
// machine: snapshots go in, findings and events come out. A check only says what holds now; one place
// decides when a finding is reported and when it is cleared.
package finding

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"redlockctl/monitor"
	"redlockctl/monitor/clock"
	"redlockctl/server/announce"
	"redlockctl/server/fences"
	"redlockctl/server/safetext"
)

// known is the input of all checks: the cluster at one moment.
type known struct {
	*monitor.Snapshot
	opt           Options
	guard         *monitor.GuardView // nil: no guard in this process
	boots         map[string]BootSight
	forced        []monitor.Forced    // as far as is known here
	recording     error               // why nothing is recorded; nil: it is, or nothing is to be
	discontinuity clock.Discontinuity // the last one of our clock
	// locks are those that have been in a bad state for long enough, by kind.
	locks map[int]badLocks
	// shortest is the shortest TTL used by recent locks; 0: unknown.
	shortest time.Duration
	// since has, by node name, the events since this process first saw the node.
	since map[string]happened
}

// found is a finding while a check fills it in.
type found monitor.Finding

// seen sets the evidence and returns true, for a check to return.
func (f *found) seen(format string, args ...any) bool {
	f.Evidence = safetext.New(fmt.Sprintf(format, args...))
	return true
}

const (
	// flapping: a finding that comes back within this time stays twice as long the next
	// time, and so on; but not a danger, nor one about locks.
	flapping = time.Minute
	// lookEvery is the minimum time between two checks, lookSoon before one that is urgent.
	lookEvery = 200 * time.Millisecond
	lookSoon  = 10 * time.Millisecond
)

// Options are the settings that the checks need.
type Options struct {
	Fences      map[string]fences.Kind // by node name
	Meant       []string               // IDs of findings that are not reported
	MaxMemory   int64                  // bytes that locks may use in this process
	DriftFactor float64                // of the lock algorithm
	NodeTimeout time.Duration
	// NodeTimeoutSet: it was set, and does not follow the round trip.
	NodeTimeoutSet bool
}

// Findings keeps the findings of a cluster: a pure step machine over snapshots.
type Findings struct {
	opt           Options
	checks        []check
	open          map[findingName]*openFinding
	locks         lockWatch
	nodes         nodeWatches
	guard         func() monitor.GuardView
	sight         *monitor.GuardView // the last answer of guard
	boots         map[string]BootSight
	forced        []monitor.Forced
	recording     func() error
	discontinuity clock.Discontinuity
	looked        time.Time
	urgent        bool
	early         []string // nodes that served before they might vote, when it looked
	current       []monitor.Finding
}

type findingName struct{ id, node string }

// openFinding is a finding that was seen, reported or not.
type openFinding struct {
	monitor.Finding
	check  *check
	raised bool
	// title and key as they were when it was reported. When it is cleared, it may be about other locks.
	title string
	key   safetext.Text
	last  time.Time // when it was last seen
	grave time.Time // when it last had its reported severity
	flaps int       // how often it came back soon
	gone  time.Time // when it was cleared; zero: it was not
}

// Guarded sets the source of what the guard in this process knows. [Findings.Look] calls it.
func (f *Findings) Guarded(sight func() monitor.GuardView) { f.guard = sight }

// Recorded sets the source of why nothing is recorded. [Findings.Look] calls it, so it must
// not wait for anything.
func (f *Findings) Recorded(fails func() error) { f.recording = fails }

// Forced sets the force-releases whose holders may still rely on the locks; it replaces earlier ones.
func (f *Findings) Forced(all []monitor.Forced) { f.forced = all }

// Guard returns what the guard in this process said when Look last ran; nil without a guard.
func (f *Findings) Guard() *monitor.GuardView { return f.sight }

// Booted sets how nodes start, by node name.
func (f *Findings) Booted(boots map[string]BootSight) { f.boots = boots }

// Discontinued records a clock discontinuity: earlier measurements are dropped. The time
// without checks counts neither for nor against a finding.
func (f *Findings) Discontinued(d clock.Discontinuity) {
	f.discontinuity = d
	for _, o := range f.open {
		if o.raised {
			o.last, o.grave = d.At.Add(reread), d.At.Add(reread)
		} else {
			o.Since = d.At
		}
	}
	f.locks.discontinued(d, f.opt.NodeTimeout)
}

// reread is how long it takes after a discontinuity until the nodes have been read again
// and problems have lasted long enough.
const reread = 5 * time.Second

// Note adds the keys of locks that have changed.
func (f *Findings) Note(keys []string) { f.locks.note(keys) }

// Hurry makes the next call of Look check, unless the last check was a moment ago: a lock
// has raised an alarm.
func (f *Findings) Hurry() { f.urgent = true }

// Look checks a snapshot and returns the findings that hold now, the most severe first.
// It calls emit for each finding that opens or closes, and sets s.Guard. It ignores the
// findings of s.
func (f *Findings) Look(s *monitor.Snapshot, emit func(monitor.Event)) []monitor.Finding {
	now := s.At
	wait := lookEvery
	if f.urgent {
		wait = lookSoon
	}
	early := earlyNodes(s)
	if !f.looked.IsZero() && now.Sub(f.looked) < wait && slices.Equal(early, f.early) {
		return f.current
	}
	f.looked, f.urgent, f.early = now, false, early
	k := known{Snapshot: s, opt: f.opt, discontinuity: f.discontinuity, since: f.nodes.happened(s), boots: f.boots, forced: f.forced}
	if f.guard != nil {
		g := f.guard()
		f.sight = &g
		k.guard, s.Guard = f.sight, f.sight
	}
	if f.recording != nil {
		k.recording = f.recording()
	}
	k.locks, k.shortest = f.locks.look(s, f.opt.NodeTimeout)
	for i := range f.checks {
		c := &f.checks[i]
		if c.after >= measured && k.discontinuity.Recent(now, measured) {
			continue // earlier measurements prove nothing
		}
		declared := monitor.Finding{ID: c.id, Severity: c.severity, Title: c.title, Consequence: c.why, Remedy: c.do}
		c.find(k, declared, func(found monitor.Finding) { f.saw(c, found, now) })
	}
	for _, o := range f.sorted() {
		f.settle(o, k, emit)
	}
	f.current = nil
	for _, o := range f.sorted() {
		if o.raised {
			f.current = append(f.current, o.Finding)
		}
	}
	return f.current
}

// earlyNodes returns the nodes that serve before they may vote: the verdict of a snapshot follows
// what it says of them.
func earlyNodes(s *monitor.Snapshot) (names []string) {
	for i := range s.Nodes {
		if s.Nodes[i].Early {
			names = append(names, s.Nodes[i].Name)
		}
	}
	return names
}

// saw notes a finding that holds now. It began when its check says; otherwise now, if it is new.
func (f *Findings) saw(c *check, found monitor.Finding, now time.Time) {
	name := findingName{found.ID, found.Node}
	o := f.open[name]
	switch {
	case o == nil:
		o = &openFinding{check: c}
		found.Since = cmp.Or(found.Since, now)
		f.open[name] = o
	case !o.gone.IsZero(): // it is back
		o.flaps = min(o.flaps+1, 5)
		o.gone = time.Time{}
		found.Since = cmp.Or(found.Since, now)
	default:
		found.Since = cmp.Or(found.Since, o.Since)
	}
	if o.raised && found.Severity < o.Severity && now.Sub(o.grave) < max(c.before, settles) {
		found.Severity = o.Severity
	} else {
		o.grave = now
	}
	o.Finding, o.last = found, now
}

// settle reports a finding that has lasted, and clears one that is gone, at once if it is known
// not to hold.
func (f *Findings) settle(o *openFinding, k known, emit func(monitor.Event)) {
	now, name := k.At, findingName{o.ID, o.Node}
	hold := o.check.before << o.flaps
	if o.check.part == aboutLocks || o.check.severity == monitor.SeverityDanger { // of other locks the next time; and nobody is to act on a danger that has passed
		hold = o.check.before
	}
	switch {
	case !o.gone.IsZero():
		if now.Sub(o.gone) > flapping {
			delete(f.open, name)
		}
	case o.last.Equal(now):
		if o.raised {
			break
		}
		if o.check.covered != nil && o.check.covered(&k.Cluster) {
			delete(f.open, name)
		} else if now.Sub(o.Since) >= o.check.after {
			o.raised, o.title, o.key = true, o.Title, o.Key
			emit(o.event("finding opened", now))
		}
	case !o.raised:
		// It did not last long enough, and starts again.
		delete(f.open, name)
	case now.Sub(o.last) >= hold, o.check.disproved != nil && k.knows(o.Node, o.check.disproved):
		o.raised, o.gone = false, now
		emit(o.event("finding closed", now))
	}
}

// Undecided reports whether a problem of at least this severity that was first seen before until
// needs more time to be certain, or whether Look still has to be called for now.
func (f *Findings) Undecided(now, until time.Time, least monitor.Severity) bool {
	if f.looked != now || f.locks.awaits(now, until, f.opt.NodeTimeout) {
		return true
	}
	for _, o := range f.open {
		if !o.raised && o.gone.IsZero() && o.Severity >= least && o.check.after < measured && o.Since.Before(until) {
			return true
		}
	}
	return false
}

// Ripening returns how many locks are in a state that is a danger if it lasts, and whether the
// view, complete since the given time, is too young to judge the locks in it.
func (f *Findings) Ripening(now, complete time.Time) (locks int, young bool) {
	return f.locks.ripening, now.Sub(complete) < youngView
}

// sorted returns all findings in the order in which they are listed.
func (f *Findings) sorted() []*openFinding {
	all := slices.Collect(maps.Values(f.open))
	slices.SortFunc(all, func(a, b *openFinding) int { return compare(f.checks, &a.Finding, &b.Finding) })
	return all
}

// Sort sorts findings as they are listed.
func Sort(all []monitor.Finding) {
	checks := allChecks()
	slices.SortStableFunc(all, func(a, b monitor.Finding) int { return compare(checks, &a, &b) })
}

// compare orders findings: the most severe first, then in the order of the checks, so that a list is
// stable.
func compare(checks []check, a, b *monitor.Finding) int {
	order := func(f *monitor.Finding) int {
		return slices.IndexFunc(checks, func(c check) bool { return c.id == f.ID })
	}
	return cmp.Or(cmp.Compare(b.Severity, a.Severity), cmp.Compare(order(a), order(b)), cmp.Compare(a.Node, b.Node))
}

func (o *openFinding) event(kind string, now time.Time) monitor.Event {
	f := o.Finding
	f.Title, f.Key = o.title, o.key
	e := Opened(&f)
	e.At, e.Kind, e.Part = now, kind, o.check.state
	if kind == "finding closed" { // good news, whatever was found
		e.Level = min(e.Level, monitor.LevelNotice)
		e.Text = told("cleared: ", &f)
	}
	return e
}

// Opened returns the event of a finding that is open, for who was not there when it opened.
func Opened(f *monitor.Finding) monitor.Event {
	return monitor.Event{At: f.Since, Level: f.Severity.Level(), Kind: "finding opened", Node: f.Node, Key: f.Key, Text: told("", f)}
}

func told(first string, f *monitor.Finding) safetext.Text {
	if f.Node != "" {
		first = f.Node + ": " + first
	}
	return safetext.New(fmt.Sprintf("%s%s [%s %s]", first, f.Title, f.Severity, f.ID))
}

// check declares a finding: its name, its meaning, when it is reported. The console,
// doctor, JSON and docs/findings.md use these texts. The check itself adds only evidence,
// and another severity or other words in special cases.
type check struct {
	id       string
	part     part
	severity monitor.Severity // by default
	title    string           // what was found, in a few words
	why      string           // why it matters
	do       string           // what to do
	state    bool             // events of the node's state report it too
	more     string           // for docs/findings.md: when the severity differs, and other notes
	// after is how long it must be seen before it is reported, before is how long it must
	// be gone before it is cleared: so a finding does not flicker.
	after, before time.Duration
	// disproved reports whether it is known that the finding does not hold on a node: then it is
	// cleared without waiting. nil: that is never known.
	disproved func(k known, n *monitor.Node) bool
	// covered reports whether another finding stands for those that hold now: then none is opened,
	// and one that is open goes on. nil: never.
	covered func(*monitor.Cluster) bool
	// find calls tell for each finding that holds now; f is the finding as declared.
	find func(k known, f monitor.Finding, tell func(monitor.Finding))
}

// How long checks wait. A setting that a server reports is certain at once; what is
// measured, or may pass by itself, is not.
const (
	certain  = 0
	agreed   = 500 * time.Millisecond // several nodes are compared: all have answered
	settles  = 2 * time.Second        // longer than it takes the probes to agree
	measured = 5 * time.Second
	calms    = 10 * time.Second
)

// part is the section of docs/findings.md that explains a finding.
type part string

const (
	aboutQuorum part = "Nodes and quorum"
	aboutMemory part = "Lost votes, fences and guards"
	aboutLocks  part = "Locks"
	aboutTime   part = "Time"
	aboutSight  part = "Visibility"
)

// each makes a check that looks at every node. f is the finding as declared, for that
// node; find reports whether it holds, and sets in f what differs.
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

// once makes a check that looks at the whole cluster.
func once(find func(k known, f *found) bool) func(known, monitor.Finding, func(monitor.Finding)) {
	return func(k known, declared monitor.Finding, tell func(monitor.Finding)) {
		if f := found(declared); find(k, &f) {
			tell(monitor.Finding(f))
		}
	}
}

// BootForm is how a node starts, according to its files and its command line.
type BootForm uint8

const (
	BootUnseen   BootForm = iota // they cannot be seen
	BootFirm                     // fenced, whatever the server writes into its files
	BootFragile                  // fenced, until the server rewrites its files
	BootUnfenced                 // unfenced
)

// BootSight is what is known about a node's starts from its files and from the memory of
// a guard.
type BootSight struct {
	Form BootForm
	// ByMemory: Form is by what a guard on this host remembers of the last start.
	ByMemory bool
	// Guarded: a guard remembers the node, so it fences it after a loss.
	Guarded bool
	// Started is how a guard remembers that its process with this RunID started. It is read seldom:
	// the node may have started again since.
	Started  announce.Boot
	RunID    string // empty: not known
	Evidence string // for Form
	Remedy   string // empty: the declared one
	// DataKnown: it is known what its next start does with its data; DataWeak says why it
	// would not load every write, empty: it would.
	DataKnown bool
	DataWeak  string
}

// guardOf returns what the guard in this process knows of a node.
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

// knows reports whether something is known of the node with this name.
func (k known) knows(node string, is func(k known, n *monitor.Node) bool) bool {
	i := slices.IndexFunc(k.Nodes, func(n monitor.Node) bool { return n.Name == node })
	return i >= 0 && is(k, &k.Nodes[i])
}

// isGuarded reports whether a guard fences the node after a loss: one in this
// process, one that announces itself on the node, or one that remembers it.
func isGuarded(k known, n *monitor.Node) bool {
	return guardedBy(k, n.Name) || len(n.Guards) > 0 || k.boots[n.Name].Guarded
}
