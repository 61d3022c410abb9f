package observe

import (
	"cmp"
	"slices"
	"time"

	"redlockctl/monitor"
	"redlockctl/server/safetext"
)

// eventLog keeps the latest events within a limit. Info events have a limit of their own,
// so that they never push out important ones.
type eventLog struct {
	keep    int
	seq     uint64
	churn   []monitor.Event // LevelInfo
	matters []monitor.Event // the others
	shown   []monitor.Event // the latest of both, as last requested
	upTo    uint64          // seq of shown
	// The last events of all levels, for consumers that follow them: of locks, and the
	// others, which a burst of locks must not push out.
	stream, others []monitor.Event
	history        history
	alarmed        bool // a lock raised an alarm since this was last read
	held           []heldEvent
}

// heldEvent is an event that waits for its text, or for one before it.
type heldEvent struct {
	monitor.Event
	text func() (safetext.Text, bool) // and whether that is final; nil: it has it
}

// textWaits is how long the text of an event may be awaited: the last of several removals of a lock
// has ended by then, in general.
const textWaits = 1500 * time.Millisecond

// await adds an event whose text is not final yet: with those after it, once it is or cannot be
// awaited any longer.
func (l *eventLog) await(e monitor.Event, text func() (safetext.Text, bool)) {
	l.held = append(l.held, heldEvent{e, text})
}

// settle adds the events that need not wait any more.
func (l *eventLog) settle(now time.Time) {
	for len(l.held) > 0 {
		e := l.held[0]
		if e.text != nil {
			text, final := e.text()
			if !final && now.Sub(e.At) < textWaits {
				return
			}
			e.Text = text
		}
		l.held = l.held[1:]
		l.put(e.Event)
	}
}

// streamKept is how many events are kept for consumers that follow them, beyond those of
// a snapshot.
const streamKept = 8192

func (l *eventLog) add(e monitor.Event) {
	l.alarmed = l.alarmed || e.Level == monitor.LevelAlarm && !e.Key.Empty()
	if len(l.held) > 0 {
		l.held = append(l.held, heldEvent{Event: e})
		return
	}
	l.put(e)
}

func (l *eventLog) put(e monitor.Event) {
	l.seq++
	e.Seq = l.seq
	part, bound := &l.matters, l.keep-l.keep/2
	if e.Level == monitor.LevelInfo {
		part, bound = &l.churn, l.keep/2
	}
	add(part, e, bound)
	if e.Key.Empty() {
		add(&l.others, e, max(streamKept, l.keep))
		return
	}
	add(&l.stream, e, max(streamKept, l.keep))
	l.history.add(e)
}

// add appends within a limit. It trims only at twice the limit, which makes it cheap.
func add(part *[]monitor.Event, e monitor.Event, bound int) {
	*part = append(*part, e)
	if len(*part) > 2*bound {
		*part = append((*part)[:0:0], (*part)[len(*part)-bound:]...)
	}
}

// latest returns the kept events, oldest first. Callers must not change them.
func (l *eventLog) latest() []monitor.Event {
	if l.upTo == l.seq {
		return l.shown
	}
	l.shown, l.upTo = merge(tail(l.churn, l.keep/2), tail(l.matters, l.keep-l.keep/2)), l.seq
	return l.shown
}

// merge returns the events of both, oldest first.
func merge(a, b []monitor.Event) []monitor.Event {
	out := make([]monitor.Event, 0, len(a)+len(b))
	for len(a) > 0 || len(b) > 0 {
		if len(b) == 0 || (len(a) > 0 && a[0].Seq < b[0].Seq) {
			out, a = append(out, a[0]), a[1:]
		} else {
			out, b = append(out, b[0]), b[1:]
		}
	}
	return out
}

// since returns the kept events after seq, oldest first, and how many after seq are no
// longer kept: events of locks may be missing between others.
func (l *eventLog) since(seq uint64) (events []monitor.Event, missed uint64) {
	if seq >= l.seq {
		return nil, 0
	}
	events = merge(after(l.stream, seq), after(l.others, seq))
	return events, l.seq - seq - uint64(len(events))
}

// after returns the events after seq.
func after(events []monitor.Event, seq uint64) []monitor.Event {
	i, _ := slices.BinarySearchFunc(events, seq+1, func(e monitor.Event, seq uint64) int { return cmp.Compare(e.Seq, seq) })
	return events[i:]
}

// history keeps the latest events of the locks that changed last, in two generations: the
// older one is dropped when the younger is full.
type history struct{ young, old map[string][]monitor.Event }

const (
	historyKept  = 16   // events per lock
	historyLocks = 2048 // locks per generation
)

func (h *history) add(e monitor.Event) {
	key := e.Key.Raw()
	events, ok := h.young[key]
	if !ok {
		if events = h.old[key]; events != nil {
			delete(h.old, key)
		}
		if h.young == nil || len(h.young) >= historyLocks {
			h.young, h.old = make(map[string][]monitor.Event), h.young
		}
	}
	add(&events, e, historyKept)
	h.young[key] = events
}

// of returns the events of a lock, oldest first, in a new slice.
func (h *history) of(key string) []monitor.Event {
	events, ok := h.young[key]
	if !ok {
		events = h.old[key]
	}
	return slices.Clone(tail(events, historyKept))
}

func tail(events []monitor.Event, n int) []monitor.Event { return events[max(0, len(events)-n):] }
