// Package schedule draws plans of what may happen in a simulation, each from a seed.
package schedule

import "time"

// Bounds of a plan. They are small, since what goes wrong with locks goes wrong
// with two clients and a few faults; and they let a plan be one flat value.
const (
	MaxNodes    = 7
	MaxClients  = 4
	MaxAttempts = 6
	MaxExtends  = 5 // two of them are drawn, all of a lock that is kept
	MaxGuards   = 2
	MaxFaults   = mostFaults + 10 // those of the monitor come last
	mostFaults  = 6
	GuardTrips  = 16
)

// MaxTTL is the longest TTL in use in every schedule.
const MaxTTL = 30 * time.Second

// Horizon is how long a schedule may take in true time.
const Horizon = 150 * time.Second

// Trigger is what something in a plan waits for. Most faults and most attempts
// do not come at any old moment but just after something: that is where the
// dangerous moments are.
type Trigger uint8

const (
	OnTime    Trigger = iota // a time since the beginning; of an attempt: since the one before it
	OnGrant                  // a client was granted a lock
	OnRemoval                // a guard let a master rejoin
	OnCrash                  // a master crashed
	OnUp                     // a master came back
	OnFree                   // so many masters would accept a SET that it would win
	OnRepair                 // a client is about to put a copy back
)

// Trip is how long a message takes there, and its answer back.
type Trip struct{ Out, Back time.Duration }

// Trips are those of one request to each node.
type Trips [MaxNodes]Trip

// Attempt is one attempt of a client, and what it does with the lock.
type Attempt struct {
	On      Trigger
	Pause   time.Duration
	TTL     time.Duration
	Wait    time.Duration // for any node, see attempt.Terms
	Set     Trips
	Release Trips
	Deaf    uint8 // nodes that the client cannot reach
	Lost    uint8 // nodes on whose connection the SET is lost
	Mute    uint8 // nodes on whose connection its answer is lost
	Hold    time.Duration
	// keep: never released, it runs out.
	Keep    bool
	Extends int
	Ext     [MaxExtends]Extension
}

// Extension is an extension, begun after a further time of holding.
type Extension struct {
	Hold, TTL, Wait time.Duration
	Trips           Trips
	Mute            uint8
}

// Client is one client.
type Client struct {
	PPM      int64
	Skew     time.Duration // of its wall clock, on which nothing may depend
	Attempts int
	Attempt  [MaxAttempts]Attempt
}

// Guard is one guard.
type Guard struct {
	PPM   int64
	Start time.Duration
	Poll  time.Duration
	// eager: it happens to look just after a master came back.
	Eager bool
	Trips [GuardTrips]Trip // used in turn
	// RemovalLate is how much longer its orders to rejoin are under way.
	RemovalLate time.Duration
}

// FaultKind is what goes wrong.
type FaultKind uint8

const (
	Crash       FaultKind = iota // masters crash, and come back after length
	Flush                        // FLUSHALL
	Evict                        // a lock is evicted for want of memory
	Step                         // a master's wall clock steps by length
	Cordon                       // an operator cordons masters for length
	GuardCrash                   // a guard crashes, and starts again after length
	GuardPause                   // a guard is suspended for length
	GuardStep                    // the wall clock of a guard's host steps by length
	Cut                          // a guard cannot reach masters for length
	ClientPause                  // a client is suspended for length
	Creep                        // a master's wall clock is set ahead by length, in many small steps
	Role                         // a master is made a replica of another server for length
	Restore                      // a master's memory is put back to an earlier state
	Reset                        // the counters of a master are reset (CONFIG RESETSTAT), and it is flushed
	Take                         // an operator removes the lock granted last, node by node
	Blind                        // the monitor cannot reach masters for length
	Anew                         // the monitor restarts without its knowledge
	Replace                      // masters are gone for good, and others come in their place after length, of which each guard learns stagger later
	NewCluster                   // an operator takes the masters for those of a cluster that was never in use
)

// Choice is which nodes a fault strikes.
type Choice uint8

const (
	OfMask    Choice = iota // those of the mask
	OfHolders               // count nodes that hold the lock granted last
	OfTrigger               // the node that triggered it
)

// Fault is one fault.
type Fault struct {
	Kind    FaultKind
	On      Trigger
	Nth     uint8 // it waits for the nth time, from 1
	After   time.Duration
	Choice  Choice
	Mask    uint8
	Count   uint8
	Who     uint8 // guard or client
	Length  time.Duration
	Stagger time.Duration // between the nodes as they come back
	Silent  bool          // the host is gone: nothing answers that nobody listens
	Memory  bool          // the guard has its memory when it starts again; what replaces a master starts fenced; an uncordon is meant over restarts
}

// Plan is a schedule: every choice that is not the code's own, drawn in
// advance. The same plan gives the same run. It is a flat list of plain
// values, so that shrinking is dropping and lowering them.
type Plan struct {
	N        int
	Fenced   bool  // masters start fenced
	LagZero  bool  // they come up with min-replicas-max-lag 0
	Replicas bool  // each has a replica attached
	ACL      bool  // fences are those of an ACL user, and administrators still may do all
	Counter  bool  // guards raise the counter key
	Blind    uint8 // nodes whose fence the guards may neither read nor set
	Leaks    uint8 // nodes whose fence stops no script, unless it is that of a user
	Scripts  uint8 // clients that take locks by a script
	Writable uint8 // nodes that accept writes as replicas, until they are made read-only
	NodePPM  [MaxNodes]int64
	Clients  int
	Client   [MaxClients]Client
	Guards   int
	Shorter  bool // the second guard has a D of its own, see [ShorterBy]
	Guard    [MaxGuards]Guard
	Faults   int
	Fault    [MaxFaults]Fault
	Patience time.Duration // how long a client waits for a trigger
	View     View
}

const ms = time.Millisecond

// MaxPPM is how wrong the rate of any clock may be: 0.4 %. Two clocks then
// differ by less than the drift allowance of 1 %.
const MaxPPM = 4000

// Prompt is a trip on a network without faults, and Quiet are those to all nodes.
func Prompt() Trip { return Trip{ms, ms} }

func Quiet() (t Trips) {
	for i := range t {
		t[i] = Prompt()
	}
	return t
}

// AttemptBound is the longest that an attempt takes, where masters may rejoin
// early: every client gives up by then.
const AttemptBound = MaxTTL / 10

// ShorterBy is by how much the D of the second guard is shorter, where it is: far
// below what is safe.
const ShorterBy = 6
