package world

import (
	"fmt"
	"strings"
	"time"

	"redlockctl/proof/sim/mutant"
	"redlockctl/proof/sim/schedule"
	"redlockctl/proof/sim/trace"
	"redlockctl/redlock"
	"redlockctl/restartguard"
	"redlockctl/server/announce"
)

// World is one schedule being played: masters, clients, guards, and the witness. It is
// reused for the next one, so that only the product's own code allocates.
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
	view    view
	faults  [schedule.MaxFaults]uint8 // how many triggers each still waits for

	grants [tokens]grant
	// lastGrant and lastNode are the grant and the node of the last trigger.
	lastGrant uint8
	lastNode  int

	Stats   Stats
	Broken  *Breach    // what the witness saw
	exposed bool       // two holders, because there was no boot fence
	Trace   *trace.Log // nil: nobody reads

	others     [schedule.MaxNodes]restartguard.Other // room for one survey
	announcing bool                                  // guards announce themselves
	unreported bool                                  // something happened of which no monitor can know
	policy     restartguard.Policy                   // and for one step
	seen       restartguard.Observation
	voices     [schedule.MaxGuards]announce.Guard // and for what one look hears

	// The run_ids of all incarnations of all masters, made once.
	runIDs [schedule.MaxNodes][incarnations]string
}

// incarnations are more than a master has in any schedule.
const incarnations = 64

// New makes a world.
func New() *World {
	w := new(World)
	for n := range w.runIDs {
		for l := range w.runIDs[n] {
			w.runIDs[n][l] = fmt.Sprintf("%c%02drun", 'a'+n, l)
		}
	}
	return w
}

// Stats counts what happened in schedules, to show that the interesting cases occurred.
type Stats struct {
	Schedules    int64 `json:"schedules"`
	Grants       int64 `json:"grants"`
	Extensions   int64 `json:"extensions"`
	Crashes      int64 `json:"crashes"`
	LostVotes    int64 `json:"lost_votes"`
	Rejoins      int64 `json:"rejoins"`
	Repairs      int64 `json:"repairs"`
	GuardCrashes int64 `json:"guard_crashes"`
	// Early is how often a guard found that a master may rejoin before D.
	Early int64 `json:"early_rejoins,omitempty"`
	// Exposed are the schedules in which a master that had no boot fence, or was
	// flushed, gave a vote a second time before any guard could fence it, or after a
	// rejoin of Unheard. No guard can prevent that; it can only show for how long the
	// master served.
	Exposed int64 `json:"exposed"`
	// Unheard are the rejoins before the longest D of all guards, by one with a shorter D
	// that had no chance to learn of it.
	Unheard int64 `json:"unheard,omitempty"`
	// Drained are the crashes of masters that refused writes and had no copy.
	Drained int64 `json:"drained,omitempty"`
}

// Add adds the counts of another.
func (s *Stats) Add(o Stats) {
	s.Schedules += o.Schedules
	s.Grants += o.Grants
	s.Extensions += o.Extensions
	s.Crashes += o.Crashes
	s.LostVotes += o.LostVotes
	s.Rejoins += o.Rejoins
	s.Repairs += o.Repairs
	s.GuardCrashes += o.GuardCrashes
	s.Early += o.Early
	s.Exposed += o.Exposed
	s.Unheard += o.Unheard
	s.Drained += o.Drained
}

// emit signals an event that clients and faults may wait for.
func (w *World) emit(on schedule.Trigger, node int) {
	w.lastNode = node
	w.wakeView()
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

func (w *World) say(kind string, i int, format string, args ...any) {
	if w.Trace != nil {
		w.Trace.Add(w.now, fmt.Sprintf("%s%d", kind, i+1), fmt.Sprintf(format, args...))
	}
}

func nodesOf(mask uint8) string {
	var names []string
	for i := range schedule.MaxNodes {
		if mask>>i&1 != 0 {
			names = append(names, nodeNames[i])
		}
	}
	if len(names) == 0 {
		return "nobody"
	}
	return strings.Join(names, ", ")
}

func (c *client) plan(w *World) *schedule.Attempt { return &w.plan.Client[c.index].Attempt[c.attempt] }

// beginSoon ends the wait.
func (w *World) beginSoon(c *client) {
	c.turn++
	c.waits = schedule.OnTime
	w.push(event{at: w.now + c.plan(w).Pause, kind: evBegin, who: uint8(c.index), run: c.turn})
}

// tokens is one more than the greatest token: the number of a client's attempt,
// see tokenOf. 0 is none.
const tokens = schedule.MaxClients*8 + 1

// tokenOf draws the token of a client's attempt, from 0.
func tokenOf(client, attempt int) uint8 { return uint8(client*8 + attempt + 1) }

func tokenName(t uint8) string { return tokenNames[t] }

var tokenNames = func() (names [256]string) {
	for t := range names {
		names[t] = fmt.Sprintf("c%d/%d", uint8(t-1)/8+1, uint8(t-1)%8+1)
	}
	return names
}()

// The state of a release on a node.
const (
	relSent     uint8 = 1 << iota // it is, or was, on its way
	relDone                       // it was carried out
	relRefused                    // the master refuses writes
	relLost                       // its connection was gone
	relInFlight                   // it went by another connection than the SET
)

// grant is what the witness knows of one token.
type grant struct {
	votes uint8         // nodes that accepted it
	until time.Duration // the end of the attempt: later answers are late
	// seconds are the tokens for which a node had voted before, and forgotten it, and
	// served for no fault of a guard when it accepted this one.
	seconds     [schedule.MaxNodes]uint64
	abandoned   bool // failed or released
	abandonedAt time.Duration
	release     [schedule.MaxNodes]uint8
	repaired    uint8 // nodes on which it was put back
	relied      uint8 // the nodes that said yes to the last grant or extension
	slow        bool  // a vote or an extension came later than an attempt may take, as the monitor has it
	began       time.Duration
	vanished    uint8 // nodes where it disappeared for a reason that looks like a release

	taking         bool // an operator removes it
	takeBegan      time.Duration
	clean, deleted uint8
	takenAt        time.Duration // when the operator learned that it is gone
}

func (w *World) earlyAfter() time.Duration {
	if w.rules.Breaks("early-without-bound") {
		return 1
	}
	return restartguard.EarlyAfter(schedule.AttemptBound)
}

var nodeNames = [schedule.MaxNodes]string{"n1", "n2", "n3", "n4", "n5", "n6", "n7"}

// differ reports whether the guards have another D each.
func (w *World) differ() bool { return w.plan.Shorter && w.plan.Guards > 1 }

// delayOf is a guard's own D.
func (w *World) delayOf(g *guard) time.Duration {
	if g.index > 0 && w.differ() {
		return w.delay / schedule.ShorterBy
	}
	return w.delay
}

// announceAfter is how soon a guard announces itself on a master that is back.
const announceAfter = 100 * ms

// announceAgain lets all guards announce themselves on a master that is back.
func (w *World) announceAgain(node int) {
	if !w.announcing {
		return
	}
	for i := range w.plan.Guards {
		w.push(event{at: w.now + announceAfter, kind: evAnnounce, who: uint8(i), node: uint8(node), incarnation: w.masters[node].incarnation})
	}
}

// laterTrip is a trip that comes after the next n.
func (g *guard) laterTrip(w *World, n int) schedule.Trip {
	return w.plan.Guard[g.index].Trips[(g.trip+n)%schedule.GuardTrips]
}

// nextTrip is the next trip of a guard's exchange.
func (g *guard) nextTrip(w *World) schedule.Trip {
	t := w.plan.Guard[g.index].Trips[g.trip%schedule.GuardTrips]
	g.trip++
	return t
}

func (w *World) pauseWatch(g *guard, node int, d time.Duration) {
	x := &g.watches[node]
	x.turn++
	x.asking = 0
	w.push(event{at: w.now + max(d, 1), kind: evLook, who: uint8(g.index), node: uint8(node), run: x.turn})
}

// wakeGuards lets an eager guard probe now.
func (w *World) wakeGuards(node int) {
	for i := range w.plan.Guards {
		g := &w.guards[i]
		if x := &g.watches[node]; g.up && w.plan.Guard[i].Eager && x.asking == 0 {
			w.pauseWatch(g, node, g.nextTrip(w).Out)
		}
	}
}

// Breach is a violation.
type Breach struct {
	Property mutant.Property
	Text     string
}

func (w *World) breach(p mutant.Property, format string, args ...any) {
	if w.Broken == nil && w.rules.Checks&(1<<p) != 0 {
		w.Broken = &Breach{Property: p, Text: fmt.Sprintf(format, args...)}
		if w.Trace != nil {
			w.Trace.Add(w.now, "!!", w.Broken.Text)
		}
	}
}
