package schedule

import (
	"fmt"
	"strings"
)

// Faults is a set of kinds of faults.
type Faults uint16

// The kinds of faults.
const (
	FaultCrash    Faults = 1 << iota // masters crash, forget all, and come back
	FaultBoot                        // masters without a boot fence, or with one that is switched off
	FaultFlush                       // FLUSHALL, evicted locks
	FaultStep                        // steps of a master's wall clock
	FaultNetwork                     // messages delayed by up to 1.5 × max TTL, connections that break
	FaultPause                       // suspended clients
	FaultGuard                       // guards that crash, are suspended or cut off, steps of their wall clock
	FaultOperator                    // an operator cordons masters
	faultsEnd

	NoFaults  Faults = 0
	AllFaults        = faultsEnd - 1
)

var faultNames = []string{"crash", "boot", "flush", "step", "network", "pause", "guard", "operator"}

// FaultNames are the names that [ParseFaults] knows, beside all and none.
func FaultNames() []string { return append([]string(nil), faultNames...) }

// Has reports whether all of f are in the set.
func (s Faults) Has(f Faults) bool { return s&f == f }

// String is the set as [ParseFaults] reads it.
func (s Faults) String() string {
	switch s {
	case NoFaults:
		return "none"
	case AllFaults:
		return "all"
	}
	var names []string
	for i, name := range faultNames {
		if s.Has(1 << i) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ",")
}

// ParseFaults reads all, none, or a list of names between commas.
func ParseFaults(s string) (Faults, error) {
	switch s {
	case "all":
		return AllFaults, nil
	case "none":
		return NoFaults, nil
	}
	var set Faults
next:
	for word := range strings.SplitSeq(s, ",") {
		for i, name := range faultNames {
			if word == name {
				set |= 1 << i
				continue next
			}
		}
		return 0, fmt.Errorf("%q is no kind of fault; there is all, none, %s", word, strings.Join(faultNames, ", "))
	}
	return set, nil
}
