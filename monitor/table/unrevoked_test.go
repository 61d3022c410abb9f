package table

import (
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
