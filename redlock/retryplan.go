package redlock

import (
	"math"
	"slices"
	"time"
)

// retryPlan decides when the one who waits for a resource should make the next
// attempt. It is a pure step machine like [Attempt]: no clock, no goroutine, no
// connection. It is told what is seen of the key on each node, and says which
// nodes to read, when to look again, and when to make an attempt. It decides
// nothing but the moment: whether the lock is granted is the attempt's business
// alone, so that nothing in here can make a lock unsafe, only late.
//
// It wakes when a quorum of the nodes that it can see looks free: the copies
// were deleted, or their TTL expired. Who is to go first then is not agreed
// between clients; it is who has waited longest, and each can tell if it is
// that one. It counts how often the lock changed hands since it began to wait, and
// each token says how far the winner had counted: among C clients that take
// turns, to C-1. Who has counted as far as the last winner goes at once. Who has
// not holds back by one slot for each that is missing, then reads before it
// writes, and finds the lock taken without having cost anybody a vote.
// Those who have waited equally long clash; then they draw lots, and do so again
// next time among as many slots as it took. While its turn is far away it watches
// one node only, to count by: with all, the messages about each change would grow
// with clients × nodes, and come just when the next holder needs the nodes.
type retryPlan struct {
	quorum   int
	views    []copyView
	sample   int            // the node that one far from its turn watches
	most     time.Duration  // what a clash may hold back at most
	random   func() float64 // uniform in [0, 1)
	rotation rotation

	phase      phase
	at         time.Time // when the phase ends
	until      time.Time // for how long to hold back, with a look in between
	polite     bool      // has just had the lock, and seen nobody have it since
	fresh      bool      // nothing has been looked at yet
	eager      bool      // if nothing can be seen, an attempt shall tell
	holder     string    // the token that had most copies when last looked
	serial     uint8     // of the holder
	losses     int       // how often the lock has changed hands since the wait began
	lots       float64   // slots among which those draw who have waited equally long
	clashes    int       // failed attempts in a row
	prompt     bool      // the attempt is one without holding back
	watchesAll bool      // all nodes are watched, though the turn is far away
	extends    bool      // this holder extends its lock: a change is not yet a release
	told       bool      // a release is known of without having seen it
}

// rotation is what is remembered of a resource from one grant to the next.
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
	armed bool      // the node will tell of the next change
	asked bool      // a read is under way, or the connection for it
	token string    // of a copy
	until time.Time // of a copy: its end, by its TTL; zero: it has none
}

type copySeen uint8

const (
	unconnected copySeen = iota // no connection
	unread                      // not read yet, or not since it must have changed
	held                        // a copy is there
	free                        // no copy is there
	stale                       // a copy was there and has changed: deleted, most likely
)

const (
	slotMin     = 500 * time.Microsecond // finer than that, timers are not
	slotMax     = 50 * time.Millisecond
	slotsMost   = 16 // that a turn is held back for
	slotsPrior  = 4  // among which those choose who know nothing yet
	lossesMost  = 1000
	serialsMost = 64  // that are believed to have been missed
	lotsDecay   = 0.7 // with each change of hands
	lookAfter   = 2   // slots after which one who holds back for longer looks who has it
	near        = 1   // so few slots from its turn, one watches all nodes
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

// begin starts a wait. Nodes of which the connection is there, or is being
// opened, have been told by up and opening. eager is for who has made no attempt
// yet.
func (m *retryPlan) begin(eager bool, now time.Time) {
	m.eager, m.losses, m.clashes, m.watchesAll, m.extends, m.told, m.holder = eager, 0, 0, false, false, false, ""
	m.fresh, m.polite, m.prompt = true, eager, false
	m.phase, m.at, m.until = holdingBack, now, now
}

// opening: the connection to a node is being opened.
func (m *retryPlan) opening(node int) { m.views[node] = copyView{state: unconnected, asked: true} }

// up: the node can be read.
func (m *retryPlan) up(node int) { m.views[node] = copyView{state: unread} }

// down: the node cannot be seen.
func (m *retryPlan) down(node int) { m.views[node] = copyView{state: unconnected} }

// changed: the node says that the key is not what was read.
func (m *retryPlan) changed(node int) {
	s := &m.views[node]
	switch s.state {
	case held:
		s.state, s.armed = stale, false
	case free:
		*s = copyView{state: unread, asked: s.asked}
	}
}

// read: the answer to a read. A TTL below zero is none.
func (m *retryPlan) read(node int, there, armed bool, token string, ttl time.Duration, now time.Time) {
	s := copyView{state: free, armed: armed}
	if there {
		s.state, s.token = held, token
		if ttl >= 0 {
			// A millisecond is as exact as Redis tells it.
			s.until = now.Add(ttl + time.Millisecond)
		}
	}
	m.views[node] = s
}

// released: this client itself has released the lock.
func (m *retryPlan) released() { m.told = true }

// failed: an attempt was made and was contended.
func (m *retryPlan) failed(slot time.Duration, now time.Time) {
	m.told, m.eager = false, false
	if m.prompt && m.clashes == 0 {
		m.lots = min(2*m.lots+1, slotsMost)
	}
	m.prompt = false
	m.clashes++
	d := min(float64(clampSlot(slot))*math.Exp2(float64(min(m.clashes, 30))), float64(m.most))
	m.at = now.Add(time.Duration(m.random() * d))
	m.phase, m.until = holdingBack, m.at
}

// granted: the wait is over.
func (m *retryPlan) granted() {
	if m.holder != "" {
		m.rotation = rotation{known: true, round: m.losses}
	}
	m.phase = asleep
}

// note is what a token tells of this wait.
func (m *retryPlan) note() note {
	if m.holder == "" {
		return note{waited: unwaited}
	}
	return note{serial: m.serial + 1, waited: uint8(min(m.losses, unwaited-1))}
}

// handedOn takes in that another token has the lock. The notes tell how often it
// has changed hands since the last look, also if that was long ago, and who has
// lost a clash for it has the same number as who has won.
func (m *retryPlan) handedOn(to string) {
	n := noteOf(to)
	times := n.serial - m.serial
	if n.waited == unwaited || m.holder == "" || times > serialsMost {
		times = 1
	}
	if m.serial += times; n.waited != unwaited {
		m.serial = n.serial
		m.rotation = rotation{known: true, round: int(n.waited)}
	}
	if m.holder != "" {
		m.losses = min(m.losses+int(times), lossesMost)
		m.lots *= math.Pow(lotsDecay, float64(times))
	}
	m.holder, m.polite = to, false
}

// step does what is due at now. slot is the time after which one client's
// attempt can be seen by another.
func (m *retryPlan) step(slot time.Duration, now time.Time) retryStep {
	slot = clampSlot(slot)
	for {
		switch m.phase {
		case watching:
			if !m.told && !m.looksFree(now) {
				return retryStep{ask: m.unreadNodes(), at: m.freeAt(now)}
			}
			d := m.turn(slot)
			if d == 0 && !m.extends {
				m.phase, m.prompt = attempting, true
				continue
			}
			m.phase, m.until = holdingBack, now.Add(d)
			m.at = now.Add(min(d, lookAfter*slot))
		case holdingBack:
			if now.Before(m.at) {
				return retryStep{at: m.at}
			}
			m.phase, m.at = checking, now.Add(4*slot+checkMin)
			for i := range m.views {
				if s := &m.views[i]; s.state > unread && (s.state == stale || !s.armed || s.ended(now)) {
					*s = copyView{state: unread, asked: s.asked}
				}
			}
		case checking:
			ask := m.unreadNodes()
			if !m.answered(now) {
				return retryStep{ask: ask, at: m.at}
			}
			if m.looksFree(now) && now.Before(m.until) {
				m.phase, m.at = holdingBack, m.until
				continue
			}
			if m.far() && m.looksFree(now) {
				m.watchesAll = true
				m.at = now.Add(4*slot + checkMin)
				continue
			}
			m.judge(now)
		case attempting:
			return retryStep{attempt: true}
		default:
			return retryStep{}
		}
	}
}

func clampSlot(d time.Duration) time.Duration { return min(max(d, slotMin), slotMax) }

// checkMin is for how long answers to reads are waited for at least.
const checkMin = 10 * time.Millisecond

// judge ends a check.
func (m *retryPlan) judge(now time.Time) {
	seen, fresh := m.seen(), m.fresh
	m.fresh = false
	if m.views[m.sample].asked { // hung, perhaps
		m.sample = (m.sample + 1) % len(m.views)
	}
	switch {
	case seen > 0 && m.looksFree(now) && fresh:
		// Somebody may be about to take it, whose turn it is.
		m.phase = watching
		return
	case seen > 0 && m.looksFree(now), seen == 0 && (m.told || m.eager):
		m.phase = attempting
		return
	case seen > 0:
		m.told, m.clashes = false, 0
		if who := m.majority(); who != "" {
			if m.extends = who == m.holder; !m.extends {
				m.handedOn(who)
			}
		}
	}
	m.eager, m.watchesAll = false, seen == 0
	m.phase = watching
}

// turn is for how long to hold back from a lock that looks free.
func (m *retryPlan) turn(slot time.Duration) time.Duration {
	if !m.rotation.known {
		return time.Duration(m.random() * float64(max(0, slotsPrior-m.losses)) * float64(slot))
	}
	slots := min(max(0, m.rotation.round-m.losses), slotsMost)
	if m.polite {
		slots = max(slots, 1)
	}
	d := float64(slots)
	if m.lots >= 0.5 {
		d += m.random() * m.lots
	}
	return time.Duration(d * float64(slot))
}

// far reports whether the turn is so far away that it is enough to watch one node.
func (m *retryPlan) far() bool {
	return !m.watchesAll && m.rotation.known && m.rotation.round-m.losses > near
}

// unreadNodes are the nodes that are to be read, which it marks as asked.
func (m *retryPlan) unreadNodes() (ask []int) {
	far := m.far()
	for k := range m.views {
		i := (k + m.sample) % len(m.views)
		s := &m.views[i]
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

// answered reports whether a check has its answers, or enough of them, or has waited
// for long enough.
func (m *retryPlan) answered(now time.Time) bool {
	asked, vacant, taken := 0, 0, 0
	for _, s := range m.views {
		switch {
		case s.asked:
			asked++
		case s.state == free:
			vacant++
		case s.state == held && !s.ended(now):
			taken++
		}
	}
	return asked == 0 || !now.Before(m.at) || vacant >= m.quorum || taken > len(m.views)-m.quorum
}

func (s copyView) known() bool { return s.state > unread && !s.asked }

// ended tells of a copy whose TTL expired. Redis may tell of that much later.
func (s copyView) ended(now time.Time) bool {
	return s.state == held && !s.until.IsZero() && !now.Before(s.until)
}

// seen is how many nodes can be judged by.
func (m *retryPlan) seen() (n int) {
	for _, s := range m.views {
		if s.known() {
			n++
		}
	}
	return n
}

// looksFree reports whether as many nodes look free as an attempt needs; if less than
// that can be seen, all of those.
func (m *retryPlan) looksFree(now time.Time) bool {
	vacant, seen := 0, 0
	for _, s := range m.views {
		if !s.known() {
			continue
		}
		seen++
		if s.state != held || s.ended(now) {
			vacant++
		}
	}
	return seen > 0 && vacant >= min(m.quorum, seen)
}

// freeAt is when so many copies will have ended that it looks free; zero: never.
func (m *retryPlan) freeAt(now time.Time) time.Time {
	var ends []time.Time
	vacant, seen := 0, 0
	for _, s := range m.views {
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
	missing := min(m.quorum, seen) - vacant
	if seen == 0 || missing <= 0 || missing > len(ends) {
		return time.Time{}
	}
	slices.SortFunc(ends, time.Time.Compare)
	return ends[missing-1]
}

// majority is the token with most copies.
func (m *retryPlan) majority() (who string) {
	most := 0
	for i, s := range m.views {
		if !s.known() || s.state != held {
			continue
		}
		n := 0
		for _, o := range m.views[i:] {
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
