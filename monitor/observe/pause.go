package observe

import (
	"fmt"
	"time"

	"redlockctl/monitor"
	"redlockctl/monitor/clock"
	"redlockctl/monitor/words"
)

// awake records that this process runs.
func (w *world) awake(now time.Time) {
	w.own.Beat(w.beat().Sub(w.base))
	gap, stopped := w.own.Alive(now.Sub(w.base), clock.OwnGap+w.opt.ProbeEvery)
	if gap > clock.LateGap {
		w.lateAt = now
		for i, n := range w.nodes {
			if n.tells { // for other nodes a full read takes longer than this
				w.table.Missed(i, now)
			}
		}
	}
	if stopped {
		w.table.Stopped(now.Add(-gap), now)
		w.pauseSince(now.Add(-gap))
		w.noteDiscontinuity(clock.Discontinuity{At: now, Gap: gap, Text: fmt.Sprintf("this process was stopped for %s", gap.Round(100*time.Millisecond))})
	}
}

// lookAtOwnClock detects a step of our wall clock.
func (w *world) lookAtOwnClock(now time.Time) {
	w.awake(now)
	if jump, ok := w.own.Check(now.Round(0).Sub(w.base.Round(0)), now.Sub(w.base)); ok {
		w.wall = w.wall.Add(jump)
		if jump > 0 {
			w.pauseSince(w.sureAt)
		}
		w.noteDiscontinuity(clock.Discontinuity{At: now, Jump: jump, Text: fmt.Sprintf("the clock of this machine moved by %s: it was set, or the machine was suspended", words.Signed(jump))})
	}
	if !w.own.Doubted() {
		w.sureAt = now
	}
}

// pausesJoin is how soon after a pause another one is taken for the same: who follows the snapshots
// may not have seen that the first had ended.
const pausesJoin = 2 * time.Second

// pauseSince records that nothing was seen since a time.
func (w *world) pauseSince(since time.Time) {
	if p := &w.pause; p.Since.IsZero() || !p.Until.IsZero() && since.Sub(p.Until) > pausesJoin {
		p.Since = since
	}
	w.pause.Until = time.Time{}
	for _, n := range w.nodes {
		n.reprobed = false
	}
}

// endPause ends the pause once each node has been probed and, if it can be read, read after it.
func (w *world) endPause(now time.Time) {
	if w.pause.Since.IsZero() || !w.pause.Until.IsZero() {
		return
	}
	for i, n := range w.nodes {
		if !n.reprobed || !n.settled() || n.base.Readable() && n.fails == 0 && !w.table.ReadSince(i, w.discontinuity.At) {
			w.readAgain = time.Time{}
			return
		}
	}
	if w.readAgain.IsZero() {
		w.readAgain = now
	}
	if !w.table.Pending() || now.Sub(w.readAgain) > time.Second { // on a busy cluster there is always something to assess
		w.pause.Until, w.readAgain = now, time.Time{}
	}
}

// noteDiscontinuity drops earlier measurements. The locks are read again: expiries
// computed by a suspended machine are too late. Until then, progress is shown as at the
// start.
func (w *world) noteDiscontinuity(t clock.Discontinuity) {
	w.hasten = true
	w.discontinuity = t
	w.findings.Discontinued(t)
	for i, n := range w.nodes {
		n.clock = clock.Clock{}
		n.RTTs, n.tried, n.Read = nil, false, 0
		if t.Jump != 0 { // our clock may have stood still
			n.rejoinsAt = time.Time{}
		}
		w.steps[i] = step{}
		known := w.table.ReadWhole(i)
		if w.table.Doubt(i); known {
			w.table.Missed(i, t.At)
		}
	}
	w.events.add(monitor.NodeEvent(t.At, monitor.LevelAlarm, "own clock", "", "%s", t.Text))
}

// outdated reports whether a command sent at this time is from before the last
// discontinuity of this process and must be repeated.
func (w *world) outdated(sent time.Time) bool {
	return sent.Before(w.discontinuity.At)
}
