package redlock

import (
	"crypto/rand"
	"encoding/base64"
	"strings"
)

// newToken draws a token: 18 random bytes, and two with a note to the resource's
// waiters, as 27 characters; the package documentation says why these are enough. It
// names one attempt. A retry draws another: otherwise a late release of the first
// attempt would delete the copies of the second.
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

// note is what a token says about the wait for it; see [retryPlan]. For another
// library's token that looks like ours it is two meaningless numbers, which cost a
// waiter a little time at most.
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

// A token may name its owner, after the random part, the note and a colon. Comparisons
// include it.
const (
	ownerMark = ":"
	mostToken = 64 // bytes of a token with its owner
	mostOwner = mostToken - tokenChars - len(ownerMark)
)

// tokenWith draws tokens with this owner; empty: none.
func tokenWith(owner string) func(note) string {
	if owner == "" {
		return newToken
	}
	return func(n note) string { return newToken(n) + ownerMark + owner }
}

// printableASCII returns s with "-" for each blank and each byte that is not printable
// ASCII, cut to most bytes.
func printableASCII(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' {
			return '-'
		}
		return r
	}, s)
	return s[:min(len(s), most)]
}

// MostOwner is the longest [Options.Owner], in bytes.
const MostOwner = mostOwner
