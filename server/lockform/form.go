// Package lockform tells by which library a lock was made: by the form of its
// key, type and value. What a form means for taking the lock away stands with
// it.
//
// A form is a guess by looks, for people to read: a value that looks like a
// redsync token need not be one. Nothing that must be right may rest on it.
// docs/forms.md lists all forms, where they are known from, and what they
// are mistaken for.
package lockform

import (
	"time"

	"redlockctl/server/safetext"
)

// Form is what the form of a lock tells. A nil *Form is a form that nobody
// knows. A Form must not be changed: locks that look alike share one.
type Form struct {
	// Library is who made it, as people call it: "redsync". Several libraries
	// that cannot be told apart are named together: "node-redlock or
	// redlock-universal".
	Library string
	// Owner is who holds it, where the value tells: "web-7 (pid 811)".
	Owner safetext.Text
	// Created is when the value was drawn, on the wall clock of its maker; zero:
	// it does not tell.
	Created time.Time
	// Deadline is when the lock ends by what the value says, on the wall clock of
	// its maker; zero: by the TTL of its key. It counts only where the key has no
	// TTL: with one, the value may as well say when the lock was made.
	Deadline time.Time
	// Group names the lock whose part this key is, where one lock is several
	// keys; empty: this key is the whole lock, or its other keys cannot be told
	// from it. Keys with one Group and one Library are one lock while their
	// values are equal.
	Group safetext.Text
	// SharedToken says that keys with the same value are one lock, whatever their
	// names are.
	SharedToken bool
	// Shared says that several may hold it at once: it is a semaphore, or a lock that
	// readers hold together. Owner names all of them.
	Shared bool
	// Companion says that this key is no lock itself, but kept beside one: a
	// queue, a counter, a timeout. Group names the lock.
	Companion bool
	// BareDel says that its library unlocks by a bare DEL, which does not look whose
	// lock it deletes.
	BareDel bool
	// TakingAway is what to know before taking the lock from its holder, in a
	// sentence; empty: nothing special.
	TakingAway string
	// Refused is why it must not be revoked or force-released with this program; empty: it may.
	Refused string
}
