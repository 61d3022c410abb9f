package mutant

// Property is what must hold in every schedule.
type Property uint8

const (
	// Exclusion: no two clients believe in the lock at the same true time.
	Exclusion Property = iota
	// LeftBehind: a copy of an attempt that failed, or of a lock that was
	// released, does not outlive its release; but for what no client can help (a
	// connection that broke, a master that refused).
	LeftBehind
	// EarlyRejoin: a guard lets a master rejoin no earlier than D after its last loss,
	// less what its clock may be wrong.
	EarlyRejoin
	// CordonRemoved: no guard lets a master rejoin that it has seen cordoned by an operator.
	CordonRemoved
	// NeedlessFence: where nothing goes wrong no guard fences a master, however far
	// clocks differ within their bounds.
	NeedlessFence
	// Resurrected: a lock that was revoked or force-released is not extended any more, and no copy of
	// a lock is put back that has ended, in the place of another's, or on a fenced
	// master.
	Resurrected
	// Shown: what a monitor shows of a lock is what its holder relies on: neither free, nor left
	// behind, nor at an end before the holder's validity; and nobody gets in of whom it says so.
	Shown
	// Proof: no fence that clients write through is taken for proven.
	Proof
)

// String is the property as a sentence says it.
func (p Property) String() string {
	return [...]string{"two clients hold one lock", "a copy is left behind", "a master rejoins too early", "a cordon is removed",
		"a master that lost nothing is fenced", "a lock is held on to that was force-released or has expired",
		"what is shown is not what a client relies on", "a fence that does not hold is taken for proven"}[p]
}

// ID is the property as one word for machines.
func (p Property) ID() string {
	return [...]string{"exclusion", "left-behind", "early-removal", "cordon-removed", "needless-fence", "resurrected", "shown", "proof"}[p]
}

// MarshalText is the property as a word, see [Property.ID].
func (p Property) MarshalText() ([]byte, error) { return []byte(p.ID()), nil }
