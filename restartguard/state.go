package restartguard

import (
	"net/netip"
	"time"

	"redlockctl/server/minreplicas"
)

func (s Starts) Used() bool { return s.Served || s.Incarnations > 1 }

// Phase is what the guard makes of a node.
type Phase uint8

const (
	PhaseUnknown     Phase = iota // not seen yet
	PhaseServing                  // votes
	PhaseFenced                   // waits for its deadline
	PhaseCordoned                 // cordoned by an operator
	PhaseExposed                  // must be fenced, and is not
	PhaseUnreachable              // does not answer
)

// String is the phase as the screen and JSON show it.
func (p Phase) String() string {
	return [...]string{"unknown", "serving", "fenced", "cordoned", "exposed", "unreachable"}[p]
}

// State is what the guard knows of a node. The zero State knows nothing.
type State struct {
	Basis  Basis  // of decisions
	Report Report // for people and other views: no decision reads it
}

// Basis is everything that [Step] decides by. Two equal ones decide alike.
type Basis struct {
	Phase Phase
	Incarnation
	Duty
	Fencing
	LastLook
	InFlight
	ClockBase
	ClockWatch
	CounterWatch
	Trust
	Drain
}

// Incarnation is what was last read from INFO; a loss shows in it.
type Incarnation struct {
	RunID   string `json:"run_id"`
	Role    string `json:"role"`
	Wipes   int64  `json:"wipes"`
	Evicted int64  `json:"evicted"`
	// Commands and Former, see [Observation].
	Commands int64  `json:"commands,omitempty"`
	Former   string `json:"former,omitempty"`
}

// DutyKind says which [Duty] a node has.
type DutyKind uint8

const (
	DutyServe  DutyKind = iota // it may vote
	DutyWait                   // it has to be fenced until its deadline
	DutyCordon                 // it has to be fenced until an operator uncordons it, also over restarts
)

// Duty is what a node has to do. [Step] decides it, and then enforces it.
type Duty struct {
	Kind DutyKind
	// Deadline is when the node may rejoin, see [MayVoteFrom]; with DutyCordon, once it is
	// uncordoned. Zero: the node need not wait.
	Deadline time.Time
	// Holds: the fence was read back and is up.
	Holds bool
}

// Owed returns the fence that has to be set and does not hold yet.
func (d Duty) Owed() int64 {
	if d.Holds {
		return minreplicas.FenceNone
	}
	return [...]int64{DutyServe: minreplicas.FenceNone, DutyWait: minreplicas.FenceUp, DutyCordon: minreplicas.FenceCordon}[d.Kind]
}

// Fencing is how the duty is enforced; the guard's memory keeps it.
type Fencing struct {
	// Revert is the value that the removal of the fence sets: the operator's own, from before.
	Revert int64 `json:"revert,omitempty"`
	// Leaked: a canary write was accepted although the parameters read as a fence, so they
	// prove nothing on this node.
	Leaked bool `json:"leaked,omitempty"`
	// Rivals: a command of another guard that removes the fence may still arrive, decided
	// before that guard could know of the last loss.
	Rivals bool `json:"rivals,omitempty"`
	// Delay is the D with which Deadline and Trusted were computed, see machine.delay.
	Delay time.Duration `json:"delay_ns,omitempty"`
	// Joins: the guard has not met the node yet, and the cluster was in use before the node
	// was added.
	Joins bool `json:"joins,omitempty"`
}

// LastLook is what the last observation showed.
type LastLook struct {
	// LastSeen is when it was made.
	LastSeen time.Time
	// Heard is the greatest D that other guards announce at present, Least the least.
	Heard, Least time.Duration
	// Proven: a canary write was refused with NOREPLICAS since the node was fenced.
	Proven bool
	// Blind: the fence cannot be read. Lacking: the node refuses writes for lack of replicas,
	// so it has no vote, although it is not fenced.
	Blind, Lacking bool
	// Allowed, Later and Believed, see [Observation].
	Allowed, Later, Believed bool
}

// InFlight is which commands without an answer may still reach the server.
type InFlight struct {
	Pending InFlightCommand // the last one of this run
	Swept   bool            // the connections of earlier runs of this guard are closed
}

// Trust is whether the node's copies count as evidence for other nodes, and whether theirs let
// this one rejoin early.
type Trust struct {
	// Trusted is the time from which the node's copies count in a [Survey] for another node:
	// D after its last loss, and after its first contact. Zero: not seen yet.
	Trusted time.Time
	// Blur is the error of the last reading of the node's clock, and Offset the difference to
	// [boottime.Now]; only differences between nodes mean something.
	Blur, Offset time.Duration
	// Early is why the node may rejoin, or has rejoined, before its deadline; "": it may not.
	Early string
}

// Starts is what is known of the starts of the node, and of its exposure.
type Starts struct {
	Known    bool `json:"known,omitempty"`    // a start was seen: Verified means something
	Verified bool `json:"verified,omitempty"` // its last incarnation started fenced
	// Incarnations counts those that were seen; Served: the node served in one of them.
	Incarnations int  `json:"lives"`
	Served       bool `json:"opened,omitempty"`
	// Unfenced: the node was seen unfenced after the loss. Exposed is for how long, at most.
	Unfenced bool          `json:"open,omitempty"`
	Exposed  time.Duration `json:"exposed_ns,omitempty"`
	// AtStart: the last loss was a start of the node. BootExposed is how long, at most, it
	// served after its last start before it was fenced.
	AtStart     bool          `json:"at_start,omitempty"`
	BootExposed time.Duration `json:"boot_exposed_ns,omitempty"`
	// Peer is the address at which it was last seen.
	Peer netip.AddrPort `json:"peer,omitzero"`
	// Cause is why it waits, or last waited; an unreachable phase does not change it.
	Cause string `json:"cause,omitempty"`
}

// Report is what people and other views see of a node, and what keeps the guard from reporting the
// same twice.
type Report struct {
	Starts
	// UnfencedSince is the time from which an exposure counts: the loss had not happened yet,
	// or nothing listened, so the node served for less time than since then. For a step of the
	// clock it is the reading that the step was measured against.
	UnfencedSince time.Time
	LastRefused   time.Time // when a connection was last refused

	Since  time.Time // when Phase began
	Reason string    // why the node is in this phase
	Err    string    // of the last observation
	// Denied and Nobody qualify PhaseUnreachable: the server answers and refuses the guard;
	// nothing listens at the address. Neither: silence.
	Denied, Nobody bool
	Absent         string // with PhaseUnreachable, see [AbsentSlow]
	// Failing is why the phase lasts: fencing or removing the fence fails each time.
	Failing string
	// Out is when the node lost its vote; zero while it has one.
	Out time.Time
	// Leak is why the fence does not hold, with Fencing.Leaked.
	Leak string
	// Doubt is why the node does not rejoin early.
	Doubt string

	// From is when the node may, or might, vote after its last known loss, also when it
	// serves again. Zero: no loss is known.
	From time.Time

	announced     time.Time // deadline of the last "waiting" event
	lastDoubt     string    // the last doubt that was reported
	doubtsCounted int       // doubts reported since the deadline was set
	// stepped is when the clock was last found to have stepped, and steps how often
	// within D of each other, all in one direction.
	stepped      time.Time
	steps        int
	stepsForward bool
}

// ClockBase is the reading of the node's clock that later readings are compared with.
type ClockBase struct {
	Clock Reading `json:"clock"`
	// ClockAt is the middle of the last reading, and ClockDrift how far the clock may have
	// drifted ahead since Clock.
	ClockAt    time.Duration `json:"clock_at_ns,omitempty"`
	ClockDrift time.Duration `json:"clock_drift_ns,omitempty"`
}

// ClockWatch is what the last readings showed.
type ClockWatch struct {
	Ahead     int  // how many readings in a row were further ahead than drift explains
	Clockless bool // TIME is denied
}

// CounterWatch is the highest value of the counter key that was seen (0: none), when the
// server may expire the key, and when it was last incremented.
type CounterWatch struct {
	Counter                 int64
	CounterUntil, CountedAt time.Time
}

// InFlightCommand is a command that was sent and has no answer. It may still arrive: what was
// written to a connection is delivered even after the sender has given up, and a late removal
// of the fence would undo a later fencing. The zero value stands for no command.
type InFlightCommand struct {
	Sent    bool
	Removal bool  // it removes the fence; a late command that fences does no harm
	Conn    int64 // CLIENT ID of its connection, 0 if that is not known
	// Until is when it counts as gone if the server does not let the guard close its
	// connection; zero: that was not tried yet.
	Until time.Time
}

func (o *Observation) incarnation() Incarnation {
	return Incarnation{RunID: o.RunID, Role: o.Role, Wipes: o.Wipes, Evicted: o.Evicted, Commands: o.Commands, Former: o.Former}
}
