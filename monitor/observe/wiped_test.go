package observe

import (
	"testing"
	"time"

	"redlockctl/server/announce"
)

// A server that says that its data was wiped since its start may have forgotten votes up
// to now: it does not say when it was wiped.
func TestFirstAnswerOfAWipedServer(t *testing.T) {
	now := time.Now()
	w := &watch{}
	w.Uptime = time.Hour
	if got := w.incarnation(sight{received: now, server: now}).Started; !got.Equal(now.Add(-time.Hour)) {
		t.Error(got)
	}
	w.Facts.Wipes = 1
	if got := w.incarnation(sight{received: now, server: now}).Started; !got.Equal(now) {
		t.Error(got)
	}
}

// A guard that has seen all wipes knows when the last one was.
func TestFirstAnswerOfAWipedServerUnderGuard(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		wipes, debugs int64
		guard         announce.Guard
		want          time.Time
	}{
		{2, 0, announce.Guard{Run: "a", Wipes: 2, NoLossSince: now.Add(-time.Minute)}, now.Add(-time.Minute)},
		{1, 1, announce.Guard{Run: "a", Wipes: 2, NoLossSince: now.Add(-time.Minute)}, now.Add(-time.Minute)},
		{3, 0, announce.Guard{Run: "a", Wipes: 2, NoLossSince: now.Add(-time.Minute)}, now},                                // it has not seen the last one
		{2, 0, announce.Guard{Run: "a", Wipes: 2, NoLossSince: now.Add(-time.Minute), MayVote: now.Add(time.Second)}, now}, // it waits
		{2, 0, announce.Guard{Run: "a", Wipes: 2}, now},                                                                    // it does not say
		{2, 0, announce.Guard{Wipes: 2, NoLossSince: now.Add(-time.Minute)}, now},                                          // of whatever incarnation
		{2, 0, announce.Guard{Run: "a", Wipes: 2, NoLossSince: now.Add(-2 * time.Hour)}, now.Add(-time.Hour)},              // before its start
	} {
		w := &watch{}
		w.Uptime, w.Facts.Wipes, w.Facts.Debugs, w.Guards = time.Hour, c.wipes, c.debugs, []announce.Guard{c.guard}
		if got := w.incarnation(sight{received: now, server: now}).Started; !got.Equal(c.want) {
			t.Errorf("%+v: %s, not %s", c.guard, now.Sub(got), now.Sub(c.want))
		}
	}
}

// A clock that was set forward makes the uptime too long. A guard that counts D for the
// node knows better.
func TestFirstAnswerOfAServerForWhichAGuardCounts(t *testing.T) {
	now := time.Now()
	w := &watch{}
	w.Uptime = time.Hour
	for from, want := range map[time.Time]time.Time{now.Add(time.Second): now, now.Add(-time.Second): now.Add(-time.Hour)} {
		w.Guards = []announce.Guard{{ID: "g", MayVote: from}}
		if got := w.incarnation(sight{received: now, server: now}).Started; !got.Equal(want) {
			t.Error(got, want)
		}
	}
}

// A clock that is ahead of ours may have been set forward since the start of the server.
func TestFirstAnswerOfAServerWhoseClockIsAhead(t *testing.T) {
	now := time.Now()
	w := &watch{}
	w.Uptime = 30 * time.Second
	for ahead, want := range map[time.Duration]time.Time{
		0:                now.Add(-30 * time.Second),
		20 * time.Second: now.Add(-10 * time.Second),
		time.Hour:        now,
		-time.Hour:       now.Add(-30 * time.Second),
	} {
		if got := w.incarnation(sight{received: now, server: now.Add(ahead)}).Started; !got.Equal(want) {
			t.Errorf("%s ahead: %s, not %s", ahead, got, want)
		}
	}
}

// A server without persistence says that it has loaded nothing.
func TestFirstAnswerOfAServerThatLoadedNothing(t *testing.T) {
	for loaded, want := range map[string]bool{"0": true, "3": false, "": false} {
		s := sight{received: time.Now(), info: map[string]string{"rdb_last_load_keys_loaded": loaded, "aof_enabled": "0"}}
		if got := new(watch).incarnation(s).Fresh; got != want {
			t.Errorf("%q: %v", loaded, got)
		}
	}
}

// A guard for which a fenced server waits knows when it last lost votes, if it speaks of this
// incarnation and has seen all wipes. Of several guards the latest time counts.
func TestFirstAnswerOfAFencedServerUnderGuard(t *testing.T) {
	now := time.Now()
	waits := announce.Guard{Run: "a", Delay: 10 * time.Minute, MayVote: now.Add(time.Minute)}
	with := func(change func(*announce.Guard)) announce.Guard {
		g := waits
		change(&g)
		return g
	}
	for name, c := range map[string]struct {
		guards []announce.Guard
		want   time.Time
	}{
		"waits":               {[]announce.Guard{waits}, now.Add(-9 * time.Minute)},
		"none":                {nil, time.Time{}},
		"another incarnation": {[]announce.Guard{with(func(g *announce.Guard) { g.Run = "b" })}, time.Time{}},
		"does not say which":  {[]announce.Guard{with(func(g *announce.Guard) { g.Run = "" })}, time.Time{}},
		"another wipe":        {[]announce.Guard{with(func(g *announce.Guard) { g.Wipes = 1 })}, time.Time{}},
		"the wait is over":    {[]announce.Guard{with(func(g *announce.Guard) { g.MayVote = now.Add(-time.Second) })}, time.Time{}},
		"two":                 {[]announce.Guard{waits, with(func(g *announce.Guard) { g.MayVote = now.Add(3 * time.Minute) })}, now.Add(-7 * time.Minute)},
	} {
		w := &watch{}
		w.RunID, w.Guards = "abc", c.guards
		if got := w.incarnation(sight{received: now, server: now}).Lost; !got.Equal(c.want) {
			t.Errorf("%s: %s", name, got)
		}
	}
}
