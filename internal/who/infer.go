package who

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"
)

// Requirements for an answer.
const (
	Sure        = 0.99 // minimum probability
	LeastEvents = 4    // minimum number of changes of the lock by one token
)

// The model. On a node, at an event, the holder has used one of its connections, which is
// then active; the others are active by chance, each at its own rate. Rates come from
// lists at other times. A connection that was already active in this second proves
// nothing, since servers report idle times in whole seconds.
const (
	missed     = 0.1  // probability that the holder's connection has done something else since
	rareHit    = 0.02 // minimum probability of being active by chance
	priorHits  = 2    // prior, so that a connection that was …
	priorTime  = 5    // … seldom listed (seconds) does not count as never active
	cachedTime = 0.12 // seconds; how late a server may notice a new second
	// Successive changes are not independent evidence either: a client that extends at
	// the same pace as the holder stays in step with it for a while. At 0.7 there were
	// still wrong claims on a machine without a free core.
	dependent   = 0.5
	lateList    = 0.5 // seconds; a later list proves nothing about a change
	sameEvent   = 600 * time.Millisecond
	mostPending = 256 // events kept for one token
)

// List is a node's list of connections at one moment.
type List struct {
	Node   int
	At     time.Time // our clock
	Server float64   // seconds, by the server's wall clock
	Delay  float64   // seconds; of an event: its maximum age
	Conns  []Conn
}

type connKey struct {
	node int
	id   int64
}

// connStats are the statistics of a connection.
type connStats struct {
	group  Group
	hits   float64 // active in lists that were no events
	time   float64 // seconds in which activity was visible
	active float64 // second of the server in which it was last active
	cmds   int64   // sent until the last list
}

// sight is a connection that was active at an event: newly since the last list, or
// already before.
type sight struct {
	conn   connKey
	fresh  bool
	window float64
}

// nodeSight is the evidence of one node for one event.
type nodeSight struct {
	node   int
	early  bool // early in the second, so a connection may not show yet
	size   map[Group]int
	active map[Group][]sight
}

type event struct {
	at       time.Time
	extended bool
	nodes    []nodeSight
}

// Tally adds up the evidence from lists of connections. The zero Tally is ready for use;
// it knows neither clock nor network.
type Tally struct {
	conns  map[connKey]*connStats
	last   map[int]float64 // when a node was last listed, by its clock
	events map[string][]*event
}

// Control adds a list from a moment unrelated to the lock.
func (t *Tally) Control(l List) { t.take(l, true) }

// Skip adds a list that is neither a control nor an event.
func (t *Tally) Skip(l List) { t.take(l, false) }

// Event adds the list of a node on which the token was set or its TTL extended. Lists of
// several nodes at the same moment are one event.
func (t *Tally) Event(token string, extended bool, l List) {
	if t.events == nil {
		t.events = map[string][]*event{}
	}
	seen := t.take(l, false)
	if l.Delay > lateList {
		return
	}
	all := t.events[token]
	if n := len(all); n > 0 && l.At.Sub(all[n-1].at) < sameEvent && all[n-1].extended == extended &&
		!slices.ContainsFunc(all[n-1].nodes, func(s nodeSight) bool { return s.node == l.Node }) {
		all[n-1].nodes = append(all[n-1].nodes, seen)
		return
	}
	if len(all) == mostPending {
		all = all[1:]
	}
	t.events[token] = append(all, &event{at: l.At, extended: extended, nodes: []nodeSight{seen}})
}

func (t *Tally) take(l List, control bool) nodeSight {
	if t.conns == nil {
		t.conns, t.last = map[connKey]*connStats{}, map[int]float64{}
	}
	second, last := math.Floor(l.Server), t.last[l.Node]
	seen := nodeSight{node: l.Node, early: l.Server-second < cachedTime+l.Delay, size: map[Group]int{}, active: map[Group][]sight{}}
	for _, c := range l.Conns {
		if c.own() {
			continue
		}
		key, g := connKey{l.Node, c.ID}, c.group()
		seen.size[g]++
		s := t.conns[key]
		known := s != nil
		if !known {
			s = &connStats{active: -1}
			t.conns[key] = s
		}
		s.group = g
		active, stale, window := c.active(), s.active == second, l.Server-max(second, last)
		if c.Cmds > 0 { // its activity since the last list is known, not only in this second
			active, stale, window = c.fits() && c.Cmds > s.cmds, !known, l.Server-last
			seen.early = l.Delay > window
		}
		s.cmds = c.Cmds
		if active {
			s.active = second
			seen.active[g] = append(seen.active[g], sight{key, !stale, window})
		}
		if control && !stale {
			s.time += window
			if active {
				s.hits++
			}
		}
	}
	t.last[l.Node] = l.Server
	return seen
}

// chance returns the probability that a connection was active in the window by chance.
func (t *Tally) chance(c connKey, window float64) float64 {
	s := t.conns[c]
	rate := (s.hits + priorHits) / (s.time + priorTime)
	return max(1-math.Exp(-rate*window), rareHit)
}

// Candidate is a possible holder of a lock.
type Candidate struct {
	Group Group
	P     float64
}

// Holder returns the candidates for the holder of the token, the most likely first, and
// the number of events. Their p sum up to 1 together with that of a client that is in no
// list. Nobody is certain below [Sure] and [LeastEvents].
func (t *Tally) Holder(token string) (candidates []Candidate, events int) {
	score := map[Group]float64{}
	for _, s := range t.conns {
		score[s.group] = 0
	}
	used := map[connKey]float64{} // at earlier events
	for _, e := range t.events[token] {
		for g := range score {
			var ratio float64
			for _, n := range e.nodes {
				ratio += t.ratio(g, n, used)
			}
			// Applications that take locks are active on all nodes together, so the nodes
			// are not independent evidence: use the mean, not the product.
			score[g] += dependent * math.Log(ratio/float64(len(e.nodes)))
		}
		for _, n := range e.nodes {
			for _, active := range n.active {
				for _, s := range active {
					if s.fresh {
						used[s.conn]++
					}
				}
			}
		}
	}
	// An unlisted client explains each event as well as chance does; its prior equals
	// that of all listed ones together.
	top := 0.0
	for _, s := range score {
		top = max(top, s)
	}
	all := float64(len(score)) * math.Exp(-top)
	for _, s := range score {
		all += math.Exp(s - top)
	}
	for g, s := range score {
		candidates = append(candidates, Candidate{g, math.Exp(s-top) / all})
	}
	slices.SortFunc(candidates, func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(b.P, a.P), strings.Compare(a.Group.String(), b.Group.String()))
	})
	return candidates, len(t.events[token])
}

// ratio returns how much more likely a node's evidence for an event is if the group holds
// the lock. It weights the group's connections by how often each was used before.
func (t *Tally) ratio(g Group, n nodeSight, used map[connKey]float64) float64 {
	size := float64(n.size[g])
	if size == 0 {
		return missed
	}
	var before float64
	for c, times := range used {
		if c.node == n.node && t.conns[c].group == g {
			before += times
		}
	}
	quiet := missed
	if n.early {
		quiet = 1
	}
	ratio, rest := 0.0, 1.0
	for _, s := range n.active[g] {
		weight := (1/size + used[s.conn]) / (1 + before)
		rest -= weight
		if s.fresh {
			ratio += weight * (1 - missed) / t.chance(s.conn, s.window)
		} else {
			ratio += weight
		}
	}
	return ratio + max(rest, 0)*quiet
}
