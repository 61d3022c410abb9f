package record

import (
	"time"

	"redlockctl/monitor"
)

// known is what is known of an open grant from a time on: its end, and how often it was
// extended so far. Before it begins nothing of it is known, and while it is not extended
// one row says it all.
type known struct {
	at, until  time.Time
	extensions int
}

// know records another end of an open grant from a time on, or another number of its
// extensions.
func (b *batch) know(one *grant, at, until time.Time, extensions int) {
	extensions = max(extensions, one.extensions)
	if extensions == one.extensions && until.Equal(one.until) {
		return
	}
	at = b.grants.after(at)
	if len(one.knew) == 0 && !one.rows {
		one.knew = append(one.knew, known{one.began, one.until, one.extensions})
	}
	one.knew = append(one.knew, known{at, until, extensions})
	if extensions > one.extensions {
		one.extended = at
	}
	one.until, one.extensions = until, extensions
	b.grants.change(one)
}

// after returns a time, moved out of the time that is already recorded: what was answered
// about that must not change.
func (g *grants) after(t time.Time) time.Time { return after(t, g.seen) }

func after(t, seen time.Time) time.Time {
	if first := seen.Add(time.Millisecond); !seen.IsZero() && t.Before(first) {
		return first
	}
	return t
}

// writeKnown writes what became known of a grant that has a row.
func (b *batch) writeKnown(one *grant) {
	for i, k := range one.knew {
		how := `INSERT OR REPLACE`
		if i == 0 && !one.rows {
			how = `INSERT OR IGNORE` // it may have rows of a time when it was not remembered
		}
		b.exec(how+` INTO ends VALUES (?, ?, ?, ?)`, one.id, millis(k.at), null(k.until), k.extensions)
	}
	one.rows, one.knew = one.rows || len(one.knew) > 0, nil
}

// extension is another end of a grant that a snapshot shows: by an extension, or because
// its holder may rely on it for longer than its majority lasts.
type extension struct {
	token string
	known
}

// extensions collects the extensions between two writes, so that the time of each is
// known: of most of them there is no event.
type extensions struct {
	version uint64 // of the last snapshot
	seen    map[string][]extension
	count   int
}

// mostExtensions limits the extensions between two writes whose times are recorded; the
// others are only counted.
const mostExtensions = 10_000

// collect remembers what a snapshot shows of the locks that changed: extensions, and since
// when a lock is what it is.
func (w *writer) collect(from Source, s *monitor.Snapshot) {
	keys, ok := from.ChangedSince(w.extensions.version)
	if w.extensions.version = s.Version; !ok {
		return
	}
	for _, key := range keys {
		l := s.Locks.Get(key)
		w.looks.note(key, l, s.At)
		if l != nil {
			w.extensions.note(key, l, s)
		}
	}
}

// note remembers an extension that a lock shows.
func (x *extensions) note(key string, l *monitor.Lock, s *monitor.Snapshot) {
	one := extension{l.Holder.Raw(), known{l.ExtendedAt(), l.HeldUntil(), int(l.Extensions)}}
	if beyond := l.Relied != 0; beyond {
		one.at = s.At
	} else if l.Extensions == 0 || one.until.IsZero() && !granted(l, s) { // while it is released it shows no end, but has a TTL
		return
	}
	was := x.seen[key]
	if n := len(was); x.count >= mostExtensions || n > 0 && was[n-1].token == one.token && was[n-1].extensions == one.extensions && alike(was[n-1].until, one.until) {
		return
	}
	x.seen[key] = append(was, one)
	x.count++
}

// alike reports whether two ends differ by no more than the jitter of a read.
func alike(a, b time.Time) bool { return a.Sub(b).Abs() <= extendedBy }

// count is how often a monitor saw a grant extended, since when it saw it, and its end.
type count struct {
	n                      int
	token                  [8]byte
	since, extended, until time.Time
}

// recount has each open grant count on from what the last recorder counted: the monitor of this
// one may have run beside it, and counted the same extensions.
func (b *batch) recount(s *monitor.Snapshot, events []monitor.Event) {
	told := map[string]count{}
	for _, e := range events {
		c := count{e.Times, shortSHA(e.Token.Raw()), s.Settled, e.Extended, e.Until}
		switch was, known := told[e.Key.Raw()]; {
		case e.Key.Empty() || e.Token.Empty():
			continue
		case e.Kind == "acquired":
			c.since = e.At
		case known && was.token == c.token:
			c.since = was.since
		}
		told[e.Key.Raw()] = c
	}
	both := map[string]count{}
	b.each(func(one *grant) {
		if one.extensions == 0 {
			return
		}
		c := told[one.lock]
		if l := s.Locks.Get(one.lock); l != nil && shortSHA(l.Holder.Raw()) == one.token {
			c = count{int(l.Extensions), one.token, l.Since(), l.ExtendedAt(), l.HeldUntil()}
		}
		if c.n > 0 && c.token == one.token {
			both[one.lock] = c
		}
	}, openGrants, b.cluster)
	for lock, c := range both {
		if one := b.openGrant(lock); one != nil {
			one.before = one.extensions - min(one.extensions, c.before(one))
			b.grants.change(one)
		}
	}
}

// before returns how many of the extensions a monitor had counted when the last recorder ended, which
// knew the grant as it is.
func (c count) before(one *grant) int {
	further := c.until.Sub(one.until)
	switch {
	case further <= extendedBy:
		return c.n
	case c.since.Sub(one.began) <= stateDelay: // it saw the whole grant, as that recorder did
		return c.n - 1
	}
	every := max(c.extended.Sub(c.since)/time.Duration(c.n), 1) // as holders do
	return c.n - min(max(int((further+every/2)/every), 1), c.n)
}

// takeExtensions records the collected extensions of an open grant.
func (b *batch) takeExtensions(one *grant) {
	for _, x := range b.extensions.seen[one.lock] {
		if n := one.before + x.extensions; shortSHA(x.token) == one.token && (n > one.extensions || n == one.extensions && !alike(x.until, one.until)) {
			b.know(one, x.at, x.until, n)
		}
	}
}

// takeAllExtensions records the collected extensions of all open grants.
func (b *batch) takeAllExtensions() {
	for key := range b.extensions.seen {
		if one := b.openGrant(key); one != nil {
			b.takeExtensions(one)
		}
	}
}
