package small

import (
	"fmt"
	"slices"
	"time"

	"redlockctl/proof/sim/trace"
	"redlockctl/restartguard"
)

func (r *restartModel) moment(s *state) time.Duration { return s.now }

// begin is the state in which the guard has known all masters for long.
func (r *restartModel) begin() state {
	s := state{scene: scene{crashes: r.Crashes, flushes: r.Flushes, guardCrashes: r.GuardCrashes, steps: r.Steps, drains: r.Drains}}
	for i := range s.node {
		n := &s.node[i]
		n.up, n.incarnation, n.conn = true, 1, 1
		if !r.is("no-guard") {
			r.look(&s, i)
			n.state.Basis.Trusted = epoch
		}
	}
	return s
}

// broken: two clients rely on the lock at once.
func (r *restartModel) broken(s *state) string {
	a, b := s.client[0], s.client[1]
	if a.phase == clientHolding && a.until > s.now && b.phase == clientHolding && b.until > s.now {
		return fmt.Sprintf("c1 relies on the lock until %s, and c2 until %s", trace.At(a.until), trace.At(b.until))
	}
	return ""
}

// over: at least one client can never rely on the lock again.
func (r *restartModel) over(s *state) bool {
	for c := range s.client {
		cl := &s.client[c]
		if cl.phase == clientDone || cl.phase == clientHolding && cl.until <= s.now {
			return true
		}
	}
	return false
}

// moves lists the possible moves; make may still refuse one.
func (r *restartModel) moves(s *state, m []move) []move {
	for c := range uint8(clientCount) {
		// The clients are interchangeable: the first is the one that begins first.
		if s.client[c].phase == clientWaiting && (c == 0 || s.client[0].phase != clientWaiting) {
			m = append(m, move{moveBegin, c, 0})
		}
	}
	for i := range uint8(nodeCount) {
		for c := range uint8(clientCount) {
			if s.node[i].set[c] == setSent {
				m = append(m, move{moveSet, c, i})
			}
		}
		n := &s.node[i]
		add := func(possible bool, kind moveKind) {
			if possible {
				m = append(m, move{kind, 0, i})
			}
		}
		add(n.up && s.crashes > 0, moveCrash)
		add(!n.up, moveBoot)
		add(n.up && !n.closed && s.flushes > 0 && n.live(s.now), moveFlush)
		if r.is("no-guard") {
			continue
		}
		add(n.up && !n.cordoned && s.drains > 0, moveCordon)
		add(n.up && n.cordoned, moveUncordon)
		add(n.up && n.counts() && n.removal == removalNone, moveCount)
		add(n.up && !n.closed && s.steps > 0 && n.live(s.now), moveStep)
		add(n.removal == removalNone || n.removalConn != n.conn, moveLook) // or its answer is waited for
		add(r.EarlyRejoin && n.up && n.removal == removalNone && n.readAt < s.now, moveRead)
		add(n.removal == removalSent && n.up, moveRemove)
		add(n.removal == removalDone, moveRemoved)
		add(n.removal != removalNone && n.removalConn == n.conn, moveGiveUp)
	}
	if s.guardCrashes > 0 && !r.is("no-guard") {
		m = append(m, move{moveGuardCrash, 0, 0}, move{moveGuardForgets, 0, 0})
	}
	return append(m, move{moveTime, 0, 0})
}

// make makes a move, if it is possible.
func (r *restartModel) make(s *state, m move) bool {
	n := &s.node[m.at]
	switch m.kind {
	case moveBegin:
		r.beginAttempt(s, int(m.who))
	case moveSet:
		return r.arrive(s, int(m.who), int(m.at))
	case moveCrash:
		s.crashes--
		r.say(s.now, "n", m.at, "crashes%s", n.forgets(s.now))
		n.up, n.token, n.cordoned = false, 0, false
		if n.removal != removalNone && r.is("rejoin-retried") {
			n.removal = removalSent
		} else {
			n.removal = removalNone
		}
	case moveBoot:
		n.up, n.incarnation, n.wipes, n.closed = true, n.incarnation+1, 0, !r.is("no-guard")
		n.conn++
		r.say(s.now, "n", m.at, "is back, empty (run %d)", n.incarnation)
	case moveFlush:
		s.flushes--
		r.say(s.now, "n", m.at, "is flushed%s", n.forgets(s.now))
		n.token, n.wipes = 0, n.wipes+1
		if !r.is("no-guard") { // at once, or nobody could prevent a second vote
			if n.removal == removalDone {
				r.removed(s, int(m.at))
			}
			r.look(s, int(m.at))
		}
	case moveStep:
		s.steps--
		r.say(s.now, "n", m.at, "has its wall clock set ahead by an hour%s, while the guard is away", n.forgets(s.now))
		n.token, n.ahead = 0, n.ahead+time.Hour
		r.crashGuard(s, true)
		r.look(s, int(m.at)) // at once, as after a flush
	case moveCordon:
		s.drains--
		n.cordoned, n.closed = true, true
		r.say(s.now, "n", m.at, "is cordoned by an operator")
	case moveUncordon:
		n.cordoned = false
		r.say(s.now, "n", m.at, "is uncordoned, still fenced")
	case moveCount:
		r.count(s, int(m.at))
	case moveLook:
		r.look(s, int(m.at))
	case moveRead:
		return r.read(s, int(m.at))
	case moveRemove:
		n.closed, n.removal = n.cordoned, removalDone // who removes it puts a cordon back
		if n.removalConn != n.conn {
			n.removal = removalNone
		}
		r.say(s.now, "n", m.at, "rejoins by g1")
	case moveRemoved:
		r.removed(s, int(m.at))
	case moveGiveUp:
		n.conn++
		if n.removal == removalDone {
			n.removal = removalNone
		}
		r.say(s.now, "g", 0, "has no answer from %s, and gives the connection up", nodeNames[m.at])
	case moveGuardCrash, moveGuardForgets:
		s.guardCrashes--
		r.crashGuard(s, m.kind == moveGuardCrash)
	case moveTime:
		return r.pass(s)
	}
	return true
}

// pass advances time to the next moment at which something ends.
func (r *restartModel) pass(s *state) bool {
	next := (s.now/grid + 1) * grid
	stop := func(t time.Duration) {
		if t > s.now && t < next {
			next = t
		}
	}
	for c := range s.client {
		switch s.client[c].phase {
		case clientAsking:
			stop(s.client[c].start + attemptBound)
		case clientHolding:
			stop(s.client[c].until)
		}
	}
	for i := range s.node {
		n := &s.node[i]
		if n.token != 0 {
			stop(n.ends)
		}
		if d := n.state.Basis.Deadline; !d.IsZero() {
			stop(d.Sub(epoch))
			if r.EarlyRejoin {
				stop(d.Add(-n.state.Basis.Delay).Add(r.after).Sub(epoch))
			}
		}
	}
	if next > r.horizon {
		return false
	}
	s.now = next
	r.say(s.now, "", 0, "time passes")
	for c := range s.client {
		if s.client[c].phase == clientAsking && !s.time().Before(r.attempt(s, c, -1).Deadline()) {
			r.decide(s, c, -1)
		}
	}
	return true
}

// key hashes the whole state without what makes no difference: the nodes are
// interchangeable, so states that differ only in their order are one; see
// [restartModel.alike] and [restartguard.Basis].
func (r *restartModel) key(s *state) uint64 {
	k := s.scene
	for c := range k.client {
		cl := &k.client[c]
		if cl.phase != clientAsking {
			cl.start = 0
		}
		if cl.phase != clientHolding || cl.until <= s.now {
			cl.until = 0
		}
	}
	// Reads from before they were needed are useless.
	from := trace.Never
	for i := range s.node {
		if g := &s.node[i].state; r.EarlyRejoin && g.Basis.Phase == restartguard.PhaseFenced {
			from = min(from, g.Basis.Deadline.Add(r.after-g.Basis.Delay).Sub(epoch))
		}
	}
	var nodes [nodeCount]uint64
	for i := range s.node {
		nodes[i] = keyOf(r.alike(&s.node[i], s.now, from))
	}
	slices.Sort(nodes[:])
	return keyOf(struct {
		scene
		nodes [nodeCount]uint64
	}{k, nodes})
}

// likeness is a node without its identity and its history.
type likeness struct {
	master
	guard restartguard.Basis
}

func (r *restartModel) alike(of *node, now, from time.Duration) likeness {
	n, g := of.master, of.state.Basis
	if !n.live(now) {
		n.token, n.ends = 0, 0
	}
	for c := range n.set {
		if n.set[c] != setSent {
			n.to[c] = 0
		}
	}
	if n.readAt < from {
		n.readAt, n.readToken, n.readLeft, n.readIncarnation = 0, 0, 0, 0
	}
	if !r.is("from-last-seen") {
		g.LastSeen = time.Time{} // copies are always counted after it
	}
	if g.RunID != "" {
		g.RunID = g.RunID[1:]
	}
	if g.Early != "" {
		g.Early = "yes"
	}
	if !r.EarlyRejoin && r.Drains == 0 || !g.Trusted.IsZero() && !g.Trusted.After(epoch.Add(now)) {
		g.Trusted = epoch
	}
	// All clocks are right except for their steps: the time of a reading makes no
	// difference.
	g.Clock, g.ClockAt, g.ClockDrift = restartguard.Reading{Wall: g.Clock.Wall - g.Clock.Sent}, 0, 0
	// There is no second guard, and no guard with early rejoin restarts.
	g.Unsure, g.Handed, g.Relied, g.Age = time.Time{}, time.Time{}, time.Time{}, 0
	// Of a connection only matters whether it is the present one.
	if g.Pending.Sent {
		g.Pending.Conn -= n.conn
	}
	if n.removal != removalNone {
		n.removalConn -= n.conn
	} else {
		n.removalConn = 0
	}
	n.conn = 0
	return likeness{n, g}
}
