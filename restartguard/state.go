package restartguard

import (
	"time"
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
