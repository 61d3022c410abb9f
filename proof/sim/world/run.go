package world

import (
	"math/bits"
	"slices"
	"time"

	"redlockctl/proof/sim/mutant"
	"redlockctl/proof/sim/schedule"
	"redlockctl/proof/sim/trace"
	"redlockctl/redlock"
	"redlockctl/restartguard"
)

// Play plays a plan to its end.
func (w *World) Play(p *schedule.Plan, r mutant.Rules) {
	w.plan, w.rules = p, r
	w.opt = redlock.Options{DriftFactor: redlock.DefaultDriftFactor, DriftMargin: redlock.DefaultDriftMargin}
	w.right = restartguard.DefaultDelay(schedule.MaxTTL)
	w.delay = time.Duration(float64(w.right) * r.Delay)
	w.queue.reset()
	w.now, w.Broken, w.exposed, w.unreported = 0, nil, false, false
	w.lastGrant, w.lastNode = 0, 0
	w.grants = [tokens]grant{}
	for i := range p.N {
		w.masters[i].reset(i, p)
	}
	for i := range w.guards {
		w.guards[i].up = false
		if i < p.Guards {
			w.guards[i].reset(i)
		}
	}
	for i := range p.Clients {
		w.clients[i].reset(i, p)
	}
	w.Stats.Schedules++
	w.startView()
	w.announcing = p.Guards > 1 || slices.ContainsFunc(p.Fault[:p.Faults], func(f schedule.Fault) bool {
		return f.Kind == schedule.NewCluster || f.Kind == schedule.Cordon && f.Memory
	})
	if !r.NoGuard {
		for i := range p.Guards {
			w.startGuard(&w.guards[i], p.Guard[i].Start)
		}
	}
	for i := range p.Faults {
		f := &p.Fault[i]
		w.faults[i] = f.Nth
		if f.On == schedule.OnTime {
			w.push(event{at: f.After, kind: evFault, who: uint8(i)})
		}
	}
	for i := range p.Clients {
		w.nextAttempt(&w.clients[i])
	}
	for w.Broken == nil && !w.exposed {
		e, ok := w.pop()
		if !ok || e.at > schedule.Horizon || w.over() {
			return
		}
		w.now = e.at
		w.happen(&e)
	}
	if w.exposed {
		w.Stats.Exposed++
	}
}

// over reports whether all clients have ended, and none relies on a lock.
func (w *World) over() bool {
	for i := range w.plan.Clients {
		if c := &w.clients[i]; c.state != clientDone || c.believes > w.now {
			return false
		}
	}
	return true
}

func (w *World) happen(e *event) {
	switch e.kind {
	case evFault:
		if w.plan.Fault[e.who].On != schedule.OnTime {
			w.lastNode = int(e.node)
		}
		w.strike(&w.plan.Fault[e.who])
	case evUp:
		w.boot(int(e.node), e.incarnation)
	case evExpiry:
		w.expired(e)
	case evCordonOver:
		w.handBack(int(e.node), e.incarnation)
	case evPromoted:
		w.promote(int(e.node), e.incarnation)
	case evTake:
		w.takeFrom(e)
	case evCreep:
		w.creep(int(e.node), e)
	case evGuardUp:
		if g := &w.guards[e.who]; !g.up {
			w.restartGuard(g)
		}
	case evBegin, evAnswer, evTick, evHoldEnd:
		c := &w.clients[e.who]
		if c.paused > w.now {
			e.at = c.paused
			w.push(*e)
			return
		}
		w.clientEvent(c, e)
	case evRequest:
		w.request(e)
	case evNewCluster:
		w.newCluster(e)
	case evLook, evTold, evGuardAlone, evAnnounce, evReload:
		g := &w.guards[e.who]
		switch {
		case g.paused > w.now:
			e.at = g.paused
			w.push(*e)
		case e.kind == evReload:
			w.reload(g, int(e.node))
		case e.kind == evAnnounce:
			w.announce(g, int(e.node), e.incarnation)
		default:
			w.guardEvent(g, e)
		}
	case evViewLook, evViewAsked, evViewTold:
		w.viewEvent(e)
	case evAsk:
		w.asked(e)
	}
}

// strike runs a fault.
func (w *World) strike(f *schedule.Fault) {
	switch f.Kind {
	case schedule.GuardCrash:
		w.crashGuard(&w.guards[f.Who], f.Length, f.Memory)
		return
	case schedule.GuardPause:
		if g := &w.guards[f.Who]; g.up {
			g.paused = max(g.paused, w.now+f.Length)
			w.say("g", int(f.Who), "is suspended for %s", trace.Span(f.Length))
		}
		return
	case schedule.GuardStep:
		w.guards[f.Who].wallStep += f.Length
		return
	case schedule.ClientPause:
		c := &w.clients[f.Who]
		c.paused = max(c.paused, w.now+f.Length)
		w.say("c", int(f.Who), "is suspended for %s", trace.Span(f.Length))
		return
	}
	if f.Kind == schedule.Take {
		w.take(f)
		return
	}
	if f.Kind == schedule.NewCluster {
		w.push(event{at: w.now + 1, kind: evNewCluster, x: w.now + listenFor})
		return
	}
	if f.Kind == schedule.Anew {
		w.viewAnew()
		return
	}
	struck := w.choose(f)
	if f.Kind == schedule.Cut {
		g := &w.guards[f.Who]
		for i := range w.plan.N {
			if struck>>i&1 != 0 {
				g.cut[i] = w.now + f.Length
				w.masters[i].leaves(int(f.Who))
				w.say("g", int(f.Who), "cannot reach %s for %s", nodeNames[i], trace.Span(f.Length))
			}
		}
		return
	}
	if f.Kind == schedule.Blind {
		w.blind(f, struck)
		return
	}
	back := w.now + f.Length
	for i := range w.plan.N {
		if struck>>i&1 == 0 {
			continue
		}
		switch f.Kind {
		case schedule.Crash:
			w.crash(i, back, f.Silent)
			back += f.Stagger
		case schedule.Replace:
			w.replace(i, f)
		case schedule.Flush:
			w.flush(i)
		case schedule.Evict:
			w.evict(i)
		case schedule.Step:
			w.stepClock(i, f.Length)
		case schedule.Creep:
			steps := max(f.Count, 1)
			w.creep(i, &event{tok: steps, x: f.Length / time.Duration(steps), y: max(f.Stagger, ms)})
		case schedule.Role:
			w.demote(i, f.Length)
		case schedule.Restore:
			w.restore(i)
		case schedule.Reset:
			w.resetStats(i)
			w.flush(i)
		case schedule.Cordon:
			w.cordon(i, f.Length, f.Memory)
		}
	}
}

// choose returns the nodes of a fault.
func (w *World) choose(f *schedule.Fault) uint8 {
	all := uint8(1<<w.plan.N - 1)
	switch f.Choice {
	case schedule.OfTrigger:
		return 1 << w.lastNode & all
	case schedule.OfHolders:
		var m uint8
		count := int(f.Count)
		// From a node on that differs from plan to plan.
		for k := range w.plan.N {
			i := (k + int(f.Mask)) % w.plan.N
			if bits.OnesCount8(m) < count && w.lastGrant != 0 && w.masters[i].token == w.lastGrant {
				m |= 1 << i
			}
		}
		return m
	default:
		return f.Mask & all
	}
}
