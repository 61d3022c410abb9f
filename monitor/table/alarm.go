package table

import (
	"fmt"
	"slices"
	"time"

	"redlockctl/monitor"
	"redlockctl/monitor/internal/packed"
	"redlockctl/monitor/words"
)

const (
	// alarmPatience is how long a lock that was split or without a TTL at the start must
	// stay so before it raises an alarm, and the longest wait for any lock: a failed
	// attempt leaves copies for a moment, and the old SETNX pattern sets the TTL with a
	// second command.
	alarmPatience = 1500 * time.Millisecond
	// quickPatience is the wait for other locks, as long as no alarm was too early.
	quickPatience = 200 * time.Millisecond
	// doublePatience is how long two clients must rely on a lock: no attempt leaves that
	// behind.
	doublePatience = 100 * time.Millisecond
	// releasePatience is how long a release may take, as long as none took longer.
	releasePatience = time.Second
	// learnedFor is how long an alarm that was too early makes later ones wait.
	learnedFor = 10 * time.Minute
)

// learned is how long an alarm waits for something that passes by itself, on this cluster.
type learned struct {
	wait time.Duration // zero: no alarm was too early
	at   packed.Moment // when the last one was
}

// quick returns how long to wait before an alarm, at most most.
func (l *learned) quick(now packed.Moment, most time.Duration) time.Duration {
	if time.Duration(now-l.at) > learnedFor {
		l.wait = 0
	}
	return min(max(quickPatience, l.wait), most)
}

// tooEarly makes later alarms wait longer: what the last one was about passed by itself.
func (l *learned) tooEarly(now packed.Moment) {
	*l = learned{2 * l.quick(now, alarmPatience), now}
}

// alarmDue returns when the state of a lock raises an alarm if it lasts; ok is false if it
// never does. r.alarmed is set.
func (t *Table) alarmDue(r *record, a *assessment) (due packed.Moment, ok bool) {
	due = r.alarmed
	switch s := a.lock.State; {
	case s == monitor.LockOverTTL:
	case s == monitor.LockSplit && (r.earlier != nil || a.double):
		due += packed.Moment(doublePatience)
	case s == monitor.LockSplit: // since its last token came or went, others are no attempts
		due = min(due+packed.Moment(alarmPatience), max(due, r.changed)+packed.Moment(t.splits.quick(a.now, alarmPatience)))
	case s == monitor.LockNoTTL:
		due += packed.Moment(t.lateTTLs.quick(a.now, alarmPatience))
	default:
		return 0, false
	}
	return due, true
}

// trackAlarm reports a state that needs an operator once it has lasted, and returns when
// to check again. It sets [monitor.Lock.Lasts].
func (t *Table) trackAlarm(r *record, a *assessment) (again packed.Moment) {
	s := a.lock.State
	if r.alarm != s {
		t.alarmEnds(r, a)
	}
	switch s {
	case monitor.LockOverTTL, monitor.LockSplit, monitor.LockNoTTL:
	default:
		r.alarm = monitor.LockHeld
		return 0
	}
	if r.alarm != s {
		r.alarm, r.alarmed = s, a.now
	}
	two := twoRely(&a.lock)
	if a.lock.Lasts = r.alarmTold; !t.settled || r.alarmTold && r.toldTwo == two || t.firstAlarms != 0 && r.alarmed <= t.settledAt {
		return 0 // already reported, or will be with the others
	}
	if r.alarmTold && !two {
		return 0 // one of the two has ended
	}
	if due, _ := t.alarmDue(r, a); a.now < due {
		return due
	}
	if slices.ContainsFunc(t.nodes, func(n node) bool { return !n.isCurrent() }) {
		r.overdue = true // it may have passed meanwhile
		return 0
	}
	r.alarmTold, r.toldTwo, a.lock.Lasts = true, two, true
	t.emit(monitor.LockEvent(t.Time(a.now), alarmLevel(s, two), s.String(), r.key(), "%s", t.alarmText(r, &a.lock)))
	return 0
}

// twoRely reports whether two clients rely on a split lock, or may.
func twoRely(l *monitor.Lock) bool { return l.State == monitor.LockSplit && l.Earlier != nil }

// alarmLevel returns how grave a state is; two: two clients may rely on the lock.
func alarmLevel(s monitor.LockState, two bool) monitor.Level {
	if s == monitor.LockSplit && !two {
		return monitor.LevelNotice
	}
	return monitor.LevelAlarm
}

// alarmEnds ends the alarm of r. If it was raised, and the state has passed by itself after
// all, such alarms are raised later from now on.
func (t *Table) alarmEnds(r *record, a *assessment) {
	switch soon := time.Duration(a.now-r.alarmed) < alarmPatience; {
	case !r.alarmTold || !soon:
	case r.alarm == monitor.LockSplit:
		t.splits.tooEarly(a.now)
	case r.alarm == monitor.LockNoTTL && a.majority && !a.endless: // its EXPIRE came
		t.lateTTLs.tooEarly(a.now)
	}
	r.alarmTold, r.toldTwo = false, false
}

// emitFirstAlarms reports what was wrong when the first view was complete and still is:
// one event for each of these states.
func (t *Table) emitFirstAlarms(now packed.Moment, states ...monitor.LockState) {
	counts, twos := map[monitor.LockState]int{}, 0
	first := map[monitor.LockState]*record{}
	for _, r := range t.all {
		if !slices.Contains(states, r.alarm) || r.alarmTold || r.alarmed > t.settledAt {
			continue
		}
		r.alarmTold, r.toldTwo = true, twoRely(r.lock)
		t.markDirty(r)
		counts[r.alarm]++
		if r.toldTwo {
			twos++
		}
		if f := first[r.alarm]; f == nil || r.toldTwo && !f.toldTwo || r.toldTwo == f.toldTwo && r.key() < f.key() {
			first[r.alarm] = r
		}
	}
	for _, s := range states {
		n, two := counts[s], s == monitor.LockSplit && twos > 0
		switch text := alarmTexts[s]; {
		case n == 1:
			t.emit(monitor.LockEvent(t.Time(now), alarmLevel(s, two), s.String(), first[s].key(), "%s", t.alarmText(first[s], first[s].lock)))
		case n > 1:
			if two {
				text += fmt.Sprintf(": two clients may rely on %s", words.Count(twos, "lock", "locks"))
			}
			t.emit(monitor.NodeEvent(t.Time(now), alarmLevel(s, two), s.String(), "", "%d locks: %s", n, text))
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
func (t *Table) alarmText(r *record, l *monitor.Lock) string {
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
		return l.EndlessText(func(i int) bool { return t.nodes[i].reachable && !t.nodes[i].closed })
	case l.LeftByStep:
		return "left over, by the step of a clock: the copies keep others out of those nodes until they expire"
	}
	return alarmTexts[l.State]
}
