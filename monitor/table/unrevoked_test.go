package table

import (
	"slices"
	"strings"
	"testing"
	"time"

	"redlockctl/monitor"
)

// A force-release of a revoked lock has an event at once, with who did it and until when the holder may rely
// on the lock. That tombstones expire, or are lost in another way, is no force-release.
func TestAForceReleaseOfARevokedLockIsTold(t *testing.T) {
	const tombstone = "redlockctl:revoked:x"
	for name, c := range map[string]struct {
		act  string
		wait time.Duration
		next string // another client gets in at once
		told bool
	}{
		"force-released":          {"force-release", 0, "", true},
		"and acquired by another": {"force-release", 0, "b", true},
		"expired":                 {"force-release", 10 * time.Second, "", false},
		"by nobody that is known": {"", 0, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(3, 20*time.Second).first()
			r.TakenBy = func(_, token string) (monitor.Action, bool) {
				return monitor.Action{Act: c.act, Actor: "ops@host", Reason: "dead"}, c.act != "" && token == tombstone
			}
			r.set("k", "a", 9*time.Second, 0, 1, 2)
			r.rounds()
			r.set("k", tombstone, 8*time.Second, 0, 1, 2)
			r.rounds()
			if l := r.lock("k"); l.State != monitor.LockRevoked {
				t.Fatal(l.State)
			}
			r.pass(c.wait)
			r.del("k", 0, 1, 2)
			if c.next != "" {
				r.set("k", c.next, 9*time.Second, 0, 1, 2)
			}
			r.rounds()
			if text := r.text("orphaned"); text != "" {
				t.Error(text)
			}
			text := r.text("force-released")
			if told := strings.HasPrefix(text, "force-released by ops@host: dead: it was revoked, and its holder may rely on it until "); told != c.told || !told && text != "" {
				t.Errorf("%q", text)
			}
		})
	}
}

// A restart or a wipe may take so many tombstones that others can get in: its cost says of how many
// locks. It does not where others are still kept out, by fences too.
func TestALossThatEndsARevocation(t *testing.T) {
	const tombstone = "redlockctl:revoked:x"
	for name, c := range map[string]struct {
		lose  func(r *rig, i int)
		fence bool
		want  []int // of each loss
	}{
		"wiped":                    {func(r *rig, i int) { r.Wiped(i, r.now) }, false, []int{0, 0, 1, 0}},
		"restarted":                {func(r *rig, i int) { r.Restarted(i, Incarnation{}, r.now) }, false, []int{0, 0, 1, 0}},
		"wiped, fenced":            {func(r *rig, i int) { r.Wiped(i, r.now) }, true, []int{0, 0, 0, 0}},
		"wiped before any is read": {nil, false, []int{0, 0, 1, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(5, 20*time.Second).first()
			r.set("k", "a", 19*time.Second, 0, 1, 2, 3, 4)
			r.set("other", "a", 19*time.Second, 0, 1, 2, 3, 4)
			r.rounds()
			r.set("k", tombstone, 15*time.Second, 0, 1, 2, 3, 4)
			r.rounds()
			if l := r.lock("k"); l.State != monitor.LockRevoked {
				t.Fatal(l.State)
			}
			got := make([]int, len(c.want))
			r.OnRestart = func(i int, cost monitor.RestartCost, _ time.Time) {
				if got[i] = cost.Unrevoked; cost.Unrevoked == 1 && cost.LostMajority == 0 && cost.Locks[0].Raw() != "k" {
					t.Errorf("%+v", cost)
				}
			}
			for i := range c.want {
				r.now = r.now.Add(time.Millisecond)
				if r.del("k", i); c.lose == nil {
					r.Wiped(i, r.now)
					continue
				}
				r.del("other", i)
				if c.lose(r, i); c.fence {
					r.Reachable(i, true)
				}
				r.scan(i)
				r.rounds()
			}
			r.scanAll()
			r.rounds()
			if !slices.Equal(got, c.want) {
				t.Errorf("%v, want %v; it is %s", got, c.want, r.lock("k").State)
			}
		})
	}
}
