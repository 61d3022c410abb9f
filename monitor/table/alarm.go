package table

import (
	"slices"
	"time"

	"redlockctl/monitor"
	"redlockctl/monitor/internal/packed"
)

// alarmPatience is how long a lock must be split or without a TTL before it raises an
// alarm: a failed attempt leaves copies for a moment, and the old SETNX pattern sets the
// TTL with a second command.
const alarmPatience = 1500 * time.Millisecond

// doublePatience is how long two clients must rely on a lock: no attempt leaves that
// behind.
const doublePatience = 100 * time.Millisecond

// patience returns how long the state of a lock must last before it raises an alarm; ok
// is false if it never does.
func (r *record) patience() (time.Duration, bool) {
	switch s := r.lock.State; s {
	case monitor.LockOverTTL:
		return 0, true
	case monitor.LockSplit, monitor.LockNoTTL:
		if s == monitor.LockSplit && r.earlier != nil {
			return doublePatience, true
		}
		return alarmPatience, true
	}
	return 0, false
}

// trackAlarm reports a state that needs an operator once it has lasted, and returns when
// to check again.
func (t *Table) trackAlarm(r *record, now packed.Moment) (again packed.Moment) {
	s := r.lock.State
	wait, ok := r.patience()
	if !ok {
		r.alarm, r.alarmTold = monitor.LockHeld, false
		return 0
	}
	if r.alarm != s {
		r.alarm, r.alarmed, r.alarmTold = s, now, false
	}
	if !t.settled || r.alarmTold || t.firstAlarms != 0 && r.alarmed <= t.settledAt {
		return 0 // already reported, or will be with the others
	}
	if due := r.alarmed + packed.Moment(wait); now < due {
		return due
	}
	if slices.ContainsFunc(t.nodes, func(n node) bool { return !n.isCurrent() }) {
		r.overdue = true // it may have passed meanwhile
		return 0
	}
	r.alarmTold = true
	t.emit(monitor.LockEvent(t.Time(now), monitor.LevelAlarm, s.String(), r.key(), "%s", alarmText(r)))
	return 0
}

// emitFirstAlarms reports what was wrong when the first view was complete and still is:
// one event for each of these states.
func (t *Table) emitFirstAlarms(now packed.Moment, states ...monitor.LockState) {
	counts := map[monitor.LockState]int{}
	first := map[monitor.LockState]*record{}
	for _, r := range t.all {
		if !slices.Contains(states, r.alarm) || r.alarmTold || r.alarmed > t.settledAt {
			continue
		}
		r.alarmTold = true
		counts[r.alarm]++
		if f := first[r.alarm]; f == nil || r.key() < f.key() {
			first[r.alarm] = r
		}
	}
	for _, s := range states {
		switch n := counts[s]; {
		case n == 1:
			t.emit(monitor.LockEvent(t.Time(now), monitor.LevelAlarm, s.String(), first[s].key(), "%s", alarmText(first[s])))
		case n > 1:
			t.emit(monitor.NodeEvent(t.Time(now), monitor.LevelAlarm, s.String(), "", "%d locks: %s", n, alarmTexts[s]))
		}
	}
}

// alarmTexts describe a state shared by several locks.
var alarmTexts = map[monitor.LockState]string{
	monitor.LockOrphaned: "orphaned copies, left behind by a client: they keep others out of those nodes until they expire",
	monitor.LockOverTTL:  "a TTL longer than the cluster's maximum: a restart may forget it too early",
	monitor.LockSplit:    "several tokens at once",
	monitor.LockNoTTL:    "a copy without TTL: it never expires",
}

// alarmText describes the state of the lock.
func alarmText(r *record) string {
	l := r.lock
	switch {
	case l.State == monitor.LockSplit && r.earlier != nil:
		return "another client got in before the holder's end: two clients rely on the lock"
	case l.State == monitor.LockSplit && l.Earlier != nil:
		return "several tokens at once: two clients may rely on the lock"
	case l.State == monitor.LockSplit && l.Tokens <= 1:
		return "locks and other values at once"
	case l.State == monitor.LockSplit && l.Nobody:
		return "several tokens at once, and none has a majority: " + l.NobodyText()
	case l.State == monitor.LockNoTTL:
		return l.EndlessText()
	}
	return alarmTexts[l.State]
}
