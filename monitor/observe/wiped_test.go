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
