package observe

import (
	"slices"
	"time"

	"redlockctl/monitor"
	"redlockctl/monitor/table"
)

// loading reports whether nodes are still being read for the first view.
func (w *world) loading() bool {
	return !w.done && slices.ContainsFunc(w.nodes, func(n *watch) bool { return !n.settled() })
}

// settle ends the first view when it is complete. It reports whether it did so now.
func (w *world) settle(now time.Time) bool {
	if w.done || !w.allSettled(now) {
		return false
	}
	w.done, w.settledAt = true, now
	w.table.Settle(now)
	return true
}

// seedMost is how many locks the first screen may show.
const seedMost = 200

// lateLock is how long after the first view a state that needed time to settle still
// belongs to it, if the machine is slow.
const lateLock = time.Second

// undecided reports whether something in the first view still needs time to settle: a
// minority that may be an attempt, a bad lock state that may pass, a danger that must
// last for a while; with [Options.Warnings] a warning too. now is the time of the last snapshot.
func (w *world) undecided(now time.Time) bool {
	until, least := w.settledAt.Add(w.table.Attempt+lateLock), monitor.SeverityDanger
	if w.opt.Warnings {
		least = monitor.SeverityWarning
	}
	return w.unassessed(now) || !w.forcedKnown || w.unproven || w.asking || slices.ContainsFunc(w.nodes, (*watch).perhapsEarly) || w.findings.Undecided(now, until, least)
}

// unassessed is undecided for the states of locks only.
func (w *world) unassessed(now time.Time) bool {
	t := w.table
	next := t.Next()
	return !w.done || !w.recalled || t.Pending() || !next.IsZero() && !next.After(now) || w.justStarted() && now.Before(w.settledAt.Add(table.HearTime)) ||
		t.Counts()[monitor.LockPartial] > 0 && now.Before(w.settledAt.Add(t.Attempt+table.HearTime+lateLock/4))
}

// justStarted reports whether a node started a moment ago: a guard may soon report its
// losses.
func (w *world) justStarted() bool {
	return slices.ContainsFunc(w.nodes, func(n *watch) bool { return n.base.Readable() && n.RunID != "" && n.Uptime <= time.Second })
}

// unconfirmed reports whether the nodes have yet to confirm that nothing has changed.
func (w *world) unconfirmed() bool {
	return w.table.Unconfirmed() || !w.done && !w.second.IsZero()
}

// allSettled reports whether the first view is complete: each node has been probed and,
// if readable, read once, and once more if the first reads do not agree.
func (w *world) allSettled(now time.Time) bool {
	for i, n := range w.nodes {
		again := !w.second.IsZero() && n.base.Readable() && n.fails == 0 && !w.table.ReadSince(i, w.second)
		if !n.settled() || again {
			return false
		}
	}
	// With many locks, leave the rest to the ticks: the goroutine that reports a node
	// waits for this.
	if w.table.Pending() && (w.table.Work(now, table.Slice/10) || w.table.Pending()) {
		return false
	}
	if w.second.IsZero() && w.table.Doubtful() {
		w.second, w.hasten = now, true
		return false
	}
	return true
}
