package page

import (
	"slices"
	"time"

	"redlockctl/internal/view"
	"redlockctl/monitor"
)

// MostEvents bounds the kept events: this many important ones, and as many routine ones.
const MostEvents = 2000

// eventTable has the events since the console started. A cursor on the newest event follows
// it.
type eventTable struct {
	All    []monitor.Event // oldest first
	weighs int             // number of important events
	Seq    uint64          // of the latest event
	until  uint64          // the latest shown event while frozen; 0: all
	choice[*monitor.Event]
	table table[*monitor.Event, uint64] // events that match the filter, newest first
	stale bool                          // table must be rebuilt
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

// Add adds the new events of a snapshot.
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

// trim drops the oldest events; routine ones never displace important ones.
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

// setFilter applies the typed filter.
func (t *eventTable) setFilter(now time.Time) {
	t.choice.apply(now)
	t.stale = true
}

// tick updates what depends only on time.
func (t *eventTable) tick(now time.Time) {
	if t.filter.Timed() {
		t.at, t.stale = now, true
	}
}

// show shows the events up to a number; 0: all.
func (t *eventTable) show(until uint64) { t.until, t.stale = until, true }

// List returns the listed events.
func (t *eventTable) List() *table[*monitor.Event, uint64] {
	if t.stale {
		t.stale = false
		var listed []*monitor.Event
		told := alarmsOf(t.All)
		for i := len(t.All) - 1; i >= 0; i-- {
			if e := &t.All[i]; (t.until == 0 || e.Seq <= t.until) && t.has(e) && (!e.Part && !told.says(e) || !t.filter.Empty()) {
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

// WhyNoFollow says why the cursor cannot follow the newest event.
func (t *eventTable) WhyNoFollow() string {
	if t.table.layout.Order != t.table.layout.usual {
		return "the newest is not the first: :sort " + Unsorted
	}
	return ""
}

// Follow makes the cursor follow the newest event, or stay where it is.
func (t *eventTable) Follow(on bool) {
	if list := t.List(); on {
		list.letGo()
	} else if e, ok := list.selected(); ok {
		list.under = e.Seq
	}
}
