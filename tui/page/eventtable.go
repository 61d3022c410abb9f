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

// eventTable is the events since the console began, and which one is under the
// cursor.
type eventTable struct {
	All    []monitor.Event // oldest first
	weighs int             // how many of them are more than everyday
	Seq    uint64          // of the latest
	until  uint64          // the latest that is shown, while frozen; 0: all are
	choice[*monitor.Event]
	Follow bool
	under  uint64 // seq of the one under the cursor
	top    int
	listed []int // what the filter chooses: indexes into all, newest first
	stale  bool
}

func NewEventTable() eventTable {
	return eventTable{choice: newChoice(&view.EventLanguage), Follow: true, stale: true}
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

// List is what is chosen, newest first.
func (t *eventTable) List() []int {
	if t.stale || t.until > 0 {
		t.stale = t.until > 0
		t.listed = t.listed[:0]
		for i := len(t.All) - 1; i >= 0; i-- {
			if (t.until == 0 || t.All[i].Seq <= t.until) && t.has(&t.All[i]) && (!t.All[i].Part || !t.filter.Empty()) {
				t.listed = append(t.listed, i)
			}
		}
	}
	return t.listed
}

// pos is the place of the cursor in the list: its event's, or that of the next
// older one that is left.
func (t *eventTable) pos() int {
	list := t.List()
	if len(list) == 0 {
		return -1
	}
	if t.Follow || t.under == 0 {
		return 0
	}
	for i, e := range list {
		if t.All[e].Seq <= t.under {
			return i
		}
	}
	return len(list) - 1
}

func (t *eventTable) move(d int) { t.goTo(t.pos() + d) }

// goTo puts the cursor on a place of the list; away from the newest, it follows
// no more.
func (t *eventTable) goTo(i int) {
	list := t.List()
	if len(list) == 0 {
		return
	}
	i = max(0, min(len(list)-1, i))
	t.under = t.All[list[i]].Seq
	t.Follow = t.Follow && i == 0
}

func (t *eventTable) Selected() *monitor.Event {
	if i := t.pos(); i >= 0 {
		return &t.All[t.listed[i]]
	}
	return nil
}
