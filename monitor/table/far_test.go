package table

import (
	"strings"
	"testing"
	"time"

	"redlockctl/monitor"
)

// A TTL above the maximum does not prove that a vote was given after a loss: a first view
// cannot exclude that its holder lost the other votes.
func TestFirstLookAtATTLAboveTheMaximum(t *testing.T) {
	r := newRig(5, 30*time.Second)
	for i := range 5 {
		r.Met(i, Incarnation{Started: r.now.Add(-time.Hour), Fenced: i < 2}, r.now)
	}
	r.set("k", "a", time.Hour, 4)
	r.first()
	r.scanAll()
	if l := r.lock("k"); l.State != monitor.LockOverTTL || !l.ReliedOn() || l.HeldUntil().IsZero() {
		t.Errorf("%+v", l)
	}
}

// A TTL that a Duration cannot hold keeps its number and sorts after all others.
func TestFarAwayTTL(t *testing.T) {
	const far = 9_000_000_000_000_000_000
	r := newRig(3, 30*time.Second).first()
	for i := range 3 {
		r.Read(i, r.now, r.now, []Row{NewRow("k", "string", far+int64(i), 1, "a"), NewRow("near", "string", 5000, 1, "b")})
	}
	r.Refresh(r.now)
	l := r.lock("k")
	if l.Held != 3 || l.State != monitor.LockOverTTL {
		t.Fatalf("%+v", l)
	}
	if got := l.Copies.At(0).Expires.UnixMilli() - r.now.UnixMilli(); got != far {
		t.Error(got)
	}
	if !l.MajorityEnd().After(r.lock("near").MajorityEnd()) || !l.MajorityEnd().After(r.now.Add(100*365*24*time.Hour)) {
		t.Error(l.MajorityEnd())
	}
	for _, ttl := range []int64{1<<63 - 1, 101 * 365 * 24 * 3600 * 1000} { // whatever a server returns
		r.Read(0, r.now, r.now, []Row{NewRow("most", "string", ttl, 1, "a")})
		r.Refresh(r.now)
		if at := r.lock("most").Copies.At(0).Expires; !at.After(r.now.Add(100 * 365 * 24 * time.Hour)) {
			t.Error(ttl, at)
		}
	}
}

// Copies that a wipe deleted from locks that are still held are reported with the wipe,
// in one event.
func TestAWipeTellsTheCopiesThatItTook(t *testing.T) {
	r := newRig(5, 30*time.Second).first()
	r.set("k", "a", 30*time.Second, 0, 1, 2, 3, 4)
	r.scanAll()
	r.scanAll()
	clear(r.servers[0])
	r.Wiped(0, r.now)
	r.scanAll()
	r.scanAll()
	r.pass(2 * time.Second)
	r.scanAll()
	told := false
	for _, e := range r.events {
		if e.Kind == "lost copy" {
			if told = true; !e.Part || !strings.Contains(e.Text.Raw(), "its data were wiped") {
				t.Errorf("%+v", e)
			}
		}
	}
	if !told {
		t.Error(r.kinds())
	}
}

// A TTL above the maximum is told also where the state of the lock is a worse one, and where all copies
// of a lock on which its holder relies were lost.
func TestATTLAboveTheMaximumBesideAWorseState(t *testing.T) {
	for state, do := range map[monitor.LockState]func(*rig){
		monitor.LockOverTTL: func(*rig) {},
		monitor.LockSplit:   func(r *rig) { r.set("k", "b", 5*time.Second, 3, 4) },
		monitor.LockNoTTL:   func(r *rig) { r.set("k", "a", 0, 4) },
		monitor.LockLostMajority: func(r *rig) {
			for i := range r.servers {
				clear(r.servers[i])
				r.Wiped(i, r.now)
			}
		},
	} {
		r := newRig(5, 10*time.Second).first()
		r.pass(time.Hour)
		r.set("k", "a", 20*time.Second, 0, 1, 2, 3, 4)
		r.scanAll()
		do(r)
		r.rounds()
		if l := r.lock("k"); l.State != state || !l.Over {
			t.Errorf("%s: %s, over %v", state, l.State, l.Over)
		}
		r.pass(11 * time.Second)
		r.scanAll()
		if l := r.lock("k"); l.Over {
			t.Errorf("once it has less: %+v", l)
		}
	}
}
