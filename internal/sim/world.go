package sim

import (
	"fmt"
	"math/bits"
	"strings"
	"time"

	"redlockctl/internal/announce"
	"redlockctl/internal/sim/trace"
	"redlockctl/redlock"
	"redlockctl/restartguard"
)

// world is one schedule being played: masters, clients, guards, and the
// witness. It is used again for the next one, so that nothing is allocated but
// by the product's own code.
type world struct {
	plan  *plan
	rules rules
	opt   redlock.Options
	delay time.Duration // D, as the guards have it, but see delayOf
	right time.Duration // D, as it must be

	queue
	now     time.Duration
	masters [maxNodes]master
	clients [maxClients]client
	guards  [maxGuards]guard
	faults  [maxFaults]uint8 // how many triggers each still waits for

	grants [tokens]grant
	// lastGrant and lastNode are what a trigger was about.
	lastGrant uint8
	lastNode  int

	stats   Stats
	broken  *breach    // what the witness saw
	exposed bool       // two believers, for want of a boot fence
	trace   *trace.Log // nil: nobody reads

	others [maxNodes]restartguard.Other // room for one inquest
	policy restartguard.Policy          // and for one step
	seen   restartguard.Observation
	voices [maxGuards]announce.Guard // and for what one look hears

	// The run_ids of all lives of all masters, made once.
	runIDs [maxNodes][incarnations]string
}

// lives are more than a master has in any schedule.
const incarnations = 64

func newWorld() *world {
	w := new(world)
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

func (s *Stats) add(o Stats) {
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

// run plays a plan to its end.
func (w *world) run(p *plan, r rules) {
	w.plan, w.rules = p, r
	w.opt = redlock.Options{DriftFactor: redlock.DefaultDriftFactor, DriftMargin: redlock.DefaultDriftMargin}
	w.right = restartguard.DefaultDelay(MaxTTL)
	w.delay = time.Duration(float64(w.right) * r.delay)
	w.queue.reset()
	w.now, w.broken, w.exposed = 0, nil, false
	w.lastGrant, w.lastNode = 0, 0
	w.grants = [tokens]grant{}
	for i := range p.n {
		w.masters[i].reset(i, p)
	}
	for i := range w.guards {
		w.guards[i].up = false
		if i < p.guards {
			w.guards[i].reset(i)
		}
	}
	for i := range p.clients {
		w.clients[i].reset(i, p)
	}
	w.stats.Schedules++
	if !r.noGuard {
		for i := range p.guards {
			w.startGuard(&w.guards[i], p.guard[i].start)
		}
	}
	for i := range p.faults {
		f := &p.fault[i]
		w.faults[i] = f.nth
		if f.on == onTime {
			w.push(event{at: f.after, kind: evFault, who: uint8(i)})
		}
	}
	for i := range p.clients {
		w.next(&w.clients[i])
	}
	for w.broken == nil && !w.exposed {
		e, ok := w.pop()
		if !ok || e.at > horizon || w.over() {
			return
		}
		w.now = e.at
		w.happen(&e)
	}
	if w.exposed {
		w.stats.Exposed++
	}
}

// over reports whether no client does or believes anything any more.
func (w *world) over() bool {
	for i := range w.plan.clients {
		if c := &w.clients[i]; c.state != clientDone || c.believes > w.now {
			return false
		}
	}
	return true
}

func (w *world) happen(e *event) {
	switch e.kind {
	case evFault:
		if w.plan.fault[e.who].on != onTime {
			w.lastNode = int(e.node)
		}
		w.strike(&w.plan.fault[e.who])
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
func (w *world) emit(on trigger, node int) {
	w.lastNode = node
	for i := range w.plan.faults {
		f := &w.plan.fault[i]
		if f.on != on || w.faults[i] == 0 {
			continue
		}
		if w.faults[i]--; w.faults[i] == 0 {
			// The node travels with it: another trigger may come in between.
			w.push(event{at: w.now + f.after, kind: evFault, who: uint8(i), node: uint8(node)})
		}
	}
	for i := range w.plan.clients {
		if c := &w.clients[i]; c.state == clientWaiting && c.waits == on {
			w.beginSoon(c)
		}
	}
}

// free tells clients that wait for it that a quorum would accept a SET.
func (w *world) free() {
	open := 0
	for i := range w.plan.n {
		m := &w.masters[i]
		if m.up && !m.refuses() && !m.live(w.now) {
			open++
		}
	}
	if open >= redlock.Quorum(w.plan.n) {
		w.emit(onFree, w.lastNode)
	}
}

// strike carries out a fault.
func (w *world) strike(f *faultPlan) {
	switch f.kind {
	case faultGuardCrash:
		w.crashGuard(&w.guards[f.who], f.length, f.memory)
		return
	case faultGuardPause:
		if g := &w.guards[f.who]; g.up {
			g.paused = max(g.paused, w.now+f.length)
			w.say("g", int(f.who), "is suspended for %s", trace.Span(f.length))
		}
		return
	case faultGuardStep:
		w.guards[f.who].wallStep += f.length
		return
	case faultClientPause:
		c := &w.clients[f.who]
		c.paused = max(c.paused, w.now+f.length)
		w.say("c", int(f.who), "is suspended for %s", trace.Span(f.length))
		return
	}
	if f.kind == faultTake {
		w.take(f)
		return
	}
	struck := w.choose(f)
	if f.kind == faultCut {
		g := &w.guards[f.who]
		for i := range w.plan.n {
			if struck>>i&1 != 0 {
				g.cut[i] = w.now + f.length
				w.masters[i].announced &^= 1 << f.who
				w.say("g", int(f.who), "cannot reach %s for %s", nodeName(i), trace.Span(f.length))
			}
		}
		return
	}
	back := w.now + f.length
	for i := range w.plan.n {
		if struck>>i&1 == 0 {
			continue
		}
		switch f.kind {
		case faultCrash:
			w.crash(i, back, f.silent)
			back += f.stagger
		case faultFlush:
			w.flush(i)
		case faultEvict:
			w.evict(i)
		case faultStep:
			w.stepClock(i, f.length)
		case faultCreep:
			steps := max(f.count, 1)
			w.creep(i, &event{tok: steps, x: f.length / time.Duration(steps), y: max(f.stagger, ms)})
		case faultRole:
			w.demote(i, f.length)
		case faultRestore:
			w.restore(i)
		case faultReset:
			w.resetStats(i)
			w.flush(i)
		case faultCordon:
			w.cordon(i, f.length)
		}
	}
}

// choose are the nodes that a fault strikes.
func (w *world) choose(f *faultPlan) uint8 {
	all := uint8(1<<w.plan.n - 1)
	switch f.choice {
	case theSame:
		return 1 << w.lastNode & all
	case theHolders:
		var m uint8
		count := int(f.count)
		// From a node on that differs from plan to plan.
		for k := range w.plan.n {
			i := (k + int(f.mask)) % w.plan.n
			if bits.OnesCount8(m) < count && w.lastGrant != 0 && w.masters[i].token == w.lastGrant {
				m |= 1 << i
			}
		}
		return m
	default:
		return f.mask & all
	}
}

func (w *world) say(kind string, i int, format string, args ...any) {
	if w.trace != nil {
		w.trace.Add(w.now, fmt.Sprintf("%s%d", kind, i+1), fmt.Sprintf(format, args...))
	}
}

func nodeName(i int) string { return fmt.Sprintf("n%d", i+1) }

func nodesOf(mask uint8) string {
	var names []string
	for i := range maxNodes {
		if mask>>i&1 != 0 {
			names = append(names, nodeName(i))
		}
	}
	if len(names) == 0 {
		return "nobody"
	}
	return strings.Join(names, ", ")
}

// about says what a schedule is played with.
func (p *plan) about(r rules) string {
	var b strings.Builder
	masters := "masters"
	if p.n == 1 {
		masters = "master"
	}
	fmt.Fprintf(&b, "%d %s (quorum %d), %d clients, ", p.n, masters, redlock.Quorum(p.n), p.clients)
	switch {
	case r.noGuard:
		b.WriteString("no guard")
	case p.guards == 1:
		fmt.Fprintf(&b, "1 guard with D = %s", trace.Span(time.Duration(float64(restartguard.DefaultDelay(MaxTTL))*r.delay)))
	default:
		fmt.Fprintf(&b, "%d guards with D = %s", p.guards, trace.Span(time.Duration(float64(restartguard.DefaultDelay(MaxTTL))*r.delay)))
	}
	if p.guards > 1 && p.shorter && !r.noGuard {
		fmt.Fprintf(&b, ", and the second has %s", trace.Span(time.Duration(float64(restartguard.DefaultDelay(MaxTTL))*r.delay)/shorterBy))
	}
	fmt.Fprintf(&b, "; max TTL %s. ", trace.Span(MaxTTL))
	switch {
	case !p.fenced:
		b.WriteString("Masters start unfenced")
	case p.lagZero:
		b.WriteString("Masters come up with a boot fence that min-replicas-max-lag 0 switches off")
	default:
		b.WriteString("Masters start fenced")
	}
	if p.replicas {
		b.WriteString(", each with a replica")
	}
	b.WriteString(". ")
	var wrong []string
	rate := func(kind string, i int, ppm int64) {
		if ppm != 0 {
			wrong = append(wrong, fmt.Sprintf("%s%d %+.2f %%", kind, i+1, float64(ppm)/1e4))
		}
	}
	for i := range p.clients {
		rate("c", i, p.client[i].ppm)
	}
	for i := range p.n {
		rate("n", i, p.nodePPM[i])
	}
	if !r.noGuard {
		for i := range p.guards {
			rate("g", i, p.guard[i].ppm)
		}
	}
	if len(wrong) == 0 {
		b.WriteString("All clocks run at the right rate.")
	} else {
		fmt.Fprintf(&b, "Clocks that run fast or slow: %s.", strings.Join(wrong, ", "))
	}
	return b.String()
}
