package monitor

import (
	"slices"
	"strings"
	"time"

	"redlockctl/monitor/words"
	"redlockctl/server/safetext"
)

// Forced is a force-release whose holder was not told, and may rely on the lock.
type Forced struct {
	Action
	Lock  string    // the name of the lock
	Until time.Time // until when its holder may rely on it; zero: without end
	// Took reports whether copies with this token were removed.
	Took func(token string) bool
}

// Stands reports whether the former holder may rely on the lock while another client has it; l is
// the lock now, nil: nobody has a copy.
func (f Forced) Stands(l *Lock, now time.Time) bool {
	switch {
	case l == nil, !l.ReliedOn(), l.Contested, !f.Until.IsZero() && !f.Until.After(now):
		return false
	}
	holder := l.Holder.Raw() // of one that is cut it is not known whether it was taken
	return holder != "" && !strings.HasSuffix(holder, TokenCut) && !f.Took(holder)
}

// Names reports whether l is the lock, by one of its keys. A log has a name that is not UTF-8 escaped.
func (f Forced) Names(l *Lock) bool {
	is := func(key safetext.Text) bool { return f.Lock == key.Raw() || f.Lock == key.String() }
	return is(l.Key) || slices.ContainsFunc(l.Keys(), is)
}

// Told says what happened: "force-released at 12:03:01 by ops@host: host burnt; its holder may rely on
// it until 12:03:19".
func (f Forced) Told(now time.Time) string { return f.ToldAs(MayRely(f.Until, now), now) }

// ToldAs is [Forced.Told] where something else says how the holder relies on the lock.
func (a Action) ToldAs(relies string, now time.Time) string {
	return a.When(now) + "; its holder " + relies
}

// When says when and by whom a lock was force-released: "force-released at 12:03:01 by ops@host: host burnt".
func (a Action) When(now time.Time) string {
	text := "force-released at " + words.Moment(a.At.Local(), now)
	if a.Actor != "" {
		text += a.By()
	}
	return text
}

// MayRely says until when a client may rely on a lock; a zero time: without end.
func MayRely(until, now time.Time) string {
	if until.IsZero() {
		return "may rely on it without end"
	}
	return "may rely on it until " + words.Moment(until.Local(), now)
}
