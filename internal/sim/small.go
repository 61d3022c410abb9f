package sim

import (
	"fmt"
	"time"

	"redlockctl/internal/sim/trace"
	"redlockctl/redlock"
	"redlockctl/restartguard"
)

// The exhaustive model is small: three masters, two clients with one attempt each,
// one guard, and all orders of what may happen, at all moments at which anything
// ends. Its clocks are right, and a look of the guard, with what follows from it
// but a lift, takes no time. What decides is the product's code, as it is in
// schedules.
const (
	smallNodes   = 3
	smallClients = 2
	smallTTL     = 10 * time.Second
	smallBound   = 2 * time.Second // of an attempt
	smallGrid    = 5 * time.Second // moments at which anything may happen, beside those at which something ends
	smallHorizon = 25 * time.Second
	earlyHorizon = 6 * time.Second // what comes at D and later is the same without it
)

// Small is what the exhaustive model plays.
type Small struct {
	Crashes, Flushes, GuardCrashes int
	// Steps are steps of a master's wall clock, by which it forgets its vote, while
	// the guard is away for a moment: it crashes, and starts again with its memory.
	Steps       int
	EarlyRejoin bool
	// Extensions, if any, make it another model: a client keeps its lock by so many, puts
	// back the copies that masters have lost, and an operator may take it away.
	Extensions int
	Taken      bool
	// Weakness is the name of one of [SmallMutants]; "": none.
	Mutant string
	// States bounds how many are visited; 0: no bound.
	States int
}

// SmallModels are those that can be visited whole within a minute on one core.
func SmallModels() []Small {
	return []Small{
		{Crashes: 1, Flushes: 1}, {Crashes: 1, GuardCrashes: 1}, {Crashes: 1, Steps: 1}, {Crashes: 2}, {Crashes: 2, EarlyRejoin: true},
		{Crashes: 1, Extensions: 2}, {Extensions: 3, Taken: true},
	}
}

// String says what may happen in the model.
func (m Small) String() string {
	s := fmt.Sprintf("%d crashes", m.Crashes)
	if m.Crashes == 1 {
		s = "1 crash"
	}
	if m.Flushes > 0 {
		s += fmt.Sprintf(", %d FLUSHALL", m.Flushes)
	}
	if m.GuardCrashes > 0 {
		s += fmt.Sprintf(", %d restart of the guard", m.GuardCrashes)
	}
	if m.Steps > 0 {
		s += fmt.Sprintf(", %d step of a clock while the guard restarts", m.Steps)
	}
	if m.EarlyRejoin {
		s += ", early rejoin"
	}
	if m.Extensions > 0 {
		s += fmt.Sprintf(", a lock that is kept by %d extensions", m.Extensions)
	}
	if m.Taken {
		s += " and taken away"
	}
	return s
}

// Weakness is a rule that the exhaustive model can break.
type SmallMutant struct {
	Name, What string
	model      Small
}

// Model is the least that shows it.
func (w SmallMutant) Model() Small {
	w.model.Mutant = w.Name
	return w.model
}

// SmallMutants are all that there are.
func SmallMutants() []SmallMutant {
	return []SmallMutant{
		{"no-guard", "no guard, and masters that start unfenced", Small{Crashes: 1}},
		{"delay-0.9", "waits for 0.9 × D", Small{Crashes: 1}},
		{"from-last-seen", "counts D from when the master was last seen alive", Small{Crashes: 1}},
		{"rejoin-retried", "sends a rejoin without answer again, to the next incarnation of the server", Small{Crashes: 2}},
		{"amnesia", "after its own restart takes a closed master as free to open", Small{Crashes: 1, GuardCrashes: 1}},
		{"wipes-ignored", "does not notice FLUSHALL", Small{Flushes: 1}},
		{"clock-unread", "after its own restart does not compare a master's clock with what it was before", Small{Steps: 1}},
		{"early-without-bound", "early rejoin that does not wait until attempts from before the loss are over", Small{Crashes: 1, EarlyRejoin: true}},
		{"early-counts-lost-node", "early rejoin that counts the lost copy for one of the quorum", Small{Crashes: 1, EarlyRejoin: true}},
		{"repair-of-deleted", "copies are put back that were deleted", Small{Extensions: 3, Taken: true}},
		{"repair-unconfirmed", "copies are put back although no quorum has confirmed the lock", Small{Crashes: 1, Extensions: 2, Taken: true}},
		{"repair-late", "copies are put back when the validity of the lock has ended", Small{Crashes: 1, Extensions: 2}},
		{"repair-counts-at-once", "what was put back counts before it has settled", Small{Crashes: 1, Extensions: 2, Taken: true}},
		{"repair-overwrites", "a copy is put back in the place of another's", Small{Crashes: 1, Extensions: 2}},
		{"repair-through-fence", "a fenced master accepts a copy that is put back", Small{Crashes: 1, Extensions: 2}},
		{"early-ignores-losses", "early rejoin by the word of masters that have lost votes themselves", Small{Crashes: 2, EarlyRejoin: true}},
	}
}

type smallModel struct {
	Small
	*teller
	delay time.Duration
	after time.Duration
	// horizon is when the last moment is.
	horizon time.Duration
}

func (x *smallModel) is(mutant string) bool { return x.Mutant == mutant }

// States of a SET on its way to a node.
const (
	setNone uint8 = iota
	setSent
	setYes
	setNo
	setFailed
)

// States of a lift.
const (
	removalNone uint8 = iota
	removalSent
	removalDone // its answer is on its way
)

type smallClient struct {
	phase        clientState
	start, until time.Duration // of the attempt; of validity
}

type smallNode struct {
	up, closed         bool
	incarnation, wipes uint8
	token              uint8
	ends               time.Duration
	set, to            [smallClients]uint8 // to: the life at the end of the connection, 0: none yet

	ahead       time.Duration // of its wall clock, by steps
	conn        int64         // of the guard
	removal     uint8
	removalConn int64
	state       restartguard.State

	// What the guard has read of its locks, and when; 0: nothing.
	readAt          time.Duration
	readToken       uint8
	readLeft        time.Duration
	readIncarnation uint8
}

func (n *smallNode) live(now time.Duration) bool { return n.token != 0 && n.ends > now }

// small is a state of the model: a value, so that a step is made on a copy.
type small struct {
	now                            time.Duration
	crashes, flushes, guardCrashes int
	steps                          int
	client                         [smallClients]smallClient
	node                           [smallNodes]smallNode
}

const (
	moveBegin moveKind = iota
	moveSet
	moveCrash
	moveBoot
	moveFlush
	moveStep
	moveLook
	moveRead
	moveRemove
	moveRemoved
	moveGiveUp
	moveGuardCrash
	moveGuardForgets
	moveTime
)

func newSmallModel(cfg Small, say *teller) *smallModel {
	x := &smallModel{Small: cfg, teller: say}
	x.delay = restartguard.DefaultDelay(smallTTL)
	x.after = restartguard.EarlyAfter(smallBound)
	x.horizon = smallHorizon
	if cfg.EarlyRejoin {
		x.horizon = earlyHorizon
	}
	switch {
	case x.is("delay-0.9"):
		x.delay = x.delay * 9 / 10
	case x.is("early-without-bound"):
		x.after = 1
	}
	return x
}

func (x *smallModel) moment(s *small) time.Duration { return s.now }

// begin is the state in which the guard knows all masters for long.
func (x *smallModel) begin() small {
	s := small{crashes: x.Crashes, flushes: x.Flushes, guardCrashes: x.GuardCrashes, steps: x.Steps}
	for i := range s.node {
		n := &s.node[i]
		n.up, n.incarnation, n.conn = true, 1, 1
		if !x.is("no-guard") {
			x.look(&s, i)
			n.state.Trusted = epoch
		}
	}
	return s
}

// broken: two clients believe at once.
func (x *smallModel) broken(s *small) string {
	a, b := s.client[0], s.client[1]
	if a.phase == clientHolding && a.until > s.now && b.phase == clientHolding && b.until > s.now {
		return fmt.Sprintf("c1 believes in the lock until %s, and c2 until %s", trace.At(a.until), trace.At(b.until))
	}
	return ""
}

// over: whatever comes, one client at least does not believe again.
func (x *smallModel) over(s *small) bool {
	for c := range s.client {
		cl := &s.client[c]
		if cl.phase == clientDone || cl.phase == clientHolding && cl.until <= s.now {
			return true
		}
	}
	return false
}

// moves are what may happen; make has the last word.
func (x *smallModel) moves(s *small, m []move) []move {
	for c := range uint8(smallClients) {
		// The clients are alike: the first is the one that begins first.
		if s.client[c].phase == clientWaiting && (c == 0 || s.client[0].phase != clientWaiting) {
			m = append(m, move{moveBegin, c, 0})
		}
	}
	for i := range uint8(smallNodes) {
		for c := range uint8(smallClients) {
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
		if x.is("no-guard") {
			continue
		}
		add(n.up && !n.closed && s.steps > 0 && n.live(s.now), moveStep)
		add(n.removal == removalNone || n.removalConn != n.conn, moveLook) // or its answer is waited for
		add(x.EarlyRejoin && n.up && n.removal == removalNone && n.readAt < s.now, moveRead)
		add(n.removal == removalSent && n.up, moveRemove)
		add(n.removal == removalDone, moveRemoved)
		add(n.removal != removalNone && n.removalConn == n.conn, moveGiveUp)
	}
	if s.guardCrashes > 0 && !x.is("no-guard") {
		m = append(m, move{moveGuardCrash, 0, 0}, move{moveGuardForgets, 0, 0})
	}
	return append(m, move{moveTime, 0, 0})
}

// make makes a move, if it is possible.
func (x *smallModel) make(s *small, m move) bool {
	n := &s.node[m.at]
	switch m.kind {
	case moveBegin:
		x.beginAttempt(s, int(m.who))
	case moveSet:
		return x.arrive(s, int(m.who), int(m.at))
	case moveCrash:
		s.crashes--
		x.say(s.now, "n", m.at, "crashes%s", n.forgets(s.now))
		n.up, n.token = false, 0
		if n.removal != removalNone && x.is("rejoin-retried") {
			n.removal = removalSent
		} else {
			n.removal = removalNone
		}
	case moveBoot:
		n.up, n.incarnation, n.wipes, n.closed = true, n.incarnation+1, 0, !x.is("no-guard")
		n.conn++
		x.say(s.now, "n", m.at, "is back, empty (run %d)", n.incarnation)
	case moveFlush:
		s.flushes--
		x.say(s.now, "n", m.at, "is flushed%s", n.forgets(s.now))
		n.token, n.wipes = 0, n.wipes+1
		if !x.is("no-guard") { // at once, or nobody could prevent a second vote
			if n.removal == removalDone {
				x.removed(s, int(m.at))
			}
			x.look(s, int(m.at))
		}
	case moveStep:
		s.steps--
		x.say(s.now, "n", m.at, "has its wall clock set ahead by an hour%s, while the guard is away", n.forgets(s.now))
		n.token, n.ahead = 0, n.ahead+time.Hour
		x.crashGuard(s, true)
		x.look(s, int(m.at)) // at once, as after a flush
	case moveLook:
		x.look(s, int(m.at))
	case moveRead:
		return x.read(s, int(m.at))
	case moveRemove:
		n.closed, n.removal = false, removalDone
		if n.removalConn != n.conn {
			n.removal = removalNone
		}
		x.say(s.now, "n", m.at, "is opened by g1")
	case moveRemoved:
		x.removed(s, int(m.at))
	case moveGiveUp:
		n.conn++
		if n.removal == removalDone {
			n.removal = removalNone
		}
		x.say(s.now, "g", 0, "has no answer from %s, and gives the connection up", nodeNames[m.at])
	case moveGuardCrash, moveGuardForgets:
		s.guardCrashes--
		x.crashGuard(s, m.kind == moveGuardCrash)
	case moveTime:
		return x.pass(s)
	}
	return true
}

func (n *smallNode) forgets(now time.Duration) string {
	if !n.live(now) {
		return ""
	}
	return fmt.Sprintf(" and forgets the vote for c%d", n.token)
}

func params(closed bool) restartguard.Params {
	p := restartguard.Params{MinReplicas: restartguard.FenceNone, MaxLag: 10}
	if closed {
		p.MinReplicas = restartguard.FenceUp
	}
	return p
}

// pass lets time go on to the next moment at which something ends.
func (x *smallModel) pass(s *small) bool {
	next := (s.now/smallGrid + 1) * smallGrid
	stop := func(t time.Duration) {
		if t > s.now && t < next {
			next = t
		}
	}
	for c := range s.client {
		switch s.client[c].phase {
		case clientAsking:
			stop(s.client[c].start + smallBound)
		case clientHolding:
			stop(s.client[c].until)
		}
	}
	for i := range s.node {
		n := &s.node[i]
		if n.token != 0 {
			stop(n.ends)
		}
		if d := n.state.Deadline; !d.IsZero() {
			stop(d.Sub(epoch))
			if x.EarlyRejoin {
				stop(d.Add(-n.state.Delay).Add(x.after).Sub(epoch))
			}
		}
	}
	if next > x.horizon {
		return false
	}
	s.now = next
	x.say(s.now, "", 0, "time passes")
	for c := range s.client {
		if s.client[c].phase == clientAsking && !s.time().Before(x.attempt(s, c, -1).Deadline()) {
			x.decide(s, c, -1)
		}
	}
	return true
}

func (s *small) time() time.Time { return epoch.Add(s.now) }

// Clients.

func (x *smallModel) beginAttempt(s *small, c int) {
	s.client[c] = smallClient{phase: clientAsking, start: s.now}
	for i := range s.node {
		n := &s.node[i]
		n.set[c], n.to[c] = setSent, 0
		if n.up {
			n.to[c] = n.incarnation
		}
	}
	x.say(s.now, "c", uint8(c), "begins its attempt: SET with a TTL of %s on all", trace.Span(smallTTL))
}

// attempt is the product's machine of an attempt, with all answers so far but that
// of one node.
func (x *smallModel) attempt(s *small, c, but int) *redlock.Attempt {
	opt := redlock.Options{DriftFactor: redlock.DefaultDriftFactor, DriftMargin: redlock.DefaultDriftMargin}
	a, _ := redlock.Begin(redlock.Terms{
		N: smallNodes, Start: epoch.Add(s.client[c].start), TTL: smallTTL, Drift: opt.Drift(smallTTL), Wait: smallBound,
	})
	for i := range s.node {
		if st := s.node[i].answer(c); i != but && st != redlock.StatusUnanswered {
			a.Answer(i, st, epoch.Add(s.client[c].start))
		}
	}
	return a
}

func (n *smallNode) answer(c int) redlock.Status {
	switch n.set[c] {
	case setYes:
		return redlock.StatusOK
	case setNo:
		return redlock.StatusHeld
	case setFailed:
		return redlock.StatusFenced
	}
	return redlock.StatusUnanswered
}

// arrive: a SET reaches a node, and its answer the client.
func (x *smallModel) arrive(s *small, c, i int) bool {
	n := &s.node[i]
	switch {
	case !n.up && n.to[c] == 0:
		return false // not yet
	case !n.up, n.to[c] != 0 && n.to[c] != n.incarnation, n.closed:
		n.set[c] = setFailed
	case n.live(s.now):
		n.set[c] = setNo
	default:
		n.set[c], n.token, n.ends = setYes, uint8(c+1), s.now+smallTTL
		x.say(s.now, "n", uint8(i), "votes for c%d", c+1)
	}
	x.decide(s, c, i)
	return true
}

// decide is what a client makes of an answer, or of the time.
func (x *smallModel) decide(s *small, c, i int) {
	cl := &s.client[c]
	if cl.phase != clientAsking {
		return
	}
	a := x.attempt(s, c, i)
	var v redlock.Verdict
	if i >= 0 {
		_, v = a.Answer(i, s.node[i].answer(c), s.time())
	} else {
		_, v = a.Tick(s.time())
	}
	switch v {
	case redlock.VerdictPending:
	case redlock.VerdictGranted:
		cl.phase, cl.until = clientHolding, a.Until().Sub(epoch)
		x.say(s.now, "c", uint8(c), "is granted the lock, and believes in it until %s", trace.At(cl.until))
		if i >= 0 {
			x.forget(s, c, false)
		}
	default:
		cl.phase = clientDone
		x.say(s.now, "c", uint8(c), "gives up: %s", v)
		x.forget(s, c, true)
	}
}

// forget drops what the attempt still has under way; and its copies, if it has
// failed: a SET that arrives after that has its release right behind it.
func (x *smallModel) forget(s *small, c int, release bool) {
	for i := range s.node {
		n := &s.node[i]
		if release {
			n.set[c] = setNone
			if n.token == uint8(c+1) && !n.closed {
				n.token = 0
			}
		} else if n.set[c] != setSent {
			n.set[c] = setNone
		}
	}
}
