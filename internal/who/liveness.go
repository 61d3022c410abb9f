package who

import (
	"time"
)

// Liveness says whether a holder still exists.
type Liveness string

// The words. alive: it has extended, or used a connection, about when expected; silent:
// it has missed two extensions, and its connections are open or not known; gone: it has no
// open connection.
// After one missed extension there is no word: a holder that is slow once is not silent.
const (
	Alive  Liveness = "alive"
	Silent Liveness = "silent"
	Gone   Liveness = "gone"
)

const (
	late     = 200 * time.Millisecond // an extension that comes half an interval and this late was missed
	justUsed = 2 * time.Second        // servers report idle times in whole seconds
	// AliveFor is how long a holder whose extensions are not seen is called alive.
	AliveFor = 10 * time.Second
)

// Signs are what is known of a holder at a moment.
type Signs struct {
	Conns    int           // connections, open or closed
	Open     int           // open ones
	Absent   bool          // they would have a name, and there is none
	Idle     time.Duration // since an open one was used for a lock
	Extends  int           // extensions seen
	Extended time.Duration // since the last one
	Usually  time.Duration // between two of them; 0: unknown
}

// missed reports whether n extensions are overdue.
func (s *Signs) missed(n int) bool {
	return s.Usually > 0 && s.Extended > time.Duration(n)*s.Usually+s.Usually/2+late
}

// AssessLiveness returns the word for the signs; "" if they prove nothing. "gone" comes
// first: earlier activity does not matter without a connection. A missed extension
// matters more than a connection in use, which may be another process of the application.
func AssessLiveness(s Signs) Liveness {
	switch {
	case s.Conns > 0 && s.Open == 0:
		return Gone
	case s.missed(2) && !s.Absent:
		return Silent
	case s.missed(1):
		return ""
	case s.Usually > 0, s.Open > 0 && s.Idle <= justUsed:
		return Alive
	}
	return ""
}

// Watched is what a monitor that sees each extension knows of a lock.
type Watched struct {
	Extended time.Time     // when the last one was seen; zero: none was
	Usually  time.Duration // between two of them; 0: unknown
}

// AsOf returns the answer with Liveness, Extends, Extended and Usually as they are now,
// and for how long nothing was seen of the holder: since its last extension, since its
// connections closed, or since the answer; −1: nothing ever was. w is nil if nobody has
// watched the lock since then. Without extensions that are seen nobody is called alive for
// longer than [AliveFor], or silent at all.
func (a *Answer) AsOf(now time.Time, w *Watched) (*Answer, time.Duration) {
	b, later := *a, max(0, now.Sub(a.At))
	b.Extended += later
	newer := false
	if w != nil && !w.Extended.IsZero() {
		if newer = w.Extended.After(a.At); newer || a.Extends == 0 {
			b.Extended, b.Extends = max(0, now.Sub(w.Extended)), max(1, a.Extends)
		}
		if b.Usually == 0 {
			b.Usually = w.Usually
		}
	}
	switch {
	case a.Liveness == Gone && !newer:
		return &b, later + a.closed()
	case w != nil && b.Usually > 0:
		b.Liveness = AssessLiveness(Signs{Open: len(a.Conns), Absent: a.Absent(), Extended: b.Extended, Usually: b.Usually})
		return &b, b.Extended
	case newer:
		if b.Liveness = Alive; b.Extended > AliveFor {
			b.Liveness = ""
		}
		return &b, b.Extended
	case a.Liveness == "":
		return &b, -1
	case a.Liveness == Silent && later < justUsed:
		return &b, b.Extended
	case a.Liveness == Silent, later > AliveFor:
		b.Liveness = ""
	}
	return &b, later
}

// Absent reports whether the holder names its connections and none of them is known.
func (a *Answer) Absent() bool { return a.Named && len(a.Conns) == 0 }

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
