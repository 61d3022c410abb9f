package redlock

import (
	"math"
	"slices"
	"time"
)

// retryPlan decides when a waiter should make its next attempt. It is a pure step
// machine like [attempt.Attempt]: no clock, no goroutine, no connection. Its input is
// what was read of the key on each node; its output is which nodes to read, when to
// step again, and when to make an attempt. It decides only the moment: the attempt
// alone decides whether the lock is granted. So a mistake here can make a lock late,
// but never unsafe.
//
// It wakes when a quorum of the nodes that it can see looks free: the copies were
// deleted, or their TTL has ended. Clients do not agree on who goes first. The one that
// has waited longest does, and each can find out whether it is that one: it counts how
// often the lock changed hands since it began to wait, and each token says how far the
// winner had counted (among C clients that take turns, to C-1). A client that has
// counted as far as the last winner goes at once. Any other holds back by one slot for
// each number that it is short, then reads before it writes, and finds the lock held
// without having cost anybody a vote. Clients that have waited equally long collide.
// Then each draws a random slot, and next time out of as many slots as were needed.
// While its turn is far away a client watches one node only, to count: if it watched
// all nodes, each change would cause clients × nodes messages, just when the next
// holder needs the nodes.
type retryPlan struct {
	quorum   int
	views    []copyView
	sample   int            // the node to watch while the turn is far away
	most     time.Duration  // the longest pause after a collision
	random   func() float64 // uniform in [0, 1)
	rotation rotation

	phase      phase
	at         time.Time // when the phase ends
	until      time.Time // until when to hold back, with a read in between
	polite     bool      // has just had the lock, and has seen no other holder since
	fresh      bool      // nothing has been read yet
	eager      bool      // if no node can be read, make an attempt
	holder     string    // the token that had most copies when last read
	serial     uint8     // of the holder
	losses     int       // how often the lock has changed hands since the wait began
	lots       float64   // number of slots to draw from after a collision
	clashes    int       // failed attempts in a row
	prompt     bool      // the attempt was made without holding back
	watchesAll bool      // all nodes are watched, though the turn is far away
	extends    bool      // this holder extends its lock: a change is not yet a release
	knownFree  bool      // a release is known without having been read
}

// rotation is what is kept about a resource from one grant to the next.
type rotation struct {
	known bool
	round int // how often the lock changes hands between two grants, by the last winner
}

type phase uint8

const (
	asleep      phase = iota // not begun
	watching                 // for a quorum to look free
	holdingBack              // until at, then reading
	checking                 // waiting for the answers to the reads
	attempting               // told to make an attempt
)

// copyView is what is known of the key on one node.
type copyView struct {
	state copySeen
	armed bool      // the node will report the next change
	asked bool      // a read is under way, or the connection for it
	token string    // of a copy
	until time.Time // of a copy: its end, by its TTL; zero: it has none
}

type copySeen uint8

const (
	unconnected copySeen = iota // no connection
	unread                      // not read yet, or not since it has certainly changed
	held                        // a copy is there
	free                        // no copy is there
	stale                       // a copy was there and has changed: deleted, most likely
)

const (
	slotMin     = 500 * time.Microsecond // timers are not more exact
	slotMax     = 50 * time.Millisecond
	slotsMost   = 16 // to hold back for, at most
	slotsPrior  = 4  // to draw from before anything is known
	lossesMost  = 1000
	serialsMost = 64  // that can have been missed, at most
	lotsDecay   = 0.7 // with each change of hands
	lookAfter   = 2   // slots after which one who holds back for longer looks who has it
	near        = 1   // within this many slots of the turn, watch all nodes
)

func newRetryPlan(n int, most time.Duration, random func() float64) *retryPlan {
	return &retryPlan{quorum: Quorum(n), views: make([]copyView, n), most: most, random: random, sample: int(random() * float64(n))}
}

// retryStep is what a step asks for.
type retryStep struct {
	attempt bool
	ask     []int     // nodes to read
	at      time.Time // when to step again if nothing happens before; zero: never
}

// begin starts a wait. The nodes that are connected or being connected have been passed
// to up and opening. eager: no attempt has been made yet.
func (p *retryPlan) begin(eager bool, now time.Time) {
	p.eager, p.losses, p.clashes, p.watchesAll, p.extends, p.knownFree, p.holder = eager, 0, 0, false, false, false, ""
	p.fresh, p.polite, p.prompt = true, eager, false
	p.phase, p.at, p.until = holdingBack, now, now
}

// opening: the connection to a node is being opened.
func (p *retryPlan) opening(node int) { p.views[node] = copyView{state: unconnected, asked: true} }

// up: the node can be read.
func (p *retryPlan) up(node int) { p.views[node] = copyView{state: unread} }

// down: the node cannot be seen.
func (p *retryPlan) down(node int) { p.views[node] = copyView{state: unconnected} }

// changed: the node says that the key is not what was read.
func (p *retryPlan) changed(node int) {
	s := &p.views[node]
	switch s.state {
	case held:
		s.state, s.armed = stale, false
	case free:
		*s = copyView{state: unread, asked: s.asked}
	}
}

// read: the answer to a read. A TTL below zero is none.
func (p *retryPlan) read(node int, there, armed bool, token string, ttl time.Duration, now time.Time) {
	s := copyView{state: free, armed: armed}
	if there {
		s.state, s.token = held, token
		if ttl >= 0 {
			// A millisecond is as exact as Redis tells it.
			s.until = now.Add(ttl + time.Millisecond)
		}
	}
	p.views[node] = s
}

// released: this client itself has released the lock.
func (p *retryPlan) released() { p.knownFree = true }

// failed: an attempt was made and was contended.
func (p *retryPlan) failed(slot time.Duration, now time.Time) {
	p.knownFree, p.eager = false, false
	if p.prompt && p.clashes == 0 {
		p.lots = min(2*p.lots+1, slotsMost)
	}
	p.prompt = false
	p.clashes++
	d := min(float64(clampSlot(slot))*math.Exp2(float64(min(p.clashes, 30))), float64(p.most))
	p.at = now.Add(time.Duration(p.random() * d))
	p.phase, p.until = holdingBack, p.at
}

// granted: the wait has ended.
func (p *retryPlan) granted() {
	if p.holder != "" {
		p.rotation = rotation{known: true, round: p.losses}
	}
	p.phase = asleep
}

// note returns what a token says about this wait.
func (p *retryPlan) note() note {
	if p.holder == "" {
		return note{waited: unwaited}
	}
	return note{serial: p.serial + 1, waited: uint8(min(p.losses, unwaited-1))}
}

// handedOn records that another token has the lock. The notes say how often the lock
// has changed hands since the last read, even if that was long ago. A client that lost
// a collision has the same number as the winner.
func (p *retryPlan) handedOn(to string) {
	n := noteOf(to)
	times := n.serial - p.serial
	if n.waited == unwaited || p.holder == "" || times > serialsMost {
		times = 1
	}
	if p.serial += times; n.waited != unwaited {
		p.serial = n.serial
		p.rotation = rotation{known: true, round: int(n.waited)}
	}
	if p.holder != "" {
		p.losses = min(p.losses+int(times), lossesMost)
		p.lots *= math.Pow(lotsDecay, float64(times))
	}
	p.holder, p.polite = to, false
}

// step does what is due at now. slot is the time after which one client's
// attempt can be seen by another.
func (p *retryPlan) step(slot time.Duration, now time.Time) retryStep {
	slot = clampSlot(slot)
	for {
		switch p.phase {
		case watching:
			if !p.knownFree && !p.looksFree(now) {
				return retryStep{ask: p.unreadNodes(), at: p.freeAt(now)}
			}
			d := p.turn(slot)
			if d == 0 && !p.extends {
				p.phase, p.prompt = attempting, true
				continue
			}
			p.phase, p.until = holdingBack, now.Add(d)
			p.at = now.Add(min(d, lookAfter*slot))
		case holdingBack:
			if now.Before(p.at) {
				return retryStep{at: p.at}
			}
			p.phase, p.at = checking, now.Add(4*slot+checkMin)
			for i := range p.views {
				if s := &p.views[i]; s.state > unread && (s.state == stale || !s.armed || s.ended(now)) {
					*s = copyView{state: unread, asked: s.asked}
				}
			}
		case checking:
			ask := p.unreadNodes()
			if !p.answered(now) {
				return retryStep{ask: ask, at: p.at}
			}
			if p.looksFree(now) && now.Before(p.until) {
				p.phase, p.at = holdingBack, p.until
				continue
			}
			if p.far() && p.looksFree(now) {
				p.watchesAll = true
				p.at = now.Add(4*slot + checkMin)
				continue
			}
			p.judge(now)
		case attempting:
			return retryStep{attempt: true}
		default:
			return retryStep{}
		}
	}
}

func clampSlot(d time.Duration) time.Duration { return min(max(d, slotMin), slotMax) }

// checkMin is the shortest time to wait for answers to reads.
const checkMin = 10 * time.Millisecond

// judge ends a check.
func (p *retryPlan) judge(now time.Time) {
	seen, fresh := p.seen(), p.fresh
	p.fresh = false
	if p.views[p.sample].asked { // hung, perhaps
		p.sample = (p.sample + 1) % len(p.views)
	}
	switch {
	case seen > 0 && p.looksFree(now) && fresh:
		// A client whose turn it is may be about to acquire it.
		p.phase = watching
		return
	case seen > 0 && p.looksFree(now), seen == 0 && (p.knownFree || p.eager):
		p.phase = attempting
		return
	case seen > 0:
		p.knownFree, p.clashes = false, 0
		if who := p.majority(); who != "" {
			if p.extends = who == p.holder; !p.extends {
				p.handedOn(who)
			}
		}
	}
	p.eager, p.watchesAll = false, seen == 0
	p.phase = watching
}

// turn is how long to hold back from a lock that looks free.
func (p *retryPlan) turn(slot time.Duration) time.Duration {
	if !p.rotation.known {
		return time.Duration(p.random() * float64(max(0, slotsPrior-p.losses)) * float64(slot))
	}
	slots := min(max(0, p.rotation.round-p.losses), slotsMost)
	if p.polite {
		slots = max(slots, 1)
	}
	d := float64(slots)
	if p.lots >= 0.5 {
		d += p.random() * p.lots
	}
	return time.Duration(d * float64(slot))
}

// far reports whether the turn is so far away that watching one node is enough.
func (p *retryPlan) far() bool {
	return !p.watchesAll && p.rotation.known && p.rotation.round-p.losses > near
}

// unreadNodes returns the nodes to read, and marks them as asked.
func (p *retryPlan) unreadNodes() (ask []int) {
	far := p.far()
	for k := range p.views {
		i := (k + p.sample) % len(p.views)
		s := &p.views[i]
		if s.state == unread && !s.asked {
			s.asked = true
			ask = append(ask, i)
		}
		if far && s.state != unconnected {
			break
		}
	}
	return ask
}

// answered reports whether a check has all or enough answers, or has waited long
// enough.
func (p *retryPlan) answered(now time.Time) bool {
	asked, vacant, taken := 0, 0, 0
	for _, s := range p.views {
		switch {
		case s.asked:
			asked++
		case s.state == free:
			vacant++
		case s.state == held && !s.ended(now):
			taken++
		}
	}
	return asked == 0 || !now.Before(p.at) || vacant >= p.quorum || taken > len(p.views)-p.quorum
}

func (v copyView) known() bool { return v.state > unread && !v.asked }

// ended reports whether the TTL of a copy has ended. Redis may report that much later.
func (v copyView) ended(now time.Time) bool {
	return v.state == held && !v.until.IsZero() && !now.Before(v.until)
}

// seen is how many nodes have been read.
func (p *retryPlan) seen() (n int) {
	for _, s := range p.views {
		if s.known() {
			n++
		}
	}
	return n
}

// looksFree reports whether as many nodes look free as an attempt needs; if fewer can
// be read, all of those.
func (p *retryPlan) looksFree(now time.Time) bool {
	vacant, seen := 0, 0
	for _, s := range p.views {
		if !s.known() {
			continue
		}
		seen++
		if s.state != held || s.ended(now) {
			vacant++
		}
	}
	return seen > 0 && vacant >= min(p.quorum, seen)
}

// freeAt is when enough copies will have ended for the lock to look free; zero: never.
func (p *retryPlan) freeAt(now time.Time) time.Time {
	var ends []time.Time
	vacant, seen := 0, 0
	for _, s := range p.views {
		switch {
		case !s.known():
			continue
		case s.state != held:
			vacant++
		case !s.until.IsZero():
			ends = append(ends, s.until)
		}
		seen++
	}
	missing := min(p.quorum, seen) - vacant
	if seen == 0 || missing <= 0 || missing > len(ends) {
		return time.Time{}
	}
	slices.SortFunc(ends, time.Time.Compare)
	return ends[missing-1]
}

// majority returns the token with most copies.
func (p *retryPlan) majority() (who string) {
	most := 0
	for i, s := range p.views {
		if !s.known() || s.state != held {
			continue
		}
		n := 0
		for _, o := range p.views[i:] {
			if o.known() && o.state == held && o.token == s.token {
				n++
			}
		}
		if n > most {
			who, most = s.token, n
		}
	}
	return who
}
