package who

import (
	"time"
)

// Liveness says whether a holder still exists.
type Liveness string

// The words. alive: it has extended, or used a connection, about when expected; silent:
// it has open connections but has not; gone: it has no open connection.
const (
	Alive  Liveness = "alive"
	Silent Liveness = "silent"
	Gone   Liveness = "gone"
)

const (
	overdue  = 3               // intervals without an extension
	justUsed = 2 * time.Second // servers report idle times in whole seconds
)

// Signs are what is known of a holder at a moment.
type Signs struct {
	Conns    int           // connections, open or closed
	Open     int           // open ones
	Idle     time.Duration // since an open one was used for a lock
	Extends  int           // extensions seen
	Extended time.Duration // since the last one
	Usually  time.Duration // between two of them; 0: unknown
}

// AssessLiveness returns the word for the signs; "" if they prove nothing. "gone" comes
// first: earlier activity does not matter without a connection.
func AssessLiveness(s Signs) Liveness {
	used := s.Open > 0 && s.Idle <= justUsed
	due := s.Usually > 0 && s.Extended > overdue*s.Usually
	switch {
	case s.Conns > 0 && s.Open == 0:
		return Gone
	case used, s.Usually > 0 && !due:
		return Alive
	case due && s.Open > 0:
		return Silent
	}
	return ""
}
