package table

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"redlockctl/monitor"
)

func TestHowAGrantEnds(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(*rig)
		want []string
	}{
		"released everywhere": {func(r *rig) { r.del("k", 0, 1, 2, 3, 4); r.scanAll() }, []string{"released"}},
		"its time runs out":   {func(r *rig) { r.pass(time.Minute) }, []string{"expired"}},
		"released while a node is down": {func(r *rig) {
			r.Unreachable(4, r.now)
			r.del("k", 0, 1, 2, 3)
			r.scanAll()
			r.scanAll()
		}, []string{"released"}},
		"released while a node is held": {func(r *rig) {
			r.Reachable(4, true)
			r.del("k", 0, 1, 2, 3)
			r.scanAll()
			r.scanAll()
		}, []string{"released"}},
		"three copies are deleted by somebody": {func(r *rig) {
			r.del("k", 0, 1, 2)
			r.scanAll()
			r.scanAll() // a release may be in progress
			r.pass(time.Second)
		}, []string{"lost majority"}},
		"three copies are deleted by somebody, the others expire before them": {func(r *rig) {
			r.set("k", "a", 29900*time.Millisecond, 3, 4)
			r.scanAll()
			r.del("k", 0, 1, 2)
			r.scanAll()
			r.scanAll()
			r.pass(time.Second)
			r.pass(28*time.Second + 900*time.Millisecond)
			if k := r.kinds(); len(k) != 1 || r.lock("k").State != monitor.LockLostMajority {
				r.emit(monitor.Event{Kind: "too early"})
			}
			r.pass(time.Second)
			if r.releases.wait != 0 {
				r.emit(monitor.Event{Kind: "a slow release"}) // for which the next rival would wait
			}
		}, []string{"lost majority", "expired"}},
		"three nodes restart": {func(r *rig) {
			for i := range 3 {
				r.del("k", i)
				r.Restarted(i, Incarnation{}, r.now)
			}
			r.scanAll()
			r.scanAll()
		}, []string{"lost majority"}},
		"released while a node restarts": {func(r *rig) {
			r.del("k", 0, 1, 2, 3, 4)
			r.scan(0)
			r.scan(1)
			r.Restarted(4, Incarnation{}, r.now)
			r.scanAll()
			r.scanAll()
		}, []string{"released"}},
		"a bare lock, released as a node restarts": {func(r *rig) {
			r.del("k", 3, 4)
			r.scanAll()
			r.scanAll() // all agree: three copies
			r.del("k", 0, 1, 2)
			r.Restarted(2, Incarnation{}, r.now)
			r.scan(2)
			r.scanAll()
			r.scanAll()
		}, []string{"released"}},
		"a bare lock, and a node restarts": {func(r *rig) {
			r.del("k", 2, 3, 4)
			r.set("k", "a", 30*time.Second, 2)
			r.scanAll()
			r.scanAll()
			r.pass(time.Second)
			r.events = nil // two copies lost
			r.del("k", 2)
			r.Restarted(2, Incarnation{}, r.now)
			r.scanAll()
			r.scanAll()
		}, []string{"lost majority"}},
		"a minority of nodes restarts": {func(r *rig) {
			for i := range 2 {
				r.del("k", i)
				r.Restarted(i, Incarnation{}, r.now)
			}
			r.scanAll()
		}, []string{"lost copy", "lost copy"}},
		"two copies are deleted by somebody": {func(r *rig) {
			r.del("k", 0, 1)
			r.scanAll()
			r.scanAll() // all agree, but a release may be in progress
			if k := r.kinds(); len(k) != 0 {
				r.emit(monitor.Event{Kind: "too early"})
			}
			r.pass(time.Second)
		}, []string{"lost copy", "lost copy"}},
		"a copy goes and comes back": {func(r *rig) {
			r.del("k", 0)
			r.scanAll()
			r.set("k", "a", 30*time.Second, 0)
			r.scanAll()
			r.pass(2 * time.Second)
			r.scanAll()
		}, nil},
		"a copy is overwritten": {func(r *rig) {
			r.set("k", "b", 30*time.Second, 4)
			r.scanAll()
			r.scanAll()
			r.pass(time.Second)
			r.pass(alarmPatience)
		}, []string{"split", "lost copy"}},
		"a slow release": {func(r *rig) {
			r.del("k", 0)
			r.scanAll()
			r.scanAll()
			r.pass(900 * time.Millisecond)
			r.del("k", 1, 2, 3, 4)
			r.scanAll()
			r.pass(2 * time.Second)
		}, []string{"released"}},
		"a copy that was not extended runs out": {func(r *rig) {
			r.pass(20 * time.Second)
			r.set("k", "a", 30*time.Second, 0, 1, 2, 3)
			r.scanAll()
			r.pass(15 * time.Second)
			r.scanAll()
			r.pass(2 * time.Second)
		}, []string{"extended"}},
		"three nodes are down": {func(r *rig) {
			for i := range 3 {
				r.Unreachable(i, r.now)
			}
			r.scanAll()
			for i := range 3 {
				r.Reachable(i, false)
			}
			r.scanAll()
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(5, 0)
			r.set("k", "a", 30*time.Second, 0, 1, 2, 3, 4)
			r.first()
			c.do(r)
			if !slices.Equal(r.kinds(), c.want) {
				t.Error(r.kinds())
			}
		})
	}
}

// Many copies that a node loses at once are reported in one event.
func TestLostCopiesAreToldWithinBounds(t *testing.T) {
	r := newRig(5, 0)
	for k := range 5000 {
		r.set(fmt.Sprint("k", k), "a", 30*time.Second, 0, 1, 2, 3, 4)
	}
	r.first()
	clear(r.servers[1])
	r.scanAll()
	r.scanAll()
	for range 3 {
		r.pass(time.Second)
	}
	last := r.events[len(r.events)-1]
	if len(r.events) != mostReported+1 || last.Node != "n2" || last.Text.Raw() != "n2: 4980 more copies of held locks lost: gone before their TTL expired, and not released" {
		t.Errorf("%d: %+v", len(r.events), last)
	}
	if e := r.events[0]; e.Kind != "lost copy" || e.Node != "n2" || e.Level != monitor.LevelNotice ||
		e.Text.Raw() != "lost its copy on n2 (lost: it disappeared before its TTL expired, and was not released): 4 left" {
		t.Errorf("%+v", e)
	}
}

// A copy that an operator removed is not lost: the event says who removed it, also if the removal reached only some
// nodes; such a one has not ended the lock, and says nothing of the other nodes.
func TestARemovalOfSomeCopiesIsTold(t *testing.T) {
	for act, want := range map[string]string{
		"force-release": "lost its copy on n5 (force-released there by ops@host: dead): 3 left",
		"revoke":        "lost its copy on n5 (revoked there by ops@host: dead): 3 left",
	} {
		r := newRig(5, 0)
		r.TakenBy = func(string, string) (monitor.Action, bool) {
			return monitor.Action{Act: act, Actor: "ops@host", Reason: "dead", Only: []string{"n5"}}, true
		}
		r.set("k", "a", 30*time.Second, 0, 1, 2, 3, 4)
		r.first()
		r.del("k", 3, 4)
		if act == "revoke" {
			r.set("k", "redlockctl:revoked:x", 30*time.Second, 4)
		}
		r.rounds()
		r.pass(time.Second)
		var texts []string
		for _, e := range r.events {
			texts = append(texts, e.Text.Raw())
		}
		lost := "lost its copy on n4 (lost: it disappeared before its TTL expired, and was not released): 3 left"
		if !slices.Contains(texts, want) || !slices.Contains(texts, lost) || r.lock("k").State != monitor.LockHeld && r.lock("k").State != monitor.LockBareMajority {
			t.Errorf("%s: %s, %q", act, r.lock("k").State, texts)
		}
	}
}

func TestExtensionsAreToldOnceInAWhile(t *testing.T) {
	r := newRig(3, 0).first()
	for range 60 {
		r.set("k", "a", 5*time.Second, 0, 1, 2)
		r.scanAll()
		r.pass(time.Second)
	}
	k := r.kinds()
	if len(k) < 4 || len(k) > 8 || k[0] != "acquired" || k[1] != "extended" {
		t.Fatal(k)
	}
	// The first is reported at once, and none is dropped: an event says how many it
	// covers.
	if first := r.events[1].At.Sub(r.events[0].At); first > 2*time.Second {
		t.Errorf("the first extension is told after %s", first)
	}
	if text := r.events[2].Text.Raw(); !strings.Contains(text, "extended ×10 by ") {
		t.Error(text)
	}
}

// How often a lock is extended is measured between extensions: when it was first seen says nothing of it.
func TestTheTimeBetweenExtensions(t *testing.T) {
	r := newRig(3, 0)
	r.set("k", "a", 15*time.Second, 0, 1, 2)
	r.first()
	r.pass(time.Second)
	for range 4 {
		r.set("k", "a", 15*time.Second, 0, 1, 2)
		r.scanAll()
		r.pass(5 * time.Second)
	}
	if l := r.lock("k"); l.Extensions != 4 || l.Extending/3 < 5000 || l.Extending/3 > 5100 {
		t.Errorf("%d extensions within %d ms", l.Extensions, l.Extending)
	}
}

// Pending extensions are reported when the grant ends.
func TestTheLastExtensionsAreTold(t *testing.T) {
	extend := func(r *rig) {
		r.pass(time.Second)
		r.set("k", "a", 30*time.Second, 0, 1, 2)
		r.scanAll()
	}
	release := func(r *rig) { r.del("k", 0, 1, 2); r.scanAll() }
	for name, c := range map[string]struct {
		do   func(*rig)
		text string
		want []string
	}{
		"released": {release, "extended ×2 by ..., last 10ms ago", []string{"released"}},
		"force-released": {func(r *rig) {
			r.TakenBy = func(string, string) (monitor.Action, bool) { return monitor.Action{Act: "force-release"}, true }
			release(r)
		}, "extended ×2 by ..., last 10ms ago", []string{"force-released"}},
		"expired": {func(r *rig) { r.pass(time.Minute) }, "extended ×2 by ..., last 1m0s ago", []string{"expired"}},
		"its majority lost": {func(r *rig) {
			r.del("k", 0, 1)
			r.Restarted(0, Incarnation{}, r.now)
			r.Restarted(1, Incarnation{}, r.now)
			r.scanAll()
			r.scanAll()
		}, "extended ×2 by ..., last", []string{"lost majority"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(3, 0).first()
			r.set("k", "a", 30*time.Second, 0, 1, 2)
			r.scanAll()
			for range 3 {
				extend(r)
			}
			c.do(r)
			if want := append([]string{"acquired", "extended", "extended"}, c.want...); !slices.Equal(r.kinds(), want) {
				t.Fatalf("%v, want %v", r.kinds(), want)
			}
			told, end := r.events[2], r.events[3]
			if !strings.HasPrefix(told.Text.Raw(), c.text) || told.Times != 3 || end.Times != 3 || told.Until.Before(r.events[1].Until) {
				t.Errorf("%+v\n%+v", told, end)
			}
		})
	}
}

// How a grant ended while this process did not run was not seen: it may have been released. One that
// lasted longer, and is gone, was deleted.
func TestAGrantThatEndsWhileStopped(t *testing.T) {
	r := newRig(3, 0)
	r.set("short", "a", 5*time.Second, 0, 1, 2)
	r.set("long", "b", time.Minute, 0, 1, 2)
	r.first()
	r.del("short", 0, 1, 2)
	r.del("long", 0, 1, 2)
	from := r.now
	r.now = r.now.Add(13 * time.Second)
	r.Stopped(from, r.now)
	for i := range 3 {
		r.Doubt(i)
		r.Missed(i, r.now)
	}
	r.scanAll()
	r.set("later", "c", time.Second, 0, 1, 2)
	r.scanAll()
	r.pass(2 * time.Second)
	ended := map[string]string{}
	for _, e := range r.events {
		ended[e.Key.Raw()] = e.Kind
	}
	if ended["short"] != "not seen" || ended["long"] != "released" || ended["later"] != "expired" {
		t.Error(ended)
	}
	if text := r.text("not seen"); !strings.Contains(text, ": nodes were not seen from here since ") {
		t.Error(text)
	}
}

// Copies that an attempt set one after the other expire so: that is no lost majority, also if others were lost
// before.
func TestAMajorityThatExpiresIsNotLost(t *testing.T) {
	const ttl = 15 * time.Second
	r := newRig(5, 30*time.Second).first()
	r.pass(time.Hour)
	for i := range 5 {
		r.set("k", "a", ttl+time.Duration(i)*8*time.Millisecond, i)
	}
	r.scanAll()
	end := r.now.Add(ttl + 16*time.Millisecond) // of the third latest
	r.pass(time.Second)
	r.restart(1, true, false)
	r.restart(2, true, false)
	r.scanAll()
	for r.now.Before(end.Add(2 * time.Second)) {
		r.pass(4 * time.Millisecond)
		if left := end.Sub(r.now); left < time.Second {
			if l := r.lock("k"); l.State == monitor.LockLostMajority || left > 20*time.Millisecond && !l.ReliedOn() {
				t.Fatalf("%s before its end: %s, %+v", left, l.State, l)
			}
		}
	}
	if got := r.kinds(); slices.Contains(got, "lost majority") || !slices.Contains(got, "expired") {
		t.Errorf("%q", got)
	}
}
