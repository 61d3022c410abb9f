package restartguard

import (
	"time"

	"redlockctl/server/minreplicas"
)

// Record is a node in the guard's memory on disk. Moments are nanoseconds of [boottime.Now]; 0 is
// none.
type Record struct {
	Addr  string `json:"addr"`
	Fence string `json:"fence"`
	Incarnation
	Cordoned bool  `json:"hold,omitempty"`
	Owed     int64 `json:"owed,omitempty"` // the fence that is not up yet
	Fencing
	Starts
	ClockBase
	Deadline       time.Duration `json:"deadline_ns,omitempty"`
	MayVote        time.Duration `json:"may_vote_ns,omitempty"`
	OpenSince      time.Duration `json:"open_since_ns,omitempty"`
	LastSeen       time.Duration `json:"last_seen_ns,omitempty"`
	PendingSent    bool          `json:"astray,omitempty"` // a command that was sent has no answer
	PendingRemoval bool          `json:"astray_lift,omitempty"`
	PendingConn    int64         `json:"astray_conn,omitempty"`
	PendingUntil   time.Duration `json:"astray_until_ns,omitempty"`
	Counter        int64         `json:"counter,omitempty"`
	CounterUntil   time.Duration `json:"counter_until_ns,omitempty"`
	Relied         time.Duration `json:"drained_restart_ns,omitempty"` // see [Drain]
	DrainedAge     time.Duration `json:"drained_age_ns,omitempty"`
}

// Moved returns the state of a node whose method has changed: the fence of the former method means
// nothing to the new one, which has to fence a node that waits.
func (s State) Moved() State {
	s.Basis.Holds = false
	s.Basis.Proven, s.Basis.Leaked, s.Report.Known, s.Report.Verified, s.Basis.Revert = false, false, false, false, minreplicas.FenceNone
	return s
}

// Durable returns the part of a state that is written as soon as it changes. The rest only adds
// precision.
func (s State) Durable() State {
	d := State{Basis: Basis{Incarnation: s.Basis.Incarnation, Duty: s.Basis.Duty, Fencing: s.Basis.Fencing}, Report: Report{Starts: s.Report.Starts}}
	d.Basis.Pending, d.Basis.Commands = s.Basis.Pending, 0
	return d
}

// Record returns the state as it is written; boot is now, or a little later.
func (s State) Record(addr, fence string, now time.Time, boot time.Duration) Record {
	at := func(t time.Time) time.Duration {
		if t.IsZero() {
			return 0
		}
		return max(1, boot+t.Sub(now))
	}
	return Record{
		Addr: addr, Fence: fence, Incarnation: s.Basis.Incarnation, Fencing: s.Basis.Fencing, Starts: s.Report.Starts, ClockBase: s.Basis.ClockBase,
		Cordoned: s.Basis.Duty.Kind == DutyCordon, Owed: s.Basis.Owed(), Deadline: at(s.Basis.Deadline), MayVote: at(s.Report.From), OpenSince: at(s.Report.UnfencedSince), LastSeen: at(s.Basis.LastSeen),
		Counter: s.Basis.Counter, CounterUntil: at(s.Basis.CounterUntil), Relied: at(s.Basis.Relied), DrainedAge: s.Basis.Age,
		PendingSent: s.Basis.Pending.Sent, PendingRemoval: s.Basis.Pending.Removal, PendingConn: s.Basis.Pending.Conn, PendingUntil: at(s.Basis.Pending.Until),
	}
}

// awayRate is by how much a node's clock may run ahead of ours while no guard observes it, beyond
// what D allows: operating systems correct clocks by 0.05 % at most, on both sides. With less, a
// guard that was away for an hour would see a step of every clock, and fence every node.
const awayRate = 0.001

// State returns the state that a record means now. If its times are of another boot, a node that
// waits waits for D from now. The next reading of the node's clock is compared with the record's,
// and the first one that shows a step counts, without a second: what happened while no guard
// observed the node is a loss if in doubt.
func (r Record) State(now time.Time, boot, delay time.Duration, sameBoot bool) State {
	at := func(d time.Duration) time.Time {
		if d == 0 || !sameBoot {
			return time.Time{}
		}
		return now.Add(d - boot)
	}
	s := State{Basis: Basis{Incarnation: r.Incarnation, Fencing: r.Fencing}, Report: Report{Starts: r.Starts}}
	waits := r.Deadline != 0 || r.Owed != minreplicas.FenceNone
	switch {
	case r.Cordoned || r.Owed == minreplicas.FenceCordon:
		s.Basis.Duty = Duty{Kind: DutyCordon, Deadline: at(r.Deadline), Holds: r.Owed == minreplicas.FenceNone}
		waits = r.Deadline != 0
	case waits:
		s.Basis.Duty = Duty{Kind: DutyWait, Deadline: at(r.Deadline), Holds: r.Owed == minreplicas.FenceNone}
	}
	s.Report.UnfencedSince, s.Basis.LastSeen = at(r.OpenSince), at(r.LastSeen)
	s.Report.From, s.Basis.Unsure = at(r.MayVote), now
	s.Basis.Counter, s.Basis.CounterUntil = r.Counter, at(r.CounterUntil)
	s.Basis.Relied, s.Basis.Age = at(r.Relied), r.DrainedAge
	s.Basis.Pending = InFlightCommand{Sent: r.PendingSent, Removal: r.PendingRemoval, Conn: r.PendingConn, Until: at(r.PendingUntil)}
	s.Report.Since, s.Report.Out = now, now
	if sameBoot && r.Clock.Wall != 0 {
		s.Basis.ClockBase, s.Basis.Ahead = r.ClockBase, 1
		s.Basis.ClockDrift += time.Duration(awayRate * float64(max(0, boot-r.ClockAt-delay)))
	}
	longest := max(delay, r.Delay)
	if waits && (s.Basis.Deadline.IsZero() || s.Basis.Deadline.Sub(now) > longest) {
		s.Basis.Deadline, s.Basis.Delay = now.Add(longest), longest
	}
	return s
}

// Remembered returns what a guard that starts now would find in its memory of this state, in the
// same boot of its machine.
func (s State) Remembered(now time.Time, boot, delay time.Duration) State {
	return s.Record("", "", now, boot).State(now, boot, delay, true)
}

// recordMostly is how often, at least, what only adds precision is written.
const recordMostly = 30 * time.Second

// RecordEvery returns how often a guard with this D writes the readings of clocks. After a crash of
// the guard, a step of a node's clock shows against the last written reading, and a younger one
// shows a smaller step.
func RecordEvery(delay time.Duration) time.Duration { return min(recordMostly, delay/4) }

// Source is where a [Fact] comes from.
type Source uint8

const (
	FromMemory Source = iota // the memory of a guard on this machine
	FromStatus               // the /status of another guard
)

// Fact is what a source other than a guard of this process knows about a node.
type Fact struct {
	Source       Source
	Addr         string        // with FromMemory
	RunID        string        // of the incarnation that was last seen, with FromMemory
	Known        bool          // its start was seen, so Verified means something
	Verified     bool          // that incarnation started fenced
	Incarnations int           // how many were seen
	Served       bool          // the node served once
	Cordoned     bool          // an operator has cordoned it
	Wait         time.Duration // how much longer it waits; 0: it need not; below 0: not known
	Cause        string        // why it waits, or last waited, in a few words
}
