package observe

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"

	"redlockctl/monitor"
	"redlockctl/monitor/clock"
	"redlockctl/monitor/finding"
	"redlockctl/monitor/table"
	"redlockctl/monitor/wire"
	"redlockctl/monitor/words"
	"redlockctl/redlock"
	"redlockctl/server/announce"
	"redlockctl/server/fences"
	"redlockctl/server/safetext"
)

// world is all that the monitor knows: nodes, locks, clocks, events. It is pure; the
// goroutines report to it under one lock.
type world struct {
	opt           Options
	quorum        int
	base          time.Time // start of the monitor
	wall          time.Time // our wall clock at base, as corrected since
	nodes         []*watch
	table         *table.Table
	events        eventLog
	log           changeLog // of the snapshots
	own           clock.Own
	beat          func() time.Time    // the last heartbeat of this process, which does not need this lock
	discontinuity clock.Discontinuity // the last one of our clock
	sureAt        time.Time           // when our clock was last known not to have jumped
	pause         monitor.Pause       // the last one
	readAgain     time.Time           // when all nodes had been read after it; zero: not yet, or it has ended
	lateAt        time.Time           // when this process last noticed a delay of its own
	findings      *finding.Findings
	steps         []step    // the latest step of each node
	done          bool      // settled
	settledAt     time.Time // when it settled
	recalled      bool      // what a record knows has been taken in; true without one
	forcedKnown   bool      // so is which locks were force-released, and who cordoned nodes; true if nothing is recorded
	cordons       map[string]monitor.Cordon
	second        time.Time       // when a second read of all nodes was found necessary
	hasten        bool            // the scans should start now
	contacts      []monitor.Event // first contacts of a guard, to be reported together
	silence       silence
	asking        bool // guards elsewhere have yet to answer
	unproven      bool // the latest snapshot is, see [monitor.Snapshot.Unproven]
}

type step struct {
	at    time.Time
	by    time.Duration
	heard bool // a guard told it
}

func newWorld(nodes []*redlock.Node, opt Options, now time.Time) *world {
	w := &world{opt: opt, recalled: opt.Recorded == nil, forcedKnown: opt.Forced == nil && opt.Cordons == nil, beat: func() time.Time { return now }, quorum: redlock.Quorum(len(nodes)), base: now, wall: now.Round(0), steps: make([]step, len(nodes))}
	w.events.keep = opt.EventsKept
	w.findings = finding.New(finding.Options{
		Fences: opt.Fences, Meant: opt.Meant, MaxMemory: opt.MaxMemory,
		DriftFactor: opt.Redlock.DriftFactor, NodeTimeout: cmp.Or(opt.Redlock.NodeTimeout, redlock.DefaultNodeTimeout), NodeTimeoutSet: opt.Redlock.NodeTimeout > 0,
	})
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = n.Name()
		w.nodes = append(w.nodes, newWatch(n.Name(), n.Addr(), now))
		w.nodes[i].db, w.nodes[i].unfenced = n.DB(), opt.Fences[n.Name()] == fences.None
	}
	// An attempt ends within the node timeout; its release takes as long again.
	attempt := max(time.Second, 2*opt.Redlock.NodeTimeout)
	w.table = table.New(names, w.quorum, opt.MaxTTL, attempt, now, w.events.add)
	w.table.Bound(opt.MaxMemory)
	w.table.Await = w.events.await
	w.table.OnRestart, w.table.TakenBy, w.table.OtherDatabase = w.toldRestart, opt.TakenBy, w.otherDatabase
	return w
}

// otherDatabase returns the number of a database that has keys on some node and is not the one of the
// locks; -1: none is known.
func (w *world) otherDatabase() int {
	for _, n := range w.nodes {
		if n.otherDB >= 0 {
			return n.otherDB
		}
	}
	return -1
}

// answered records a probe of node i. again requests another one soon; changed reports
// whether more than routine numbers changed.
func (w *world) answered(i int, s sight, now time.Time) (again, changed bool) {
	w.awake(now)
	if w.outdated(s.sent) {
		return true, false
	}
	n := w.nodes[i]
	known, role, wipes := n.RunID != "", n.base, n.Facts.Wipes
	restarted := n.answered(s)
	n.reprobed = true
	switch {
	case restarted:
		n.tried, n.Read, n.wipesTold = false, 0, 0
		w.table.Restarted(i, n.incarnation(s), now)
		changed = true
	case !known && n.RunID != "":
		w.table.Met(i, n.incarnation(s), now)
	case role == monitor.NodeWrongRole && n.base.Readable():
		w.table.Wiped(i, now) // the data of another master
	case wipes >= 0 && n.Facts.Wipes > wipes:
		if n.Facts.Wipes-wipes > n.wipesTold {
			w.table.Wiped(i, now)
			w.table.Doubt(i) // it reported no keys
			n.Read = 0
		}
		n.wipesTold = 0
	}
	if !s.server.IsZero() {
		by, stepped, suspect := n.clock.Observe(clock.NewSample(w.base, w.wall, s.sent, s.received, s.server))
		again = suspect
		if stepped {
			w.stepped(i, by, now)
			changed = true
		}
	}
	// After a step of its clock, the announcements there still have the times of before, for a moment.
	if s.guards != nil && s.guards.step != nil && !again && !s.server.IsZero() {
		changed = w.hearStep(i, s.guards.step.By, s.sent.Add(s.guards.step.At.Sub(s.server)), now) || changed
	}
	if s.guards != nil && len(s.guards.locks) > 0 && !again && (w.steps[i].at.IsZero() || w.steps[i].heard || now.Sub(w.steps[i].at) > announcedAnew) {
		w.hear(i, s, now)
	}
	return again, w.restate(i, now) || changed
}

// announcedAnew is how long guards take to see a clock step and to announce the ends of locks again.
const announcedAnew = 2 * time.Second

// hearStep records a step of the clock of node i that a guard saw before this monitor looked. It reports whether it
// is news.
func (w *world) hearStep(i int, by time.Duration, at, now time.Time) bool {
	if was := w.steps[i].at; at.After(now) || now.Sub(at) > w.stepKept() || !was.IsZero() && at.Sub(was) < announcedAnew {
		return false
	}
	w.steps[i] = step{at, by, true}
	w.nodes[i].Facts.StepAt, w.nodes[i].Facts.StepBy = at, by
	w.table.Stepped(i, by, at)
	return true
}

// stepKept is for how long a step of a clock matters: until the locks of before have expired.
func (w *world) stepKept() time.Duration { return max(w.opt.MaxTTL, time.Minute) }

// hear records what guards announce about locks on node i; s has the node's clock. The node read it
// after the sending, so no lock ends earlier than told. A time that counted from the receiving would be
// too late by as much as this process was: as views and guards hear each other, ends would move on.
func (w *world) hear(i int, s sight, now time.Time) {
	locks := slices.Clone(s.guards.locks)
	for k := range locks {
		if v := &locks[k]; !v.Until.IsZero() {
			if s.server.IsZero() {
				return // the clock that the times refer to cannot be read
			}
			v.Until = s.sent.Add(v.Until.Sub(s.server))
		}
	}
	w.table.Heard(locks, now)
}

// vouches returns the announcements for node i: what only this monitor knows about locks.
func (w *world) vouches(i int, now time.Time) []string {
	n := w.nodes[i]
	clock := n.clock.Estimate(now.Sub(w.base))
	var channels []string
	said := map[string]time.Time{}
	for _, v := range w.table.Vouches(now) {
		if !v.Until.IsZero() {
			if !clock.Valid {
				continue
			}
			until := w.wall.Add(v.Until.Sub(w.base)).Add(clock.Offset - clock.Bound) // no later than it is
			v.Until = time.Time{}
			name, _ := v.Channel()
			// The estimate is later by too little for a person to notice.
			if was, ok := n.vouched[name]; ok && !was.After(until) && until.Sub(was) < vouchJitter {
				until = was
			}
			said[name], v.Until = until, until
		}
		if c, ok := v.Channel(); ok {
			channels = append(channels, c)
		}
	}
	if s := w.steps[i]; !s.at.IsZero() && !s.heard && clock.Valid && now.Sub(s.at) < w.stepKept() {
		at := w.wall.Add(s.at.Sub(w.base)).Add(clock.Offset)
		if was, ok := n.vouched[announce.StepPrefix]; ok && was.Sub(at).Abs() < announcedAnew/2 {
			at = was
		}
		said[announce.StepPrefix] = at
		channels = append(channels, announce.Step{By: s.by, At: at}.Channel())
	}
	n.vouched = said
	return channels
}

// vouchJitter is how much too early the announced end of a lock may be before it is announced
// again.
const vouchJitter = 100 * time.Millisecond

// failed records a failed probe of node i. It does not count if this process may have
// been late itself.
func (w *world) failed(i int, err error, now time.Time) (counts, changed bool) {
	if w.excused(err, now) {
		return false, false
	}
	w.nodes[i].failed(err, now)
	w.nodes[i].reprobed = true
	return true, w.restate(i, now)
}

// wiped records that all keys of node i may be gone although its server runs on, as it
// reported itself.
func (w *world) wiped(i int, runID string, now time.Time) {
	if w.inSight(i, runID) {
		w.nodes[i].wipesTold++
		w.table.Wiped(i, now)
	}
}

// note records an event of another source. If this monitor reports it too, it becomes a
// part of that event.
func (w *world) note(e monitor.Event) {
	switch e.Kind {
	case "guard first contact":
		w.contacts = append(w.contacts, e)
		return
	case "guard unreachable", "guard reachable", "guard restart", "guard waiting", "guard cordoned":
		e.Part = e.Node != ""
	case "guard rejoined": // without a reason and without anything unusual
		e.Part = e.Node != "" && e.Text.Raw() == "guard: "+e.Node+" rejoined"
	}
	w.events.add(e)
}

// contactTime is how long first contacts of a guard are collected for one event.
const contactTime = 300 * time.Millisecond

// tellContacts reports which nodes a guard has met for the first time, in one event for
// those with the same text.
func (w *world) tellContacts(now time.Time) {
	if len(w.contacts) == 0 || now.Sub(w.contacts[0].At) < contactTime {
		return
	}
	said := func(e *monitor.Event) string { return strings.TrimPrefix(e.Text.Raw(), "guard: "+e.Node+" ") }
	for len(w.contacts) > 0 {
		first := w.contacts[0]
		text := said(&first)
		var names []string
		w.contacts = slices.DeleteFunc(w.contacts, func(e monitor.Event) bool {
			if said(&e) != text {
				return false
			}
			names = append(names, e.Node)
			return true
		})
		if len(names) > 1 {
			slices.Sort(names)
			first.Node, first.Text = "", safetext.New("guard: "+strings.Join(names, ", ")+" "+text)
		}
		w.events.add(first)
	}
}

// restate updates the state of node i from its probe and scan.
func (w *world) restate(i int, now time.Time) (changed bool) {
	n := w.nodes[i]
	ok := n.base.Readable()
	changed = ok != w.table.InSight(i)
	if ok {
		w.table.Reachable(i, n.base != monitor.NodeServing)
	} else if changed {
		w.table.Unreachable(i, now)
		n.Read = 0
	}
	if n.denied != nil && n.shown() == monitor.NodeDenied {
		n.Err = safetext.New("locks unread: " + wire.Sentence(n.denied))
	}
	was := n.State
	if n.State = n.shown(); n.State != was {
		n.Since, n.Older = now, was == monitor.NodeUnknown
		n.noteCordon(was, w.table.JustRestarted(i, now))
		changed = true
		if n.served && n.State == monitor.NodeFenced && !w.table.JustLost(i, now) {
			w.table.Suspected(i, now)
		}
		if n.State.Readable() {
			n.served = n.State == monitor.NodeServing
		}
		unheard := w.silence.broken(n.Name)
		switch e, ok := n.stateEvent(was, now); {
		case !ok, unheard && n.State == monitor.NodeServing:
		case !n.SilentSince.IsZero():
			w.silence.keep(e)
		default:
			// The event of its restart says that the node is fenced, or still cordoned. That the
			// nodes are up is a part of that they are seen again.
			again := n.State == monitor.NodeCordoned && n.Since.Before(now)
			e.Part = (again || n.State == monitor.NodeFenced) && w.table.JustRestarted(i, now) || w.silence.cut
			if w.opt.ActedOn != nil && !again {
				if a, ok := w.opt.ActedOn(n.Name); ok && a.Leads(was, n.State) {
					e.Text, e.Part = safetext.New(e.Text.Raw()+"; "+a.Act+a.By()), false
				}
			}
			w.events.add(e)
		}
	}
	return w.settle(now) || changed
}

func (w *world) stepped(i int, by time.Duration, now time.Time) {
	n := w.nodes[i]
	w.steps[i] = step{at: now, by: by}
	n.Facts.StepAt, n.Facts.StepBy = now, by
	w.table.Stepped(i, by, now)
	when := "early"
	if by < 0 {
		when = "late"
	}
	w.events.add(monitor.NodeEvent(now, monitor.LevelAlarm, "clock step", n.Name, "%s's clock was stepped by %s: the locks on it end %s %s",
		n.Name, words.Signed(by), by.Abs().Round(time.Millisecond), when))
	together := 0
	for k, other := range w.nodes {
		switch {
		case len(other.clock.Recent) == 0 || !other.base.Readable():
		case w.steps[k].at.IsZero() || now.Sub(w.steps[k].at) > 2*time.Second || (w.steps[k].by-by).Abs() > 2*clock.StepMargin:
			return
		default:
			together++
		}
	}
	if together > 1 {
		w.events.add(monitor.NodeEvent(now, monitor.LevelAlarm, "own clock", "",
			"all clocks were stepped by %s at once: more likely our own clock, or the time server that they share", words.Signed(by)))
	}
}

// scanStarts reports whether node i should be scanned now, in this incarnation of its
// server (any: ""), and returns the table's epoch, which the end of the scan must quote.
func (w *world) scanStarts(i int, runID string) (epoch uint32, ok bool) {
	return w.table.Epoch(i), w.inSight(i, runID)
}

// inSight reports whether node i can be read and is in this incarnation of its server, as
// far as the run_id is known.
func (w *world) inSight(i int, runID string) bool {
	n := w.nodes[i]
	return n.base.Readable() && (runID == "" || runID == n.RunID)
}

// read records rows of a scan of node i in this incarnation of its server; false: the
// incarnation has ended, or the node cannot be read.
func (w *world) read(i int, runID string, sent, received time.Time, rows []table.Row) bool {
	if w.awake(received); !w.inSight(i, runID) || w.outdated(sent) {
		return false
	}
	w.table.Read(i, sent, received, rows)
	return true
}

// passed records which share of the keys of node i a full read of this epoch has passed.
// A read that started before the node was lost or its data doubted does not count.
func (w *world) passed(i int, epoch uint32, part float64) {
	if n := w.nodes[i]; epoch == w.table.Epoch(i) {
		n.Read = max(n.Read, part)
	}
}

// readUpTo records that all changes of node i up to until have been read. It reports whether
// that completed the first view.
func (w *world) readUpTo(i int, runID string, until, now time.Time) bool {
	if !w.inSight(i, runID) {
		return false
	}
	w.table.Sync(i, until)
	n := w.nodes[i]
	n.UpTo = until
	if until.After(n.proven) {
		n.proven = until
	}
	return !w.done && w.settle(now)
}

// differs returns the keys of node i whose rows differ from the view. It ignores the
// expiry of copies if the clock of the node stepped recently.
func (w *world) differs(i int, runID string, sent, received time.Time, rows []table.Row) []string {
	if w.awake(received); !w.inSight(i, runID) || w.outdated(sent) {
		return nil
	}
	step := w.nodes[i].Facts.StepAt
	return w.table.Differs(i, sent, received, rows, step.IsZero() || received.Sub(step) > reconcileMost)
}

// unreported records that these keys of node i changed without a report.
func (w *world) unreported(i int, keys []string, now time.Time) {
	f := &w.nodes[i].Facts
	f.UnreportedAt, f.Unreported, f.UnreportedKey = now, f.Unreported+len(keys), safetext.New(strings.Clone(slices.Min(keys)))
	w.missed(i, now)
}

// missed records that changes of node i before now may not have been reported: all of it
// must be read again.
func (w *world) missed(i int, now time.Time) {
	w.nodes[i].Read = 0
	w.table.Missed(i, now)
}

// scanned records the end of a full scan.
func (w *world) scanned(i int, runID string, epoch uint32, began, now time.Time) bool {
	if !w.inSight(i, runID) {
		return false
	}
	n := w.nodes[i]
	n.denied, n.fails, n.tried = nil, 0, true
	n.note("scan", monitor.Limit{})
	n.Err = safetext.Text{}
	w.table.Scanned(i, epoch, began, now)
	if w.table.ReadWhole(i) {
		n.Read, n.proven = 1, now
	}
	w.restate(i, now)
	return true
}

// scanFailed records a scan that did not finish.
func (w *world) scanFailed(i int, err error, now time.Time) {
	n := w.nodes[i]
	n.fails++
	switch {
	case wire.IsAnswer(err) && wire.StateOf(err) == monitor.NodeDenied:
		n.denied, n.tried, n.Read = err, true, 0
		w.table.Doubt(i)
	case (n.fails >= 2 || errors.Is(err, errEndless)) && n.base.Readable():
		n.note("scan", monitor.Limit{Text: "locks unread: " + safetext.Escape(wire.Sentence(err)), Do: adviceScan})
		n.tried, n.Read = n.tried || n.fails >= scanTries || errors.Is(err, errEndless), 0
		w.table.Doubt(i)
	}
	w.restate(i, now)
}

// tick updates what depends on time alone, and checks our own clock. It does a bounded
// part of the work and reports whether more is left.
func (w *world) tick(now time.Time) (more bool) {
	w.lookAtOwnClock(now)
	w.tellContacts(now)
	w.correctPromises(now)
	w.table.BoundTTL(w.ttlBound())
	budget := table.Slice
	if w.loading() {
		budget /= 40
		w.table.First(now, seedMost)
	}
	if more = w.table.Work(now, budget); !more {
		w.settle(now)
	}
	return more
}

// ttlBound returns the longest TTL that a lock may have: the least of our own limit and
// of what each guard covers.
func (w *world) ttlBound() time.Duration {
	most := w.opt.MaxTTL
	for _, n := range w.nodes {
		if g, ok := announce.Least(n.Guards); ok && (most == 0 || g.Covers() < most) {
			most = g.Covers()
		}
	}
	return most
}

// snapshot returns the current state as a snapshot.
func (w *world) snapshot(now time.Time, version uint64) *monitor.Snapshot {
	w.events.settle(now)
	s := &monitor.Snapshot{
		At: now, Version: version, Locks: w.table.Locks(), Counts: w.table.Counts(), Events: w.events.latest(),
		Nodes: make([]monitor.Node, len(w.nodes)),
		Cluster: monitor.Cluster{
			Name: w.opt.ClusterName, N: len(w.nodes), Quorum: w.quorum, MaxTTL: w.opt.MaxTTL, TTLBound: w.ttlBound(),
		},
	}
	heard := true
	w.endPause(now)
	s.Complete, s.Settled, s.Pause = true, w.settledAt, w.pause
	for i, n := range w.nodes {
		s.Nodes[i] = n.snapshot(now, now.Sub(w.base), w.table.Present(i))
		if c, ok := w.cordons[n.Name]; ok && (n.State == monitor.NodeCordoned || n.State == monitor.NodeDown) {
			s.Nodes[i].Cordon = &c
		}
		s.Nodes[i].NoRoom, s.Nodes[i].NoRoomLocks = w.table.NoRoom(i)
		if one := &s.Nodes[i]; one.State == monitor.NodeCordoned && one.Locks > 0 {
			n.copies.update(one.Locks, n.cordoned, now, func() time.Time { return w.table.LastEnd(i) })
			one.CopiesUntil = n.copies.until
		}
		heard = heard && n.probed
		s.Complete = s.Complete && n.probed && (!n.State.Readable() || s.Nodes[i].ReadWhole() && s.Nodes[i].NoRoomLocks == 0)
	}
	s.Assess(heard, w.done, nil) // the findings need it
	if w.asking = false; s.Cluster.NotSeen && w.opt.Witnesses != nil {
		s.Witnesses = w.opt.Witnesses()
		w.asking = slices.ContainsFunc(s.Witnesses, func(a monitor.Witness) bool { return !a.Asked() })
		s.Assess(heard, w.done, nil)
	}
	w.unproven = s.Unproven()
	w.silence.tell(s, w.events.add)
	s.Events = w.events.latest()
	fresh := w.table.TakeFresh()
	w.log.add(version, fresh)
	w.findings.Note(fresh)
	if w.done {
		if w.events.alarmed {
			w.events.alarmed = false
			w.findings.Hurry()
		}
		s.Findings = w.findings.Look(s, w.events.add)
		s.Events = w.events.latest()
		s.Ripening, s.Young = w.findings.Ripening(now, w.settledAt)
		s.Guard = w.findings.Guard()
		s.Assess(heard, true, s.Guard)
	}
	return s
}

// excused reports whether a node may have been silent only because this process did not
// run: its deadline passed meanwhile. A node that is really down fails again.
func (w *world) excused(err error, now time.Time) bool {
	w.awake(now)
	return !w.lateAt.IsZero() && now.Sub(w.lateAt) < w.opt.Timeout && (wire.IsSilence(err) || errors.Is(err, errMute))
}

// errEndless ends a full read that returns more keys than a server can have.
var errEndless = errors.New("SCAN does not end: it returns more keys than the server says it has")
