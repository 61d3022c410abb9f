package wire

import (
	"time"

	"redlockctl/monitor/table"
	"redlockctl/server/serverinfo"
)

const (
	// BusyOps is how many commands of others in a second make a node one that has
	// clients at work; with fewer than calmOps it has none any more. Probes, ours too,
	// are some 60 each.
	BusyOps = 200
	calmOps = 150
	// countEvery is how often a reader counts what others do.
	countEvery = 250 * time.Millisecond
)

// spent counts what we had a server do: the commands that we sent, and the calls that
// it counts for them, with those that our scripts made.
type spent struct{ commands, calls int64 }

func (s *spent) sent(n int64) { s.commands, s.calls = s.commands+n, s.calls+n }

// script counts one call of the script and what it did for these rows. It reports whether the keys
// are mixed, as the script knew before or found out.
func (s *spent) script(rows []table.Row, mixed bool) bool {
	s.sent(1)
	for i := range rows {
		s.calls += callsOfRow(&rows[i])
		switch typ := rows[i].Type; {
		case mixed || typ == "none":
		case typ == "string":
			s.calls-- // no TYPE
		default:
			s.calls++ // it was read in vain
			mixed = true
		}
	}
	return mixed
}

// callsOfRow is how many commands the script calls for a row of mixed keys.
func callsOfRow(r *table.Row) int64 {
	switch r.Type {
	case "none":
		return 1
	case "string":
		if r.Len >= table.PrefixLen {
			return 4
		}
	case "hash", "zset":
		switch {
		case r.Prefix != "":
			return 5
		case r.Len <= 8:
			return 4 // too large to name its fields
		}
	}
	return 3
}

// load is what a server does for others than us: the commands that it counts, without
// those that we know to be ours. All our reads of a node travel on one connection, and
// so does the question for the number: it is answered when all before it was done.
type load struct {
	at    time.Time // of the last number; zero: there was none
	total int64     // of all commands
	ours  spent     // by then
	over  int       // numbers in a row that were those of a busy node
	Busy  bool
	mute  bool // the server does not say
}

// due reports whether it is time to ask again.
func (l *load) due(now time.Time) bool { return !l.mute && now.Sub(l.at) >= countEvery }

// Begin is the beginning of a full read: where the last number is an old one, what the
// server says of itself counts until there are others. It knows the last two seconds,
// our own reads with them.
func (l *load) Begin(busy bool, now time.Time) {
	if now.Sub(l.at) >= 8*countEvery {
		*l = load{Busy: busy, mute: l.mute}
	}
}

// saw takes in how many commands the server had processed when we had spent so much;
// −1: it does not say, and what it said of itself stays.
func (l *load) saw(total int64, ours spent, now time.Time) {
	if total < 0 {
		l.mute = true
		return
	}
	since, was := now.Sub(l.at), *l
	l.at, l.total, l.ours = now, total, ours
	if was.at.IsZero() || since <= 0 || total < was.total {
		return
	}
	all, calls := total-was.total, ours.calls-was.ours.calls
	others := all - calls
	if others < -calls/10 { // it does not count what scripts call
		others = all - (ours.commands - was.ours.commands)
	}
	perSecond := float64(max(0, others)) / since.Seconds()
	switch {
	case perSecond >= BusyOps:
		// Twice in a row: what a probe asks for at once, each second, is no load.
		if l.over++; l.over >= 2 {
			l.Busy = true
		}
	case perSecond < calmOps:
		l.over, l.Busy = 0, false
	default:
		l.over = 0
	}
}

// commandsOf is how many commands a server has processed, by INFO stats; −1: it does
// not say.
func commandsOf(info string) int64 {
	if n, ok := serverinfo.Number(info, "total_commands_processed"); ok {
		return n
	}
	return -1
}
