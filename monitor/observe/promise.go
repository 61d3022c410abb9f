package observe

import (
	"time"

	"redlockctl/monitor"
	"redlockctl/monitor/words"
)

// promise is when a node rejoins, as the event of its restart says; the zero value: none says it. An
// event corrects it, because the history goes on showing the first one.
type promise struct {
	at      time.Time
	guarded time.Time // when a guard was last seen there, or could not be seen
	fenced  bool      // it was seen fenced since
}

const (
	// rejoinSlack is how much later than promised a node may rejoin.
	rejoinSlack = 5 * time.Second
	// guardGone is how long no guard must have been seen: one may be starting again.
	guardGone = 5 * time.Second
)

// correctPromises emits an event for each node that does not rejoin at the promised time.
func (w *world) correctPromises(now time.Time) {
	for _, n := range w.nodes {
		p := &n.promised
		if p.at.IsZero() {
			continue
		}
		p.fenced = p.fenced || n.State == monitor.NodeFenced
		switch {
		case n.State == monitor.NodeServing && !p.fenced && p.at.After(now): // its guard is about to fence it
			continue
		case n.State == monitor.NodeServing, n.State == monitor.NodeCordoned:
			*p = promise{}
			continue
		case !w.discontinuity.At.IsZero() && now.Sub(w.discontinuity.At) < rejoinSlack: // it may have rejoined meanwhile
			p.guarded = now
			continue
		}
		if n.State != monitor.NodeFenced || !n.GuardsKnown || len(n.Guards) > 0 {
			p.guarded = now
		}
		if at, known := n.mayRejoin(now, now.Sub(w.base)); known && n.State == monitor.NodeFenced && at.Sub(p.at) > rejoinSlack {
			w.events.add(monitor.NodeEvent(now, monitor.LevelNotice, "rejoin late", n.Name, "%s rejoins %s, not %s: a guard has seen a later loss, began to watch it later, or has a longer D",
				n.Name, words.Moment(at, now), words.Moment(p.at, now)))
			p.at = at
		}
		why := ""
		switch late := now.Sub(p.at) > rejoinSlack; {
		case now.Sub(p.guarded) > guardGone:
			why = "no guard is seen there any more; it stays fenced until one is started"
		case !late:
			continue
		case n.State != monitor.NodeFenced:
			why = "it is " + n.State.String()
		case !n.GuardsKnown:
			why = "guards cannot be seen from here"
		default:
			why = monitor.GuardName(n.Guards[0]) + " does not let it: redlockctl guard status on its host says what it waits for"
		}
		w.events.add(monitor.NodeEvent(now, monitor.LevelAlarm, "rejoin late", n.Name, "%s does not rejoin %s as expected: %s", n.Name, words.Moment(p.at, now), why))
		*p = promise{}
	}
}

// mayRejoin is [monitor.Node.MayRejoin]; at is the time since the monitor's start.
func (w *watch) mayRejoin(now time.Time, at time.Duration) (from time.Time, known bool) {
	n := monitor.Node{Guards: w.Guards, Offset: w.clock.Estimate(at)}
	return n.MayRejoin(now)
}
