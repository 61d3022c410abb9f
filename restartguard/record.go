package restartguard

import (
	"time"

	"redlockctl/server/minreplicas"
)

// record is one node. Moments are nanoseconds of BootTime; 0 is none.
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
	PendingSent    bool          `json:"astray,omitempty"` // an order that was sent has no answer
	PendingRemoval bool          `json:"astray_lift,omitempty"`
	PendingConn    int64         `json:"astray_conn,omitempty"`
	PendingUntil   time.Duration `json:"astray_until_ns,omitempty"`
	Counter        int64         `json:"counter,omitempty"`
	CounterUntil   time.Duration `json:"counter_until_ns,omitempty"`
}

// moved is the state of a node whose method was changed: what the former one
// put up says nothing of the new one, which has to close what is waiting.
func (s State) Moved() State {
	s.Basis.Holds = false
	s.Basis.Proven, s.Basis.Leaked, s.Report.Known, s.Report.Verified, s.Basis.Revert = false, false, false, false, minreplicas.FenceNone
	return s
}

// durable is what of a state is written as soon as it changes; the rest only
// makes it more precise.
func (s State) Durable() State {
	d := State{Basis: Basis{Incarnation: s.Basis.Incarnation, Duty: s.Basis.Duty, Fencing: s.Basis.Fencing}, Report: Report{Starts: s.Report.Starts}}
	d.Basis.Pending, d.Basis.Commands = s.Basis.Pending, 0
	return d
}

// record is the state as it is written; now and boot are the same moment, or
// boot a little later.
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
		Counter: s.Basis.Counter, CounterUntil: at(s.Basis.CounterUntil),
		PendingSent: s.Basis.Pending.Sent, PendingRemoval: s.Basis.Pending.Removal, PendingConn: s.Basis.Pending.Conn, PendingUntil: at(s.Basis.Pending.Until),
	}
}

// awayRate is by how much a node's clock may run ahead of ours while no guard looks,
// beyond what D allows: the most that operating systems correct a clock by is 0.05 %,
// of both clocks. With less, a guard that was away for an hour would take it for a
// step of all clocks, and close all nodes.
const awayRate = 0.001

// state is what a record means at a moment. Where its clock is that of another
// boot, a node that waits waits D from now. A reading of a node's clock goes on
// being what the next is compared with, and the first that shows a step is believed,
// without a second one: what happened while no guard looked is a loss in case of
// doubt.
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
	s.Report.From, s.Basis.Recalled = at(r.MayVote), now
	s.Basis.Counter, s.Basis.CounterUntil = r.Counter, at(r.CounterUntil)
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

// Remembered is what a guard that starts now finds in its memory of a state, in the
// same boot of its machine, whose clock shows boot.
func (s State) Remembered(now time.Time, boot, delay time.Duration) State {
	return s.Record("", "", now, boot).State(now, boot, delay, true)
}

// recordMostly is how often what only makes a record more precise is written at least.
const recordMostly = 30 * time.Second

// RecordEvery is how often the readings of clocks are written, of a guard with a
// delay: a step of a node's clock behind the back of a guard that has crashed is told
// by the reading from before it, the better the younger that is.
func RecordEvery(delay time.Duration) time.Duration { return min(recordMostly, delay/4) }

// Remembered is what the memory of a guard says of a node.
type Remembered struct {
	Addr         string
	RunID        string        // of the life that was seen last
	Known        bool          // Verified means something
	Verified     bool          // that life started fenced
	Incarnations int           // how many lives were seen
	Served       bool          // it was open once
	Cordoned     bool          // an operator holds it
	Wait         time.Duration // how long it still waits, from now; 0 if it need not
	Cause        string        // why it waits, or waited last, in a few words
}
