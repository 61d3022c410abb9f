package restartguard

import (
	"net/netip"
	"time"

	"redlockctl/server/announce"
	"redlockctl/server/minreplicas"
)

// Fenced reports whether the node refuses writes because of a fence; cordoned: because of an
// operator's.
func (o Observation) Fenced() (fenced, cordoned bool) {
	return !o.Blind && (o.Params.Fenced() || o.Params.Cordoned()), !o.Blind && o.Params.Cordoned()
}

// Serves reports whether the node accepts votes.
func (o Observation) Serves() bool {
	fenced, _ := o.Fenced()
	return o.Role == "master" && !o.Blind && !fenced && !o.Lacking
}

// CounterTTL is how long the counter key lives, which shows that a server was restored from a
// snapshot. Each increment renews it; a guard that has gone leaves no key behind.
const CounterTTL = 24 * time.Hour

// About is what an [Observation] is about.
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

// How a node is absent that is unreachable and not down, in the words of the monitor's states.
const (
	AbsentSlow    = "slow"    // connected, and does not answer in time
	AbsentLoading = "loading" // reads its data
)

// Canary is the outcome of a canary write.
type Canary uint8

const (
	CanaryFenced   Canary = iota // refused with NOREPLICAS: the fence holds
	CanaryRefused                // refused for another reason, which may pass: no proof
	CanaryAccepted               // accepted: there is no fence
)

// Observation is what was learnt about a node through one connection. An action whose connection
// broke has no outcome: nobody knows whether it was carried out, and the next Seen shows it.
type Observation struct {
	About About
	// Conn is the CLIENT ID of the connection, 0 if the server does not tell it.
	Conn  int64
	RunID string // of the server; not with Unreached
	// Peer is the address of the server; the zero value: it is not known.
	Peer netip.AddrPort
	// Sent is when the request was sent; zero means now. It makes an exposure an upper bound.
	// With Scanned it is when the first copy was requested.
	Sent time.Time
	// Err is why something failed, safe to print. A Seen has one if the fence could not be read.
	Err string

	// With Seen.
	Role string // "master", "slave"; the mode of a server that is not standalone
	// Former is the replication id from before the last promotion; zeros if there was none, empty
	// if the server does not tell it.
	Former string
	Wipes  int64 // calls of FLUSHALL, FLUSHDB, SWAPDB and DEBUG in this incarnation
	// Evicted is how many keys were evicted for lack of memory in this incarnation.
	Evicted int64
	// Commands is how many commands the server has executed. If it goes back, the counters were
	// reset.
	Commands int64
	// Up is the server's uptime by its own clock. It decides only at first contact.
	Up time.Duration
	// Clock is a reading of the node's clock; the zero value: none.
	Clock Reading
	// Counter is the value of the counter key, 0 if there is none; also with Counting. It is
	// valid if Counted is set.
	Counter int64
	Counted bool
	// Configured: parameters were changed at run time in this incarnation, so its present fence
	// does not show how it started.
	Configured bool
	// Lacking: the node refuses writes because its min-replicas-to-write, which is no fence, wants
	// more good replicas than there are.
	Lacking bool

	// Params is the fence, with Seen, and as read back after each action. Blind: it could not be
	// read.
	Params minreplicas.Params
	Blind  bool
	// Reads is Params in words, if another method than min-replicas-to-write makes the fence.
	Reads string

	// Before is the fence before the action, with Raising and Removing.
	Before minreplicas.Params
	// Canary is the outcome of the canary write, with Proving.
	Canary Canary
	// With Killing. Gone: the named connection is closed. Swept: all connections that were asked
	// for are closed. Others: those of other guards were asked for.
	Gone, Swept bool
	Others      bool
	// With Unreached. Refused: nothing listens at the address. Denied: the server answers and
	// refuses the guard. Absent: see [AbsentSlow].
	Refused, Denied bool
	Absent          string

	// What other guards say, with Seen. Heard is the greatest D that they announce, Least the
	// least; 0: none, or they cannot be read. Allowed: one of them knows that the node may vote by now. Later: one that
	// is here lets it vote only later. Believed: one takes the node for drained; or one was here within D, is not
	// seen now, and might.
	Heard, Least             time.Duration
	Allowed, Later, Believed bool
	// Started, with Seen: how this incarnation started, by those that say so; BootExposed: how long it
	// served then before it was fenced, at most.
	Started     announce.Boot
	BootExposed time.Duration
	// SaidDrained, with Seen: this guard's own announcement that the node is drained is seen there.
	SaidDrained bool
	// New, with Seen: the cluster was never known to be in use, so an operator may let the node
	// serve at once.
	New bool
	// Copies is how many unexpired copies of locks the node has, with Scanned.
	Copies int
	// Evidence is what the other nodes know about their locks, with Seen; nil: they were not asked.
	Evidence *Evidence
}

// ActionKind is what to do.
type ActionKind uint8

const (
	Raise  ActionKind = iota // set the fence to Value, read it back
	Prove                    // try a canary write, then read the fence
	Remove                   // set min-replicas-to-write to Value, read it back
	Count                    // raise the counter key
	Kill                     // end connections of ours, then read the fence
)

// Action is something to do to one incarnation of a server. It must travel on the connection whose
// observation led to it, or not at all.
type Action struct {
	Kind  ActionKind
	RunID string
	Value int64 // of min-replicas-to-write
	// SetLag: min-replicas-max-lag switches the fence off, and is set first.
	SetLag bool
	// ReadOnly, with Raise: a replica accepts writes despite min-replicas-to-write, so the node is
	// made read-only first. So is a master that is cordoned, which may become a replica between two
	// looks, and one whose fence does not hold, which may have become one since the last.
	ReadOnly bool
	// With Kill: Conn is the CLIENT ID of a connection, 0 for none; All means those of earlier runs
	// of this guard, Others those of all guards except this connection.
	Conn        int64
	All, Others bool
}

// Evidence is what a [Survey] has found so far for its node.
type Evidence struct {
	RunID string    // of that node's incarnation
	Began time.Time // when the first of the scans began
	Locks int       // how many were found, each covered
	// Doubt is why it does not suffice, for people; "": it does.
	Doubt string
}

// Reading is one reading of a node's clock, by which the server decides when a lock expires.
type Reading struct {
	// Sent and Got are the times before and after it, on our boot clock ([boottime.Now]).
	Sent, Got time.Duration
	// Wall is the time that the node returned, since the UNIX epoch; 0: none.
	Wall time.Duration
	// Denied: TIME is refused, so steps of the clock cannot be seen.
	Denied bool
}

// middle returns the time at which Wall was read, ± bound.
func (r Reading) middle() time.Duration { return r.Sent + (r.Got-r.Sent)/2 }

func (r Reading) bound() time.Duration { return (r.Got - r.Sent) / 2 }

// CounterKey is a key that guards increment while the node serves. A server that is restored from
// the snapshot of a virtual machine keeps its run_id, but its counter goes back.
const CounterKey = "redlockctl:guard:counter"
