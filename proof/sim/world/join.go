package world

import (
	"errors"
	"time"

	"redlockctl/proof/sim/schedule"
	"redlockctl/restartguard"
	"redlockctl/server/announce"
	"redlockctl/server/minreplicas"
)

// listenFor is how long the product's operator asks whether a cluster is new.
const (
	listenFor   = 3 * time.Second
	listenEvery = 500 * ms
)

// uptime is the uptime in a master's INFO.
func (w *World) uptime(m *master) time.Duration {
	return (m.clock.at(w.now) - m.booted).Truncate(time.Second)
}

// replace ends a master for good. Another server comes to its place, and each guard
// learns of it when its configuration is read again: until then it asks at the old address.
func (w *World) replace(i int, f *schedule.Fault) {
	m := &w.masters[i]
	if !m.up {
		return
	}
	w.unreported, w.view.claim = true, claim{}
	back := w.now + max(f.Length, 1)
	w.crash(i, back, f.Silent)
	m.replaced, m.unfenced = true, !f.Memory
	for k := range w.plan.Guards {
		g := &w.guards[k]
		at := back + time.Duration(k+1)*f.Stagger + 1
		g.cut[i] = max(g.cut[i], at)
		w.push(event{at: at, kind: evReload, who: uint8(k), node: uint8(i)})
	}
}

// bootReplacement makes a master that starts another server, which has run elsewhere for long.
func (w *World) bootReplacement(m *master) {
	if !m.replaced {
		return
	}
	m.replaced = false
	m.booted = m.clock.at(w.now) - time.Hour
	if m.unfenced {
		m.minReplicas = minreplicas.FenceNone
	}
}

// reload makes a guard read its configuration, in which another server has replaced a
// master.
func (w *World) reload(g *guard, node int) {
	x := &g.watches[node]
	if !g.up {
		x.replaced = true
		return
	}
	w.hangUp(g, node, askLook)
	x.asking = 0
	w.joins(g, node)
	w.pauseWatch(g, node, w.shortly(g))
}

// joins makes a guard know only that a master joins a cluster in use.
func (w *World) joins(g *guard, node int) {
	x := &g.watches[node]
	inUse := false
	for i := range w.plan.N {
		inUse = inUse || g.watches[i].state.Basis.RunID != ""
	}
	x.state, x.kept, x.counter, x.replaced = restartguard.State{}, clockMemory{}, 0, false
	x.state.Basis.Joins = inUse && !w.rules.Breaks("joins-adopted")
	w.say("g", g.index, "reads a configuration in which another server is %s", nodeNames[node])
}

// newCluster asks, as the product's operator does, whether the masters were never in use,
// and if so lets them serve.
func (w *World) newCluster(e *event) {
	over := w.now >= e.x
	for i := range w.plan.N {
		m := &w.masters[i]
		why := errors.New("it does not answer")
		if m.up {
			f := w.firstUse(i)
			_, right := f.MayVoteFrom(time.Time{}.Add(w.now), w.delay)
			why = w.twistFirstUse(f)
			if right != nil && (over || !errors.Is(right, restartguard.ErrNoGuard)) {
				e.tok = 1 // who passes it is wrong
			}
		}
		if why != nil && (over || !errors.Is(why, restartguard.ErrNoGuard)) {
			w.say("o", 0, "does not take the masters for a new cluster: %s", why)
			return
		}
	}
	if !over {
		e.at = w.now + listenEvery
		w.push(*e)
		return
	}
	excused := e.tok == 0 && !w.knownInUse()
	if excused {
		w.unreported, w.view.claim = true, claim{}
	}
	for i := range w.plan.N {
		m := &w.masters[i]
		if excused {
			m.unguarded, m.unheardAt = m.unguarded|m.fresh, w.now
		}
		w.say("n", i, "is let serve as a master of a new cluster")
		w.setFence(m, minreplicas.FenceNone)
		w.emit(schedule.OnRemoval, i)
	}
	w.free()
}

// firstUse returns what can be learned from a master, see [restartguard.AskFirstUse].
func (w *World) firstUse(node int) restartguard.FirstUse {
	m := &w.masters[node]
	f := restartguard.FirstUse{Node: nodeNames[node], Seen: restartguard.Observation{
		Role: "master", Params: minreplicas.Params{MinReplicas: m.minReplicas, MaxLag: m.maxLag}, Blind: m.blind, Configured: m.configured,
	}}
	if m.slave {
		f.Seen.Role = "slave"
	}
	if m.acl {
		f.Seen.Params.MaxLag = 1
	}
	if m.live(w.now) {
		f.Keys = 1
	}
	for i := range w.plan.Guards {
		if g := &w.guards[i]; m.announced>>i&1 != 0 {
			f.Guards = append(f.Guards, announce.Guard{ID: guardNames[i], Delay: w.delayOf(g), Use: useOf(g.used)})
		}
	}
	return f
}

func useOf(used bool) announce.Use {
	if used {
		return announce.UseSeen
	}
	return announce.UseNone
}

// twistFirstUse is why an operator refuses, who may ask wrongly.
func (w *World) twistFirstUse(f restartguard.FirstUse) error {
	for k := range f.Guards {
		if g := &w.guards[0]; w.rules.Breaks("new-cluster-unasked") || g.amnesic {
			f.Guards[k].Use = announce.UseNone
		}
	}
	_, why := f.MayVoteFrom(time.Time{}.Add(w.now), w.delay)
	if errors.Is(why, restartguard.ErrNoGuard) && w.rules.Breaks("new-cluster-unwatched") {
		return nil
	}
	return why
}

// knownInUse is the witness of that: a guard must have said that the cluster was in use which
// ran, and could reach a master well, since before that master was back.
func (w *World) knownInUse() bool {
	for k := range w.plan.Guards {
		g := &w.guards[k]
		if !g.up || !g.used || !w.quick(k) {
			continue
		}
		for i := range w.plan.N {
			if m := &w.masters[i]; max(g.since, g.cut[i], g.paused) < m.upAt && w.now > m.upAt+listenFor {
				return true
			}
		}
	}
	return false
}

// quick reports whether all that a guard sends is answered in time.
func (w *World) quick(k int) bool {
	for _, t := range w.plan.Guard[k].Trips {
		if t.Out+t.Back > guardTimeout/2 {
			return false
		}
	}
	return w.plan.Guard[k].RemovalLate == 0
}
