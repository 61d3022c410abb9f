package sim

import "testing"

// Early rejoin lets nothing happen either, as long as clients keep to the bound of
// an attempt.
func TestEarlyRejoinLetsNothingHappen(t *testing.T) {
	n := few(50_000)
	r := play(t, Config{Seed: 900_000, Schedules: n, Faults: AllFaults, EarlyRejoin: true})
	if v := r.Violation; v != nil {
		t.Fatalf("seed %d: %s: %s\n%s\n%v", v.Seed, v.Property, v.What, v.About, v.Trace)
	}
	if r.Early < n/10 {
		t.Errorf("only %d early rejoins in %d schedules: %+v", r.Early, n, r.Stats)
	}
}
