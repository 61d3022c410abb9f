package redlock

import (
	"crypto/rand"
	"encoding/base64"
	"strings"
)

// newToken draws the name of one grant: 18 random bytes, and two with a note to
// those who wait for the resource, as 27 characters; the package documentation
// says why so many are enough. It names one attempt: a retry draws anew, since a
// release of the attempt before it that comes late would otherwise delete its
// copies.
func newToken(n note) string {
	var b [tokenBytes]byte
	_, _ = rand.Read(b[:]) // never fails
	b[tokenBytes-2], b[tokenBytes-1] = n.serial, n.waited
	return base64.RawURLEncoding.EncodeToString(b[:])
}

const (
	tokenBytes = 20
	tokenChars = 27 // in base64url
)

// note is what a token tells of the wait for it; see [retryPlan]. Of another's
// token that looks like one of ours it is two numbers that mean nothing, which
// costs somebody a little time at most.
type note struct {
	serial uint8 // of the grant: one more than that of the holder before
	waited uint8 // how often the lock changed hands meanwhile; unwaited: not known
}

const unwaited = 255

// noteOf reads the note in a token.
func noteOf(token string) note {
	var b [tokenBytes]byte
	token, _, _ = strings.Cut(token, ownerMark)
	if len(token) != tokenChars {
		return note{waited: unwaited}
	}
	if _, err := base64.RawURLEncoding.Decode(b[:], []byte(token)); err != nil {
		return note{waited: unwaited}
	}
	return note{b[tokenBytes-2], b[tokenBytes-1]}
}

// A token may tell its owner: behind the random part, the note and a colon. Who
// compares tokens compares all of it.
const (
	ownerMark = ":"
	mostToken = 64 // bytes of a token with its owner
	mostOwner = mostToken - tokenChars - len(ownerMark)
)

// tokenWith draws tokens that tell an owner; none if that is empty.
func tokenWith(owner string) func(note) string {
	if owner == "" {
		return newToken
	}
	return func(n note) string { return newToken(n) + ownerMark + owner }
}

// printableASCII is s with "-" for each byte that is no printable ASCII, or a blank,
// and no longer than most.
func printableASCII(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' {
			return '-'
		}
		return r
	}, s)
	return s[:min(len(s), most)]
}

// MostOwner is how long [Options.Owner] may be, in bytes.
const MostOwner = mostOwner
