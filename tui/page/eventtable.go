package page

import (
	"slices"
	"time"

	"redlockctl/internal/view"
	"redlockctl/monitor"
)

// MostEvents bounds the events that are kept since the start: those of weight,
// and as many everyday ones.
const MostEvents = 2000

// eventTable is the events since the console began. Its cursor floats: on the newest it follows.
type eventTable struct {
	All    []monitor.Event // oldest first
	weighs int             // how many of them are more than everyday
	Seq    uint64          // of the latest
	until  uint64          // the latest that is shown, while frozen; 0: all are
	choice[*monitor.Event]
	table table[*monitor.Event, uint64] // of those that the filter chooses, newest first
	stale bool                          // it is to be made anew
}

func newEventTable() eventTable {
	t := newTable(Layout{Of: "events", usual: "time" + desc}, view.EventColumns(), func(e *monitor.Event) uint64 { return e.Seq })
	t.floats = true
	return eventTable{choice: newChoice(&view.EventLanguage), table: t, stale: true}
}

// clear forgets all events.
func (t *eventTable) clear() {
	t.All, t.weighs, t.Seq, t.until, t.stale = nil, 0, 0, 0, true
}

// Add takes in those events of a picture that are new.
func (t *eventTable) Add(events []monitor.Event) {
	for i := range events {
		if events[i].Seq <= t.Seq {
			continue
		}
		t.All = append(t.All, events[i])
		t.Seq = events[i].Seq
		if events[i].Level > monitor.LevelInfo {
			t.weighs++
		}
		t.stale = true
	}
	if len(t.All) > 3*MostEvents {
		t.trim()
	}
}

// trim forgets the oldest: the everyday ones never push out what matters.
func (t *eventTable) trim() {
	dropWeighty, dropChurn := max(0, t.weighs-MostEvents), max(0, len(t.All)-t.weighs-MostEvents)
	t.All = slices.DeleteFunc(t.All, func(e monitor.Event) bool {
		if e.Level > monitor.LevelInfo {
			if dropWeighty > 0 {
				dropWeighty--
				t.weighs--
				return true
			}
			return false
		}
		if dropChurn > 0 {
			dropChurn--
			return true
		}
		return false
	})
	t.stale = true
}

// setFilter chooses events by what is typed.
func (t *eventTable) setFilter(now time.Time) {
	t.choice.apply(now)
	t.stale = true
}

// tick brings what depends on time alone up to now.
func (t *eventTable) tick(now time.Time) {
	if t.filter.Timed() {
		t.at, t.stale = now, true
	}
}

// show shows the events up to one; 0: all.
func (t *eventTable) show(until uint64) { t.until, t.stale = until, true }

// List is what is chosen, as it is listed now.
func (t *eventTable) List() *table[*monitor.Event, uint64] {
	if t.stale {
		t.stale = false
		var listed []*monitor.Event
		for i := len(t.All) - 1; i >= 0; i-- {
			if e := &t.All[i]; (t.until == 0 || e.Seq <= t.until) && t.has(e) && (!e.Part || !t.filter.Empty()) {
				listed = append(listed, e)
			}
		}
		t.table.set(listed)
	}
	return &t.table
}

func (t *eventTable) Selected() *monitor.Event {
	e, _ := t.List().selected()
	return e
}

// Follows reports whether the cursor stays on the newest event.
func (t *eventTable) Follows() bool { return t.WhyNoFollow() == "" && t.table.under == 0 }

// WhyNoFollow is why the newest event cannot be followed.
func (t *eventTable) WhyNoFollow() string {
	if t.table.layout.Order != t.table.layout.usual {
		return "the newest is not the first: :sort " + Unsorted
	}
	return ""
}

// Follow has the cursor stay on the newest event, or on the one that it is on.
func (t *eventTable) Follow(on bool) {
	if list := t.List(); on {
		list.letGo()
	} else if e, ok := list.selected(); ok {
		list.under = e.Seq
	}
}
