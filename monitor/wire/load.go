package wire

import (
	"time"

	"redlockctl/monitor/table"
	"redlockctl/server/serverinfo"
)

const (
	// BusyOps is the number of other clients' commands per second from which a node is
	// busy; below calmOps it no longer is. Each probe, ours too, adds about 60.
	BusyOps = 200
	calmOps = 150
	// countEvery is how often a reader reads the command counter.
	countEvery = 250 * time.Millisecond
)

// spent counts our own load on a server: the commands that we sent, and the calls that it
// counts for them, including those of our scripts.
type spent struct{ commands, calls int64 }

func (s *spent) sent(n int64) { s.commands, s.calls = s.commands+n, s.calls+n }

// script counts one call of the script and its calls for these rows. It reports whether
// there are keys that are not strings, as the script knew or found out.
func (s *spent) script(rows []table.Row, mixed bool) bool {
	s.sent(1)
	for i := range rows {
		s.calls += callsOfRow(&rows[i])
		switch typ := rows[i].Type; {
		case mixed || typ == "none":
		case typ == "string":
			s.calls-- // no TYPE
		default:
			s.calls++ // it was read for nothing
			mixed = true
		}
	}
	return mixed
}

// callsOfRow returns how many commands the script calls for a row when keys are mixed.
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
			return 4 // too large to list its fields
		}
	}
	return 3
}

// load measures the load of other clients on a server: the commands that it counts minus
// our own. All our reads of a node use one connection, and so does the query for the
// counter, which is answered after all earlier reads.
type load struct {
	at    time.Time // time of the last value; zero: none
	total int64     // of all commands
	ours  spent     // at that time
	over  int       // busy values in a row
	Busy  bool
	mute  bool // the server does not report it
}

// due reports whether it is time to read the counter again.
func (l *load) due(now time.Time) bool { return !l.mute && now.Sub(l.at) >= countEvery }

// Begin starts a full read: if the last value is old, the server's own rate counts until
// there are new values. That rate covers the last two seconds, including our own reads.
func (l *load) Begin(busy bool, now time.Time) {
	if now.Sub(l.at) >= 8*countEvery {
		*l = load{Busy: busy, mute: l.mute}
	}
}

// saw records the number of commands that the server had processed when ours were as
// given; −1: the server does not report it, and its own rate stays.
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
	if others < -calls/10 { // it does not count calls from scripts
		others = all - (ours.commands - was.ours.commands)
	}
	perSecond := float64(max(0, others)) / since.Seconds()
	switch {
	case perSecond >= BusyOps:
		// Twice in a row: a probe's commands, once a second, are not a load.
		if l.over++; l.over >= 2 {
			l.Busy = true
		}
	case perSecond < calmOps:
		l.over, l.Busy = 0, false
	default:
		l.over = 0
	}
}

// commandsOf returns how many commands a server has processed, from INFO stats; −1: it
// does not say.
func commandsOf(info string) int64 {
	if n, ok := serverinfo.Number(info, "total_commands_processed"); ok {
		return n
	}
	return -1
}
