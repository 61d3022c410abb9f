package monitor

import (
	"fmt"
	"time"

	"redlockctl/server/safetext"
)

// Level is how much an event wants to be read.
type Level uint8

const (
	LevelInfo   Level = iota // everyday churn: acquired, extended, released, expired
	LevelNotice              // something changed that an operator should know
	LevelAlarm               // a person should look
)

// String is the level as the screen and JSON show it.
func (l Level) String() string { return [...]string{"info", "notice", "alarm"}[l] }

// Event is something that happened, for people to read.
type Event struct {
	Seq   uint64 // grows by one with each event: tells which ones a reader has seen
	At    time.Time
	Level Level
	// Kind is the event in a word. Of nodes: "up", "down", "slow", "loading",
	// "denied", "wrong role", "fenced", "cordoned", "rejoined", "restart", "clock step", "data wiped",
	// "own clock". Of locks: "acquired", "extended", "released", "expired", "not seen" (nodes do not answer, its end is not known),
	// "force-released", "revoked", "lost copy" (of many at once the node tells), "lost majority", and
	// the states "orphaned", "over max TTL", "split", "no TTL". Of findings: "finding
	// opened", "finding closed".
	Kind string
	Node string        // where it concerns one node
	Key  safetext.Text // where it concerns one lock
	Text safetext.Text // the sentence
	// Token is that of a grant that began, was extended or ended; Until, of the first two,
	// when it ends by what is known (zero: never). Times is how many extensions the event
	// stands for.
	Token safetext.Text
	Until time.Time
	Times int
	// Part says that another event tells it too: it is for those who ask for more than
	// the cause, and for the history of its lock.
	Part bool
	Cost *RestartCost // of a restart; nil: of anything else
}

// RestartCost is what a restart of a node, or a wipe of its data, cost.
type RestartCost struct {
	Cause        LossCause
	Lost         int             // locks that lost a copy
	Bare         int             // of them, those that have a bare majority now
	LostMajority int             // of them, those that lost their majority
	HeldUntil    time.Time       // until when the last of those may be relied on; zero: none, or without end
	Loaded       Loaded          // copies that the node loaded from its disk
	Locks        []safetext.Text // names of the locks that lost a copy, the worst first; at most 50
	// Rejoins is when a guard lets the node rejoin; zero where none is known.
	Rejoins time.Time
}

// Loaded counts the copies of locks that a restarted node loaded from its disk, by what is
// known of their tokens.
type Loaded struct {
	Held     int // of a grant that runs: the holder's copy as before
	LeftOver int // of a grant that was released, removed or has expired
	Unknown  int // of tokens never seen before: they may be held until their TTL expires
}

// NodeEvent is an event that concerns a node, or none where node is empty.
func NodeEvent(at time.Time, level Level, kind, node, format string, args ...any) Event {
	return Event{At: at, Level: level, Kind: kind, Node: node, Text: safetext.New(fmt.Sprintf(format, args...))}
}

// LockEvent is an event that concerns a lock.
func LockEvent(at time.Time, level Level, kind, key, format string, args ...any) Event {
	return Event{At: at, Level: level, Kind: kind, Key: safetext.New(key), Text: safetext.New(fmt.Sprintf(format, args...))}
}
