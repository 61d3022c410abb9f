// Package mutant has the rules by which a simulation is played, and the ways to break one.
package mutant

// Rules are how the drivers of clients, guards and servers behave, and what the witness
// checks. The right rules are those of the product; a mutant breaks one of them. A
// mutant never changes the product's own code, only its input or the use of its output.
type Rules struct {
	Delay float64 // factor on D
	TTL   float64 // factor on all TTLs
	// Checks is a set of properties, by their bits.
	Checks uint8
	// NoExcuse counts a second vote that a master gives before any guard could
	// fence it; it takes a boot fence to prevent those.
	NoExcuse    bool
	NoGuard     bool
	EarlyRejoin bool
	GuardBroken bool // perhaps: there is a mutant
	mutant      string
}

// Breaks reports whether this mutant is played.
func (r *Rules) Breaks(mutant string) bool { return r.mutant == mutant }

// Right are the product's own rules, with every check.
func Right() Rules {
	return Rules{Delay: 1, TTL: 1, Checks: 1<<Exclusion | 1<<LeftBehind | 1<<EarlyRejoin | 1<<CordonRemoved | 1<<NeedlessFence | 1<<Resurrected | 1<<Shown | 1<<Proof}
}
