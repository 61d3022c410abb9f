package world

import (
	"time"

	"redlockctl/monitor"
	"redlockctl/monitor/table"
	"redlockctl/proof/sim/mutant"
	"redlockctl/proof/sim/schedule"
	"redlockctl/proof/sim/trace"
	"redlockctl/redlock"
	"redlockctl/server/announce"
)

// view is a monitor: it drives table.Table as the product's does, with one probe of a master
// at a time.
type view struct {
	clock   clock
	table   *table.Table
	nodes   [schedule.MaxNodes]viewed
	gen     uint16 // of the table: answers to earlier requests are void
	trip    int
	second  time.Time // when all nodes had to be read again for a first view
	settled bool
	told    []announce.Lock // what a guard knew when it began
	shot    monitor.Snapshot

	// Of the witness: slack is the longest duration of a probe; an end counts from the
	// start of the probe.
	slack time.Duration
	// seenAt is when it first had a copy of a token, and readAt when one was last read that lasts as long as
	// its client relies on the lock; 0: never.
	seenAt, readAt [tokens]time.Duration
	claim          claim
	said           string // of what is shown
	// lost is when a master last lost votes otherwise than by a crash, or was uncordoned, and
	// crashed when one crashed.
	lost, crashed time.Duration
	stepped       bool // the clock of a master, by which it says for how long it runs
}

// viewed is one master as the monitor knows it.
type viewed struct {
	met     bool
	probed  bool
	asking  bool
	again   bool // it has changed meanwhile
	turn    uint16
	sent    time.Duration
	readAt  time.Duration // when the master answered the last probe that was used
	inbox   sighting
	last    sighting // that was taken in
	state   monitor.NodeState
	served  bool      // when it was last seen
	started time.Time // of an incarnation whose start it saw; zero: it did not
	// bornFenced: this incarnation started fenced, as the next one will.
	bornFenced bool
	blind      time.Duration
}

// sighting is the result of a probe.
type sighting struct {
	up, slow, slave, refuses, cordoned bool
	born                               bool // fenced, as a guard that saw it start knows
	at                                 time.Duration
	incarnation                        uint16
	wiped                              uint16
	uptime                             time.Duration
	token                              uint8
	may                                time.Duration // from when the guards say that it may vote; 0: they do not
	left                               time.Duration
	watched                            bool
	offset                             time.Duration // of its clock, whose steps the monitor sees
}

// viewTimeout is how long the monitor waits for an answer to a probe.
const viewTimeout = time.Second

// viewAttempt is how long the monitor takes an attempt to last.
const viewAttempt = time.Second

// viewStep is the least step of a clock that the monitor sees.
const viewStep = 200 * ms

// lockKey is the name of the lock.
const lockKey = "k"

func (w *World) startView() {
	v := &w.view
	*v = view{gen: v.gen, shot: monitor.Snapshot{Nodes: v.shot.Nodes}}
	if !w.plan.View.On {
		return
	}
	v.clock = clock{ppm: w.plan.View.PPM, offset: time.Hour}
	w.beginView()
}

// beginView starts the monitor, which knows nothing.
func (w *World) beginView() {
	v := &w.view
	names := make([]string, w.plan.N)
	for i := range names {
		names[i] = nodeNames[i]
	}
	v.gen++
	v.table = table.New(names, redlock.Quorum(w.plan.N), schedule.MaxTTL, viewAttempt, v.clock.time(w.now), w.tellView)
	v.settled, v.second, v.claim = false, time.Time{}, claim{}
	v.seenAt, v.readAt = [tokens]time.Duration{}, [tokens]time.Duration{}
	for i := range w.plan.N {
		turn, blind := v.nodes[i].turn, v.nodes[i].blind
		v.nodes[i] = viewed{turn: turn, blind: blind}
		w.viewSoon(i, time.Duration(i)*ms/8)
	}
}

// viewAnew restarts the monitor; a guard may pass on what was known.
func (w *World) viewAnew() {
	v := &w.view
	if v.table == nil {
		return
	}
	v.told = nil
	if w.plan.View.Told && v.settled {
		v.told = v.table.Vouches(v.clock.time(w.now))
	}
	w.say("v", 0, "is started anew")
	w.beginView()
}

// viewSoon makes the monitor probe a node after a while.
func (w *World) viewSoon(node int, after time.Duration) {
	n := &w.view.nodes[node]
	n.turn++
	n.asking = false
	w.push(event{at: w.now + max(after, 1), kind: evViewLook, node: uint8(node), run: n.turn, gen: w.view.gen})
}

// wakeView lets an eager monitor probe now.
func (w *World) wakeView() {
	if !w.plan.View.Eager || w.view.table == nil {
		return
	}
	for i := range w.plan.N {
		if !w.view.nodes[i].asking {
			w.viewSoon(i, w.viewTrip().Out)
		}
	}
}

// viewChange reports to the monitor that the copy on a node has changed, if the master can
// reach it.
func (w *World) viewChange(node int) {
	n := &w.view.nodes[node]
	switch {
	case w.view.table == nil || n.blind > w.now:
	case n.asking:
		n.again = true
	default:
		w.viewSoon(node, w.viewTrip().Back)
	}
}

func (w *World) viewTrip() schedule.Trip {
	t := w.plan.View.Trips[w.view.trip%schedule.GuardTrips]
	w.view.trip++
	return t
}

func (w *World) viewEvent(e *event) {
	v := &w.view
	n := &v.nodes[e.node]
	if e.gen != v.gen || e.run != n.turn {
		return
	}
	switch e.kind {
	case evViewLook:
		t := w.viewTrip()
		n.asking, n.sent = true, w.now
		w.push(event{at: w.now + t.Out, kind: evViewAsked, node: e.node, run: n.turn, gen: v.gen, x: t.Back})
	case evViewAsked:
		w.viewAsked(n, e)
	case evViewTold:
		w.viewTold(int(e.node))
		every := w.plan.View.Every
		if n.again {
			every, n.again = w.viewTrip().Back, false
		}
		w.viewSoon(int(e.node), every)
	}
}

// viewAsked runs a probe on the master.
func (w *World) viewAsked(n *viewed, e *event) {
	m := &w.masters[e.node]
	at := w.now + e.x
	n.inbox = sighting{}
	switch {
	case n.blind > w.now, !m.up && m.silent:
		at, n.inbox.slow = max(at, n.sent+viewTimeout), true
	case m.up:
		n.inbox = sighting{up: true, at: w.now, slave: m.slave, refuses: m.refusesScript(), cordoned: m.cordoned() && m.refusesScript(), incarnation: m.incarnation, wiped: m.wiped, offset: m.clock.offset, born: w.plan.Fenced && !w.plan.LagZero && !m.leaks,
			uptime: w.uptime(m), watched: w.watched(int(e.node)), may: w.mayVoteFrom(int(e.node))}
		if m.live(w.now) {
			n.inbox.token, n.inbox.left = m.token, (m.expires - m.clock.at(w.now)).Truncate(ms)
		}
	}
	w.push(event{at: at, kind: evViewTold, node: e.node, run: n.turn, gen: w.view.gen})
}

// watched reports whether a guard that runs can reach a master, and so is seen there.
func (w *World) watched(node int) bool {
	for i := range w.plan.Guards {
		if g := &w.guards[i]; g.up && g.cut[node] <= w.now {
			return true
		}
	}
	return false
}

// viewTold uses the result of a probe as the product does, and checks what is shown then.
func (w *World) viewTold(i int) {
	v := &w.view
	n := &v.nodes[i]
	now := v.clock.time(w.now)
	v.catchUp(now)
	n.probed = true
	s := n.inbox
	if !s.up || s.slave {
		n.state = monitor.NodeDown
		switch {
		case s.slow:
			n.state = monitor.NodeSlow
		case s.slave:
			n.state, n.last.slave = monitor.NodeWrongRole, true
		}
		if v.table.InSight(i) && !w.rules.Breaks("view-silent-is-empty") {
			v.table.Unreachable(i, now)
		} else if w.rules.Breaks("view-silent-is-empty") && v.table.InSight(i) {
			v.table.Scanned(i, v.table.Epoch(i), now, now)
		}
	} else {
		w.viewAnswered(i, s, now)
		if w.judge(); w.Broken == nil {
			w.viewRead(i, s, now)
		}
	}
	w.settleView(now)
	w.judge()
}

// catchUp does what was due before now.
func (v *view) catchUp(now time.Time) {
	for next := v.table.Next(); !next.IsZero() && next.Before(now); {
		v.table.Refresh(next)
		then := v.table.Next()
		if !then.After(next) {
			return
		}
		next = then
	}
}

// viewAnswered uses the result without the copy.
func (w *World) viewAnswered(i int, s sighting, now time.Time) {
	v := &w.view
	n := &v.nodes[i]
	state := monitor.NodeServing
	switch {
	case s.cordoned:
		state = monitor.NodeCordoned
	case s.refuses:
		state = monitor.NodeFenced
	}
	before := v.clock.time(n.sent - 1) // what this look reads is not what was wiped
	ahead := max(0, s.offset-v.clock.offset)
	born := table.Incarnation{Started: now.Add(-max(0, s.uptime-ahead)), Fenced: s.refuses && !s.cordoned, Keys: s.token != 0}
	switch {
	case !n.met && w.rules.Breaks("view-first-look-knows"):
	case !n.met:
		n.started = now.Add(-s.uptime - 3*time.Second)
		if s.wiped > 0 || s.may > w.now {
			born.Started = now
		}
		v.table.Met(i, born, now)
	case n.last.incarnation != s.incarnation:
		if w.rules.Breaks("view-restarts-ignored") {
			break
		}
		v.table.Restarted(i, born, now)
		n.started, n.bornFenced = v.clock.time(n.last.at), s.born // no earlier than the one before was seen
	case n.last.slave:
		v.table.Wiped(i, before)
	case n.last.wiped != s.wiped && !w.rules.Breaks("view-wipes-ignored"):
		v.table.Wiped(i, before)
		v.table.Doubt(i)
	}
	if by := s.offset - n.last.offset; n.met && by > viewStep {
		v.table.Stepped(i, by, now)
	}
	served := n.served
	n.met, n.last, n.state, n.served = true, s, state, state == monitor.NodeServing
	v.table.Reachable(i, state != monitor.NodeServing)
	if served && state == monitor.NodeFenced && !v.table.JustLost(i, now) {
		v.table.Suspected(i, now)
	}
	if v.told != nil {
		v.table.Heard(v.told, now)
		v.told = nil
	}
	v.table.Refresh(now)
}

// viewRead records that there is a copy, or none.
func (w *World) viewRead(i int, s sighting, now time.Time) {
	v := &w.view
	sent := v.clock.time(v.nodes[i].sent)
	if s.token != 0 {
		if v.seenAt[s.token] == 0 {
			v.seenAt[s.token] = w.now
		}
		if w.carries(s) {
			v.readAt[s.token] = s.at
		}
		token := tokenName(s.token)
		v.table.Read(i, sent, now, []table.Row{table.NewRow(lockKey, "string", s.left.Milliseconds(), int64(len(token)), token)})
	}
	v.table.Scanned(i, v.table.Epoch(i), sent, now)
	v.table.Sync(i, sent)
	v.nodes[i].readAt, v.slack = s.at, max(v.slack, w.now-v.nodes[i].sent)
}

// carries reports whether the copy that a look shows lasts as long as its client relies on the lock: not
// every copy has been extended, and one may be extended by a request that does not succeed.
func (w *World) carries(s sighting) bool {
	for i := range w.plan.Clients {
		if c := &w.clients[i]; c.token == s.token && (s.at+s.left+clocksDiffer < c.believes || c.extend && c.believed < c.asked && c.asked <= s.at) {
			return false
		}
	}
	return true
}

// settleView ends the first view when each node has answered, and was read again if the first
// reads do not agree.
func (w *World) settleView(now time.Time) {
	v := &w.view
	v.table.Refresh(now)
	if v.settled {
		return
	}
	for i := range w.plan.N {
		n := &v.nodes[i]
		if !n.probed || !v.second.IsZero() && v.table.InSight(i) && !v.table.ReadSince(i, v.second) {
			return
		}
	}
	if v.second.IsZero() && v.table.Doubtful() {
		v.second = now
		for i := range w.plan.N {
			w.viewSoon(i, w.viewTrip().Out)
		}
		return
	}
	v.settled = true
	v.table.Settle(now)
	v.table.Refresh(now)
}

// snapshot is what the monitor knows of the nodes, as far as who else can get in depends on it.
func (v *view) snapshot(n int, now time.Time, delay time.Duration) *monitor.Snapshot {
	s := &v.shot // made for each change of what is shown
	s.At, s.Cluster = now, monitor.Cluster{N: n, Quorum: redlock.Quorum(n), MaxTTL: schedule.MaxTTL}
	if cap(s.Nodes) < n {
		s.Nodes = make([]monitor.Node, schedule.MaxNodes)
	}
	s.Nodes = s.Nodes[:n]
	for i := range s.Nodes {
		x, to := &v.nodes[i], &s.Nodes[i]
		to.Name, to.State, to.GuardsKnown, to.RejoinsAfter, to.Guards = nodeNames[i], x.state, true, time.Time{}, nil
		if x.state == monitor.NodeFenced && x.last.watched && !x.started.IsZero() {
			to.RejoinsAfter = x.started.Add(delay)
			if may := v.clock.time(x.last.may); x.last.may != 0 && may.Before(to.RejoinsAfter) {
				to.RejoinsAfter = may
			}
		}
		if x.last.watched {
			if to.Guards = strangers; x.bornFenced {
				to.Guards = witnesses
			}
		}
	}
	return s
}

// What a guard announces that has not seen a node start, and one that has seen it start fenced.
var strangers, witnesses = []announce.Guard{{ID: "g"}}, []announce.Guard{{ID: "g", Boot: announce.BootFenced}}

// tellView checks the monitor's events: none may say that a lock has ended on which a client
// relies.
func (w *World) tellView(e monitor.Event) {
	if w.Trace != nil {
		w.say("v", 0, "tells: %s", e.Text.Raw())
	}
	switch e.Kind {
	case "released", "expired":
	default:
		return
	}
	for i := range w.plan.Clients {
		c := &w.clients[i]
		if c.believes > w.now+w.view.slack+viewJitter && (e.Kind != "expired" || w.view.sees(w.plan.N, monitor.LockHeld)) && tokenName(c.token) == e.Token.Raw() && w.mustKnow(c) {
			w.breach(mutant.Shown, "it is told that the lock %s is %s, and c%d relies on it until %s", tokenName(c.token), e.Kind, i+1, trace.At(c.believes))
		}
	}
}
