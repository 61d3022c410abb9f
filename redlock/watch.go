package redlock

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// watcher lets those who wait for a resource wait without polling. Those of
// one client stand in a line, first in, first out, and only the first in the
// line makes attempts; it is woken when the lock looks free, see [lookout]. What
// it sees comes over one more connection for each node, an [ear], that is opened
// when somebody has to wait and is closed when nobody has for a while.
//
// Where an ear hears nothing (the node is down or hung, or denies tracking) the
// random pause between attempts is what is left, as if there were no watcher.
type watcher struct {
	opt   Options
	ears  []*ear // one for each node
	hears hearing
	rtt   atomic.Int64 // of a read, smoothed, in nanoseconds

	some   atomic.Bool // lines is not empty
	mu     sync.Mutex
	queues map[string]*waitQueue
	swept  time.Time
}

const (
	// lineIdle is for how long a line without waiters is remembered, with what it
	// has learnt about turns.
	lineIdle = 10 * time.Second
	// politeFor is how long after its own release a client lets those go first who
	// may have waited for it.
	politeFor = 50 * time.Millisecond
)

// newWatcher makes a watcher over the connections to the nodes.
func newWatcher(taps []tap, opt Options) *watcher {
	w := &watcher{opt: opt, queues: make(map[string]*waitQueue)}
	w.hears.connect, w.hears.took, w.hears.ended = opt.ConnectTimeout, w.took, make(chan struct{})
	for i, t := range taps {
		w.ears = append(w.ears, newEar(&w.hears, i, t))
	}
	return w
}

// close ends all connections. Nobody may be waiting any more.
func (w *watcher) close() {
	close(w.hears.ended)
	for _, e := range w.ears {
		e.close()
	}
	w.hears.wg.Wait()
}

// took learns how long a read takes.
func (w *watcher) took(d time.Duration) {
	old := w.rtt.Load()
	if old == 0 {
		old = int64(d)
	}
	w.rtt.Store(old + (int64(d)-old)/8) // a lost update does not matter
}

// slot is the time after which an attempt of one client can be seen by
// another, see [lookout.step].
func (w *watcher) slot() time.Duration { return 2 * time.Duration(w.rtt.Load()) }

// waitQueue are those of one client who wait for one resource.
type waitQueue struct {
	watcher  *watcher
	resource string
	bell     chan struct{} // rung for the first in the line

	mu        sync.Mutex
	queue     []*waiter
	look      *lookout
	listening bool      // the ears tell what they hear
	begun     bool      // the lookout has begun for the first in the line
	active    bool      // the first in the line waits for the bell
	at        time.Time // when it will step without the bell
	granted   bool      // the last grant was waited for while somebody had the lock
	left      time.Time // when the last waiter left
	released  time.Time // when this client last released the lock
}

// waiter is a place in a line.
type waiter struct {
	queue *waitQueue
	turn  chan struct{} // closed when it is the first
	tried bool          // has made an attempt
}

// place gives the caller a place in the line of a resource, if there is a
// line. It reports whether the caller should make an attempt at once.
func (w *watcher) place(resource string) (p *waiter, atOnce bool) {
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

// wait gives the caller, whose attempt has failed, a place in the line.
func (w *watcher) wait(resource string) *waiter {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.queues[resource]
	if l == nil {
		l = &waitQueue{
			watcher: w, resource: resource, bell: make(chan struct{}, 1),
			look: newLookout(len(w.ears), w.opt.RetryDelay, rand.Float64),
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

// released is told that this client has released the lock.
func (w *watcher) released(resource string) {
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
		l.look.released()
	}
	ask := l.step()
	l.mu.Unlock()
	l.ask(ask)
}

// sweep forgets lines that nobody has used for a while; w.mu is held.
func (w *watcher) sweep(now time.Time) {
	if now.Sub(w.swept) < lineIdle {
		return
	}
	w.swept = now
	for resource, l := range w.queues {
		l.mu.Lock()
		if len(l.queue) == 0 && now.Sub(l.left) > lineIdle && now.Sub(l.released) > lineIdle {
			delete(w.queues, resource)
		}
		l.mu.Unlock()
	}
	w.some.Store(len(w.queues) > 0)
}

// polite reports whether a newcomer should let others go first: this client has just
// had the lock, after others, who may be waiting. l.mu is held.
func (l *waitQueue) polite(now time.Time) bool {
	if !l.granted || now.Sub(l.released) > politeFor {
		return false
	}
	up := 0
	for _, e := range l.watcher.ears {
		if e.hears() {
			up++
		}
	}
	return up >= l.look.quorum
}

// join adds a place; l.mu is held.
func (l *waitQueue) join() *waiter {
	p := &waiter{queue: l, turn: make(chan struct{})}
	l.queue = append(l.queue, p)
	if len(l.queue) == 1 {
		l.first()
	}
	return p
}

// first gives the turn to the first in the line; l.mu is held.
func (l *waitQueue) first() {
	close(l.queue[0].turn)
	if l.listening {
		return
	}
	l.listening = true
	for i, e := range l.watcher.ears {
		switch e.attach(l) {
		case earUp:
			l.look.up(i)
		case earOpening:
			l.look.opening(i)
		default:
			l.look.down(i)
		}
	}
}

// leave gives the place up; granted reports whether with the lock.
func (p *waiter) leave(granted bool) {
	l := p.queue
	l.mu.Lock()
	defer l.mu.Unlock()
	was := l.queue[0] == p
	l.queue = slices.DeleteFunc(l.queue, func(o *waiter) bool { return o == p })
	if was && granted {
		l.granted = l.look.holder != ""
		l.look.granted()
		l.begun = false
	}
	switch {
	case len(l.queue) == 0:
		l.listening, l.begun = false, false
		l.left = time.Now()
		for _, e := range l.watcher.ears {
			e.detach(l)
		}
	case was:
		l.first()
	}
}

// failed tells that an attempt was contended.
func (p *waiter) failed() {
	l := p.queue
	l.mu.Lock()
	defer l.mu.Unlock()
	p.tried = true
	if l.queue[0] == p && l.begun {
		l.look.failed(l.watcher.slot(), time.Now())
	}
}

// wait waits for the moment of an attempt, and reports whether it is one because the
// lock looks free. It is not when the pause is over, of which expired tells.
func (p *waiter) wait(ctx context.Context, expired <-chan time.Time, closing <-chan struct{}) (woken bool, err error) {
	select {
	case <-p.turn:
	case <-expired:
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	case <-closing:
		return false, ErrClosed
	}
	l := p.queue
	l.mu.Lock()
	if !l.begun {
		l.begun = true
		l.look.begin(!p.tried, time.Now())
	}
	l.active = true
	l.at = time.Time{}
	select {
	case <-l.bell:
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
		case <-l.bell:
		case <-alarm.C:
		case <-expired:
			return false, nil
		case <-ctx.Done():
			return false, ctx.Err()
		case <-closing:
			return false, ErrClosed
		}
		l.mu.Lock()
		if l.look.phase == attempting {
			l.mu.Unlock()
			return true, nil
		}
		ask = l.step()
		at = l.at
		l.mu.Unlock()
	}
}

// first reports whether it is the turn of this place.
func (p *waiter) first() bool {
	select {
	case <-p.turn:
		return true
	default:
		return false
	}
}

// step lets the lookout do what is due, and rings the bell if that is an
// attempt, or another time for the next step. l.mu is held. The caller asks the
// nodes that it returns when it has let go of the line.
func (l *waitQueue) step() (ask []int) {
	if !l.active {
		return nil
	}
	do := l.look.step(l.watcher.slot(), time.Now())
	if do.attempt || !do.at.Equal(l.at) {
		l.at = do.at
		select {
		case l.bell <- struct{}{}:
		default:
		}
	}
	return do.ask
}

// ask reads the key on these nodes.
func (l *waitQueue) ask(nodes []int) {
	for _, i := range nodes {
		if !l.watcher.ears[i].ask(l) {
			l.down(i)
		}
	}
}

func (l *waitQueue) key() string { return l.resource }

func (l *waitQueue) up(node int)      { l.hear(func(m *lookout) { m.up(node) }) }
func (l *waitQueue) down(node int)    { l.hear(func(m *lookout) { m.down(node) }) }
func (l *waitQueue) changed(node int) { l.hear(func(m *lookout) { m.changed(node) }) }

func (l *waitQueue) read(node int, m message, armed bool, now time.Time) {
	l.hear(func(look *lookout) { look.read(node, m.there, armed, m.token, m.ttl, now) })
}

// hear takes in what an ear has heard.
func (l *waitQueue) hear(what func(*lookout)) {
	l.mu.Lock()
	if !l.listening {
		l.mu.Unlock()
		return
	}
	what(l.look)
	ask := l.step()
	l.mu.Unlock()
	l.ask(ask)
}
