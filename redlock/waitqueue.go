package redlock

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// waitQueues lets waiters wait without polling. The waiters of one client for a
// resource queue, first in, first out, and only the first makes attempts; it is woken
// when the lock looks free, see [retryPlan]. It reads the copies over a second
// connection to each node, a [tracker], which is opened when somebody has to wait and
// closed after a while without waiters.
//
// Where a tracker receives nothing (the node is down or hangs, or denies tracking) the
// random pause between attempts remains, as if there were no waitQueues.
type waitQueues struct {
	opt      Options
	trackers []*tracker // one for each node
	tracking trackerShared
	rtt      atomic.Int64 // of a read, smoothed, in nanoseconds

	some   atomic.Bool // queues is not empty
	mu     sync.Mutex
	queues map[string]*waitQueue
	swept  time.Time
}

const (
	// queueIdle is how long a queue without waiters is kept, with what it has learnt
	// about turns.
	queueIdle = 10 * time.Second
	// politeFor is how long after its own release a client lets other waiters go first.
	politeFor = 50 * time.Millisecond
)

// newWaitQueues makes the queues over the connections to the nodes.
func newWaitQueues(conns []trackingConn, opt Options) *waitQueues {
	w := &waitQueues{opt: opt, queues: make(map[string]*waitQueue)}
	w.tracking.connect, w.tracking.took, w.tracking.ended = opt.ConnectTimeout, w.took, make(chan struct{})
	for i, t := range conns {
		w.trackers = append(w.trackers, newTracker(&w.tracking, i, t))
	}
	return w
}

// close ends all connections. There must be no waiters.
func (w *waitQueues) close() {
	close(w.tracking.ended)
	for _, e := range w.trackers {
		e.close()
	}
	w.tracking.wg.Wait()
}

// took learns how long a read takes.
func (w *waitQueues) took(d time.Duration) {
	old := w.rtt.Load()
	if old == 0 {
		old = int64(d)
	}
	w.rtt.Store(old + (int64(d)-old)/8) // a lost update does not matter
}

// slot is the time after which an attempt of one client can be seen by
// another, see [retryPlan.step].
func (w *waitQueues) slot() time.Duration { return 2 * time.Duration(w.rtt.Load()) }

// waitQueue has the waiters of one client for one resource.
type waitQueue struct {
	queues   *waitQueues
	resource string
	wake     chan struct{} // woken: the first in the queue

	mu        sync.Mutex
	queue     []*waiter
	plan      *retryPlan
	listening bool      // the trackers pass on what they receive
	begun     bool      // the plan has begun for the first in the queue
	active    bool      // the first in the queue waits to be woken
	at        time.Time // when it steps without being woken
	granted   bool      // the last grant came after a wait for a holder
	left      time.Time // when the last waiter left
	released  time.Time // when this client last released the lock
}

// waiter is a place in a queue.
type waiter struct {
	queue *waitQueue
	turn  chan struct{} // closed when it is the first
	tried bool          // has made an attempt
}

// place gives the caller a place in the queue of a resource, if a queue exists. It
// reports whether the caller should make an attempt at once.
func (w *waitQueues) place(resource string) (p *waiter, atOnce bool) {
	if !w.some.Load() {
		return nil, true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sweep(time.Now())
	l := w.queues[resource]
	if l == nil {
		return nil, true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) == 0 && !l.polite(time.Now()) {
		return nil, true
	}
	return l.join(), false
}

// wait gives the caller, whose attempt has failed, a place in the queue.
func (w *waitQueues) wait(resource string) *waiter {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.queues[resource]
	if l == nil {
		l = &waitQueue{
			queues: w, resource: resource, wake: make(chan struct{}, 1),
			plan: newRetryPlan(len(w.trackers), w.opt.RetryDelay, rand.Float64),
		}
		w.queues[resource] = l
		w.some.Store(true)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.join()
	p.tried = true
	return p
}

// released is called when this client has released the lock.
func (w *waitQueues) released(resource string) {
	if !w.some.Load() {
		return
	}
	w.mu.Lock()
	l := w.queues[resource]
	w.mu.Unlock()
	if l == nil {
		return
	}
	l.mu.Lock()
	l.released = time.Now()
	if l.begun {
		l.plan.released()
	}
	ask := l.step()
	l.mu.Unlock()
	l.ask(ask)
}

// sweep forgets queues that nobody has used for a while; w.mu is held.
func (w *waitQueues) sweep(now time.Time) {
	if now.Sub(w.swept) < queueIdle {
		return
	}
	w.swept = now
	for resource, l := range w.queues {
		l.mu.Lock()
		if len(l.queue) == 0 && now.Sub(l.left) > queueIdle && now.Sub(l.released) > queueIdle {
			delete(w.queues, resource)
		}
		l.mu.Unlock()
	}
	w.some.Store(len(w.queues) > 0)
}

// polite reports whether a newcomer should let others go first: this client has just
// had the lock, and other clients that had it before may be waiting. q.mu is held.
func (q *waitQueue) polite(now time.Time) bool {
	if !q.granted || now.Sub(q.released) > politeFor {
		return false
	}
	up := 0
	for _, e := range q.queues.trackers {
		if e.tracks() {
			up++
		}
	}
	return up >= q.plan.quorum
}

// join adds a place; q.mu is held.
func (q *waitQueue) join() *waiter {
	p := &waiter{queue: q, turn: make(chan struct{})}
	q.queue = append(q.queue, p)
	if len(q.queue) == 1 {
		q.first()
	}
	return p
}

// first gives the turn to the first in the queue; q.mu is held.
func (q *waitQueue) first() {
	close(q.queue[0].turn)
	if q.listening {
		return
	}
	q.listening = true
	for i, e := range q.queues.trackers {
		switch e.attach(q) {
		case trackerUp:
			q.plan.up(i)
		case trackerOpening:
			q.plan.opening(i)
		default:
			q.plan.down(i)
		}
	}
}

// leave gives the place up; granted says whether the lock was acquired.
func (w *waiter) leave(granted bool) {
	l := w.queue
	l.mu.Lock()
	defer l.mu.Unlock()
	was := l.queue[0] == w
	l.queue = slices.DeleteFunc(l.queue, func(o *waiter) bool { return o == w })
	if was && granted {
		l.granted = l.plan.holder != ""
		l.plan.granted()
		l.begun = false
	}
	switch {
	case len(l.queue) == 0:
		l.listening, l.begun = false, false
		l.left = time.Now()
		for _, e := range l.queues.trackers {
			e.detach(l)
		}
	case was:
		l.first()
	}
}

// failed records that an attempt was contended.
func (w *waiter) failed() {
	l := w.queue
	l.mu.Lock()
	defer l.mu.Unlock()
	w.tried = true
	if l.queue[0] == w && l.begun {
		l.plan.failed(l.queues.slot(), time.Now())
	}
}

// wait waits for the moment of the next attempt, and reports whether it came because
// the lock looks free. Otherwise the pause has ended, which expired signals.
func (w *waiter) wait(ctx context.Context, expired <-chan time.Time, closing <-chan struct{}) (woken bool, err error) {
	select {
	case <-w.turn:
	case <-expired:
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	case <-closing:
		return false, ErrClosed
	}
	l := w.queue
	l.mu.Lock()
	if !l.begun {
		l.begun = true
		l.plan.begin(!w.tried, time.Now())
	}
	l.active = true
	l.at = time.Time{}
	select {
	case <-l.wake:
	default:
	}
	ask := l.step()
	at := l.at
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		l.active = false
		l.mu.Unlock()
	}()
	alarm := time.NewTimer(time.Hour)
	defer alarm.Stop()
	for {
		l.ask(ask)
		alarm.Stop()
		if !at.IsZero() {
			alarm.Reset(time.Until(at))
		}
		select {
		case <-l.wake:
		case <-alarm.C:
		case <-expired:
			return false, nil
		case <-ctx.Done():
			return false, ctx.Err()
		case <-closing:
			return false, ErrClosed
		}
		l.mu.Lock()
		if l.plan.phase == attempting {
			l.mu.Unlock()
			return true, nil
		}
		ask = l.step()
		at = l.at
		l.mu.Unlock()
	}
}

// first reports whether it is the turn of this place.
func (w *waiter) first() bool {
	select {
	case <-w.turn:
		return true
	default:
		return false
	}
}

// step runs what is due in the plan, and wakes the first waiter for an attempt or for a
// new time of the next step. q.mu is held. The caller reads the nodes that it returns
// after it has unlocked the queue.
func (q *waitQueue) step() (ask []int) {
	if !q.active {
		return nil
	}
	do := q.plan.step(q.queues.slot(), time.Now())
	if do.attempt || !do.at.Equal(q.at) {
		q.at = do.at
		poke(q.wake)
	}
	return do.ask
}

// ask reads the key on these nodes.
func (q *waitQueue) ask(nodes []int) {
	for _, i := range nodes {
		if !q.queues.trackers[i].ask(q) {
			q.down(i)
		}
	}
}

func (q *waitQueue) key() string { return q.resource }

func (q *waitQueue) up(node int)      { q.observe(func(m *retryPlan) { m.up(node) }) }
func (q *waitQueue) down(node int)    { q.observe(func(m *retryPlan) { m.down(node) }) }
func (q *waitQueue) changed(node int) { q.observe(func(m *retryPlan) { m.changed(node) }) }

func (q *waitQueue) read(node int, m message, armed bool, now time.Time) {
	q.observe(func(plan *retryPlan) { plan.read(node, m.there, armed, m.token, m.ttl, now) })
}

// observe applies what a tracker has received.
func (q *waitQueue) observe(what func(*retryPlan)) {
	q.mu.Lock()
	if !q.listening {
		q.mu.Unlock()
		return
	}
	what(q.plan)
	ask := q.step()
	q.mu.Unlock()
	q.ask(ask)
}
