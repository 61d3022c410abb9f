package observe

import (
	"fmt"
	"strings"
	"time"

	"redlockctl/monitor"
	"redlockctl/monitor/words"
)

// toldRestart reports the cost of a restart of node i, or of a wipe of its data, in one
// event.
func (w *world) toldRestart(i int, cost monitor.RestartCost, now time.Time) {
	n := w.nodes[i]
	kind, what, level := "restart", "restarted", monitor.LevelAlarm
	if cost.Cause == monitor.LostByWipe {
		kind, what = "data wiped", "data wiped (FLUSHALL, FLUSHDB, SWAPDB or a change of role)"
		if cost.Lost == 0 {
			level = monitor.LevelNotice
		}
	}
	text := costText(cost, now)
	switch d := w.rejoinDelay(); {
	case d == 0:
	case !n.cordoned.IsZero():
		text += " · stays cordoned, since " + words.Moment(n.cordoned, now) + ": it rejoins after redlockctl node uncordon " + n.Name
	case !n.Persistent && (kind == "restart" || cost.Lost > 0):
		cost.Rejoins = now.Add(d)
		n.promised = promise{at: cost.Rejoins, guarded: now}
		text += " · rejoins " + cost.Rejoins.Format("15:04:05")
	}
	e := monitor.NodeEvent(now, level, kind, n.Name, "%s %s: %s", n.Name, what, text)
	e.Cost = &cost
	w.events.add(e)
}

// costText describes the cost of a loss: "12 locks lost a copy, 4 have a bare majority
// now, 3 lost their majority: held to 22:17:43".
func costText(cost monitor.RestartCost, now time.Time) string {
	text, expired := monitor.NoLoss, ""
	if cost.Expired > 0 {
		expired = fmt.Sprintf("%s expired while it did not answer, the last by %s, and may have been lost before that", words.Count(cost.Expired, "copy", "copies"), words.Moment(cost.ExpiredAt, now))
	}
	switch {
	case cost.Lost > 0:
		text = words.Count(cost.Lost, "lock", "locks") + " lost a copy"
	case expired != "":
		text, expired = expired, ""
	}
	if cost.Bare > 0 {
		text += fmt.Sprintf(", %d %s a bare majority now", cost.Bare, map[bool]string{true: "has", false: "have"}[cost.Bare == 1])
	}
	if cost.LostMajority > 0 {
		held := "held to " + words.Moment(cost.HeldUntil, now)
		if cost.HeldUntil.IsZero() {
			held = map[bool]string{true: "held without end", false: "at least one is held without end"}[cost.LostMajority == 1]
		}
		text += fmt.Sprintf(", %d lost %s majority: %s", cost.LostMajority, map[bool]string{true: "its", false: "their"}[cost.LostMajority == 1], held)
	}
	if cost.Unrevoked > 0 {
		text += fmt.Sprintf(", %d lost %s revocation: others are kept out only while nodes are fenced", cost.Unrevoked, map[bool]string{true: "its", false: "their"}[cost.Unrevoked == 1])
	}
	if cost.Others > 0 {
		text += "; " + words.Count(cost.Others, "copy", "copies") + " of other clients than the holders lost"
	}
	if expired != "" {
		text += "; " + expired
	}
	l := cost.Loaded
	var loaded []string
	for _, part := range []struct {
		n    int
		what string
	}{{l.Held, "of held locks"}, {l.LeftOver, "left over"}, {l.Unknown, "of unknown tokens, which may be held"}} {
		if part.n > 0 {
			loaded = append(loaded, fmt.Sprintf("%d %s", part.n, part.what))
		}
	}
	if loaded != nil {
		text += "; loaded from disk: " + strings.Join(loaded, ", ")
	}
	return text
}

// rejoinDelay returns how long guards keep a node fenced after a restart: the greatest
// known D; zero: none is known.
func (w *world) rejoinDelay() (d time.Duration) {
	if guard := w.findings.Guard(); guard != nil {
		d = guard.Delay
	}
	for _, n := range w.nodes {
		for _, g := range n.Guards {
			d = max(d, g.Delay)
		}
	}
	return d
}
