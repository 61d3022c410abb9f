package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

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

// ErrTooManyStates is returned by [Explore] when there are more states than it was
// allowed to visit.
var ErrTooManyStates = errors.New("not all states were visited")

// Small is what the exhaustive model plays.
type Small struct {
	Crashes, Flushes, GuardCrashes int
	// Steps are steps of a master's wall clock, by which it forgets its vote, while
	// the guard is away for a moment: it crashes, and starts again with its memory.
	Steps       int
	EarlyRejoin bool
	// Weakness is the name of one of [Weaknesses]; "": none.
	Weakness string
	// States bounds how many are visited; 0: no bound.
	States int
}

// SmallModels are those that can be visited whole within a minute on one core.
func SmallModels() []Small {
	return []Small{
		{Crashes: 1, Flushes: 1}, {Crashes: 1, GuardCrashes: 1}, {Crashes: 1, Steps: 1}, {Crashes: 2}, {Crashes: 2, EarlyRejoin: true},
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
	return s
}

// Exploration is what came of it.
type Exploration struct {
	States, Steps int
	Elapsed       time.Duration
	// Trace is a shortened way to two believers; nil: there is none.
	Trace []Line
}

// Weakness is a rule that the exhaustive model can break.
type Weakness struct {
	Name, What string
	model      Small
}

// Model is the least that shows it.
func (w Weakness) Model() Small {
	w.model.Weakness = w.Name
	return w.model
}

// Weaknesses are all that there are.
func Weaknesses() []Weakness {
	return []Weakness{
		{"no-guard", "no guard, and masters that come up open", Small{Crashes: 1}},
		{"delay-0.9", "waits for 0.9 × D", Small{Crashes: 1}},
		{"from-last-seen", "counts D from when the master was last seen alive", Small{Crashes: 1}},
		{"lift-retried", "sends a lift without answer again, to the next life of the server", Small{Crashes: 2}},
		{"amnesia", "after its own restart takes a closed master as free to open", Small{Crashes: 1, GuardCrashes: 1}},
		{"wipes-ignored", "does not notice FLUSHALL", Small{Flushes: 1}},
		{"clock-unread", "after its own restart does not compare a master's clock with what it was before", Small{Steps: 1}},
		{"early-without-bound", "early rejoin that does not wait until attempts from before the loss are over", Small{Crashes: 1, EarlyRejoin: true}},
		{"early-counts-lost-node", "early rejoin that counts the lost copy for one of the quorum", Small{Crashes: 1, EarlyRejoin: true}},
		{"early-ignores-losses", "early rejoin by the word of masters that have lost votes themselves", Small{Crashes: 2, EarlyRejoin: true}},
	}
}

type smallRules struct {
	Small
	delay time.Duration
	after time.Duration
	// horizon is when the last moment is.
	horizon time.Duration
}

func (r *smallRules) is(weakness string) bool { return r.Weakness == weakness }

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
	liftNone uint8 = iota
	liftSent
	liftDone // its answer is on its way
)

type smallClient struct {
	phase        clientState
	start, until time.Duration // of the attempt; of validity
}

type smallNode struct {
	up, closed  bool
	life, wipes uint8
	token       uint8
	ends        time.Duration
	set, to     [smallClients]uint8 // to: the life at the end of the connection, 0: none yet

	ahead    time.Duration // of its wall clock, by steps
	conn     int64         // of the guard
	lift     uint8
	liftConn int64
	state    restartguard.State

	// What the guard has read of its locks, and when; 0: nothing.
	readAt    time.Duration
	readToken uint8
	readLeft  time.Duration
	readLife  uint8
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

// move is one thing that happens.
type move struct {
	kind    moveKind
	who, at uint8 // client, node
}

type moveKind uint8

const (
	moveBegin moveKind = iota
	moveSet
	moveCrash
	moveBoot
	moveFlush
	moveStep
	moveLook
	moveRead
	moveLift
	moveLifted
	moveGiveUp
	moveGuardCrash
	moveGuardForgets
	moveTime
)

type explorer struct {
	smallRules
	ctx     context.Context
	visited map[uint64]struct{}
	steps   int
	path    []move
	found   bool
	err     error
	trace   *trace
}

// Explore visits all states. It ends early with the error of ctx, or with
// [ErrTooManyStates], and fails with [ErrUnknownMutant] for a weakness that there
// is not.
func Explore(ctx context.Context, cfg Small) (Exploration, error) {
	if cfg.Weakness != "" && !slices.ContainsFunc(Weaknesses(), func(w Weakness) bool { return w.Name == cfg.Weakness }) {
		return Exploration{}, fmt.Errorf("%w: %q", ErrUnknownMutant, cfg.Weakness)
	}
	began := time.Now()
	x := &explorer{ctx: ctx, visited: map[uint64]struct{}{}}
	x.Small = cfg
	x.delay = restartguard.Delay(smallTTL, redlock.DefaultDriftFactor, guardMargin)
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
	s := x.begin()
	x.visit(&s)
	report := Exploration{States: len(x.visited), Steps: x.steps}
	if x.found {
		report.Trace = x.tell(x.shorten(slices.Clone(x.path)))
	}
	report.Elapsed = time.Since(began)
	return report, x.err
}

// begin is the state in which the guard knows all masters for long.
func (x *explorer) begin() small {
	s := small{crashes: x.Crashes, flushes: x.Flushes, guardCrashes: x.GuardCrashes, steps: x.Steps}
	for i := range s.node {
		n := &s.node[i]
		n.up, n.life, n.conn = true, 1, 1
		if !x.is("no-guard") {
			x.look(&s, i)
			n.state.Trusted = epoch
		}
	}
	return s
}

// visit explores all that can follow from a state, and tells if it is to go on.
func (x *explorer) visit(s *small) bool {
	h := x.hash(s)
	if _, ok := x.visited[h]; ok {
		return true
	}
	x.visited[h] = struct{}{}
	if len(x.visited)%4096 == 0 && x.ctx.Err() != nil {
		x.err = x.ctx.Err()
		return false
	}
	if x.States > 0 && len(x.visited) > x.States {
		x.err = ErrTooManyStates
		return false
	}
	if s.over() {
		return true
	}
	var room [48]move
	for _, m := range x.moves(s, room[:0]) {
		next := *s
		x.steps++
		if !x.make(&next, m) {
			continue
		}
		x.path = append(x.path, m)
		if next.broken() {
			x.found = true
			return false
		}
		if !x.visit(&next) {
			return false
		}
		x.path = x.path[:len(x.path)-1]
	}
	return true
}

// broken: two clients believe at once.
func (s *small) broken() bool {
	return s.client[0].phase == clientHolding && s.client[0].until > s.now &&
		s.client[1].phase == clientHolding && s.client[1].until > s.now
}

// over: whatever comes, one client at least does not believe again.
func (s *small) over() bool {
	for c := range s.client {
		cl := &s.client[c]
		if cl.phase == clientDone || cl.phase == clientHolding && cl.until <= s.now {
			return true
		}
	}
	return false
}

// moves are what may happen; make has the last word.
func (x *explorer) moves(s *small, m []move) []move {
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
		add(n.lift == liftNone || n.liftConn != n.conn, moveLook) // or its answer is waited for
		add(x.EarlyRejoin && n.up && n.lift == liftNone && n.readAt < s.now, moveRead)
		add(n.lift == liftSent && n.up, moveLift)
		add(n.lift == liftDone, moveLifted)
		add(n.lift != liftNone && n.liftConn == n.conn, moveGiveUp)
	}
	if s.guardCrashes > 0 && !x.is("no-guard") {
		m = append(m, move{moveGuardCrash, 0, 0}, move{moveGuardForgets, 0, 0})
	}
	return append(m, move{moveTime, 0, 0})
}

// make makes a move, if it is possible.
func (x *explorer) make(s *small, m move) bool {
	n := &s.node[m.at]
	switch m.kind {
	case moveBegin:
		x.beginAttempt(s, int(m.who))
	case moveSet:
		return x.arrive(s, int(m.who), int(m.at))
	case moveCrash:
		s.crashes--
		x.say(s, "n", m.at, "crashes%s", n.forgets(s.now))
		n.up, n.token = false, 0
		if n.lift != liftNone && x.is("lift-retried") {
			n.lift = liftSent
		} else {
			n.lift = liftNone
		}
	case moveBoot:
		n.up, n.life, n.wipes, n.closed = true, n.life+1, 0, !x.is("no-guard")
		n.conn++
		x.say(s, "n", m.at, "is back, empty (run %d)", n.life)
	case moveFlush:
		s.flushes--
		x.say(s, "n", m.at, "is flushed%s", n.forgets(s.now))
		n.token, n.wipes = 0, n.wipes+1
		if !x.is("no-guard") { // at once, or nobody could prevent a second vote
			if n.lift == liftDone {
				x.lifted(s, int(m.at))
			}
			x.look(s, int(m.at))
		}
	case moveStep:
		s.steps--
		x.say(s, "n", m.at, "has its wall clock set ahead by an hour%s, while the guard is away", n.forgets(s.now))
		n.token, n.ahead = 0, n.ahead+time.Hour
		x.crashGuard(s, true)
		x.look(s, int(m.at)) // at once, as after a flush
	case moveLook:
		x.look(s, int(m.at))
	case moveRead:
		return x.read(s, int(m.at))
	case moveLift:
		n.closed, n.lift = false, liftDone
		if n.liftConn != n.conn {
			n.lift = liftNone
		}
		x.say(s, "n", m.at, "is opened by g1")
	case moveLifted:
		x.lifted(s, int(m.at))
	case moveGiveUp:
		n.conn++
		if n.lift == liftDone {
			n.lift = liftNone
		}
		x.say(s, "g", 0, "has no answer from %s, and gives the connection up", nodeNames[m.at])
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
	p := restartguard.Params{MinReplicas: restartguard.FenceOpen, MaxLag: 10}
	if closed {
		p.MinReplicas = restartguard.FenceClosed
	}
	return p
}

// pass lets time go on to the next moment at which something ends.
func (x *explorer) pass(s *small) bool {
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
	x.say(s, "", 0, "time passes")
	for c := range s.client {
		if s.client[c].phase == clientAsking && !s.time().Before(x.attempt(s, c, -1).Deadline()) {
			x.decide(s, c, -1)
		}
	}
	return true
}

func (s *small) time() time.Time { return epoch.Add(s.now) }

// Clients.

func (x *explorer) beginAttempt(s *small, c int) {
	s.client[c] = smallClient{phase: clientAsking, start: s.now}
	for i := range s.node {
		n := &s.node[i]
		n.set[c], n.to[c] = setSent, 0
		if n.up {
			n.to[c] = n.life
		}
	}
	x.say(s, "c", uint8(c), "begins its attempt: SET with a TTL of %s on all", span(smallTTL))
}

// attempt is the product's machine of an attempt, with all answers so far but that
// of one node.
func (x *explorer) attempt(s *small, c, but int) *redlock.Attempt {
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
func (x *explorer) arrive(s *small, c, i int) bool {
	n := &s.node[i]
	switch {
	case !n.up && n.to[c] == 0:
		return false // not yet
	case !n.up, n.to[c] != 0 && n.to[c] != n.life, n.closed:
		n.set[c] = setFailed
	case n.live(s.now):
		n.set[c] = setNo
	default:
		n.set[c], n.token, n.ends = setYes, uint8(c+1), s.now+smallTTL
		x.say(s, "n", uint8(i), "votes for c%d", c+1)
	}
	x.decide(s, c, i)
	return true
}

// decide is what a client makes of an answer, or of the time.
func (x *explorer) decide(s *small, c, i int) {
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
		x.say(s, "c", uint8(c), "is granted the lock, and believes in it until %s", at(cl.until))
		if i >= 0 {
			x.forget(s, c, false)
		}
	default:
		cl.phase = clientDone
		x.say(s, "c", uint8(c), "gives up: %s", v)
		x.forget(s, c, true)
	}
}

// forget drops what the attempt still has under way; and its copies, if it has
// failed: a SET that arrives after that has its release right behind it.
func (x *explorer) forget(s *small, c int, release bool) {
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

// The guard.

func (x *explorer) crashGuard(s *small, memory bool) {
	for i := range s.node {
		n := &s.node[i]
		n.conn++
		n.readAt = 0
		if memory {
			n.state = n.state.Remembered(s.time(), time.Hour+s.now, x.delay)
			if x.is("clock-unread") {
				n.state.Clock = restartguard.Reading{}
			}
		} else {
			n.state, n.lift = restartguard.State{}, liftNone
		}
		if n.lift == liftDone {
			n.lift = liftNone
		}
	}
	what := "crashes, and starts again without its memory"
	if memory {
		what = "crashes, and starts again with its memory"
	}
	x.say(s, "g", 0, "%s", what)
}

// lifted: the answer to a lift reaches the guard.
func (x *explorer) lifted(s *small, i int) {
	n := &s.node[i]
	n.lift = liftNone
	x.step(s, i, restartguard.Observation{About: restartguard.Lifting, Before: params(true), Params: params(n.closed)})
}

// look is a look with all that follows from it at once.
func (x *explorer) look(s *small, i int) {
	n := &s.node[i]
	if !n.up {
		x.step(s, i, restartguard.Observation{About: restartguard.Unreached, Refused: true, Err: "refused"})
		return
	}
	wall := time.Hour + s.now
	o := restartguard.Observation{
		About: restartguard.Seen, Role: "master", Wipes: int64(n.wipes), Configured: n.life == 1, Params: params(n.closed),
		Clock: restartguard.Reading{Sent: wall, Got: wall, Wall: wall + n.ahead}, Asked: s.time(),
	}
	if x.is("wipes-ignored") {
		o.Wipes = 0
	}
	if x.EarlyRejoin && n.state.Phase == restartguard.PhaseClosed {
		_, o.Evidence = x.inquest(s, i)
	}
	x.step(s, i, o)
}

func (x *explorer) step(s *small, i int, o restartguard.Observation) {
	n := &s.node[i]
	policy := restartguard.Policy{Delay: x.delay, Sweep: true}
	if x.EarlyRejoin {
		policy.EarlyAfter = x.after
	}
	for {
		o.Conn = n.conn
		if o.About != restartguard.Unreached {
			o.RunID = smallRuns[i][n.life%8]
		}
		old := n.state
		next, actions, _ := restartguard.Step(policy, n.state, o, s.time())
		n.state = next
		if d := next.Deadline; o.About == restartguard.Seen && !d.IsZero() && !d.Equal(old.Deadline) {
			switch {
			case x.is("from-last-seen") && !old.LastSeen.IsZero():
				n.state.Deadline = old.LastSeen.Add(x.delay)
			case x.is("amnesia") && old.RunID == "":
				n.state.Deadline = s.time()
			}
			x.say(s, "g", 0, "sees %s run %d, and may open it at %s", nodeNames[i], n.life, at(n.state.Deadline.Sub(epoch)))
		}
		if len(actions) == 0 {
			return
		}
		a := actions[0]
		o = restartguard.Observation{Before: params(n.closed)}
		switch a.Kind {
		case restartguard.Close:
			o.About, n.closed = restartguard.Closing, true
			x.say(s, "n", uint8(i), "is closed by g1")
		case restartguard.Prove:
			o.About, o.Canary = restartguard.Proving, restartguard.CanaryAccepted
			if n.closed {
				o.Canary = restartguard.CanaryFenced
			}
		case restartguard.Kill:
			o.About, o.Gone, o.Swept, o.Others = restartguard.Killing, true, true, a.Others
			if n.lift != liftNone && n.liftConn != n.conn {
				n.lift = liftNone
			}
		case restartguard.Lift:
			n.lift, n.liftConn = liftSent, n.conn
			x.say(s, "g", 0, "orders %s to be opened", nodeNames[i])
			return
		default:
			return
		}
		o.Params = params(n.closed)
	}
}

// others are the states of the other nodes, as the guard has them.
func (x *explorer) others(s *small, i int) []restartguard.Other {
	var others []restartguard.Other
	for k := range s.node {
		if k == i {
			continue
		}
		st := s.node[k].state
		if x.is("early-ignores-losses") && st.Phase != restartguard.PhaseUnreachable && st.RunID != "" {
			st.Phase, st.Trusted, st.Owed = restartguard.PhaseActive, epoch, restartguard.FenceOpen
		}
		others = append(others, restartguard.Other{Name: nodeNames[k], State: st})
	}
	return others
}

// inquest is the one about a node that is closed, with all that was read so far.
func (x *explorer) inquest(s *small, i int) (*restartguard.Inquest, *restartguard.Evidence) {
	q := &restartguard.Inquest{N: smallNodes, Quorum: redlock.Quorum(smallNodes), After: x.after, Apart: smallBound / 2}
	others, st, now := x.others(s, i), s.node[i].state, s.time()
	if e := q.Evidence(nodeNames[i], st, others, now); now.Before(st.Deadline.Add(x.after - st.Delay)) {
		return q, e
	}
	for k, o := 0, 0; k < smallNodes; k++ {
		if k == i {
			continue
		}
		n := &s.node[k]
		question, ok := q.Question(nodeNames[k], now)
		if ok && n.readAt > 0 {
			read := epoch.Add(n.readAt)
			t := restartguard.Testimony{Round: question.Round, RunID: smallRuns[k][n.readLife%8], Began: read, Ended: read}
			if n.readToken != 0 {
				t.Copies = []restartguard.Copy{{Key: "k", Token: tokenName(n.readToken), Sent: read, Got: read, Left: n.readLeft}}
				if x.is("early-counts-lost-node") {
					t.Copies = append(t.Copies, t.Copies[0])
				}
			}
			q.Testify(nodeNames[k], t)
			q.Confirm(nodeNames[k], others[o].State, read, now)
		}
		o++
	}
	return q, q.Evidence(nodeNames[i], st, others, now)
}

// read: the guard reads the locks of a node for another one, and looks at it right
// after.
func (x *explorer) read(s *small, k int) bool {
	n := &s.node[k]
	if n.state.RunID != smallRuns[k][n.life%8] {
		return false
	}
	for i := range s.node {
		if i == k || s.node[i].state.Phase != restartguard.PhaseClosed {
			continue
		}
		if s.time().Before(s.node[i].state.Deadline.Add(x.after - s.node[i].state.Delay)) {
			continue
		}
		n.readAt, n.readToken, n.readLeft, n.readLife = s.now, 0, 0, n.life
		what := "none"
		if n.live(s.now) {
			n.readToken, n.readLeft = n.token, n.ends-s.now
			what = fmt.Sprintf("c%d for another %s", n.token, span(n.readLeft))
		}
		x.say(s, "g", 0, "asks %s for its locks: %s", nodeNames[k], what)
		x.look(s, k)
		return true
	}
	return false
}

var smallRuns = [smallNodes][8]string{
	{"a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7"},
	{"b0", "b1", "b2", "b3", "b4", "b5", "b6", "b7"},
	{"c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7"},
}

// Hashing. The nodes are alike, so that states that differ by their order only are
// one; what of a guard's state is for people only, or never changes here, is left
// out.

type mixer uint64

func (m *mixer) add(v uint64) {
	h := uint64(*m) ^ v
	h *= 0x9e3779b97f4a7c15
	h ^= h >> 32
	h *= 0xd6e8feb86659fd93
	*m = mixer(h ^ h>>29)
}

func (m *mixer) bit(b bool) {
	if b {
		m.add(1)
	} else {
		m.add(2)
	}
}

func (m *mixer) moment(t time.Time) {
	if t.IsZero() {
		m.add(0)
	} else {
		m.add(uint64(t.Sub(epoch)) + 1)
	}
}

func (x *explorer) hash(s *small) uint64 {
	var m mixer
	m.add(uint64(s.now))
	m.add(uint64(s.steps)<<24 | uint64(s.crashes)<<16 | uint64(s.flushes)<<8 | uint64(s.guardCrashes))
	for c := range s.client {
		cl := &s.client[c]
		m.add(uint64(cl.phase))
		if cl.phase == clientAsking {
			m.add(uint64(cl.start))
		}
		if cl.phase == clientHolding && cl.until > s.now {
			m.add(uint64(cl.until))
		}
	}
	// What was read before it is of use is of none.
	from := never
	for i := range s.node {
		if g := &s.node[i].state; x.EarlyRejoin && g.Phase == restartguard.PhaseClosed {
			from = min(from, g.Deadline.Add(x.after-g.Delay).Sub(epoch))
		}
	}
	var nodes [smallNodes]uint64
	for i := range s.node {
		nodes[i] = x.hashNode(s, i, from)
	}
	slices.Sort(nodes[:])
	for _, h := range nodes {
		m.add(h)
	}
	return uint64(m)
}

func (x *explorer) hashNode(s *small, i int, from time.Duration) uint64 {
	n := &s.node[i]
	m := mixer(0x1234567)
	m.bit(n.up)
	m.bit(n.closed)
	m.add(uint64(n.life)<<8 | uint64(n.wipes))
	if n.live(s.now) {
		m.add(uint64(n.token))
		m.add(uint64(n.ends))
	}
	for c := range n.set {
		m.add(uint64(n.set[c]))
		if n.set[c] == setSent {
			m.add(uint64(n.to[c]))
		}
	}
	m.add(uint64(n.lift))
	if n.lift != liftNone {
		m.bit(n.liftConn == n.conn)
	}
	g := &n.state
	m.add(uint64(g.Phase))
	switch g.RunID {
	case "":
		m.add(1)
	case smallRuns[i][n.life%8]:
		m.add(2)
	default:
		m.add(3)
	}
	m.moment(g.Deadline)
	m.add(uint64(g.Delay))
	m.add(uint64(g.Wipes))
	m.add(uint64(g.Owed))
	m.bit(g.Ahead > 0)
	m.bit(g.Proven)
	m.bit(g.Hold)
	m.bit(g.Swept)
	m.bit(g.Astray.Sent)
	m.bit(g.Astray.Lift)
	m.bit(g.Astray.Conn == n.conn)
	m.moment(g.Astray.Until)
	if x.is("from-last-seen") {
		m.moment(g.LastSeen)
	}
	if x.EarlyRejoin {
		m.bit(g.Early != "")
		if t := g.Trusted; t.After(s.time()) || t.IsZero() {
			m.moment(t)
		}
		if n.readAt > 0 && n.readAt >= from {
			m.add(uint64(n.readAt))
			m.add(uint64(n.readToken))
			m.add(uint64(n.readLeft))
			m.add(uint64(n.readLife))
		}
	}
	return uint64(m)
}

// Telling.

func (x *explorer) say(s *small, kind string, i uint8, format string, args ...any) {
	if x.trace == nil || kind == "" {
		return
	}
	x.trace.add(s.now, fmt.Sprintf("%s%d", kind, i+1), fmt.Sprintf(format, args...))
}

// play makes all moves of a path that are possible, and tells if it breaks.
func (x *explorer) play(path []move) bool {
	s := x.begin()
	for _, m := range path {
		next := s
		room := [48]move{}
		if !slices.Contains(x.moves(&s, room[:0]), m) || !x.make(&next, m) {
			continue
		}
		if s = next; s.broken() {
			return true
		}
	}
	return false
}

// shorten leaves out what is not needed.
func (x *explorer) shorten(path []move) []move {
	for again := true; again; {
		again = false
		for i := len(path) - 1; i >= 0; i-- {
			less := slices.Delete(slices.Clone(path), i, i+1)
			if x.play(less) {
				path, again = less, true
			}
		}
	}
	return path
}

// tell takes down what happens on a path.
func (x *explorer) tell(path []move) []Line {
	x.trace = new(trace)
	defer func() { x.trace = nil }()
	s := x.begin()
	x.trace.lines = nil
	for _, m := range path {
		next := s
		if !x.make(&next, m) {
			continue
		}
		if s = next; s.broken() {
			break
		}
	}
	x.trace.add(s.now, "!!", fmt.Sprintf("c1 believes in the lock until %s, and c2 until %s", at(s.client[0].until), at(s.client[1].until)))
	return x.trace.lines
}
