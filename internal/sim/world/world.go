package world

import (
	"fmt"
	"math/bits"
	"strings"
	"time"

	"redlockctl/internal/announce"
	"redlockctl/internal/sim/mutant"
	"redlockctl/internal/sim/schedule"
	"redlockctl/internal/sim/trace"
	"redlockctl/redlock"
	"redlockctl/restartguard"
)

const ms = time.Millisecond

// World is one schedule being played: masters, clients, guards, and the
// witness. It is used again for the next one, so that nothing is allocated but
// by the product's own code.
type World struct {
	plan  *schedule.Plan
	rules mutant.Rules
	opt   redlock.Options
	delay time.Duration // D, as the guards have it, but see delayOf
	right time.Duration // D, as it must be

	queue
	now     time.Duration
	masters [schedule.MaxNodes]master
	clients [schedule.MaxClients]client
	guards  [schedule.MaxGuards]guard
	faults  [schedule.MaxFaults]uint8 // how many triggers each still waits for

	grants [tokens]grant
	// lastGrant and lastNode are what a trigger was about.
	lastGrant uint8
	lastNode  int

	Stats   Stats
	Broken  *Breach    // what the witness saw
	exposed bool       // two believers, for want of a boot fence
	Trace   *trace.Log // nil: nobody reads

	others [schedule.MaxNodes]restartguard.Other // room for one inquest
	policy restartguard.Policy                   // and for one step
	seen   restartguard.Observation
	voices [schedule.MaxGuards]announce.Guard // and for what one look hears

	// The run_ids of all lives of all masters, made once.
	runIDs [schedule.MaxNodes][incarnations]string
}

// lives are more than a master has in any schedule.
const incarnations = 64

func New() *World {
	w := new(World)
	for n := range w.runIDs {
		for l := range w.runIDs[n] {
			w.runIDs[n][l] = fmt.Sprintf("%c%02drun", 'a'+n, l)
		}
	}
	return w
}

// Stats is what happened in schedules, so that one can see that it was not
// nothing.
type Stats struct {
	Schedules    int64 `json:"schedules"`
	Grants       int64 `json:"grants"`
	Extensions   int64 `json:"extensions"`
	Crashes      int64 `json:"crashes"`
	LostVotes    int64 `json:"lost_votes"`
	Removals     int64 `json:"lifts"`
	Repairs      int64 `json:"repairs"`
	GuardCrashes int64 `json:"guard_crashes"`
	// Early is how often a guard found that a master may rejoin before D.
	Early int64 `json:"early_rejoins,omitempty"`
	// Exposed are the schedules in which a master that had no boot fence, or was
	// flushed, gave a vote a second time before any guard could close it, or after a
	// lift of Unheard. No guard can prevent that; it can only show for how long the
	// master was open.
	Exposed int64 `json:"exposed"`
	// Unheard are the lifts before the longest D of all guards, by one with a shorter D
	// that had no chance to hear of it.
	Unheard int64 `json:"unheard,omitempty"`
}

// Add counts the schedules of another in.
func (s *Stats) Add(o Stats) {
	s.Schedules += o.Schedules
	s.Grants += o.Grants
	s.Extensions += o.Extensions
	s.Crashes += o.Crashes
	s.LostVotes += o.LostVotes
	s.Removals += o.Removals
	s.Repairs += o.Repairs
	s.GuardCrashes += o.GuardCrashes
	s.Early += o.Early
	s.Exposed += o.Exposed
	s.Unheard += o.Unheard
}

// Play plays a plan to its end.
func (w *World) Play(p *schedule.Plan, r mutant.Rules) {
	w.plan, w.rules = p, r
	w.opt = redlock.Options{DriftFactor: redlock.DefaultDriftFactor, DriftMargin: redlock.DefaultDriftMargin}
	w.right = restartguard.DefaultDelay(schedule.MaxTTL)
	w.delay = time.Duration(float64(w.right) * r.Delay)
	w.queue.reset()
	w.now, w.Broken, w.exposed = 0, nil, false
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
		w.next(&w.clients[i])
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

// over reports whether no client does or believes anything any more.
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
	case evLook, evTold, evGuardAlone:
		g := &w.guards[e.who]
		if g.paused > w.now {
			e.at = g.paused
			w.push(*e)
			return
		}
		w.guardEvent(g, e)
	case evAnnounce:
		g := &w.guards[e.who]
		if g.paused > w.now {
			e.at = g.paused
			w.push(*e)
			return
		}
		w.announce(g, int(e.node), e.incarnation)
	case evAsk:
		w.asked(e)
	}
}

// emit tells of something that clients and faults may wait for.
func (w *World) emit(on schedule.Trigger, node int) {
	w.lastNode = node
	for i := range w.plan.Faults {
		f := &w.plan.Fault[i]
		if f.On != on || w.faults[i] == 0 {
			continue
		}
		if w.faults[i]--; w.faults[i] == 0 {
			// The node travels with it: another trigger may come in between.
			w.push(event{at: w.now + f.After, kind: evFault, who: uint8(i), node: uint8(node)})
		}
	}
	for i := range w.plan.Clients {
		if c := &w.clients[i]; c.state == clientWaiting && c.waits == on {
			w.beginSoon(c)
		}
	}
}

// free tells clients that wait for it that a quorum would accept a SET.
func (w *World) free() {
	open := 0
	for i := range w.plan.N {
		m := &w.masters[i]
		if m.up && !m.refuses() && !m.live(w.now) {
			open++
		}
	}
	if open >= redlock.Quorum(w.plan.N) {
		w.emit(schedule.OnFree, w.lastNode)
	}
}

// strike carries out a fault.
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
	struck := w.choose(f)
	if f.Kind == schedule.Cut {
		g := &w.guards[f.Who]
		for i := range w.plan.N {
			if struck>>i&1 != 0 {
				g.cut[i] = w.now + f.Length
				w.masters[i].announced &^= 1 << f.Who
				w.say("g", int(f.Who), "cannot reach %s for %s", nodeName(i), trace.Span(f.Length))
			}
		}
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
			w.cordon(i, f.Length)
		}
	}
}

// choose are the nodes that a fault strikes.
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

func (w *World) say(kind string, i int, format string, args ...any) {
	if w.Trace != nil {
		w.Trace.Add(w.now, fmt.Sprintf("%s%d", kind, i+1), fmt.Sprintf(format, args...))
	}
}

func nodeName(i int) string { return fmt.Sprintf("n%d", i+1) }

func nodesOf(mask uint8) string {
	var names []string
	for i := range schedule.MaxNodes {
		if mask>>i&1 != 0 {
			names = append(names, nodeName(i))
		}
	}
	if len(names) == 0 {
		return "nobody"
	}
	return strings.Join(names, ", ")
}
