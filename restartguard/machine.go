package restartguard

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Values of min-replicas-to-write with a meaning. A node is only closed while
// min-replicas-max-lag is above 0 as well: 0 switches the check off.
const (
	FenceClosed = math.MaxInt32     // 2147483647: closed by the boot fence or a guard
	FenceHold   = math.MaxInt32 - 1 // 2147483646: held by an operator, never lifted by a guard
	FenceOpen   = 0
)

// Phase is what the guard makes of a node.
type Phase uint8

const (
	PhaseUnknown     Phase = iota // not seen yet
	PhaseActive                   // open, votes
	PhaseClosed                   // closed, waiting for its deadline
	PhaseHeld                     // held by an operator
	PhaseExposed                  // must be closed, and is not
	PhaseUnreachable              // does not answer
)

// String is the phase as the screen and JSON show it.
func (p Phase) String() string {
	return [...]string{"unknown", "active", "closed", "held", "exposed", "unreachable"}[p]
}

// FirstContact is what to do with an open node that is seen for the first time.
type FirstContact uint8

const (
	Adopt FirstContact = iota // take it as it is, show it as unverified
	Fence                     // close it and wait D
)

// Policy is what [Step] decides by.
type Policy struct {
	Delay        time.Duration // D, see [Delay]
	FirstContact FirstContact
	// Advice: nothing is ever sent. A node that must not vote is shown as
	// exposed until D is over, and one that may vote again as closed.
	Advice bool
	// ClockStep is the least forward step of a node's wall clock that is a loss;
	// it never goes below what can be told from the error of the reading. 0: as
	// little as can be told. Negative: steps are reported, and no loss.
	ClockStep time.Duration
	// CountEvery is how often the counter key of an open node is raised; 0: there
	// is none. See [CounterTTL].
	CountEvery time.Duration
	// Sweep: at the first look at a node the connections of the guard that had
	// this one's state directory before are ended.
	Sweep bool
	// EarlyAfter is how long after the first sight of a loss a node may be opened
	// by [Evidence], see the function of this name; 0: never before D.
	EarlyAfter time.Duration
}

// CounterTTL is how long the counter key lives that shows a restored snapshot:
// a guard that went away leaves nothing behind. It is renewed with each count.
const CounterTTL = 24 * time.Hour

// Params are the two parameters of a server that make the fence.
type Params struct {
	MinReplicas int64 // min-replicas-to-write
	MaxLag      int64 // min-replicas-max-lag, seconds; 0 switches the check off
}

// closed tells if a server with these parameters refuses each write because of
// a fence. Any other number is the operator's own setting for real replicas,
// and no fence: with a replica attached it lets writes through.
func (p Params) closed() bool { return p.MinReplicas == FenceClosed && p.MaxLag > 0 }

func (p Params) held() bool { return p.MinReplicas == FenceHold && p.MaxLag > 0 }

func (p Params) are(value int64) bool {
	if value == FenceClosed || value == FenceHold {
		return p.MinReplicas == value && p.MaxLag > 0
	}
	return p.MinReplicas == value
}

// About says what an [Observation] tells of.
type About uint8

const (
	Seen      About = iota // the node was read
	Unreached              // the node could not be read
	Closing                // the outcome of a Close
	Proving                // the outcome of a Prove
	Lifting                // the outcome of a Lift
	Counting               // the outcome of a Count
	Killing                // the outcome of a Kill
)

// Canary is what became of a canary write.
type Canary uint8

const (
	CanaryFenced   Canary = iota // refused with NOREPLICAS: the fence holds
	CanaryRefused                // refused for another reason, which may pass: no proof
	CanaryAccepted               // it got through: there is no fence
)

// Observation is what was learnt of a node, by one connection to it. An action
// whose connection broke has no outcome: nobody knows if it was carried out,
// and the next Seen tells.
type Observation struct {
	About About
	// Conn is the id that the server gave to the connection, 0 if it does not tell.
	Conn  int64
	RunID string // of the server at the end of the connection; all but Unreached
	// Asked is when the question was sent; zero stands for now. It makes the
	// time that a node was open an upper bound, and decides nothing.
	Asked time.Time
	// Err is why something failed, fit to be shown. A Seen has one where the
	// parameters could not be read.
	Err string

	// Of Seen.
	Role string // "master", "slave"
	// Former is the replication id that the server had before its last promotion;
	// only zeros if there was none, empty if it does not tell.
	Former string
	Wipes  int64 // calls of FLUSHALL, FLUSHDB, SWAPDB and DEBUG in this life
	// Evicted is how many keys were evicted for lack of memory in this life.
	Evicted int64
	// Commands is how many commands the server has carried out; when it goes back,
	// the counters were reset.
	Commands int64
	// Clock is the node's wall clock; its zero value says nothing.
	Clock Reading
	// Counter is the value of the counter key, 0 if there is none; also of
	// Counting. It means something where Counted is set.
	Counter int64
	Counted bool
	// Configured: parameters were changed at run time in this life, so how it
	// came up cannot be told by how it is.
	Configured bool

	// Lacking, of Seen: it refuses writes because min-replicas-to-write, which is no
	// fence, wants more good replicas than there are.
	Lacking bool

	// Params of Seen, and read back after each action; Blind: they could not be
	// read.
	Params Params
	Blind  bool
	// Reads is Params in words for people, where the numbers are not what the
	// server has: another method stands behind them.
	Reads string

	// Before, of Closing and Lifting, is what the action found.
	Before Params
	// Canary, of Proving.
	Canary Canary
	// Gone, of Killing: the connection that was named is ended. Swept: all those of
	// earlier runs of this guard, or of other guards, are, as was asked for.
	Gone, Swept bool
	// Others, of Killing: it was asked for the connections of other guards.
	Others bool
	// Refused, of Unreached: nobody listens at the address. Denied: the server
	// answers, and does not let the guard in or look.
	Refused, Denied bool

	// Heard, of Seen, is the greatest D that other guards announce; 0: none, or they
	// cannot be read.
	Heard time.Duration

	// Evidence, of Seen, is what the other nodes have told of their locks; nil:
	// they were not asked.
	Evidence *Evidence
}

// ActionKind says what to do.
type ActionKind uint8

const (
	Close ActionKind = iota // set the fence to Value, read it back
	Prove                   // try a canary write, then read the fence
	Lift                    // set min-replicas-to-write to Value, read it back
	Count                   // raise the counter key
	Kill                    // end connections of ours, then read the fence
)

// Action is a thing to do to one life of a server. It must travel on the
// connection whose observation led to it, or not at all.
type Action struct {
	Kind  ActionKind
	RunID string
	Value int64 // of min-replicas-to-write
	// SetLag: min-replicas-max-lag switches the check off, and is set first.
	SetLag bool
	// Of Kill: Conn is the id of a connection, 0 for none; All are those of earlier
	// runs of this guard, Others those of all guards but this connection.
	Conn        int64
	All, Others bool
}

// State is what the guard remembers of a node. The zero State knows nothing.
type State struct {
	Phase  Phase
	Since  time.Time // of Phase
	Reason string    // why it is in this phase
	Cause  string    // why it waits, or waited last; outlives an unreachable phase
	Err    string    // of the last observation
	// Denied and Nobody, of PhaseUnreachable: the server answers and refuses the
	// guard; nobody listens there. Neither: silence.
	Denied, Nobody bool
	// Clockless: TIME is denied.
	Clockless bool
	// Failing is why the phase does not get on: a closing or a lift that fails
	// again and again.
	Failing string

	// Out is since when the node has no vote; zero while it has one.
	Out time.Time

	RunID   string
	Role    string
	Wipes   int64
	Evicted int64
	// Commands and Former, see [Observation].
	Commands int64
	Former   string
	Blind    bool

	// Lacking: it refuses writes for want of replicas, and so has no vote, although
	// no fence is up.
	Lacking bool

	// Astray is the order that was sent last and has no answer yet. Swept: there is
	// none of an earlier run of this guard.
	Astray Stray
	Swept  bool
	// Rivals: the server may still read a lift of another guard that was decided on
	// before the last loss, which that guard cannot have known of.
	Rivals bool

	// Clock is the reading of the node's wall clock that later ones are compared
	// with, ClockAt the middle of the last one, and ClockDrift by how much the clock
	// may have gone ahead in between by its rate. Ahead counts how often in a row it
	// was further ahead.
	Clock      Reading
	ClockAt    time.Duration
	ClockDrift time.Duration
	Ahead      int
	// Stepped is when it was last found to have stepped, and Steps how often within D
	// of each other, all in one direction; they decide what is told, and nothing else.
	Stepped      time.Time
	Steps        int
	StepsForward bool
	// Offset is by how much its wall clock is before ours that nobody sets
	// ([BootTime]), by the last reading; only the difference between nodes means
	// something.
	Offset time.Duration

	// Counter is the highest value that the counter key was seen with, 0: none.
	// CounterUntil is when the server may expire it, CountedAt when it was raised.
	Counter                 int64
	CounterUntil, CountedAt time.Time

	// Deadline is when the node may rejoin: D after the first sight of its last
	// loss. Zero: it need not wait. Delay is the D that it was made with, and Trusted,
	// and Heard the greatest that other guards announce at present.
	Deadline time.Time
	Delay    time.Duration
	Heard    time.Duration
	// Owed is the fence that must be put up and is not yet seen to hold: 0,
	// FenceClosed or FenceHold.
	Owed int64
	// Leaked: a canary got through although the parameters read closed, so they
	// prove nothing here.
	Leaked bool
	Hold   bool  // held by an operator, also over restarts
	Proven bool  // a canary was refused with NOREPLICAS since it was closed
	Revert int64 // what a lift sets: the operator's own value before closing

	Known    bool // Verified means something
	Verified bool // its last life came up closed
	// Lives is how many lives of the node were seen; Opened: it was seen open in
	// one of them.
	Lives  int
	Opened bool
	// OpenSince is a moment at which the loss had not happened yet, or at which
	// nobody listened: what was open after it was open for less than that. Of a step
	// of the clock it is the reading with which the one was compared that shows it.
	OpenSince time.Time
	Open      bool          // it was seen open after the loss
	Exposed   time.Duration // how long, at most
	// AtStart: the last loss was a start of the node. BootExposed is for how long, at
	// most, it was open after its last start.
	AtStart     bool
	BootExposed time.Duration

	LastSeen, LastRefused time.Time
	announced             time.Time // deadline of the last "waiting" event

	// Trusted is from when on the node's word counts in an [Inquest] for another:
	// D after its last loss, and after its first contact. Zero: not seen yet. Blur
	// is how closely its clock was read last.
	Trusted time.Time
	Blur    time.Duration
	// Doubt is why the node is not opened early, for people; Early that it was, and
	// why.
	Doubt, Early string
	doubted      string // what was told last of it
	told         int    // how often, since the deadline was set
}

// Deciding is the state without what is there for people, or to tell nothing twice: two
// that are equal by it decide alike. A field counts unless it is named here.
func (s State) Deciding() State {
	s.Since, s.Out, s.LastSeen, s.LastRefused, s.OpenSince, s.Stepped, s.announced = time.Time{}, time.Time{}, time.Time{}, time.Time{}, time.Time{}, time.Time{}, time.Time{}
	s.Reason, s.Cause, s.Err, s.Failing, s.Doubt, s.doubted = "", "", "", "", "", ""
	s.Denied, s.Nobody, s.Known, s.Verified, s.Opened, s.Open, s.AtStart, s.StepsForward = false, false, false, false, false, false, false, false
	s.Lives, s.Steps, s.told = 0, 0, 0
	s.Exposed, s.BootExposed = 0, 0
	return s
}

// Step decides. It has no clock and does no I/O: now is the moment at which the
// observation was complete, on the monotonic clock. It returns what is
// remembered from here on, what is to be done, and what there is to tell; Node
// is empty in the events.
func Step(p Policy, s State, o Observation, now time.Time) (State, []Action, []Event) {
	actions, events := s.Step(&p, &o, now)
	return s, actions, events
}

// Step is the function of this name in place: a simulator that makes millions of
// steps need not copy states. It changes nothing but s, and keeps neither p nor o.
func (s *State) Step(p *Policy, o *Observation, now time.Time) ([]Action, []Event) {
	m := machine{Policy: p, State: s, now: now, asked: o.Asked, conn: o.Conn, before: s.LastSeen, evidence: o.Evidence}
	if o.Asked.IsZero() {
		m.asked = now
	}
	switch {
	case o.About == Unreached:
		m.unreached(o)
	case o.About == Seen:
		m.seen(o)
	case o.RunID != s.RunID:
		// The outcome of something done to an earlier life.
	case o.About == Killing:
		m.killing(o)
	case o.About == Closing:
		m.answeredBy(o.Conn)
		m.closing(o)
	case o.About == Proving:
		m.proving(o)
	case o.About == Lifting:
		m.answeredBy(o.Conn)
		m.lifting(o)
	case o.About == Counting:
		m.counting(o)
	}
	m.vote()
	return m.actions, m.events
}

type machine struct {
	*Policy
	*State
	now     time.Time
	asked   time.Time // of the observation
	conn    int64     // of the observation
	before  time.Time // of the look before this one
	actions []Action
	events  []Event

	evidence *Evidence // of the observation
}

// vote keeps account of since when the node has no vote. One that is exposed
// should have none, and has.
func (m *machine) vote() {
	switch {
	case m.Phase == PhaseActive && !m.Lacking:
		m.Out, m.Opened = time.Time{}, true
	case m.Phase == PhaseExposed:
		m.Out = time.Time{}
	case m.Out.IsZero():
		m.Out = m.now
	}
}

func (m *machine) do(kind ActionKind, value int64, lag bool) {
	if m.Advice {
		return
	}
	m.sending(kind)
	m.actions = append(m.actions, Action{Kind: kind, RunID: m.RunID, Value: value, SetLag: lag})
}

func (m *machine) tell(kind, format string, args ...any) {
	m.events = append(m.events, Event{At: m.now, Kind: kind, Text: fmt.Sprintf(format, args...)})
}

// alarm is tell, for what somebody should look at.
func (m *machine) alarm(kind, format string, args ...any) {
	m.tell(kind, format, args...)
	m.events[len(m.events)-1].Alarm = true
}

func (m *machine) enter(p Phase, reason string) {
	if m.Phase != p {
		m.Phase, m.Since, m.Failing = p, m.now, ""
	}
	m.Reason = reason
}

// failing tells of a failure once, however often it comes again.
func (m *machine) failing(kind, why string) {
	if m.Failing != why {
		m.Failing = why
		m.alarm(kind, "%s", why)
	}
}

func (m *machine) due() bool {
	return !m.Deadline.IsZero() && !m.now.Before(m.Deadline)
}

func (m *machine) unreached(o *Observation) {
	if o.Refused {
		m.LastRefused = m.asked
	}
	if m.Phase != PhaseUnreachable || m.Denied != o.Denied {
		if o.Denied {
			m.tell("denied", "refuses the guard, which cannot protect it: %s", o.Err)
		} else {
			m.tell("unreachable", "%s", o.Err)
		}
	}
	why := "does not answer the guard"
	if o.Denied {
		why = "refuses the guard: it may well serve"
	}
	m.enter(PhaseUnreachable, why)
	m.Err, m.Denied, m.Nobody = o.Err, o.Denied, o.Refused
}

// clockless is what a guard that may not send TIME misses.
const clockless = "TIME is denied to the guard: a forward step of its clock ends locks too early, and would go unnoticed"

func (m *machine) seen(o *Observation) {
	back := m.Phase == PhaseUnreachable && m.RunID == o.RunID
	old := struct {
		RunID, Role, Former               string
		Wipes, Evicted, Commands, Counter int64
		Clock                             Reading
	}{m.RunID, m.Role, m.Former, m.Wipes, m.Evicted, m.Commands, m.Counter, m.Clock}
	m.RunID, m.Role, m.Wipes, m.Evicted, m.Blind, m.Err = o.RunID, o.Role, o.Wipes, o.Evicted, o.Blind, o.Err
	m.Denied, m.Nobody = false, false
	if o.Clock.Denied && !m.Clockless {
		m.alarm("clock unseen", "%s", clockless)
	}
	m.Clockless = o.Clock.Denied
	m.Commands, m.Former = o.Commands, o.Former
	reset := o.Commands < old.Commands
	if old.RunID != o.RunID {
		m.Astray = Stray{} // its connection has ended with the former life
		m.Clock, m.ClockAt, m.ClockDrift, m.Ahead = Reading{}, 0, 0, 0
		m.Counter, m.CounterUntil, m.CountedAt = 0, time.Time{}, time.Time{}
		m.Lives++
	}
	m.Heard, m.Lacking = o.Heard, o.Lacking
	m.lengthen()
	level := m.Clock // when no step had happened that the next reading shows
	stepped, within := m.readClock(o.Clock)
	restored := m.readCounter(o)
	switch {
	case old.RunID == "":
		m.firstContact(o)
	case old.RunID != o.RunID:
		m.Known = !o.Configured && !o.Blind
		m.Verified = m.Known && (o.Params.closed() || o.Params.held())
		m.lose()
		m.AtStart, m.BootExposed, m.Rivals = true, 0, false
		tell := m.tell
		if !o.Blind && !o.Params.closed() && !o.Params.held() {
			tell = m.alarm
		}
		tell("restart", "restarted (run %s → %s), %s", short(old.RunID), short(o.RunID), m.cameUp(o))
		m.Cause = "restarted"
	case old.Role != o.Role:
		m.lose()
		m.tell("role", "role changed from %s to %s", old.Role, o.Role)
		m.Cause = "its role changed"
	case promoted(old.Former, o.Former):
		m.lose()
		m.tell("role", "was a replica of another server meanwhile, which replaced its data")
		m.Cause = "its role changed"
	case wiped(old.Wipes, o.Wipes, reset):
		m.lose()
		m.tell("wiped", "its data were wiped, by FLUSHALL, FLUSHDB, SWAPDB or DEBUG")
		m.Cause = "its data were wiped"
	case wiped(old.Evicted, o.Evicted, reset):
		m.lose()
		m.tell("evicted", "it evicted keys for lack of memory; set maxmemory-policy noeviction")
		m.Cause = "it evicted keys"
	case restored:
		m.restored(old.Counter, o.Counter)
	case stepped > 0:
		m.lose()
		m.OpenSince = m.asked.Add(level.Sent - o.Clock.Sent)
		m.ahead(stepped, within)
	case back:
		m.tell("reachable", "answers again, in the same life")
	}
	if stepped < 0 {
		m.behind(stepped, within)
	}
	m.trust(old.Clock, o.Clock)
	m.LastSeen = m.asked
	if !m.sweep(o) {
		m.settle(o)
	}
}

// delay is the D that counts: the greatest of one's own, of what other guards
// announce, and of what has counted since the node was closed.
func (m *machine) delay() time.Duration {
	d := max(m.Policy.Delay, m.Heard)
	if !m.Deadline.IsZero() || m.Hold {
		d = max(d, m.State.Delay)
	}
	return d
}

// lengthen lets a node wait for longer if D grew meanwhile, and its word count later
// for others. It is never shortened: what was lost may have been lost under the longer
// TTL.
func (m *machine) lengthen() {
	d := m.delay()
	more := d - m.State.Delay
	if more <= 0 {
		return
	}
	if m.State.Delay = d; !m.Deadline.IsZero() {
		m.Deadline = m.Deadline.Add(more)
	}
	if !m.Trusted.IsZero() {
		m.Trusted = m.Trusted.Add(more)
	}
}

// waitFrom sets the deadline: D from now.
func (m *machine) waitFrom() {
	d := m.delay()
	m.Deadline, m.State.Delay = m.now.Add(d), d
	m.Trusted, m.Doubt, m.Early = m.Deadline, "", ""
	m.doubted, m.told = "", 0
}

// wiped tells if data were wiped between two readings of the counter. One that
// went back was reset (CONFIG RESETSTAT), as was one that is where it was while
// the count of all commands went back; what it counts now came after that, and
// so after the last reading.
func wiped(before, now int64, reset bool) bool {
	return now > before || (now < before || reset) && now > 0
}

// promoted tells if a server was made a replica and a master again between two
// looks: then the replication id before the last promotion is another one. A
// server that only lets go of its backlog has none any more.
func promoted(before, now string) bool {
	return before != "" && now != "" && before != now && strings.Trim(now, "0") != ""
}

func (m *machine) cameUp(o *Observation) string {
	switch shut := o.Params.closed() || o.Params.held(); {
	case o.Blind:
		return "and whether it came up closed cannot be read"
	case shut && m.Known:
		return "came up closed"
	case shut:
		return "is closed, but was configured before it was first seen: whether it came up closed is not known"
	default:
		return "is OPEN"
	}
}

func (m *machine) firstContact(o *Observation) {
	m.OpenSince = m.asked
	switch {
	case o.Blind:
		m.tell("first contact", "seen for the first time; its fence cannot be read")
		if m.FirstContact == Fence {
			m.Owed = FenceClosed
			m.waitFrom()
		} else {
			m.do(Prove, 0, false)
		}
		m.Cause = "first contact"
	case o.Params.held():
		m.tell("first contact", "seen for the first time, held by an operator")
	case o.Params.closed():
		m.tell("first contact", "seen for the first time, closed: what it may have lost is not known, so D counts from now")
		m.waitFrom()
		m.Cause = "first contact"
	case m.FirstContact == Fence:
		m.tell("first contact", "seen for the first time, open: to be closed")
		m.Owed = FenceClosed
		m.waitFrom()
		m.Cause = "first contact"
	default:
		m.tell("first contact", "seen for the first time, open: taken as it is, not verified")
		m.Cause = "adopted, not verified"
	}
}

// lose takes note that votes may have been lost, at or before now.
func (m *machine) lose() {
	m.waitFrom()
	m.Owed = FenceClosed
	if m.Hold {
		// A restart forgets the hold; the operator did not.
		m.Owed = FenceHold
	}
	m.Proven, m.Leaked, m.Revert = false, false, FenceOpen
	m.CountedAt, m.Rivals = time.Time{}, true
	m.Open, m.Exposed, m.OpenSince, m.AtStart = false, 0, m.LastSeen, false
	if m.LastRefused.After(m.OpenSince) {
		m.OpenSince = m.LastRefused
	}
}

// settle brings together what must be and what is.
func (m *machine) settle(o *Observation) {
	if m.Owed == FenceClosed && m.due() && !o.Params.closed() {
		if o.Blind || !o.Params.held() {
			m.giveUp()
			return
		}
	}
	if !o.Blind && !o.Params.held() && !o.Params.closed() && m.Owed == FenceOpen && m.strayed() {
		m.Owed, m.Proven = FenceClosed, false
		m.OpenSince = m.before
		m.alarm("stray", "was opened before its time, it seems by an order of ours that had no answer: to be closed again")
	}
	switch {
	case o.Blind:
		m.settleBlind()
	case m.Leaked && m.Owed == FenceHold, m.Leaked && m.Owed == FenceClosed && !m.due() && !o.Params.held():
		m.expose()
		m.do(Close, m.Owed, o.Params.MaxLag <= 0)
	case o.Params.held():
		m.confirm(FenceHold)
		if !m.Proven {
			m.do(Prove, 0, false)
		}
	case o.Params.closed() && m.Owed == FenceHold:
		m.enter(PhaseClosed, "held by an operator before: to be held again")
		m.do(Close, FenceHold, false)
	case o.Params.closed() && m.Rivals && !m.Advice:
		m.endRivals()
	case o.Params.closed():
		m.settleClosed()
	case m.Owed != FenceOpen:
		m.expose()
		m.do(Close, m.Owed, o.Params.MaxLag <= 0)
	default:
		m.settleOpen(o)
	}
}

// giveUp ends an exposure that lasted until the deadline: by now nobody
// believes in a lost vote any more, and to close the node would protect no one.
func (m *machine) giveUp() {
	m.Exposed = m.exposure()
	if m.AtStart {
		m.BootExposed = m.Exposed
	}
	m.Owed, m.Deadline, m.Revert = FenceOpen, time.Time{}, FenceOpen
	m.Open, m.Leaked, m.Proven, m.Rivals = false, false, false, false
	if m.Advice {
		m.alarm("opened", "was open for the whole of D, since nothing may close it; what it lost has run out by now")
	} else {
		m.alarm("opened", "could not be closed for the whole of D; what it lost has run out by now")
	}
	m.Cause = "was exposed for the whole of D"
	m.enter(PhaseActive, m.Cause)
}

func (m *machine) expose() {
	m.Open = true
	if m.Advice && m.Phase != PhaseExposed {
		m.enter(PhaseExposed, m.Cause)
		m.tell("exposed", "should be closed for %s, and its fence is \"none\": it may give away locks that are still held", round(m.Deadline.Sub(m.now)))
	}
	m.enter(PhaseExposed, m.Cause)
}

// exposure is how long the node was open, at most; 0 where that is not known,
// since it was not seen before by this guard.
func (m *machine) exposure() time.Duration {
	if m.OpenSince.IsZero() {
		return 0
	}
	return AtMost(m.now.Sub(m.OpenSince))
}

// settleClosed: the parameters say closed.
func (m *machine) settleClosed() {
	switch {
	case m.Hold:
		m.waitFrom() // before it forgets for how long
		m.Hold, m.Proven = false, false
		m.Cause = "its hold was handed back to the guards"
	case m.Owed == FenceOpen && m.Deadline.IsZero():
		// Not by us: whoever closed it may know of a loss that we did not see.
		m.Proven, m.Open, m.Exposed, m.OpenSince = false, false, 0, m.now
		m.waitFrom()
		m.Cause = "closed by another"
	}
	m.confirm(FenceClosed)
	switch {
	case m.due() && m.Advice:
		m.Reason = "may be opened: its time is over, and no guard opens it"
	case m.due() && m.unsettled():
		m.Reason = "its clock may have stepped: it is read once more before the node rejoins"
	case m.due():
		m.do(Lift, m.Revert, false)
	case !m.Proven:
		m.do(Prove, 0, false)
	case !m.unsettled() && m.early(m.evidence):
		m.do(Lift, m.Revert, false)
	}
}

// settleOpen: open, and nothing says that it must not be. If it was closed
// before, then another guard's own moment came, or a person opened it; both
// know what they do, and this life has forgotten nothing since.
func (m *machine) settleOpen(o *Observation) {
	switch {
	case m.Hold:
		m.tell("opened", "its hold was ended by hand")
		m.Cause = "opened by hand"
	case m.due():
		m.tell("opened", "rejoined")
		m.Cause = "rejoined"
	case !m.Deadline.IsZero() && m.Early != "":
		m.tell("opened", "%s; D would have ended %s later", m.Early, round(m.Deadline.Sub(m.now)))
		m.Cause, m.Trusted = m.Early, m.now
	case !m.Deadline.IsZero():
		m.tell("opened", "opened by another %s before this guard would have", round(m.Deadline.Sub(m.now)))
		m.Cause = "opened by another"
	}
	m.Hold, m.Proven, m.Deadline, m.Revert = false, false, time.Time{}, FenceOpen
	m.Doubt, m.Early = "", ""
	reason := m.Cause
	switch {
	case m.Lacking:
		reason = "refuses writes for want of replicas: no fence, and no guard opens it"
	case o.Params.MinReplicas != FenceOpen && o.Params.MaxLag > 0:
		reason = fmt.Sprintf("min-replicas-to-write is %d: no fence", o.Params.MinReplicas)
	case o.Params.MinReplicas != FenceOpen:
		reason = fmt.Sprintf("min-replicas-to-write is %d, switched off by min-replicas-max-lag 0", o.Params.MinReplicas)
	}
	m.enter(PhaseActive, reason)
	if m.CountEvery > 0 && (m.CountedAt.IsZero() || m.now.Sub(m.CountedAt) >= m.CountEvery) {
		// Only here: the node is open, and nothing says that it should not be. Also
		// a count that fails waits for its next turn.
		m.CountedAt = m.now
		m.do(Count, 0, false)
	}
}

// Reasons of a node whose fence cannot be read.
const (
	blindlyClosed = "refuses writes; what closed it cannot be read, so it must be opened by hand"
	blindlyOpen   = "its fence cannot be read: not guarded"
)

// settleBlind: CONFIG is denied. What is left is to see if writes are refused.
func (m *machine) settleBlind() {
	switch {
	case m.Owed != FenceOpen:
		m.expose()
		m.do(Close, m.Owed, false)
	case m.Hold:
		m.enter(PhaseHeld, "held by an operator")
	case !m.Deadline.IsZero():
		m.enter(PhaseClosed, blindlyClosed)
		m.do(Prove, 0, false)
	default:
		m.enter(PhaseActive, blindlyOpen)
	}
}

// confirm takes note that the fence holds.
func (m *machine) confirm(value int64) {
	again := m.Hold && m.Owed == FenceHold
	m.Owed, m.Leaked = FenceOpen, false
	if m.Open {
		m.Open = false
		m.Exposed = m.exposure()
		if m.AtStart {
			m.BootExposed = m.Exposed
		}
		if m.Exposed > 0 {
			m.alarm("closed", "closed; it was open for at most %s", AtMost(m.Exposed))
		} else {
			m.alarm("closed", "closed; for how long it was open is not known")
		}
	}
	if value == FenceHold {
		switch {
		case again:
			m.tell("held", "held again, as an operator wanted it")
		case !m.Hold:
			m.tell("held", "held by an operator: no guard opens it")
		}
		if !m.Hold {
			m.State.Delay = m.delay() // it counts on when the hold is over
		}
		m.Hold, m.Deadline = true, time.Time{}
		m.enter(PhaseHeld, "held by an operator")
		return
	}
	m.enter(PhaseClosed, m.Cause)
	if m.announced != m.Deadline {
		m.announced = m.Deadline
		if !m.due() { // then it rejoins at once, and there is nothing to wait for
			m.tell("waiting", "closed, may rejoin in %s", round(m.Deadline.Sub(m.now)))
		}
	}
}

func (m *machine) closing(o *Observation) {
	if o.Before.held() && m.Owed == FenceClosed {
		// An operator's hold came in between the look and the closing.
		m.Owed = FenceHold
		m.do(Close, FenceHold, false)
		return
	}
	if m.Owed == FenceOpen {
		return
	}
	if b := o.Before; b.MaxLag > 0 && b.MinReplicas > 0 && b.MinReplicas < FenceHold {
		m.Revert = b.MinReplicas
	}
	switch {
	case o.Blind || !o.Params.are(m.Owed):
	case m.Rivals && m.Owed == FenceClosed:
		m.endRivals()
		return
	default:
		m.do(Prove, 0, false)
		return
	}
	why := o.Err
	if why == "" {
		why = o.Reads
	}
	if why == "" {
		why = readBack(o.Params)
	}
	if o.Params.closed() {
		m.failing("waiting", "cannot be held again: "+why)
		return
	}
	m.expose()
	m.failing("exposed", "cannot be closed: "+why)
	if m.Blind {
		m.do(Prove, 0, false)
	}
}

func (m *machine) proving(o *Observation) {
	switch {
	case m.Blind:
		m.provingBlind(o)
	case o.Canary == CanaryAccepted && (o.Params.closed() || o.Params.held()):
		m.Leaked, m.Verified, m.Proven = true, false, false
		if m.Owed == FenceOpen {
			m.Owed = FenceClosed
			if m.Hold {
				m.Owed = FenceHold
			}
		}
		m.expose()
		m.failing("exposed", "a canary write got through although the parameters read closed")
	case o.Blind:
		m.Err = o.Err
	case o.Canary == CanaryAccepted:
		m.settle(o)
	case o.Params.held():
		m.proved(o)
		m.confirm(FenceHold)
	case o.Params.closed() && m.Owed != FenceHold && !m.Deadline.IsZero():
		m.proved(o)
		m.confirm(FenceClosed)
	}
	// Otherwise somebody changed the fence in between, and the next look tells.
}

// proved: writes are refused, and the parameters say why. A refusal for another
// reason than NOREPLICAS does not speak against the fence, but hides it: the
// node counts as closed, and the canary is tried again at each look.
func (m *machine) proved(o *Observation) {
	m.Proven = o.Canary == CanaryFenced
	if !m.Proven {
		m.Err = o.Err
	}
}

// provingBlind judges by the canary alone. A node that refuses it is closed,
// and stays so: what put up its fence cannot be read, so it may be a hold.
func (m *machine) provingBlind(o *Observation) {
	switch {
	case o.Canary == CanaryFenced && m.Owed == FenceHold:
		m.Open = false
		m.confirm(FenceHold)
	case o.Canary == CanaryFenced:
		if m.Deadline.IsZero() {
			m.waitFrom()
		}
		m.Proven, m.Open = true, false
		m.confirm(FenceClosed)
		m.Reason = blindlyClosed
	case o.Canary == CanaryAccepted && m.Owed == FenceOpen:
		if !m.Deadline.IsZero() {
			m.tell("opened", "accepts writes: opened by another")
		}
		m.Deadline = time.Time{}
		m.enter(PhaseActive, blindlyOpen)
	}
}

func (m *machine) lifting(o *Observation) {
	switch {
	case o.Before.held() && !o.Params.held():
		// An operator's hold came in between the look and the lift.
		m.Hold, m.Owed = true, FenceHold
		m.Open, m.OpenSince = true, m.asked
		m.tell("held", "an operator's hold was met while it was being opened, and is put back")
		m.do(Close, FenceHold, false)
	case o.Err != "" || o.Blind:
		m.failing("waiting", "cannot be opened: "+o.Err)
	case o.Params.held() || o.Params.closed():
		// Closed again by another at the same moment; the next look tells.
	default:
		m.settle(o)
	}
}

// short is enough of a run_id to tell two apart.
func short(id string) string { return id[:min(4, len(id))] }

// AtMost rounds an upper bound, up: what was not nothing is never shown as 0.
func AtMost(d time.Duration) time.Duration {
	unit := time.Millisecond
	if d >= time.Second {
		unit = 10 * time.Millisecond
	}
	if r := d % unit; r > 0 {
		d += unit - r
	}
	return d
}

// round drops digits that nobody reads.
func round(d time.Duration) time.Duration {
	if d < time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(10 * time.Millisecond)
}
