package restartguard

import (
	"net/netip"
	"time"

	"redlockctl/server/minreplicas"
)

// Fenced reports whether the node refuses writes because of a fence; cordoned: of an
// operator's.
func (o Observation) Fenced() (fenced, cordoned bool) {
	return !o.Blind && (o.Params.Fenced() || o.Params.Cordoned()), !o.Blind && o.Params.Cordoned()
}

// serves reports whether a node accepts votes.
func (o Observation) Serves() bool {
	fenced, _ := o.Fenced()
	return o.Role == "master" && !o.Blind && !fenced && !o.Lacking
}

// CounterTTL is how long the counter key lives that shows a restored snapshot:
// a guard that went away leaves nothing behind. It is renewed with each count.
const CounterTTL = 24 * time.Hour

// About says what an [Observation] tells of.
type About uint8

const (
	Seen      About = iota // the node was read
	Unreached              // the node could not be read
	Raising                // the outcome of a Raise
	Proving                // the outcome of a Prove
	Removing               // the outcome of a Remove
	Counting               // the outcome of a Count
	Killing                // the outcome of a Kill
	Scanned                // the copies of a cordoned node were counted
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
	// Peer is the address at its other end; the zero value: it is not known.
	Peer netip.AddrPort
	// Asked is when the question was sent; zero stands for now. It makes the
	// time that a node was open an upper bound. Of Scanned it is when the first was asked for.
	Asked time.Time
	// Err is why something failed, fit to be shown. A Seen has one where the
	// parameters could not be read.
	Err string

	// Of Seen.
	Role string // "master", "slave"; of a server in another mode than standalone that mode
	// Former is the replication id that the server had before its last promotion;
	// only zeros if there was none, empty if it does not tell.
	Former string
	Wipes  int64 // calls of FLUSHALL, FLUSHDB, SWAPDB and DEBUG in this life
	// Evicted is how many keys were evicted for lack of memory in this incarnation.
	Evicted int64
	// Commands is how many commands the server has carried out; when it goes back,
	// the counters were reset.
	Commands int64
	// Up is for how long the server runs, by its own wall clock; it decides nothing but
	// at first contact.
	Up time.Duration
	// Clock is the node's wall clock; its zero value says nothing.
	Clock Reading
	// Counter is the value of the counter key, 0 if there is none; also of
	// Counting. It means something where Counted is set.
	Counter int64
	Counted bool
	// Configured: parameters were changed at run time in this incarnation, so how it
	// came up cannot be told by how it is.
	Configured bool

	// Lacking, of Seen: it refuses writes because min-replicas-to-write, which is no
	// fence, wants more good replicas than there are.
	Lacking bool

	// Params of Seen, and read back after each action; Blind: they could not be
	// read.
	Params minreplicas.Params
	Blind  bool
	// Reads is Params in words for people, where the numbers are not what the
	// server has: another method stands behind them.
	Reads string

	// Before, of Closing and Lifting, is what the action found.
	Before minreplicas.Params
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

	// New, of Seen: the cluster was never known in use, so that a person may let it serve at once.
	New bool
	// Allowed, of Seen: another guard knows that the node may vote by now.
	Allowed bool
	// SaidDrained, of Seen: this guard is seen there as one that takes the node for drained.
	// Believed: another is, or was here within D and is not seen, so that it might be.
	SaidDrained, Believed bool
	// Copies, of Scanned, is how many unexpired copies of locks the node has.
	Copies int

	// Evidence, of Seen, is what the other nodes have told of their locks; nil:
	// they were not asked.
	Evidence *Evidence
}

// ActionKind says what to do.
type ActionKind uint8

const (
	Raise  ActionKind = iota // set the fence to Value, read it back
	Prove                    // try a canary write, then read the fence
	Remove                   // set min-replicas-to-write to Value, read it back
	Count                    // raise the counter key
	Kill                     // end connections of ours, then read the fence
)

// Action is a thing to do to one incarnation of a server. It must travel on the
// connection whose observation led to it, or not at all.
type Action struct {
	Kind  ActionKind
	RunID string
	Value int64 // of min-replicas-to-write
	// SetLag: min-replicas-max-lag switches the check off, and is set first.
	SetLag bool
	// ReadOnly, of Raise: it is a replica, which no fence by min-replicas-to-write stops from
	// accepting writes, so it is made read-only first.
	ReadOnly bool
	// Of Kill: Conn is the id of a connection, 0 for none; All are those of earlier
	// runs of this guard, Others those of all guards but this connection.
	Conn        int64
	All, Others bool
}

// Evidence is what an [Survey] has found so far, for the node that it is about.
type Evidence struct {
	RunID string    // of that node's life
	Began time.Time // when the first of the scans began
	Locks int       // how many were found, each covered
	// Doubt is why it does not suffice, for people; "" if it does.
	Doubt string
}

// Reading is one reading of a node's wall clock, on which the server decides
// when a lock ends.
type Reading struct {
	// Sent and Got are the moments around it, on a clock of ours that nobody sets
	// and that goes on while the machine sleeps ([BootTime]).
	Sent, Got time.Duration
	// Wall is what the node said, since the UNIX epoch; 0: nothing.
	Wall time.Duration
	// Denied: TIME is refused, so that a step of the clock cannot be seen.
	Denied bool
}

// middle is the moment for which Wall holds, give or take bound.
func (r Reading) middle() time.Duration { return r.Sent + (r.Got-r.Sent)/2 }

func (r Reading) bound() time.Duration { return (r.Got - r.Sent) / 2 }

// CounterKey is a key in which guards count while the node is open. A server
// whose memory is put back to an earlier state, by the snapshot of a virtual
// machine, keeps its run_id; its counter goes back.
const CounterKey = "redlockctl:guard:counter"
