package monitor

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestChangesAreReadOnceInTheirOrder(t *testing.T) {
	c := newChanges()
	now := time.Now()
	c.add("a", "b", "a")
	c.add("c", "b")
	c.told(now)
	if keys, until := c.take(2, 1<<20); !slices.Equal(keys, []string{"a", "b"}) || !until.IsZero() {
		t.Error(keys, until)
	}
	c.add("a") // changed again since
	if keys, until := c.take(10, 1<<20); !slices.Equal(keys, []string{"c", "a"}) || !until.IsZero() {
		t.Error(keys, until)
	}
	if keys, until := c.take(10, 1<<20); keys != nil || !until.Equal(now) {
		t.Error(keys, until)
	}
	if _, until := c.take(10, 1<<20); !until.IsZero() {
		t.Error("told twice")
	}
	c.add("long", "longer")
	if keys, _ := c.take(10, 4); !slices.Equal(keys, []string{"long"}) {
		t.Error(keys)
	}
}

// That something new comes all the time keeps nothing old from being vouched for:
// a master that is always busy would else never confirm what a lock looks like.
func TestWhatWasReadIsVouchedForUnderConstantChange(t *testing.T) {
	c := newChanges()
	now := time.Now()
	c.add("a", "b", "c")
	c.told(now)
	vouched := -1
	for round := range 10 {
		keys, until := c.take(2, 1<<20)
		if len(keys) == 0 {
			t.Fatal("the queue was empty")
		}
		if !until.IsZero() {
			vouched = round
			break
		}
		c.add(fmt.Sprint(round), fmt.Sprint(round, "b"))
	}
	if vouched != 2 { // a and b, then c and one more; both have been read then
		t.Error(vouched)
	}
}

// More than is kept is found by a full read; until then nothing is vouched for.
func TestTooManyChangesAreAFullRead(t *testing.T) {
	for name, fill := range map[string]func(*changes){
		"many": func(c *changes) {
			for i := range changesKept + 1 {
				c.add(fmt.Sprint(i))
			}
		},
		"long":  func(c *changes) { c.add(strings.Repeat("a", changesBytes/2), strings.Repeat("b", changesBytes/2), "c") },
		"flush": func(c *changes) { c.flush() },
	} {
		t.Run(name, func(t *testing.T) {
			c := newChanges()
			fill(c)
			c.told(time.Now())
			if keys, until := c.take(10, 1<<20); keys != nil || !until.IsZero() {
				t.Error(keys, until)
			}
			if !c.everything() || c.everything() {
				t.Error("not once")
			}
		})
	}
}

func TestAFloodHasToLast(t *testing.T) {
	var f flood
	now := time.Now()
	second := func(keys int) (flooded bool) {
		for range 10 {
			flooded = f.count(push{other: keys / 10}, now) || flooded
			now = now.Add(100 * time.Millisecond)
		}
		return flooded
	}
	for range 2 {
		for _, keys := range []int{2 * floodKeys, 2 * floodKeys, floodKeys / 2, 0} {
			if second(keys) {
				t.Fatal("a short one")
			}
		}
	}
	n := 0
	for !second(2 * floodKeys) {
		if n++; n > 5 {
			t.Fatal("never")
		}
	}
}

func TestTheChangeLogForgetsTheOldest(t *testing.T) {
	var l changeLog
	sorted := func(v uint64) ([]string, bool) {
		keys, ok := l.since(v)
		slices.Sort(keys)
		return keys, ok
	}
	l.add(2, []string{"a", "b"})
	l.add(3, nil)
	l.add(4, []string{"b", "c"})
	for v, want := range map[uint64][]string{0: {"a", "b", "c"}, 1: {"a", "b", "c"}, 2: {"b", "c"}, 3: {"b", "c"}, 4: nil, 9: nil} {
		if got, ok := sorted(v); !ok || !slices.Equal(got, want) {
			t.Errorf("%d: %v %t", v, got, ok)
		}
	}
	many := make([]string, logKeys)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	l.add(5, many)
	if _, ok := l.since(3); ok {
		t.Error("the oldest are still there")
	}
	if keys, ok := l.since(4); !ok || len(keys) != logKeys {
		t.Error(len(keys), ok)
	}
	l.add(6, append(many, "more"))
	if _, ok := l.since(5); ok {
		t.Error("more than is kept")
	}
	if keys, ok := l.since(6); !ok || keys != nil {
		t.Error(keys, ok)
	}
	for v := range uint64(3 * logBatches) {
		l.add(7+v, []string{"x"})
	}
	if len(l.batches) != logBatches || l.keys != logBatches {
		t.Error(len(l.batches), l.keys)
	}
}

func TestEventsCanBeFollowed(t *testing.T) {
	l := eventLog{keep: 10}
	if events, missed := l.since(0); events != nil || missed != 0 {
		t.Error(events, missed)
	}
	for i := range 3 * streamKept {
		l.add(lockEvent(time.Time{}, LevelInfo, "acquired", fmt.Sprint("k", i%3), "by %d", i))
	}
	last := uint64(3 * streamKept)
	if events, missed := l.since(last - 5); len(events) != 5 || missed != 0 || events[0].Seq != last-4 || events[4].Seq != last {
		t.Error(len(events), missed)
	}
	events, missed := l.since(0)
	if len(events) < streamKept || missed != last-uint64(len(events)) || events[0].Seq != missed+1 {
		t.Error(len(events), missed)
	}
	if events, missed := l.since(last + 7); events != nil || missed != 0 {
		t.Error(events, missed)
	}
	if h := l.history.of("k1"); len(h) != historyKept || h[historyKept-1].Seq != last-1 {
		t.Error(len(h))
	}
	for i := range 10 * historyLocks {
		l.add(lockEvent(time.Time{}, LevelInfo, "acquired", fmt.Sprint("other", i), "x"))
		if i%100 == 0 {
			l.add(lockEvent(time.Time{}, LevelInfo, "released", "k1", "x"))
		}
	}
	if l.history.of("k2") != nil || len(l.history.of("k1")) != historyKept || len(l.history.young)+len(l.history.old) > 2*historyLocks {
		t.Error("who changed long ago is remembered, or who did lately is not")
	}
}
