package observe

import (
	"errors"
	"fmt"
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
	"redlockctl/server/safetext"
)

// world is everything the monitor knows: nodes, locks, clocks, events. It is
// pure; the goroutines tell it what they saw, under one lock.
type world struct {
	opt           Options
	quorum        int
	base          time.Time // start of the monitor
	wall          time.Time // our wall clock at base, as we know it now
	nodes         []*watch
	table         *table.Table
	events        eventLog
	log           changeLog // of the snapshots
	own           clock.Own
	beat          func() time.Time    // the last sign of life of this process that needed no turn here
	discontinuity clock.Discontinuity // the last of our own
	lateAt        time.Time           // when this process last found itself late, by a discontinuity or less
	findings      *finding.Findings
	steps         []step          // the latest step of each node
	done          bool            // settled
	settledAt     time.Time       // when it was
	second        time.Time       // when a second read of all nodes was found to be needed for that
	hasten        bool            // the scans shall not wait for their turn
	contacts      []monitor.Event // first contacts of a guard, to be told together
}

type step struct {
	at time.Time
	by time.Duration
}

func newWorld(nodes []*redlock.Node, opt Options, now time.Time) *world {
	w := &world{opt: opt, beat: func() time.Time { return now }, quorum: redlock.Quorum(len(nodes)), base: now, wall: now.Round(0), steps: make([]step, len(nodes))}
	w.events.keep = opt.EventsKept
	w.findings = finding.New(finding.Options{
		Fences: opt.Fences, Meant: opt.Meant, MaxMemory: opt.MaxMemory,
		DriftFactor: opt.Redlock.DriftFactor, NodeTimeout: opt.Redlock.NodeTimeout,
	})
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = n.Name()
		w.nodes = append(w.nodes, newWatch(n.Name(), n.Addr(), now))
		w.nodes[i].db, w.nodes[i].unfenced = n.DB(), opt.Fences[n.Name()] == "none"
	}
	// An attempt ends within the node timeout; its release takes as long again.
	attempt := max(time.Second, 2*opt.Redlock.NodeTimeout)
	w.table = table.New(names, w.quorum, opt.MaxTTL, attempt, now, w.events.add)
	w.table.Bound(opt.MaxMemory)
	w.table.OnRestart, w.table.TakenBy = w.toldRestart, opt.TakenBy
	return w
}

// answered takes in a sight of node i. again asks for another one soon; changed
// reports whether more than the everyday numbers changed.
func (w *world) answered(i int, s sight, now time.Time) (again, changed bool) {
	w.awake(now)
	if w.outdated(s.sent) {
		return true, false
	}
	n := w.nodes[i]
	known, role, wipes := n.RunID != "", n.base, n.Facts.Wipes
	restarted := n.answered(s)
	switch {
	case restarted:
		n.tried, n.Read, n.wipesTold = false, 0, 0
		w.table.Restarted(i, n.incarnation(s.received), now)
		changed = true
	case !known && n.RunID != "":
		w.table.Met(i, n.incarnation(s.received), now)
	case role == monitor.NodeWrongRole && n.base.Readable():
		w.table.Wiped(i, now) // what another master had
	case wipes >= 0 && n.Facts.Wipes > wipes:
		if n.Facts.Wipes-wipes > n.wipesTold {
			w.table.Wiped(i, now)
			w.table.Doubt(i) // it told of no key
			n.Read = 0
		}
		n.wipesTold = 0
	}
	if s.guards != nil && len(s.guards.locks) > 0 {
		w.hear(i, s, now)
	}
	if !s.server.IsZero() {
		by, stepped, suspect := n.clock.Observe(clock.NewSample(w.base, w.wall, s.sent, s.received, s.server))
		again = suspect
		if stepped {
			w.stepped(i, by, now)
			changed = true
		}
	}
	return again, w.restate(i, now) || changed
}

// hear takes in what guards announce of locks on node i, whose clock this answer has.
func (w *world) hear(i int, s sight, now time.Time) {
	locks := slices.Clone(s.guards.locks)
	for k := range locks {
		if v := &locks[k]; !v.Until.IsZero() {
			if s.server.IsZero() {
				return // by a clock that nobody may read
			}
			v.Until = s.received.Add(v.Until.Sub(s.server))
		}
	}
	w.table.Heard(locks, now)
}

// vouches are the announcements on node i of what only this monitor knows of locks.
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
			until := w.wall.Add(v.Until.Sub(w.base)).Add(clock.Offset)
			v.Until = time.Time{}
			name, _ := v.Channel()
			// The estimate moves by less than a person would see: it is no news.
			if was, ok := n.vouched[name]; ok && was.Sub(until).Abs() < vouchJitter {
				until = was
			}
			said[name], v.Until = until, until
		}
		if c, ok := v.Channel(); ok {
			channels = append(channels, c)
		}
	}
	n.vouched = said
	return channels
}

// vouchJitter is by how much the end of an announced lock may be wrong before it is announced again.
const vouchJitter = 100 * time.Millisecond

// failed takes in a failed probe of node i.
func (w *world) failed(i int, err error, now time.Time) (changed bool) {
	if w.excused(err, now) {
		return false
	}
	w.nodes[i].failed(wire.StateOf(err), err, now)
	return w.restate(i, now)
}

// wiped takes in that all keys of node i may be gone while its server runs on, as it said
// itself.
func (w *world) wiped(i int, runID string, now time.Time) {
	if w.inSight(i, runID) {
		w.nodes[i].wipesTold++
		w.table.Wiped(i, now)
	}
}

// toldRestart tells what a restart of node i, or a wipe of its data, cost: all of it in one
// event.
func (w *world) toldRestart(i int, cost monitor.RestartCost, now time.Time) {
	n := w.nodes[i]
	kind, what, level := "restart", "restarted", monitor.LevelAlarm
	if cost.Cause == monitor.LostByWipe {
		kind, what = "data wiped", "data wiped (FLUSHALL, FLUSHDB, SWAPDB or a change of role)"
		if cost.Lost == 0 {
			level = monitor.LevelNotice
		}
	}
	text := costText(cost, now)
	if d := w.rejoinDelay(); d > 0 && !n.Persistent && (kind == "restart" || cost.Lost > 0) {
		cost.Rejoins = now.Add(d)
		text += " · rejoins " + cost.Rejoins.Format("15:04:05")
	}
	e := monitor.NodeEvent(now, level, kind, n.Name, "%s %s: %s", n.Name, what, text)
	e.Cost = &cost
	w.events.add(e)
}

// costText says what a loss cost: "12 locks lost a copy, 4 have a bare majority now, 3 lost their
// majority: held to 22:17:43".
func costText(cost monitor.RestartCost, now time.Time) string {
	text := "no lock lost a copy"
	if cost.Lost > 0 {
		text = words.Count(cost.Lost, "lock", "locks") + " lost a copy"
	}
	if cost.Bare > 0 {
		text += fmt.Sprintf(", %d %s a bare majority now", cost.Bare, map[bool]string{true: "has", false: "have"}[cost.Bare == 1])
	}
	if cost.LostMajority > 0 {
		text += fmt.Sprintf(", %d lost %s majority: held to %s", cost.LostMajority, map[bool]string{true: "its", false: "their"}[cost.LostMajority == 1], words.Moment(cost.HeldUntil, now))
	}
	l := cost.Loaded
	var loaded []string
	for _, part := range []struct {
		n    int
		what string
	}{{l.Held, "of held locks"}, {l.LeftOver, "left over"}, {l.Unknown, "of unknown tokens, which may be held"}} {
		if part.n > 0 {
			loaded = append(loaded, fmt.Sprintf("%d %s", part.n, part.what))
		}
	}
	if loaded != nil {
		text += "; loaded from disk: " + strings.Join(loaded, ", ")
	}
	return text
}

// rejoinDelay is for how long guards keep a node out after a restart: the greatest D
// of those that are known; zero: none is.
func (w *world) rejoinDelay() (d time.Duration) {
	if guard := w.findings.Guard(); guard != nil {
		d = guard.Delay
	}
	for _, n := range w.nodes {
		for _, g := range n.Guards {
			d = max(d, g.Delay)
		}
	}
	return d
}

// note takes in an event that somebody else tells: of what this monitor tells too, as
// a part of it.
func (w *world) note(e monitor.Event) {
	switch e.Kind {
	case "guard first contact":
		w.contacts = append(w.contacts, e)
		return
	case "guard unreachable", "guard reachable", "guard restart", "guard waiting":
		e.Part = e.Node != ""
	case "guard rejoined": // and nothing about why, or how it was not as it should be
		e.Part = e.Node != "" && e.Text.Raw() == "guard: "+e.Node+" rejoined"
	}
	w.events.add(e)
}

// contactTime is for how long first contacts of a guard are collected, to be told in one event.
const contactTime = 300 * time.Millisecond

// tellContacts tells which nodes a guard has met for the first time: those of which it
// says the same, at once.
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

// restate brings the state of node i up to what its probe and scan say.
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
		n.Since = now
		changed = true
		if n.served && n.State == monitor.NodeFenced && !w.table.JustLost(i, now) {
			w.table.Suspected(i, now)
		}
		if n.State.Readable() {
			n.served = n.State == monitor.NodeServing
		}
		if e, ok := n.stateEvent(was, now); ok {
			// That a node is fenced after its restart is told with that.
			e.Part = n.State == monitor.NodeFenced && w.table.JustRestarted(i, now)
			w.events.add(e)
		}
	}
	return w.settle(now) || changed
}

func (w *world) stepped(i int, by time.Duration, now time.Time) {
	n := w.nodes[i]
	w.steps[i] = step{now, by}
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

// scanStarts reports whether node i is to be scanned now, in this incarnation of its server
// (any: ""), and the table's epoch, which the end of the scan has to quote.
func (w *world) scanStarts(i int, runID string) (epoch uint32, ok bool) {
	return w.table.Epoch(i), w.inSight(i, runID)
}

// inSight reports whether node i can be read and is in this incarnation of its server, as far
// as the run_id is known.
func (w *world) inSight(i int, runID string) bool {
	n := w.nodes[i]
	return n.base.Readable() && (runID == "" || runID == n.RunID)
}

// read takes in rows of a scan of node i in this incarnation of its server; false: the
// incarnation is over, or the node out of sight.
func (w *world) read(i int, runID string, sent, received time.Time, rows []table.Row) bool {
	if w.awake(received); !w.inSight(i, runID) || w.outdated(sent) {
		return false
	}
	w.table.Read(i, sent, received, rows)
	return true
}

// passed takes in how much of the keys of node i a full read of this epoch has passed: one that began
// before sight was lost, or before what it read was doubted, says nothing of the next.
func (w *world) passed(i int, epoch uint32, part float64) {
	if n := w.nodes[i]; epoch == w.table.Epoch(i) {
		n.Read = max(n.Read, part)
	}
}

// told takes in that all changes of node i until then have been read. It tells
// if that ended the first view.
func (w *world) told(i int, runID string, until, now time.Time) bool {
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

// differs are the keys of node i of which these rows say something else than what is shown. Of a
// node whose clock was stepped not long ago the ends of copies are left out.
func (w *world) differs(i int, runID string, sent, received time.Time, rows []table.Row) []string {
	if w.awake(received); !w.inSight(i, runID) || w.outdated(sent) {
		return nil
	}
	step := w.nodes[i].Facts.StepAt
	return w.table.Differs(i, sent, received, rows, step.IsZero() || received.Sub(step) > reconcileMost)
}

// untold takes in that these keys of node i changed, and it did not tell of that.
func (w *world) untold(i int, keys []string, now time.Time) {
	f := &w.nodes[i].Facts
	f.UntoldAt, f.Untold, f.UntoldKey = now, f.Untold+len(keys), safetext.New(strings.Clone(slices.Min(keys)))
	w.missed(i, now)
}

// missed takes in that changes of node i before now may not have been told: all of it has to be
// read again.
func (w *world) missed(i int, now time.Time) {
	w.nodes[i].Read = 0
	w.table.Missed(i, now)
}

// scanned takes in the end of a full scan.
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

// scanFailed takes in a scan that did not get to its end.
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

// tick brings what depends on time alone up to now, and looks at our own clock.
// It does a bounded part of that, and reports whether there is more to do.
func (w *world) tick(now time.Time) (more bool) {
	w.lookAtOwnClock(now)
	w.tellContacts(now)
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

// ttlBound is the longest TTL that a lock may have: the least of our own and of what each guard covers.
func (w *world) ttlBound() time.Duration {
	most := w.opt.MaxTTL
	for _, n := range w.nodes {
		if g, ok := announce.Least(n.Guards); ok && (most == 0 || g.Covers() < most) {
			most = g.Covers()
		}
	}
	return most
}

// snapshot is what is known now.
func (w *world) snapshot(now time.Time, version uint64) *monitor.Snapshot {
	s := &monitor.Snapshot{
		At: now, Version: version, Locks: w.table.Locks(), Counts: w.table.Counts(), Events: w.events.latest(),
		Nodes: make([]monitor.Node, len(w.nodes)),
		Cluster: monitor.Cluster{
			Name: w.opt.ClusterName, N: len(w.nodes), Quorum: w.quorum, MaxTTL: w.opt.MaxTTL, TTLBound: w.ttlBound(),
		},
	}
	heard := true
	s.Complete, s.Settled = true, w.settledAt
	for i, n := range w.nodes {
		s.Nodes[i] = n.snapshot(now, now.Sub(w.base), w.table.Present(i))
		s.Nodes[i].NoRoom, s.Nodes[i].NoRoomLocks = w.table.NoRoom(i)
		heard = heard && n.probed
		s.Complete = s.Complete && n.probed && (!n.State.Readable() || s.Nodes[i].ReadWhole() && s.Nodes[i].NoRoomLocks == 0)
	}
	s.Assess(heard, w.done, nil) // the findings are made of it
	fresh := w.table.TakeFresh()
	w.log.add(version, fresh)
	w.findings.Note(fresh)
	if w.done {
		s.Findings = w.findings.Look(s, w.events.add)
		s.Events = w.events.latest()
		s.Ripening, s.Young = w.findings.Ripening(now, w.settledAt)
		s.Guard = w.findings.Guard()
		s.Assess(heard, true, s.Guard)
	}
	return s
}

// awake takes note that this process runs.
func (w *world) awake(now time.Time) {
	w.own.Beat(w.beat().Sub(w.base))
	gap, stopped := w.own.Alive(now.Sub(w.base), clock.OwnGap+w.opt.ProbeEvery)
	if gap > clock.LateGap {
		w.lateAt = now
		for i, n := range w.nodes {
			if n.tells { // else to read it all takes longer than this
				w.table.Missed(i, now)
			}
		}
	}
	if stopped {
		w.noteDiscontinuity(clock.Discontinuity{At: now, Gap: gap, Text: fmt.Sprintf("this process was stopped for %s", gap.Round(100*time.Millisecond))})
	}
}

// lookAtOwnClock notices that our wall clock moved.
func (w *world) lookAtOwnClock(now time.Time) {
	w.awake(now)
	if jump, ok := w.own.Check(now.Round(0).Sub(w.base.Round(0)), now.Sub(w.base)); ok {
		w.wall = w.wall.Add(jump)
		w.noteDiscontinuity(clock.Discontinuity{At: now, Jump: jump, Text: fmt.Sprintf("the clock of this machine moved by %s: it was set, or the machine was suspended", words.Signed(jump))})
	}
}

// noteDiscontinuity forgets what was measured before. The locks are read again: the
// expiries that a suspended machine computed are too late. Until that is done, how far
// it is is told as at the start.
func (w *world) noteDiscontinuity(t clock.Discontinuity) {
	w.hasten = true
	w.discontinuity = t
	w.findings.Discontinued(t)
	for i, n := range w.nodes {
		n.clock = clock.Clock{}
		n.RTTs, n.tried, n.Read = nil, false, 0
		w.steps[i] = step{}
		known := w.table.ReadWhole(i)
		if w.table.Doubt(i); known {
			w.table.Missed(i, t.At)
		}
	}
	w.events.add(monitor.NodeEvent(t.At, monitor.LevelAlarm, "own clock", "", "%s", t.Text))
}

// outdated reports whether what was asked at sent is from before the last discontinuity of this
// process: it is asked again.
func (w *world) outdated(sent time.Time) bool {
	return sent.Before(w.discontinuity.At)
}

// excused reports whether a node may have been silent only because this process did not
// run: its deadline passed meanwhile. A node that is really gone fails again.
func (w *world) excused(err error, now time.Time) bool {
	w.awake(now)
	return !w.lateAt.IsZero() && now.Sub(w.lateAt) < w.opt.Timeout && (wire.StateOf(err) == monitor.NodeSlow || errors.Is(err, errMute))
}

// errEndless ends a full read that brings more than a server can have.
var errEndless = errors.New("SCAN does not end: it returns more keys than the server says it has")
