// Package monitor describes a cluster at one moment: its nodes, its locks with copies,
// margins and states, the verdict, the findings and the events. It does no I/O. Package
// observe makes its snapshots.
package monitor

import (
	"fmt"
	"time"

	"redlockctl/monitor/words"
	"redlockctl/server/announce"
	"redlockctl/server/safetext"
)

// Snapshot is all that the monitor knows at one moment. It is immutable: a consumer may
// keep it, and must not change it.
type Snapshot struct {
	At      time.Time // monotonic: ages and remaining times are differences to it
	Version uint64    // grows with each snapshot
	Cluster Cluster
	Nodes   []Node
	Locks   Locks
	Counts  Counts
	// Complete says that every key of every node that answers has been read since the
	// node became reachable. Until then, locks may be missing, and the states of others
	// may change as their copies are read. It says nothing about nodes that do not
	// answer.
	Complete bool
	// Settled is when the first view was complete, and changes are seen since then; zero:
	// not yet.
	Settled time.Time
	// Pause is the last time for which this process could not watch.
	Pause Pause
	// Findings are the assumptions of Redlock that do not hold now, the most severe
	// first.
	Findings []Finding
	// Guard is what the restart guard in this process knows; nil: none runs here.
	Guard *GuardView
	// Witnesses are what guards elsewhere say, while too few nodes are seen from here.
	Witnesses []Witness
	// Ripening counts locks in a state that is dangerous if it lasts, but has not lasted
	// long enough to be reported. Young: none can have lasted long enough, because the
	// locks were first read just now. A one-shot view waits until neither is the case.
	Ripening int
	Young    bool
	Events   []Event // the latest, oldest first; limited in number
}

// Pause is a time for which nothing was seen because this process was stopped or its machine
// suspended: from the last sign of life before that to the first complete read of all nodes after it.
type Pause struct{ Since, Until time.Time } // Until zero: not read yet

// Includes reports whether what was first seen at t may have begun in the pause.
func (p Pause) Includes(t time.Time) bool {
	return t.After(p.Since) && !p.Since.IsZero() && (p.Until.IsZero() || !t.After(p.Until))
}

// Counts are the numbers of locks by their state.
type Counts [numLockStates]int

// Total returns the number of all locks.
func (c Counts) Total() int {
	n := 0
	for _, k := range c {
		n += k
	}
	return n
}

// Cluster is the state of all nodes together.
type Cluster struct {
	Name   string
	N      int
	Quorum int
	MaxTTL time.Duration
	// TTLBound is the longest TTL that may be used: the least of MaxTTL and of what each
	// announced guard covers; 0: unknown.
	TTLBound time.Duration
	Serving  int // nodes that accept writes now, as far as is known
	// Hidden counts the nodes that answer but deny access to this program, so it is
	// unknown whether they serve.
	Hidden int
	// NotSeen: so many nodes are silent that a quorum may serve or not, and nothing was
	// heard of any node since: this program's own line may be cut. Nothing is claimed of
	// the cluster then. NotSeenSince is when a node was last heard; zero: never.
	NotSeen      bool
	NotSeenSince time.Time
	// Verdict follows from the nodes, the findings and the protection from restarts; see
	// Snapshot.Assess.
	Verdict Verdict
	// Reason says why the verdict is not safe, the worst first: "n2 fenced; not protected
	// against restarts: no guard".
	Reason string
	// Absent names nodes that do not serve: "n2 fenced, n4 down"; of many only some.
	Absent string
	// Protected says that no restart makes a node vote twice, as far as can be seen;
	// Missing says what is missing for that.
	Protected bool
	Missing   string
	// StartsUnseen: only starts of some nodes are missing: none was seen yet, nor how
	// they will start. That is normal right after an adoption from another host.
	StartsUnseen bool
	// CanLose is how many more nodes may fail before nothing can be locked; negative:
	// nothing can now, unless nodes are Hidden.
	CanLose int
}

// Node returns the node with this name, or nil.
func (s *Snapshot) Node(name string) *Node {
	for i := range s.Nodes {
		if s.Nodes[i].Name == name {
			return &s.Nodes[i]
		}
	}
	return nil
}

// Unread is a node that has not been fully read, and why.
type Unread struct{ Node, Why string }

// Unread returns the nodes because of which the snapshot is not complete.
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

// LockNamed returns the lock with this name as its first key or a further one; nil: none.
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

// NodeState says whether a node serves, or why it does not.
type NodeState uint8

const (
	NodeUnknown   NodeState = iota // not probed yet
	NodeServing                    // a master that accepts writes
	NodeFenced                     // up, refuses writes: fenced by a guard or its boot fence
	NodeCordoned                   // up, refuses writes: cordoned by an operator
	NodeLoading                    // up, reading its data
	NodeWrongRole                  // a replica, or a node in cluster mode
	NodeDenied                     // wrong password, or missing rights
	NodeSlow                       // connected, does not answer in time
	NodeDown                       // no connection
)

var nodeStateNames = [...]string{"unknown", "serving", "fenced", "cordoned", "loading", "wrong role", "denied", "slow", "down"}

// String returns the state as the screen and JSON show it.
func (s NodeState) String() string { return nodeStateNames[s] }

// Urgency orders states by how soon a person should look; 0: the node serves.
func (s NodeState) Urgency() int {
	switch s {
	case NodeServing:
		return 0
	case NodeUnknown:
		return 1
	}
	return int(s)
}

// Answers reports whether a node in this state answers, so that what it said last is
// current.
func (s NodeState) Answers() bool {
	return s.Readable() || s == NodeLoading || s == NodeWrongRole
}

// Node is a master as seen from here.
type Node struct {
	Name  string
	Addr  string
	State NodeState
	Since time.Time // of State
	Older bool      // State is as it was found: Since is when that was
	// Cordon is who cordoned it, while it is cordoned or down: a guard cordons it again after its start; nil: not known
	// here.
	Cordon *Cordon
	// LocksHidden: State is denied although the node accepts writes: only its locks may
	// not be read.
	LocksHidden bool
	// SilentSince: nothing has been heard of it since it was asked, neither an answer nor
	// that nobody listens there. It may be up: the line to it may be cut. Zero: it is not
	// silent.
	SilentSince time.Time
	Heard       time.Time // when something was last heard of it; zero: never
	HeardSince  time.Time // since when it has not been silent
	// Err is the last failure, while State is denied, slow, down or wrong role.
	Err safetext.Text

	RunID              string
	Version            string        // of the server, e.g. "7.0.15"
	Uptime             time.Duration // as the server says, whole seconds
	Restarts           int           // changes of RunID seen since the monitor's start
	StartedAfter       time.Time     // this incarnation did not start earlier; zero: unknown
	RejoinsAfter       time.Time     // while fenced, no guard lets it rejoin earlier; zero: unknown
	Role               string        // "master", "slave"
	Persistent         bool          // see [Facts.Durable]
	StartsFenced       bool          // its files or command line say that its next start is fenced
	StartedUnfenced    bool          // a guard reported an unfenced start, and none a fenced one since
	Eviction           string        // maxmemory-policy
	Replicas           int           // connected ones
	UsedMemory         int64         // bytes
	Clients            int
	MinReplicasToWrite int64 // -1 if it could not be read
	// Leak says why it accepts writes although it is fenced; "": it does not.
	Leak string
	// Remembered is how this incarnation started, by what a guard on this host has written to its
	// memory, also one that has ended.
	Remembered announce.Boot
	// Early: it serves before it may vote, because somebody removed its fence: until EarlyUntil a
	// lock that it lost can be granted a second time. EarlyUntil is zero in a record, which does
	// not have it.
	Early      bool
	EarlyUntil time.Time
	// ScriptsPass: scripts write through its fence, now or after its next start.
	ScriptsPass bool

	// Guards are the restart guards that announce themselves on this node, the one with
	// the greatest D first. If GuardsKnown is false, they could not be read, so
	// there may be some.
	Guards      []announce.Guard
	GuardsKnown bool
	// GuardsDenied: this user may not read them. If both are false, they were not read
	// yet.
	GuardsDenied bool

	Locks int // copies of locks on this node
	// CopiesUntil is when the last of them expires while the node is cordoned; zero: unknown, or one
	// has no TTL.
	CopiesUntil time.Time
	Keys        int64 // in its database, as reported by the server; -1: unknown
	// Read is the share of its keys that has been read since it became reachable; 1: all
	// that are wanted.
	Read float64
	// UpTo: all earlier changes of its keys have been read; zero: it does not report
	// them.
	UpTo      time.Time
	WhyUnread string // why it is not fully read, if not only for lack of time
	// NoRoom is about how many keys of this node found no room in
	// observe.Options.MaxMemory; NoRoomLocks is how many of them may be locks.
	NoRoom, NoRoomLocks int

	RTT  time.Duration   // last round trip
	RTTs []time.Duration // the latest, oldest first, at most 60
	// Minutes are the last whole minutes, oldest first, at most 60.
	Minutes []Minute
	Offset  Estimate // of its clock from ours
	Drift   Drift

	// Notes say what cannot be seen of this node: "EVAL_RO refused: reading by EVAL".
	Notes  []string
	Limits []Limit // notes for which there is advice

	Facts Facts // its settings and its past
}

// ReadWhole reports whether all of its keys, and all changes since, have been read.
func (n *Node) ReadWhole() bool { return n.Read >= 1 && n.WhyUnread == "" }

// Minute has the measurements of a node in one minute.
type Minute struct {
	At                time.Time     // its start
	Answered, Failed  int           // probes
	Least, Mean, Most time.Duration // of the round trips
	Offset            Estimate      // of its clock from ours, at the end
}

// Readable reports whether the locks of a node in this state can be read and count: the
// copies of a replica or a cluster shard are not votes.
func (s NodeState) Readable() bool { return s == NodeServing || s == NodeFenced || s == NodeCordoned }

// Verdict is the state of the cluster in a word: of several that apply, the most urgent.
type Verdict uint8

const (
	VerdictUnknown     Verdict = iota // not everything is read yet, or can be
	VerdictSafe                       // all nodes serve, no danger is found, and no restart makes a node vote twice
	VerdictUnprotected                // all nodes serve, but a restart may make one vote twice, as far as is known
	VerdictDegraded                   // a quorum serves, not all
	VerdictDanger                     // a quorum serves, but two clients may hold one lock
	VerdictUnavailable                // no quorum serves: nothing can be locked
)

// String returns the verdict as the screen and JSON show it.
func (v Verdict) String() string {
	return [...]string{"unknown", "safe", "unprotected", "degraded", "danger", "unavailable"}[v]
}

// Severity of a finding.
type Severity uint8

const (
	SeverityInfo    Severity = iota // good to know; breaks nothing
	SeverityWarning                 // a safety margin is gone
	SeverityDanger                  // two clients may hold one lock, or nothing can be locked
)

// String returns the severity as the screen and JSON show it.
func (s Severity) String() string { return [...]string{"info", "warning", "danger"}[s] }

// Level returns the level of the event that reports a finding of this severity.
func (s Severity) Level() Level { return [...]Level{LevelInfo, LevelNotice, LevelAlarm}[s] }

// Finding is an assumption of Redlock that does not hold on this cluster now.
type Finding struct {
	// ID names the kind of finding and never changes: "no-ttl-lock". ID and Node together
	// identify a finding. Package finding declares each; docs/findings.md lists them.
	ID       string
	Severity Severity
	Node     string        // if it concerns one node
	Key      safetext.Text // of locks: the first one affected
	Count    int           // of locks: the number affected
	Since    time.Time     // first seen

	Title       string        // what was found, in a few words
	Evidence    safetext.Text // what was seen
	Consequence string        // why it matters
	Remedy      string        // what to do
}

// Estimate is a clock offset with the error that the round trip allows.
type Estimate struct {
	Valid  bool
	Offset time.Duration
	Bound  time.Duration // ±
}

// Drift is the rate of a node's clock relative to ours.
type Drift struct {
	Valid bool
	PPM   float64
	Bound float64 // ± ppm
}
