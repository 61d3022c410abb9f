// Package monitor says what is seen of a cluster at one moment, and what it means: its nodes,
// its locks with their copies, margins and states, the verdict, and the findings and events that
// are told. It does no I/O. Package observe makes it, out of what the packages beside it find.
package monitor

import (
	"fmt"
	"time"

	"redlockctl/monitor/words"
	"redlockctl/server/announce"
	"redlockctl/server/safetext"
)

// Snapshot is everything the monitor knows at one moment. It is immutable: a
// consumer may keep it, and must not change it.
type Snapshot struct {
	At      time.Time // monotonic: ages and remaining times are differences to it
	Version uint64    // grows with each snapshot
	Cluster Cluster
	Nodes   []Node
	Locks   Locks
	Counts  Counts
	// Complete says that every key of every node that answers has been read since
	// that node came in sight: until then locks may be missing, and the states of
	// those that are there may change as their other copies are read. What nodes
	// that do not answer hold is not known either way.
	Complete bool
	// Settled is when the first view was complete, so since when changes are seen;
	// zero: it is not yet.
	Settled time.Time
	// Findings are the assumptions of Redlock that do not hold now, the most severe
	// first.
	Findings []Finding
	// Guard is what the restart guard in this process knows; nil: none runs here.
	Guard *GuardView
	// Ripening is how many locks are in a state that is a danger if it lasts and has
	// not lasted long enough to be told. Young: the first of them cannot have, since
	// the locks were read for the first time only just now. Whoever looks once waits
	// until one of the two is over.
	Ripening int
	Young    bool
	Events   []Event // the latest, oldest first; bounded
}

// Counts are the numbers of locks by their state.
type Counts [numLockStates]int

// Total is the number of all locks.
func (c Counts) Total() int {
	n := 0
	for _, k := range c {
		n += k
	}
	return n
}

// Cluster is what holds for all nodes together.
type Cluster struct {
	Name   string
	N      int
	Quorum int
	MaxTTL time.Duration
	// TTLBound is the longest TTL that may be used: the least of MaxTTL and of what each guard that
	// announces itself covers; 0: not known.
	TTLBound time.Duration
	Serving  int // nodes that accept writes now, as far as is known
	// Hidden is how many nodes answer and refuse this program, so that it is not
	// known if they serve.
	Hidden int
	// Verdict is made of the nodes, the findings and what protects from restarts;
	// see Snapshot.Assess.
	Verdict Verdict
	// Reason says in a few words why the verdict is not safe, the worst first: "n2
	// fenced; not protected against restarts: no guard".
	Reason string
	// Absent are the nodes that do not serve: "n2 fenced, n4 down".
	Absent string
	// Protected says that no restart gives a vote twice, as far as can be seen;
	// Missing is what is missing for that, in words.
	Protected bool
	Missing   string
	// StartsUnseen: nothing is missing but that no start of some nodes was seen yet, nor how they will
	// start. Right after an adoption from another host that is normal.
	StartsUnseen bool
	// CanLose is how many more nodes may fail before nothing can be locked;
	// negative: already so, unless nodes are Hidden.
	CanLose int
}

// Node is the node with this name; nil: there is none.
func (s *Snapshot) Node(name string) *Node {
	for i := range s.Nodes {
		if s.Nodes[i].Name == name {
			return &s.Nodes[i]
		}
	}
	return nil
}

// Unread is a node that has not been read to the end, and why.
type Unread struct{ Node, Why string }

// Unread are the nodes for whose sake the snapshot is not complete.
func (s *Snapshot) Unread() []Unread {
	var out []Unread
	for i := range s.Nodes {
		switch n := &s.Nodes[i]; {
		case n.State == NodeUnknown:
			out = append(out, Unread{n.Name, "not heard of yet"})
		case n.State.Readable() && n.NoRoomLocks > 0:
			out = append(out, Unread{n.Name, fmt.Sprintf("no room for about %s", words.Count(n.NoRoomLocks, "key", "keys"))})
		case !n.State.Readable() || n.ReadWhole():
		case n.WhyUnread != "":
			out = append(out, Unread{n.Name, n.WhyUnread})
		default:
			out = append(out, Unread{n.Name, fmt.Sprintf("read to %d %%", int(100*n.Read))})
		}
	}
	return out
}

// LockNamed is the lock that a name means: by its first key, or by a further one; nil: there is none.
func (s *Snapshot) LockNamed(name string) *Lock {
	if l := s.Locks.Get(name); l != nil {
		return l
	}
	for l := range s.Locks.All() {
		for _, k := range l.Keys() {
			if k.Raw() == name {
				return l
			}
		}
	}
	return nil
}

// NodeState tells apart why a node does or does not serve.
type NodeState uint8

const (
	NodeUnknown   NodeState = iota // not probed yet
	NodeServing                    // a master that accepts writes
	NodeFenced                     // up, refuses writes: closed by a guard or its boot fence
	NodeCordoned                   // up, refuses writes: cordoned by an operator
	NodeLoading                    // up, reading its data
	NodeWrongRole                  // a replica, or a node in cluster mode
	NodeDenied                     // wrong password, or no right to look
	NodeSlow                       // connected, does not answer in time
	NodeDown                       // no connection
)

var nodeStateNames = [...]string{"unknown", "serving", "fenced", "cordoned", "loading", "wrong role", "denied", "slow", "down"}

// String is the state as the screen and JSON show it.
func (s NodeState) String() string { return nodeStateNames[s] }

// Answers reports whether what a node in this state said last is of now.
func (s NodeState) Answers() bool {
	return s.Readable() || s == NodeLoading || s == NodeWrongRole
}

// Node is one master as seen from here.
type Node struct {
	Name  string
	Addr  string
	State NodeState
	Since time.Time // of State
	// LocksHidden: State is denied, and yet the node accepts writes: it is only its
	// locks that this program may not read.
	LocksHidden bool
	// Err is the last failure, while State is denied, slow, down or wrong role.
	Err safetext.Text

	RunID              string
	Version            string        // of the server, e.g. "7.0.15"
	Uptime             time.Duration // as the server says, whole seconds
	Restarts           int           // changes of RunID seen since the start
	StartedAfter       time.Time     // this incarnation of the server did not start before; zero: not known
	RejoinsAfter       time.Time     // no guard lets it rejoin before, while it is fenced; zero: not known
	Role               string        // "master", "slave"
	Persistent         bool          // see [Facts.Durable]
	StartsFenced       bool          // its files or its command line say that its next start is fenced
	StartedUnfenced    bool          // a guard told of an unfenced start of it, and none of a fenced one since
	Eviction           string        // maxmemory-policy
	Replicas           int           // attached ones
	UsedMemory         int64         // bytes
	Clients            int
	MinReplicasToWrite int64 // -1 where it could not be read
	// Leak is why it accepts writes although its fence is up; "": it does not.
	Leak string
	// ScriptsPass: scripts write through its fence, which is up after its next start at the latest.
	ScriptsPass bool

	// Guards are the restart guards that announce themselves on this node, the one
	// with the greatest D first. Where GuardsKnown is false they cannot be read: that
	// is not the same as none.
	Guards      []announce.Guard
	GuardsKnown bool
	// GuardsDenied: this user may not read them. With neither they were not read yet.
	GuardsDenied bool

	Locks int   // copies of locks on this node
	Keys  int64 // in its database, as the server says; -1: it does not
	// Read is the part of its keys that has been read since it came in sight; 1:
	// all that are looked for.
	Read float64
	// UpTo: all changes of its keys before have been read; zero: it does not tell of them.
	UpTo      time.Time
	WhyUnread string // why it is not read to the end, where that is not a matter of time
	// NoRoom is about how many keys of this node found no room in
	// observe.Options.MaxMemory; NoRoomLocks, how many of them may be locks.
	NoRoom, NoRoomLocks int

	RTT  time.Duration   // last round trip
	RTTs []time.Duration // the latest, oldest first, at most 60
	// Minutes are the last whole minutes, oldest first, at most 60.
	Minutes []Minute
	Offset  Estimate // of its clock to ours
	Drift   Drift

	// Notes are shortcomings of what can be seen of this node: "EVAL_RO refused:
	// reading by EVAL".
	Notes  []string
	Limits []Limit // those of them that something can be done about

	Facts Facts // what the server says of its settings and its past
}

// ReadWhole reports whether all of its keys have been read, and what changed since.
func (n *Node) ReadWhole() bool { return n.Read >= 1 && n.WhyUnread == "" }

// Minute is what was measured of a node in one minute.
type Minute struct {
	At                time.Time     // its beginning
	Answered, Failed  int           // probes
	Least, Mean, Most time.Duration // of the round trips
	Offset            Estimate      // of its clock to ours, at the end
}

// Readable reports whether the locks of a node in this state can be read and count:
// what a replica or a cluster shard holds is no vote.
func (s NodeState) Readable() bool { return s == NodeServing || s == NodeFenced || s == NodeCordoned }

// Verdict is the state of the cluster in a word. Of several that hold it is the
// one that needs a person most.
type Verdict uint8

const (
	VerdictUnknown     Verdict = iota // not everything has been looked at yet, or may be
	VerdictSafe                       // all nodes serve, no danger is found, and no restart gives a vote twice
	VerdictUnprotected                // all nodes serve, and a restart may give a vote twice, for all that is known
	VerdictDegraded                   // a quorum serves, not all
	VerdictDanger                     // a quorum serves, and two clients may hold one lock all the same
	VerdictUnavailable                // no quorum serves: nothing can be locked
)

// String is the verdict as the screen and JSON show it.
func (v Verdict) String() string {
	return [...]string{"unknown", "safe", "unprotected", "degraded", "danger", "unavailable"}[v]
}

// Severity of a finding.
type Severity uint8

const (
	SeverityInfo    Severity = iota // good to know; breaks nothing
	SeverityWarning                 // a margin of safety is gone
	SeverityDanger                  // two clients may hold one lock, or nothing can be locked
)

// String is the severity as the screen and JSON show it.
func (s Severity) String() string { return [...]string{"info", "warning", "danger"}[s] }

// Level is the level of the event that tells of a finding of this severity.
func (s Severity) Level() Level { return [...]Level{LevelInfo, LevelNotice, LevelAlarm}[s] }

// Finding is an assumption of Redlock that does not hold now on this cluster.
type Finding struct {
	// ID names the kind of finding for good: "no-ttl-lock". ID and Node
	// together name one finding. allChecks declares each; docs/findings.md is made of it.
	ID       string
	Severity Severity
	Node     string        // where it concerns one node
	Key      safetext.Text // of locks: the first that it concerns
	Count    int           // of locks: how many it concerns
	Since    time.Time     // first seen

	Title       string        // what is found, in a few words
	Evidence    safetext.Text // what was seen
	Consequence string        // why it matters
	Remedy      string        // what to do
}

// Estimate is a clock offset with the bound that the round trip leaves.
type Estimate struct {
	Valid  bool
	Offset time.Duration
	Bound  time.Duration // ±
}

// Drift is the rate of a node's clock to ours.
type Drift struct {
	Valid bool
	PPM   float64
	Bound float64 // ± ppm
}
