package observe

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"redlockctl/monitor"
)

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
		l.add(monitor.LockEvent(time.Time{}, monitor.LevelInfo, "acquired", fmt.Sprint("k", i%3), "by %d", i))
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
		l.add(monitor.LockEvent(time.Time{}, monitor.LevelInfo, "acquired", fmt.Sprint("other", i), "x"))
		if i%100 == 0 {
			l.add(monitor.LockEvent(time.Time{}, monitor.LevelInfo, "released", "k1", "x"))
		}
	}
	if l.history.of("k2") != nil || len(l.history.of("k1")) != historyKept || len(l.history.young)+len(l.history.old) > 2*historyLocks {
		t.Error("who changed long ago is remembered, or who did lately is not")
	}
}
