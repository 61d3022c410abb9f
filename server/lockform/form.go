// Package lockform recognises which library made a lock, by the form of its key, type and
// value. Each form also says what to check before the lock is revoked or force-released.
//
// A form is a guess for people: a value that looks like a redsync token need not be one.
// Nothing that must be right may depend on it. docs/forms.md lists all forms, their
// sources, and what they can be confused with.
package lockform

import (
	"time"

	"redlockctl/server/safetext"
)

// Form describes how a library stores its locks. A nil *Form means unknown. Do not change a
// Form: locks with equal forms share it.
type Form struct {
	// Library is the usual name of the library: "redsync". Libraries that cannot be told
	// apart are named together: "node-redlock or redlock-universal".
	Library string
	// Owner is the holder, if the value contains it: "web-7 (pid 811)".
	Owner safetext.Text
	// Created is when the value was made, on the wall clock of its maker; zero: unknown.
	Created time.Time
	// Deadline is when the lock expires according to its value, on the wall clock of its
	// maker; zero: only the key's TTL counts. Use it only for a key without a TTL: with one,
	// the time in the value may be when the lock was made.
	Deadline time.Time
	// Group names the lock that this key is a part of, if a lock has several keys. It is
	// empty if this key is the whole lock, or if its other keys cannot be derived from it.
	// Keys with the same Group, Library and value are one lock.
	Group safetext.Text
	// SharedToken says that keys with the same value are one lock, whatever their names.
	SharedToken bool
	// Shared says that several clients may hold it at once: it is a semaphore or a read
	// lock. Owner names all of them.
	Shared bool
	// Companion says that this key is not a lock, but is kept beside one: a queue, a
	// counter, a timeout. Group names the lock.
	Companion bool
	// BareDel says that its library unlocks with a plain DEL, which does not compare the
	// token.
	BareDel bool
	// TakingAway says in one sentence what to check before revoke or force-release; empty:
	// nothing special.
	TakingAway string
	// Refused says why this program must not revoke or force-release it; empty: it may.
	Refused string
}

// Guess returns the library, as a guess unless the token names its holder in the way of that library:
// "perhaps redsync".
func (f *Form) Guess() string { return f.perhaps() + f.Library }

// MadeBy says the same as a sentence begins: "perhaps made by redsync".
func (f *Form) MadeBy() string { return f.perhaps() + "made by " + f.Library }

func (f *Form) perhaps() string {
	if f.Owner.Empty() {
		return "perhaps "
	}
	return ""
}
