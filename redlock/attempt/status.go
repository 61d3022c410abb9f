package attempt

// Quorum is ⌊n/2⌋ + 1 of the configured n, whatever is up.
func Quorum(n int) int { return n/2 + 1 }

// Status is what one node said or did in one operation.
type Status uint8

const (
	StatusUnanswered Status = iota // sent, no answer by the time the operation was decided
	StatusOK                       // done as asked
	StatusHeld                     // refused: another value is there
	StatusAbsent                   // the copy is not there (release, extend, inspect)
	StatusDown                     // no connection
	StatusSlow                     // no answer within the node timeout
	StatusFenced                   // refused: NOREPLICAS
	StatusSkipped                  // not asked: it failed repeatedly, or its queue is full
	StatusProtocol                 // an answer that means none of these (wrong type, READONLY, LOADING)
	StatusDenied                   // refused for want of a right (NOPERM), or the login failed
)

var statusNames = [...]string{"unanswered", "ok", "held", "absent", "down", "slow", "fenced", "skipped", "error", "denied"}

// String is the status in one lower-case word, stable for machines to read.
func (s Status) String() string { return statusNames[s] }

// Answered reports whether the node was there.
func (s Status) Answered() bool {
	switch s {
	case StatusUnanswered, StatusDown, StatusSlow, StatusSkipped:
		return false
	}
	return true
}
