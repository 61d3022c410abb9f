package world

import (
	"time"

	"redlockctl/internal/sim/mutant"
	"redlockctl/internal/sim/trace"
)

// mayRejoin is the witness of a lift.
func (w *World) mayRejoin(g *guard, m *master, node int, e *event) {
	if m.held() && e.y >= m.heldSince {
		w.breach(mutant.CordonRemoved, "g%d opens %s, which it has seen cordoned by an operator", g.index+1, nodeName(node))
		return
	}
	right := w.right
	if w.rules.Early.On {
		right = w.earlyAfter()
	}
	since, least := w.now-m.lostAt, g.clock.lasts(right)
	long := g.clock.lasts(w.right)
	if e.tok != 0 && m.refuses() && (m.fresh != 0 && w.now-m.forgotAt < long || m.lostAt > 0 && since < long) {
		w.Stats.Unheard++
		m.unguarded |= m.fresh
		w.say("g", g.index, "could not have heard of a longer D")
		return
	}
	if e.tok == 0 && m.refuses() {
		m.unguarded = 0
	}
	if m.lostAt > 0 && m.refuses() && since < least {
		w.breach(mutant.EarlyRejoin, "g%d opens %s %s after its last crash, and D is %s", g.index+1, nodeName(node), trace.Span(since), trace.Span(right))
	}
}

// reckon is the witness of what a guard was told: from when on a master that
// is open after a loss has no excuse any more.
func (w *World) reckon(g *guard, x *watch) {
	if x.knows && x.inLosses != x.losses {
		x.telling = true
	}
	if x.knows && w.now-x.readAt > w.delayOf(g)*99/100 {
		x.away = true
	}
	x.knows, x.losses, x.readAt = true, x.inLosses, w.now
	w.reckonClock(x)
	if !x.inServing || x.inBlind { // one that it may not close is its to tell of, and no more
		x.telling = false
	}
}

// reckonClock: what a clock gains by steps shows in any two readings in a row
// that were answered quickly, if one before the steps was too, and if it is more
// than what may hide behind the error of these readings and the rates of clocks: a
// fast guard gives a slow master that much.
func (w *World) reckonClock(x *watch) {
	const quick, large, hidden = 50 * ms, 200 * ms, 1.65e-2
	switch {
	case w.now-x.asked > quick:
		x.ahead = 0
		return
	case x.inIncarnation != x.offsetIncarnation:
		x.offsetIncarnation, x.gained, x.ahead = x.inIncarnation, 0, 0
	default:
		x.gained += x.inOffset - x.offset - time.Duration(hidden*float64(w.now-x.offsetAt))
		if x.gained = max(x.gained, 0); x.gained < large {
			x.ahead = 0
		} else if x.ahead++; x.ahead == 2 {
			x.gained, x.ahead, x.telling = 0, 0, true
		}
	}
	x.offset, x.offsetAt = x.inOffset, w.now
}

// inTime reports whether no guard could have closed a node yet.
func (w *World) inTime(node int) bool {
	for i := range w.plan.Guards {
		if w.now > w.guards[i].watches[node].graceUntil {
			return false
		}
	}
	return true
}
