package table

import (
	"strings"
	"testing"
	"time"
)

// A lock that was gone before it was read is counted, once a quorum of nodes reported it. An
// expiry that a node reports later is none.
func TestGrantsThatWereTooShortToBeSeen(t *testing.T) {
	r := newRig(5, time.Minute).first()
	none := func(key string, nodes ...int) {
		for _, i := range nodes {
			r.Read(i, r.now, r.now, []Row{NewRow(key, "none", -2, 0, "")})
		}
		r.pass(2 * time.Second)
	}
	none("short", 0, 1, 2, 3, 4)
	none("an attempt", 0, 1)
	r.set("seen", "a", 5*time.Second, 0, 1, 2, 3, 4)
	r.scanAll()
	r.del("seen", 0, 1, 2, 3, 4)
	none("seen", 0, 1, 2, 3, 4) // its release
	r.set("expires", "a", time.Second, 0, 1, 2, 3, 4)
	r.scanAll()
	r.pass(2 * time.Second)
	none("expires", 0, 1, 2, 3, 4)
	r.pass(shortEvery)
	told := func() (n int) {
		for _, e := range r.events {
			if e.Kind == "missed grants" && strings.HasPrefix(e.Text.Raw(), "at least 1 grant was perhaps missed") {
				n++
			}
		}
		return n
	}
	if told() != 1 {
		t.Error(r.events)
	}
	r.set("expires unseen", "a", time.Second, 0, 1, 2, 3, 4)
	r.scanAll()
	for i := range 5 {
		r.Missed(i, r.now) // as when this process was stopped
	}
	r.pass(2 * time.Second)
	r.scanAll()
	none("expires unseen", 0, 1, 2, 3, 4)
	r.pass(shortEvery)
	if told() != 1 {
		t.Error(r.events)
	}
	none("expires", 0, 1, 2, 3, 4) // taken again, and released
	r.pass(shortEvery)
	r.OtherDatabase = func() int { return 1 }
	none("short", 2, 3, 4)
	r.pass(shortEvery)
	if told() != 3 {
		t.Error(r.events)
	}
	if last := r.events[len(r.events)-1].Text.Raw(); !strings.HasSuffix(last, ", or keys of another database changed (db1)") {
		t.Error(last)
	}
}
