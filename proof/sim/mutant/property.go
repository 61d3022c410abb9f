package mutant

// Property is what must hold in every schedule.
type Property uint8

const (
	// Exclusion: no two clients rely on the lock at the same true time.
	Exclusion Property = iota
	// LeftBehind: no copy of a failed attempt or a released lock outlives the release,
	// except where no client can prevent it (a connection that broke, a master that
	// refused).
	LeftBehind
	// EarlyRejoin: no guard lets a master rejoin earlier than D after its last loss,
	// minus the error of the guard's clock.
	EarlyRejoin
	// CordonRemoved: no guard removes a cordon that it has seen.
	CordonRemoved
	// NeedlessFence: if nothing goes wrong, no guard fences a master, whatever the
	// clocks do within their bounds.
	NeedlessFence
	// Resurrected: a revoked or force-released lock is never extended, and no copy is put back of a
	// lock that has ended, over another token, or on a fenced master.
	Resurrected
	// Shown: a monitor never shows a lock as free, as left behind, or as ending before the
	// holder's validity while its holder relies on it; and when it says that no other client can
	// get the lock, none does.
	Shown
	// Proof: no fence that clients can write through counts as proven.
	Proof
)

// String says how the property is violated.
func (p Property) String() string {
	return [...]string{"two clients hold one lock", "a copy is left behind", "a master rejoins too early", "a cordon is removed",
		"a master that lost nothing is fenced", "a lock is held on to that was force-released or has expired",
		"what is shown is not what a client relies on", "a fence that does not hold is taken for proven"}[p]
}

// ID returns the property as one word for machines.
func (p Property) ID() string {
	return [...]string{"exclusion", "left-behind", "early-removal", "cordon-removed", "needless-fence", "resurrected", "shown", "proof"}[p]
}

// MarshalText returns [Property.ID].
func (p Property) MarshalText() ([]byte, error) { return []byte(p.ID()), nil }
