package monitor

import (
	"fmt"
	"time"

	"redlockctl/server/safetext"
)

// Level is the importance of an event.
type Level uint8

const (
	LevelInfo   Level = iota // routine: acquired, extended, released, expired
	LevelNotice              // a change that an operator should know
	LevelAlarm               // an operator should look
)

// String returns the level as the screen and JSON show it.
func (l Level) String() string { return [...]string{"info", "notice", "alarm"}[l] }

// EventKinds returns the kinds of the monitor's events: of locks, of nodes, and others. A
// guard in this process and the record add their own.
func EventKinds() (locks, nodes, others []string) {
	// "not seen": nodes do not answer, or this process was stopped, so its end is not known.
	// Many lost copies at once are one event of the node. The last four are states.
	return []string{"acquired", "extended", "released", "expired", "not seen", "force-released", "revoked", "lost copy", "lost majority", "orphaned", "split", "over max TTL", "no TTL"},
		[]string{"up", "down", "slow", "loading", "denied", "wrong role", "fenced", "cordoned", "rejoined", "rejoin late", "restart", "data wiped", "clock step"},
		// The first two are about the line between this process and all nodes. "missed
		// grants" were too short to be read.
		[]string{"not seen from here", "seen again", "own clock", "missed grants", "finding opened", "finding closed"}
}

// Event is something that happened, for people to read.
type Event struct {
	Seq   uint64 // grows by one with each event, so readers know which ones they have seen
	At    time.Time
	Level Level
	Kind  string        // the event in a word, one of [EventKinds]
	Node  string        // if it concerns one node
	Key   safetext.Text // if it concerns one lock
	Text  safetext.Text // the sentence
	// Token is the token of a grant that began, was extended or ended. Until is its last
	// known end (zero: never). Times is how many extensions of the grant were seen so far,
	// the last one at Extended.
	Token    safetext.Text
	Until    time.Time
	Times    int
	Extended time.Time
	// Part says that another event reports the cause. It is shown in full lists of events
	// and in the history of its lock.
	Part bool
	Act  string       // the id in the audit log of what an operator did here; empty: another event
	Cost *RestartCost // of a restart or a wipe; nil: another event
}

// NoLoss is the text of a restart or a wipe after which no copy is missing that was seen before.
const NoLoss = "no lock is known to have lost a copy"

// RestartCost is the cost of a restart of a node, or of a wipe of its data.
type RestartCost struct {
	Cause        LossCause
	Lost         int             // locks that lost a copy of their holder, or a tombstone
	Bare         int             // of these, locks with a bare majority now
	LostMajority int             // of these, locks that lost their majority
	HeldUntil    time.Time       // until when the last of these may be relied on; zero: none, or no end
	Unrevoked    int             // revoked locks that have too few tombstones left to keep others out
	Others       int             // lost copies of other clients than the holders: attempts, and what they left
	Expired      int             // copies that expired while the node did not answer, before the restart was seen
	ExpiredAt    time.Time       // the latest end of these that was known
	Loaded       Loaded          // copies that the node loaded from disk
	Locks        []safetext.Text // names of the locks that lost a copy, the worst first; at most 50
	// Rejoins is when a guard lets the node rejoin; zero: unknown.
	Rejoins time.Time
}

// Loaded counts the copies of locks that a restarted node loaded from disk, by what is
// known of their tokens.
type Loaded struct {
	Held     int // of a running grant: the holder's copy as before
	LeftOver int // of a grant that was released, was removed or has expired
	Unknown  int // of tokens never seen before: they may be held until their TTL expires
}

// NodeEvent makes an event about a node, or about none if node is empty.
func NodeEvent(at time.Time, level Level, kind, node, format string, args ...any) Event {
	return Event{At: at, Level: level, Kind: kind, Node: node, Text: safetext.New(fmt.Sprintf(format, args...))}
}

// LockEvent makes an event about a lock.
func LockEvent(at time.Time, level Level, kind, key, format string, args ...any) Event {
	return Event{At: at, Level: level, Kind: kind, Key: safetext.New(key), Text: safetext.New(fmt.Sprintf(format, args...))}
}
