package monitor

import (
	"iter"
	"strings"
	"time"

	"github.com/tidwall/btree"

	"redlockctl/monitor/internal/packed"
	"redlockctl/redlock"
	"redlockctl/server/lockform"
	"redlockctl/server/safetext"
)

// LockState is the state of a resource over all nodes, in a word. The states are in order
// of urgency: the most urgent is greatest.
type LockState uint8

const (
	LockHeld         LockState = iota // a token has a quorum and a margin
	LockExpiring                      // held, ends within a second
	LockBareMajority                  // held with the last copies that make a majority
	LockRevoked                       // its holder cannot extend it; tombstones keep others out until the TTL expires
	LockPartial                       // copies without a majority yet: an attempt, a release or a read is in progress
	LockNotALock                      // a key under the pattern that cannot be a lock
	LockMayBeHeld                     // no majority is seen, but nodes that are silent or may have forgotten a vote could complete one
	LockLostMajority                  // granted and not released; copies were lost, and its holder may still rely on it
	LockOrphaned                      // a minority of a token that was never granted, or whose grant was released or has ended
	LockOverTTL                       // held for longer than the cluster's max TTL allows
	LockSplit                         // several tokens
	LockNoTTL                         // a copy without TTL
	numLockStates
)

// LockStates iterates over all states, the most urgent last.
func LockStates() iter.Seq[LockState] {
	return func(yield func(LockState) bool) {
		for s := range numLockStates {
			if !yield(s) {
				return
			}
		}
	}
}

var lockStateNames = [...]string{"held", "expiring", "bare majority", "revoked", "partial", "not a lock", "may be held", "lost majority", "orphaned", "over max TTL", "split", "no TTL"}

// String returns the state as the screen and JSON show it.
func (s LockState) String() string { return lockStateNames[s] }

// Lock is one resource over all nodes.
type Lock struct {
	Key   safetext.Text
	State LockState
	// Nobody: several tokens have copies and none can have a quorum, or the copies
	// without TTL are left over. Holder then holds nothing.
	Nobody bool
	// Contested: several tokens have copies, and each may have a quorum that cannot be
	// seen. Holder is then one of them.
	Contested bool
	Copies    Copies
	// Holder is the token with most copies; Held is their number, −1 if a record does not
	// have it.
	Holder safetext.Text
	Held   int
	Tokens int // different tokens with copies
	// Lost is how many votes of Holder were lost that would not have expired yet.
	Lost int
	// Earlier is a client that may still rely on the lock besides Holder; nil: none is
	// known.
	Earlier *Reliance
	// Form is the recognized form of the lock; nil: unknown.
	Form *lockform.Form

	// Span is from Since to MajorityEnd, packed as Copies are. Relied is HeldUntil if
	// that is another time.
	Span   packed.Span
	Relied packed.Moment
	// Extensions counts the extensions of the holder's grant that were seen; the last one
	// at Extended. Extending are the milliseconds from the first of them to the last; 0: not known.
	Extensions uint32
	Extending  uint32
	Extended   packed.Moment
	// Unending: a client relies on the lock, or may, and there is no end: HeldUntil is zero.
	Unending bool
	// Supposed: copies on nodes that do not answer are assumed to be extended like the
	// others.
	Supposed bool
	// Over: the holder relies on a TTL above the cluster's maximum, or a copy has one, whatever the state.
	Over bool
	// LeftByStep: an orphaned lock's copies outlast its grant because clocks of their nodes were stepped back.
	LeftByStep bool
	// Lasts: the state has raised an alarm. It is no attempt or release in progress.
	Lasts bool

	keys *keys
}

// keys are the keys of a lock that has several, and what is known of each.
type keys struct {
	names []safetext.Text
	locks []*Lock // nil: not known
}

// Since returns when this holder was first seen.
func (l *Lock) Since() time.Time { return l.Copies.time(l.Span.Begin) }

// MajorityEnd returns when Holder falls below a quorum; zero without a majority.
func (l *Lock) MajorityEnd() time.Time { return l.Copies.time(l.Span.End) }

// HeldUntil returns until when a client may rely on the lock, as far as is known: the end
// of the majority, of a lost majority, or of one that may exist unseen. Zero: nobody can,
// or there is no end.
func (l *Lock) HeldUntil() time.Time {
	if l.Relied != 0 {
		return l.Copies.time(l.Relied)
	}
	return l.MajorityEnd()
}

// ExtendedAt returns when the last extension was seen; zero: none was.
func (l *Lock) ExtendedAt() time.Time { return l.Copies.time(l.Extended) }

// ReliedOn reports whether a client relies on the lock, or may: Holder has a majority,
// lost one that has not ended, or may have one that cannot be seen. It is false if a
// record does not say.
func (l *Lock) ReliedOn() bool {
	quorum := redlock.Quorum(l.Copies.Len())
	switch {
	case l.Nobody, l.State == LockRevoked, l.State == LockOrphaned, l.State == LockNotALock:
		return false
	case l.State == LockLostMajority, l.State == LockMayBeHeld, l.Unending, !l.HeldUntil().IsZero():
		return true
	}
	return l.Held > 0 && l.Held+l.Lost >= quorum
}

// MayBeHeld reports whether a client may rely on a lock without a majority, and it is
// unknown whether the lock was granted.
func (l *Lock) MayBeHeld() bool {
	return l.State == LockMayBeHeld || l.State != LockLostMajority && l.Held+l.Lost < redlock.Quorum(l.Copies.Len())
}

// LostMajority reports whether the holder relies on the lock without the majority that it lost. The
// lock may be without a TTL or over the maximum besides, and then that is its state.
func (l *Lock) LostMajority() bool {
	switch l.State {
	case LockLostMajority:
		return true
	case LockNoTTL, LockOverTTL:
		return l.ReliedOn() && !l.MayBeHeld() && l.Held < redlock.Quorum(l.Copies.Len())
	}
	return false
}

// Reliance is a client that may rely on a lock until a time; zero: no end.
type Reliance struct {
	Token safetext.Text
	Until time.Time
}

// TokenCut follows a token of which only the start is known, as a guard announces it.
const TokenCut = "…"

// IsToken reports whether a token that a lock shows, perhaps only its start, is this one.
func IsToken(shown safetext.Text, token string) bool {
	start := strings.TrimSuffix(shown.Raw(), TokenCut)
	return start != "" && strings.HasPrefix(token, start)
}

// Keys returns all keys of a lock that has several, Key first; nil: only Key.
func (l *Lock) Keys() []safetext.Text {
	if l.keys == nil {
		return nil
	}
	return l.keys.names
}

// Timed returns the lock with these times, for a lock that is not from a monitor.
func (l Lock) Timed(since, majorityEnd time.Time) Lock {
	l.Span = packed.Span{Begin: byHand.Moment(since), End: byHand.Moment(majorityEnd)}
	return l
}

// Until returns the lock with this HeldUntil, for a lock without a majority that is not
// from a monitor.
func (l Lock) Until(relied time.Time) Lock {
	l.Relied = byHand.Moment(relied)
	return l
}

// WithKeys returns the lock with these keys.
func (l Lock) WithKeys(names ...safetext.Text) Lock {
	l.keys = &keys{names: names}
	return l
}

// Joined returns the lock that the locks of several keys make: it has the first key, and
// shows the state and copies of l.
func (l Lock) Joined(each ...*Lock) Lock {
	k := &keys{locks: each}
	for _, one := range each {
		k.names = append(k.names, one.Key)
		l.Over = l.Over || one.Over
	}
	l.keys, l.Key = k, k.names[0]
	return l
}

// each returns the locks of the keys; if they are not known, l.
func (l *Lock) each() []*Lock {
	if l.keys == nil || l.keys.locks == nil {
		return []*Lock{l}
	}
	return l.keys.locks
}

// Locks is a set of locks, sorted by key. It is immutable, and two snapshots share the
// locks that did not change. The zero value is the empty set.
type Locks struct{ tree *btree.BTreeG[*Lock] }

// NewLocks makes a set of locks; of two with the same key, the last one counts.
func NewLocks(locks ...Lock) Locks {
	tree := NewLockTree()
	for i := range locks {
		tree.Set(&locks[i])
	}
	return Locks{tree}
}

// NewLockTree makes an empty tree of locks, sorted by key. It has no mutex: its writer
// must give readers a copy that is never changed, as [LocksOf] requires.
func NewLockTree() *btree.BTreeG[*Lock] {
	return btree.NewBTreeGOptions(func(a, b *Lock) bool { return a.Key.Raw() < b.Key.Raw() }, btree.Options{NoLocks: true})
}

// LocksOf returns the locks of a tree that must not be changed any more.
func LocksOf(tree *btree.BTreeG[*Lock]) Locks { return Locks{tree} }

// Len returns the number of locks.
func (l Locks) Len() int {
	if l.tree == nil {
		return 0
	}
	return l.tree.Len()
}

// Get returns the lock with this key, or nil. The lock must not be changed.
func (l Locks) Get(key string) *Lock {
	if l.tree == nil {
		return nil
	}
	found, _ := l.tree.Get(lockAt(key))
	return found
}

// All iterates over the locks in the order of their keys. They must not be changed.
func (l Locks) All() iter.Seq[*Lock] { return l.From("") }

// From iterates over the locks from this key on, in the order of their keys.
func (l Locks) From(key string) iter.Seq[*Lock] {
	return func(yield func(*Lock) bool) {
		if l.tree != nil {
			l.tree.Ascend(lockAt(key), yield)
		}
	}
}

func lockAt(key string) *Lock { return &Lock{Key: safetext.New(key)} }

// End returns when the lock ends: when nobody can rely on it any more or, if nobody can
// now, when its last known copy expires; zero if no copy is known. forever: a copy has no
// TTL.
func (l *Lock) End() (end time.Time, forever bool) {
	if end = l.HeldUntil(); !end.IsZero() {
		return end, false
	}
	for _, c := range l.Copies.All() {
		switch {
		case c.State != CopyPresent:
		case c.Expires.IsZero():
			return time.Time{}, true
		case c.Expires.After(end):
			end = c.Expires
		}
	}
	return end, false
}
