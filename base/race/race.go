// Package race tells tests whether the race detector watches them, which makes them many
// times as slow.
package race

import "testing"

// Skip leaves out a test in which the race detector cannot find anything: it starts no
// goroutines, or only those that other tests start too. scripts/test finds the tests that
// call it, and runs them without the race detector.
func Skip(t testing.TB) {
	if Enabled {
		t.Skip("runs without the race detector")
	}
}

// Few is how many random cases to play of n: the race detector sees as much in a quarter of
// them. scripts/test runs the whole without it.
func Few[N int | uint64](n N) N {
	if Enabled {
		return n / 4
	}
	return n
}

// Only leaves out all cases of a test but one, where the others start the same goroutines.
func Only(t testing.TB, name, only string) {
	if Enabled && name != only {
		t.Skip("runs without the race detector")
	}
}
