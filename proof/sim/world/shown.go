package world

import (
	"fmt"
	"time"

	"redlockctl/monitor"
	"redlockctl/proof/sim/mutant"
	"redlockctl/proof/sim/schedule"
	"redlockctl/proof/sim/trace"
	"redlockctl/redlock"
)

// claim says that no other client gets the lock before a moment, in true time.
type claim struct {
	token    uint8 // of its holder; 0: nothing was said
	until    time.Duration
	known    time.Duration // all masters were read since
	restarts int           // of masters that it takes; −1: no number of them
}

// clocksDiffer is how wrong the end of a copy may be because of the rates of clocks.
const clocksDiffer = schedule.MaxTTL / 100

// viewJitter is by how much an end may move until it is taken for another one.
const viewJitter = 250 * ms

// judge is the witness of what is shown: while a client relies on the lock, it is neither shown
// as free nor as left behind, nor as ending before the client's validity does.
func (w *World) judge() {
	v := &w.view
	if v.table == nil || !v.settled || w.Broken != nil || w.unreported { // it cannot know all
		return
	}
	l := v.table.Locks().Get(lockKey)
	w.sayShown(l)
	for i := range w.plan.Clients {
		if c := &w.clients[i]; c.believes > w.now+v.slack+viewJitter && w.mustKnow(c) {
			w.judgeBelief(c, l)
		}
	}
	if l == nil || w.Broken != nil {
		return
	}
	w.noteClaim(l)
	if l.State == monitor.LockOrphaned || l.State == monitor.LockLostMajority && w.rules.Breaks("view-clears-lost-majority") {
		w.clearOrphan(l.Holder.Raw())
	}
}

// sayShown records what is shown, when it changes.
func (w *World) sayShown(l *monitor.Lock) {
	if w.Trace == nil {
		return
	}
	text := "shows no lock"
	if l != nil {
		text = fmt.Sprintf("shows %s: %s, %d of %d copies", l.Holder.Raw(), l.State, l.Held, w.plan.N)
		if l.Earlier != nil {
			text += fmt.Sprintf("; %s may rely on it too", l.Earlier.Token.Raw())
		}
		for i, c := range l.Copies.All() {
			if !c.Token.Empty() {
				text += fmt.Sprintf("; %s %s %s to %s", nodeNames[i], [...]string{"absent", "present", "unknown", "unread", "seen", "lost"}[c.State], c.Token.Raw(), trace.At(w.view.clock.whenTime(c.Expires)))
			}
		}
	}
	if text != w.view.said {
		w.view.said = text
		w.say("v", 0, "%s", text)
	}
}

// mustKnow reports whether the monitor must know of the lock on which a client relies: it has read
// a copy since the last grant or extension that has it, and all masters that it can see; and no copy was evicted,
// which looks like a release, or shortened by the step of a clock, or came later than an attempt
// may take.
func (w *World) mustKnow(c *client) bool {
	v, g := &w.view, &w.grants[c.token]
	return v.readAt[c.token] > c.believed && c.believed < v.known(w.plan.N) && !g.taking && !g.slow && g.vanished == 0
}

// sees reports whether enough masters are connected to know the end of a lock in this state:
// otherwise it may have been extended on the others.
func (v *view) sees(n int, s monitor.LockState) bool {
	k, need := 0, redlock.Quorum(n)
	if s == monitor.LockMayBeHeld {
		need = n
	}
	for i := range n {
		if v.table.InSight(i) {
			k++
		}
	}
	return k >= need
}

// known is the time since which all connected masters have been read.
func (v *view) known(n int) time.Duration {
	since := trace.Never
	for i := range n {
		if v.table.InSight(i) {
			since = min(since, v.nodes[i].readAt)
		}
	}
	return since
}

// judgeBelief looks at what is shown of the lock of a client that relies on it.
func (w *World) judgeBelief(c *client, l *monitor.Lock) {
	token := tokenName(c.token)
	shown := "is not shown"
	switch {
	case l == nil && !w.view.sees(w.plan.N, monitor.LockHeld):
		return // it says so: the lock may be held longer than was known
	case l == nil:
	case l.Nobody:
		shown = "is shown as held by nobody"
	case l.State == monitor.LockOrphaned, l.State == monitor.LockNotALock, l.State == monitor.LockRevoked:
		shown = "is shown as " + l.State.String()
	case l.State == monitor.LockPartial, l.State == monitor.LockMayBeHeld && l.Holder.Raw() != token, l.State == monitor.LockSplit:
		return
	case l.Holder.Raw() != token:
		if l.Earlier != nil {
			return // it says that another client may rely on it
		}
		if w.now-c.believed < clocksDiffer+w.view.slack || w.view.seenAt[c.token] >= w.view.known(w.plan.N) {
			return // the grant before it ends now, or has ended, which the other masters have not confirmed yet
		}
		shown = "is shown as that of " + l.Holder.Raw() + " alone (" + l.State.String() + ")"
	case !l.ReliedOn() && l.State != monitor.LockOverTTL: // which is being read again
		shown = "is shown as one on which nobody relies (" + l.State.String() + ")"
	case !l.HeldUntil().IsZero() && w.view.sees(w.plan.N, l.State) && w.view.clock.whenTime(l.HeldUntil())+w.view.slack+viewJitter < c.believes:
		shown = "is shown as held (" + l.State.String() + ") until " + trace.At(w.view.clock.whenTime(l.HeldUntil()))
	default:
		return
	}
	w.breach(mutant.Shown, "the lock %s %s, and c%d relies on it until %s", token, shown, c.index+1, trace.At(c.believes))
}

// noteClaim records what is said about which other client can get the lock.
func (w *World) noteClaim(l *monitor.Lock) {
	v := &w.view
	v.claim = claim{}
	if !l.ReliedOn() || l.HeldUntil().IsZero() || w.rules.EarlyRejoin || w.differ() || v.stepped {
		return
	}
	for i := range w.plan.N {
		if x := &v.nodes[i]; x.state == monitor.NodeFenced && !x.last.watched {
			return // a guard that is not seen may let it rejoin
		}
	}
	s := v.snapshot(w.plan.N, v.clock.time(w.now), w.right)
	if w.rules.Breaks("view-fenced-for-ever") {
		for i := range s.Nodes {
			if n := &s.Nodes[i]; !n.RejoinsAfter.IsZero() {
				n.RejoinsAfter = s.At.Add(schedule.Horizon)
			}
		}
	}
	a := s.Access(l)
	if a.Now || a.Perhaps {
		return
	}
	end := l.HeldUntil()
	if !a.From.IsZero() && a.From.Before(end) {
		end = a.From
	}
	c := claim{until: v.clock.whenTime(end), known: v.known(w.plan.N), restarts: a.Restarts}
	for i := range w.plan.N {
		c.known = min(c.known, v.nodes[i].readAt) // a loss that nobody can see from there is not excluded
	}
	c.until -= clocksDiffer + v.slack + time.Second // copies that end so much sooner are as good as together
	for t := range uint8(tokens) {
		if t > 0 && tokenName(t) == l.Holder.Raw() {
			c.token = t
		}
	}
	v.claim = c
}

// entersAgainst is the witness of a grant to another client than the one of whose lock it was said
// that nobody else gets it.
func (w *World) entersAgainst(c *client) {
	v := &w.view
	k := v.claim
	if k.token == 0 || k.token == c.token || w.now >= k.until {
		return
	}
	g := &w.grants[k.token]
	if got := &w.grants[c.token]; got.vanished != 0 || got.slow {
		return // its votes went as if it had released them, before it learned of its grant, or its attempt took too long
	}
	if g.abandoned || g.taking || v.lost >= k.known || v.crashed >= k.known && k.restarts >= 0 {
		return
	}
	w.breach(mutant.Shown, "it is shown that nobody but %s gets the lock before %s, and c%d is granted it", tokenName(k.token), trace.At(k.until), c.index+1)
}

// clearOrphan is an operator's force-release of a lock that is shown as orphaned, when every
// attempt of its client has ended.
func (w *World) clearOrphan(token string) {
	if !w.plan.View.Acts {
		return
	}
	for i := range w.plan.N {
		m := &w.masters[i]
		g := &w.grants[m.token]
		if m.up && !m.refuses() && m.token != 0 && tokenName(m.token) == token && m.live(w.now) && g.until < w.now && !g.slow && g.vanished == 0 {
			w.say("o", 0, "force-releases %s, which is shown as orphaned, on %s", token, nodeNames[i])
			w.vanish(m, i)
			m.token = 0
			w.free()
		}
	}
}

// vanish records that a copy disappeared for a reason that looks like a release.
func (w *World) vanish(m *master, i int) {
	if m.live(w.now) {
		w.grants[m.token].vanished |= 1 << i
	}
	w.view.lost = w.now
}

// blind cuts the monitor off from masters.
func (w *World) blind(f *schedule.Fault, struck uint8) {
	for i := range w.plan.N {
		if struck>>i&1 != 0 {
			n := &w.view.nodes[i]
			if n.blind = w.now + f.Length; w.view.table != nil { // its connection breaks
				n.turn++
				n.asking, n.inbox = true, sighting{slow: true}
				w.push(event{at: w.now + 1, kind: evViewTold, node: uint8(i), run: n.turn, gen: w.view.gen})
			}
			w.say("v", 0, "cannot reach %s for %s", nodeNames[i], trace.Span(f.Length))
		}
	}
}
