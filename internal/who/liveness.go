package who

import (
	"time"
)

// Liveness is whether a holder is there still.
type Liveness string

// The words: alive has extended, or used a connection, about when it was to be
// expected; silent has open connections and has not; gone has none any more.
const (
	Alive  Liveness = "alive"
	Silent Liveness = "silent"
	Gone   Liveness = "gone"
)

const (
	overdue  = 3               // intervals without an extension
	justUsed = 2 * time.Second // servers tell idle times in whole seconds
)

// Signs are what is known of a holder at a moment.
type Signs struct {
	Conns    int           // connections that it has, or had
	Open     int           // those that are open
	Idle     time.Duration // since one of the open ones was used for a lock
	Extends  int           // extensions seen
	Extended time.Duration // since the last one
	Usually  time.Duration // between two of them; 0: not known
}

// AssessLiveness is the word for the signs; "" where they do not tell. No connection
// left is told before all else: nothing that it did before brings one back.
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
