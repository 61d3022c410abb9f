package who

import (
	"time"
)

// Liveness says whether a holder still exists.
type Liveness string

// The words. alive: it has extended, or used a connection, about when expected; silent:
// it has open connections, and has missed an extension; gone: it has no open connection.
const (
	Alive  Liveness = "alive"
	Silent Liveness = "silent"
	Gone   Liveness = "gone"
)

const (
	late     = 200 * time.Millisecond // an extension that comes half an interval and this late was missed
	justUsed = 2 * time.Second        // servers report idle times in whole seconds
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

// missed reports whether an extension is overdue.
func (s *Signs) missed() bool {
	return s.Usually > 0 && s.Extended > s.Usually+s.Usually/2+late
}

// AssessLiveness returns the word for the signs; "" if they prove nothing. "gone" comes
// first: earlier activity does not matter without a connection. A missed extension
// matters more than a connection in use, which may be another process of the application.
func AssessLiveness(s Signs) Liveness {
	switch {
	case s.Conns > 0 && s.Open == 0:
		return Gone
	case s.missed() && s.Open > 0:
		return Silent
	case s.missed():
		return ""
	case s.Usually > 0, s.Open > 0 && s.Idle <= justUsed:
		return Alive
	}
	return ""
}

// LivenessAt returns the word at a later time, and for how long nothing was seen of the
// holder: since its last extension, or since it was asked. end is the end of its
// majority at that time, which tells of later extensions if all set the same TTL.
func (a *Answer) LivenessAt(now, end time.Time) (Liveness, time.Duration) {
	later := max(0, now.Sub(a.At))
	if a.Liveness == "" {
		return "", 0
	}
	extended := a.At.Add(-a.Extended)
	seen := a.TTL > 0 && a.Usually > 0 && !end.IsZero()
	if last := end.Add(-a.TTL); seen && last.After(extended) {
		extended = last
	}
	since := max(0, now.Sub(extended))
	switch {
	case a.Liveness == Gone && (!seen || !extended.After(a.At)):
		return Gone, later + a.closed()
	case !seen:
		if a.Liveness == Alive {
			return Alive, later
		}
		return a.Liveness, later + a.Extended
	case (&Signs{Usually: a.Usually, Extended: since}).missed():
		return Silent, since
	}
	return Alive, since
}

// closed returns for how long all connections have been closed.
func (a *Answer) closed() time.Duration {
	least := time.Duration(-1)
	for _, c := range a.Conns {
		if c.Gone > 0 && (least < 0 || c.Gone < least) {
			least = c.Gone
		}
	}
	return max(0, least)
}
