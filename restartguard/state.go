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

// State is what the guard remembers of a node, in parts that are kept for different
// reasons. The zero State knows nothing.
type State struct {
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
	Starts
	Moments
	Report
}

// Incarnation is what was read last of the server, by which a loss is noticed.
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

// Duty is what a node has to do. [Step] decides it, and then sees that the node does it.
type Duty struct {
	Kind DutyKind
	// Deadline is when the node may rejoin, see [MayVoteFrom]. Of DutyCordon it counts from when
	// the node is uncordoned. Zero: it need not wait.
	Deadline time.Time
	// Holds: the fence is seen to be up.
	Holds bool
}

// owed is the fence that must be put up and is not yet seen to hold.
func (d Duty) Owed() int64 {
	if d.Holds {
		return minreplicas.FenceNone
	}
	return [...]int64{DutyServe: minreplicas.FenceNone, DutyWait: minreplicas.FenceUp, DutyCordon: minreplicas.FenceCordon}[d.Kind]
}

// Fencing is how the duty is done, as the guard's memory keeps it.
type Fencing struct {
	// Revert is what a removal sets: the operator's own value before the node was fenced.
	Revert int64 `json:"revert,omitempty"`
	// Leaked: a canary got through although the parameters read as a fence, so they
	// prove nothing here.
	Leaked bool `json:"leaked,omitempty"`
	// Rivals: the server may still read a removal by another guard that was decided on
	// before the last loss, which that guard cannot have known of.
	Rivals bool `json:"rivals,omitempty"`
	// Delay is the D with which Deadline and Trusted were made.
	Delay time.Duration `json:"delay_ns,omitempty"`
	// Joins: it was not met yet, and the cluster was in use before it came to it.
	Joins bool `json:"joins,omitempty"`
}

// LastLook is what the last look has shown of the fence.
type LastLook struct {
	// Heard is the greatest D that other guards announce at present.
	Heard time.Duration
	// Proven: a canary was refused with NOREPLICAS since it was fenced.
	Proven bool
	// Blind: its fence cannot be read. Lacking: it refuses writes for lack of replicas,
	// and so has no vote, although no fence is up.
	Blind, Lacking bool
	// Allowed and Believed, see [Observation].
	Allowed, Believed bool
}

// InFlight is what may still reach the server of orders that have no answer.
type InFlight struct {
	Pending InFlightCommand // the order that was sent last
	Swept   bool            // there is none of an earlier run of this guard
}

// Trust is if the node's word counts for others, and if theirs let it rejoin early.
type Trust struct {
	// Trusted is from when on the node's word counts in an [Survey] for another:
	// D after its last loss, and after its first contact. Zero: not seen yet.
	Trusted time.Time
	// Blur is how closely its clock was read last, and Offset by how much that is before
	// ours that nobody sets ([BootTime]); only the difference between nodes means
	// something.
	Blur, Offset time.Duration
	// Early is why the node was rejoined early; "": it was not.
	Early string
}

// Starts is what is known of the starts of the node, and of its exposure. It is for
// people.
type Starts struct {
	Known    bool `json:"known,omitempty"`    // Verified means something
	Verified bool `json:"verified,omitempty"` // its last incarnation started fenced
	// Incarnations is how many incarnations were seen; Served: it served in one of them.
	Incarnations int  `json:"lives"`
	Served       bool `json:"opened,omitempty"`
	// Unfenced: it was seen unfenced after the loss; Exposed is for how long, at most.
	Unfenced bool          `json:"open,omitempty"`
	Exposed  time.Duration `json:"exposed_ns,omitempty"`
	// AtStart: the last loss was a start of the node. BootExposed is for how long, at
	// most, it was open after its last start.
	AtStart     bool          `json:"at_start,omitempty"`
	BootExposed time.Duration `json:"boot_exposed_ns,omitempty"`
	// Peer is the address at which it was seen last.
	Peer netip.AddrPort `json:"peer,omitzero"`
	// Cause is why it waits, or waited last; it outlives an unreachable phase.
	Cause string `json:"cause,omitempty"`
}

// Moments are moments from which an exposure is counted.
type Moments struct {
	// UnfencedSince is a moment at which the loss had not happened yet, or at which
	// nobody listened: what was open after it was open for less than that. Of a step
	// of the clock it is the reading with which the one was compared that shows it.
	UnfencedSince         time.Time
	LastSeen, LastRefused time.Time
}

// Report is what is shown, and what was told already.
type Report struct {
	Since  time.Time // of Phase
	Reason string    // why it is in this phase
	Err    string    // of the last observation
	// Denied and Nobody, of PhaseUnreachable: the server answers and refuses the
	// guard; nobody listens there. Neither: silence.
	Denied, Nobody bool
	// Failing is why the phase does not get on: a closing or a lift that fails
	// again and again.
	Failing string
	// Out is since when the node has no vote; zero while it has one.
	Out time.Time
	// Leak is why the fence does not hold, of Fencing.Leaked.
	Leak string
	// Doubt is why the node is not rejoined early.
	Doubt string

	// From is from when the node may, or might, vote, also when it serves again: of its last loss
	// that is known. Zero: none is.
	From time.Time

	announced time.Time // deadline of the last "waiting" event
	doubted   string    // what was told last of a doubt
	told      int       // how often, since the deadline was set
	// stepped is when the clock was last found to have stepped, and steps how often
	// within D of each other, all in one direction.
	stepped      time.Time
	steps        int
	stepsForward bool
}

// Deciding is the state without what is there for people, or to tell nothing twice: two
// that are equal by it decide alike.
func (s State) Deciding() State {
	s.Starts, s.Moments, s.Report = Starts{}, Moments{}, Report{}
	return s
}

// ClockBase is the reading that later ones are compared with.
type ClockBase struct {
	Clock Reading `json:"clock"`
	// ClockAt is the middle of the last reading, and ClockDrift by how much the clock may
	// have gone ahead in between by its rate.
	ClockAt    time.Duration `json:"clock_at_ns,omitempty"`
	ClockDrift time.Duration `json:"clock_drift_ns,omitempty"`
}

// ClockWatch is what the last readings have shown.
type ClockWatch struct {
	Ahead     int  // how often in a row the clock was further ahead than it may be
	Clockless bool // TIME is denied
}

// CounterWatch is the highest value that the counter key was seen with, 0: none, when
// the server may expire it, and when it was raised last.
type CounterWatch struct {
	Counter                 int64
	CounterUntil, CountedAt time.Time
}

// InFlightCommand is one that was sent and has no answer. It may still be on its way:
// what was written to a connection is delivered after its sender gave it up, and a
// lift that comes late opens what was closed again meanwhile. The zero value is
// none.
type InFlightCommand struct {
	Sent    bool
	Removal bool  // it opens; an order to close that comes late does no harm
	Conn    int64 // CLIENT ID of its connection, 0 if that is not known
	// Until is when it is taken to be gone, where the server does not let us end
	// its connection; zero: that was not tried yet.
	Until time.Time
}

func (o *Observation) incarnation() Incarnation {
	return Incarnation{RunID: o.RunID, Role: o.Role, Wipes: o.Wipes, Evicted: o.Evicted, Commands: o.Commands, Former: o.Former}
}
