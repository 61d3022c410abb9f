package restartguard

import (
	"testing"
	"time"

	"redlockctl/redlock"
	"redlockctl/server/announce"
)

// TestDelayCoversTheDriftOfTheLock: a node must stay fenced for at least as long as a
// client may rely on a vote that the node forgot. With a smaller factor here than in the
// lock algorithm two clients can hold one lock.
func TestDelayCoversTheDriftOfTheLock(t *testing.T) {
	lock := redlock.Options{DriftFactor: redlock.DefaultDriftFactor, DriftMargin: redlock.DefaultDriftMargin}
	for _, ttl := range []time.Duration{time.Second, 30 * time.Second, time.Hour, 24 * time.Hour} {
		d, need := DefaultDelay(ttl), ttl+lock.Drift(ttl)
		if d < need {
			t.Errorf("D for a TTL of %s is %s, less than TTL + drift allowance = %s", ttl, d, need)
		}
		if early, need := EarlyAfter(ttl), ttl+lock.Drift(ttl)-lock.DriftMargin; early < need {
			t.Errorf("early rejoin after an attempt of %s is at %s, before %s", ttl, early, need)
		}
		if got := (announce.Guard{Delay: d}).Covers(); got > ttl || ttl-got > time.Millisecond {
			t.Errorf("a D of %s is announced to cover a TTL of %s; it was made for %s", d, got, ttl)
		}
	}
}
