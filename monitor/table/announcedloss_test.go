package table

import (
	"testing"
	"time"

	"redlockctl/monitor"
)

// A revoked lock has no majority to lose, and the cost of a loss says nothing of it.
func TestARevokedLockHasNoBareMajority(t *testing.T) {
	r := oldRig()
	r.set("k", "redlockctl:revoked:xyz", viewTTL, 0, 1, 2, 3)
	r.scanAll()
	r.scanAll()
	var cost *monitor.RestartCost
	r.OnRestart = func(_ int, c monitor.RestartCost, _ time.Time) { cost = &c }
	clear(r.servers[3])
	r.Wiped(3, r.now)
	r.scanAll()
	r.scanAll()
	if s, held, _ := r.states("k"); s != monitor.LockRevoked || held != 3 {
		t.Fatal(s, held)
	}
	if cost == nil || cost.Lost != 1 || cost.Bare != 0 || cost.LostMajority != 0 {
		t.Errorf("%+v", cost)
	}
}
