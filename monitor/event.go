package monitor

import (
	"fmt"
	"time"

	"redlockctl/internal/safetext"
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

// eventLog keeps the latest events within a bound. The everyday ones have a
// bound of their own, so that they never push out what matters.
type eventLog struct {
	keep    int
	seq     uint64
	churn   []Event // LevelInfo
	matters []Event // the others
}

func (l *eventLog) add(e Event) {
	l.seq++
	e.Seq = l.seq
	part, bound := &l.matters, l.keep-l.keep/2
	if e.Level == LevelInfo {
		part, bound = &l.churn, l.keep/2
	}
	*part = append(*part, e)
	// Trimming at twice the bound makes it cheap.
	if len(*part) > 2*bound {
		*part = append((*part)[:0:0], (*part)[len(*part)-bound:]...)
	}
}

// latest are the events kept, oldest first, in a slice of its own.
func (l *eventLog) latest() []Event {
	a, b := tail(l.churn, l.keep/2), tail(l.matters, l.keep-l.keep/2)
	out := make([]Event, 0, len(a)+len(b))
	for len(a) > 0 || len(b) > 0 {
		if len(b) == 0 || (len(a) > 0 && a[0].Seq < b[0].Seq) {
			out, a = append(out, a[0]), a[1:]
		} else {
			out, b = append(out, b[0]), b[1:]
		}
	}
	return out
}

func tail(events []Event, n int) []Event { return events[max(0, len(events)-n):] }

func nodeEvent(at time.Time, level Level, kind, node, format string, args ...any) Event {
	return Event{At: at, Level: level, Kind: kind, Node: node, Text: safetext.New(fmt.Sprintf(format, args...))}
}

func lockEvent(at time.Time, level Level, kind, key, format string, args ...any) Event {
	return Event{At: at, Level: level, Kind: kind, Key: safetext.New(key), Text: safetext.New(fmt.Sprintf(format, args...))}
}
