package view

import (
	"fmt"
	"slices"
	"strings"

	"redlockctl/monitor"
)

// Verdict is the state of a cluster.
func (g *Glyphs) Verdict(v monitor.Verdict) Cell {
	c := Cell{g.Unknown, v.String(), Dim}
	switch v {
	case monitor.VerdictSafe:
		c.Sign, c.Tone = g.On, Good
	case monitor.VerdictUnprotected, monitor.VerdictDegraded:
		c.Sign, c.Tone = g.Half, Warn
	case monitor.VerdictDanger, monitor.VerdictUnavailable:
		c.Sign, c.Tone = g.Off, Bad
	}
	return c
}

// NodeState is the state of a node.
func (g *Glyphs) NodeState(s monitor.NodeState) Cell {
	c := Cell{g.Unknown, s.String(), Dim}
	switch s {
	case monitor.NodeServing:
		c.Sign, c.Tone = g.On, Good
	case monitor.NodeFenced:
		c.Sign, c.Tone = g.Half, Warn
	case monitor.NodeCordoned:
		c.Sign, c.Tone = g.Stop, Warn
	case monitor.NodeLoading, monitor.NodeSlow:
		c.Sign, c.Tone = g.Wait, Warn
	case monitor.NodeWrongRole, monitor.NodeDenied:
		c.Sign, c.Tone = g.Odd, Warn
	case monitor.NodeDown:
		c.Sign, c.Tone = g.Off, Bad
	}
	return c
}

// Severity is the severity of a finding.
func (g *Glyphs) Severity(s monitor.Severity) Cell {
	switch s {
	case monitor.SeverityDanger:
		return Cell{g.Off, s.String(), Bad}
	case monitor.SeverityWarning:
		return Cell{g.Odd, s.String(), Warn}
	}
	return Cell{g.Sep, s.String(), None}
}

// LockState is the state of a lock.
func (g *Glyphs) LockState(s monitor.LockState) Cell {
	c := Cell{g.Unknown, s.String(), Dim}
	switch s {
	case monitor.LockHeld:
		c.Sign, c.Tone = g.On, Good
	case monitor.LockExpiring:
		c.Sign, c.Tone = g.soon, Good
	case monitor.LockBareMajority:
		c.Sign, c.Tone = g.BareMajority, Warn
	case monitor.LockRevoked:
		c.Sign, c.Tone = g.Stop, Warn
	case monitor.LockPartial:
		c.Sign, c.Tone = g.partial, Info
	case monitor.LockNotALock:
		c.Sign = g.None
	case monitor.LockMayBeHeld:
		c.Tone = Warn
	case monitor.LockLostMajority:
		c.Sign, c.Tone = g.lostMajority, Warn
	case monitor.LockOrphaned:
		c.Sign, c.Tone = g.orphan, Bad
	case monitor.LockOverTTL:
		c.Sign, c.Tone = g.over, Warn
	case monitor.LockSplit:
		c.Sign, c.Tone = g.split, Bad
	case monitor.LockNoTTL:
		c.Sign, c.Tone = g.endless, Bad
	}
	return c
}

// LockStateOf is the state of one lock: it is bad that several tokens have copies where two clients may
// rely on the lock.
func (g *Glyphs) LockStateOf(l *monitor.Lock) Cell {
	c := g.LockState(l.State)
	if l.State == monitor.LockSplit && l.Earlier == nil {
		c.Tone = Warn
	}
	return c
}

// States explains the states of locks.
var States = map[monitor.LockState]string{
	monitor.LockHeld:         "a majority of copies, and at least one of them to lose",
	monitor.LockExpiring:     "held; ends within a second",
	monitor.LockBareMajority: "held with the last copies that make a majority: it cannot be extended while one of their nodes is out",
	monitor.LockRevoked:      "the holder cannot extend it; others wait until the TTL expires",
	monitor.LockPartial:      "copies, but no majority: an attempt, a release or a read is under way",
	monitor.LockNotALock:     "a key under the lock patterns that cannot be a lock",
	monitor.LockMayBeHeld:    "no majority is seen, but nodes do not answer or may have forgotten a copy: treat it as held",
	monitor.LockLostMajority: "it was granted and has lost copies: its holder may rely on it until its end and cannot extend it",
	monitor.LockOrphaned:     "a minority that was never granted, or whose grant has ended: on nodes that serve it blocks others until it expires",
	monitor.LockOverTTL:      "its TTL is above the cluster's max TTL: the guard's delay does not cover it",
	monitor.LockSplit:        "copies of several tokens; ' marks those that are not the holder's",
	monitor.LockNoTTL:        "a copy without a TTL: it never expires",
}

// Needs returns how urgently a state needs a person. States that change many times a
// second by themselves have one value, so that rows do not move.
func Needs(s monitor.LockState) int {
	switch s {
	case monitor.LockHeld, monitor.LockExpiring, monitor.LockPartial:
		return 0
	}
	return int(s)
}

// lockNeeds sorts locks by how much they need a person, the most first.
func lockNeeds(l *monitor.Lock) int64 {
	n := 2 * int64(Needs(l.State))
	if l.State == monitor.LockSplit && l.Earlier != nil {
		n++
	}
	return -n
}

// Level returns the sign of an event's importance. A routine event has none.
func (g *Glyphs) Level(l monitor.Level) Cell {
	switch l {
	case monitor.LevelNotice:
		return Cell{g.Sep, l.String(), None}
	case monitor.LevelAlarm:
		return Cell{"!", l.String(), Bad}
	}
	return Cell{" ", l.String(), Dim}
}

// Answering returns how many nodes answer reads.
func Answering(s *monitor.Snapshot) (n int) {
	for i := range s.Nodes {
		if s.Nodes[i].State.Readable() {
			n++
		}
	}
	return n
}

// NoLocks says why a table of locks is empty.
func NoLocks(s *monitor.Snapshot) string {
	switch n := Answering(s); {
	case s.InGap():
		return monitor.NothingRecorded
	case s.Unrecorded():
		return "locks were not recorded then: " + monitor.AdviceRecordLocks
	case s.Cluster.NotSeen:
		return "what is locked is not seen from here"
	case n == 0:
		return "no node answers: what is locked is not known"
	case !s.Complete:
		return "no locks among the keys that have been read"
	case n == len(s.Nodes):
		return "no locks"
	default:
		return fmt.Sprintf("no locks on the %d of %d nodes that answer", n, len(s.Nodes))
	}
}

// MayHide reports whether a client may rely on a lock of which nothing is seen: nodes that do not answer and
// those that are fenced, as they may have lost a copy, are a quorum.
func MayHide(s *monitor.Snapshot) bool {
	silent := len(s.Nodes) - Answering(s)
	fenced := 0
	for i := range s.Nodes {
		if s.Nodes[i].State == monitor.NodeFenced {
			fenced++
		}
	}
	return silent > 0 && silent+fenced >= s.Cluster.Quorum
}

// StateCount is how many locks are in a state, and how many orphaned ones are known to keep nobody out: "2
// orphaned that keep nobody out".
func StateCount(s *monitor.Snapshot, st monitor.LockState) string {
	text, left := Count(s.Counts[st])+" "+st.String(), 0
	if st == monitor.LockOrphaned {
		left = s.BlockNobody()
	}
	keep := " " + map[bool]string{true: "keeps", false: "keep"}[left == 1] + " nobody out"
	switch left {
	case 0:
		return text
	case s.Counts[st]:
		return text + " that" + keep
	}
	return text + ", of which " + Count(left) + keep
}

// LocksText returns the number of locks, and of each state, the most urgent first.
func LocksText(s *monitor.Snapshot) string {
	by := s.Counts
	var parts []string
	for st := range monitor.LockStates() {
		if by[st] > 0 {
			parts = append(parts, StateCount(s, st))
		}
	}
	slices.Reverse(parts)
	count := Count(by.Total()) + " (" + strings.Join(parts, ", ") + ")"
	switch {
	case s.InGap():
		return monitor.NothingRecorded
	case s.Unrecorded():
		return "not recorded"
	case s.Cluster.NotSeen:
		return "not seen from here"
	case Answering(s) == 0:
		return "unknown: no node answers"
	case s.Complete && MayHide(s):
		if len(parts) == 0 {
			count = "none"
		}
		return count + fmt.Sprintf(" on the %d of %d nodes that answer: there may be more", Answering(s), len(s.Nodes))
	case len(parts) == 0 && s.Complete:
		return "none"
	case len(parts) == 0:
		return "none among the keys that have been read"
	case !s.Complete:
		return count + " among the keys that have been read"
	}
	return count
}
