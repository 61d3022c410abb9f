package redlock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// memNode is a master in memory, for tests in virtual time. It has a clock of
// its own rate, and can be hung (requests wait in its buffers), down, fenced or
// far away.
type memNode struct {
	rate float64 // how much faster than true its clock runs: 0.004 is 0.4 %

	mu           sync.Mutex
	keys         map[string]memCopy
	numbers      map[string]uint64 // of fencing
	still        uint64            // what the clock shows for ever; zero: it runs
	down         bool
	fenced       bool
	hung         bool
	resumed      chan struct{}                   // closed at the end of a hang
	buffer       []func()                        // what came meanwhile
	delay        func() (to, back time.Duration) // of a pipeline; nil: none
	connect      time.Duration                   // that dialling and greeting take
	sent         int                             // pipelines that arrived
	trackings    map[*memTracking]bool
	deaf         bool // it denies tracking
	trackingDown bool // it refuses tracking connections
	sets         int  // SETs that arrived
	incarnation  int  // its incarnation
	mute         bool // it does not tell its incarnation
	links        []*memLink
	reads        int // that arrived over tracking connections
	opened       int // tracking connections
}

type memCopy struct {
	token   string
	expires time.Time
}

func newMemNodes(n int) []*memNode {
	nodes := make([]*memNode, n)
	for i := range nodes {
		nodes[i] = &memNode{keys: make(map[string]memCopy), numbers: make(map[string]uint64)}
	}
	return nodes
}

func (n *memNode) set(f func(*memNode)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f(n)
}

func (n *memNode) hang() {
	n.set(func(n *memNode) {
		if !n.hung {
			n.hung, n.resumed = true, make(chan struct{})
		}
	})
}

func (n *memNode) resume() {
	n.set(func(n *memNode) {
		if n.hung {
			n.hung = false
			close(n.resumed)
			for _, f := range n.buffer {
				f()
			}
			n.buffer = nil
		}
	})
}

func (n *memNode) live() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	live := 0
	for k := range n.keys {
		if n.get(k).token != "" {
			live++
		}
	}
	return live
}

func (n *memNode) get(key string) memCopy {
	c, ok := n.keys[key]
	if ok && !time.Now().Before(c.expires) {
		delete(n.keys, key)
		return memCopy{}
	}
	return c
}

func (n *memNode) expiry(ttl time.Duration) time.Time {
	return time.Now().Add(time.Duration(float64(ttl) / (1 + n.rate)))
}

// apply carries out one call; n.mu is held.
func (n *memNode) apply(c *call) answer {
	says := func(s Status) answer { return answer{NodeResult: NodeResult{Status: s}} }
	at := n.get(c.key)
	if c.op == opSet {
		n.sets++
	}
	switch {
	case c.op == opInspect && at.token != "":
		return answer{NodeResult: NodeResult{Status: StatusHeld, Type: "string", Token: at.token, TTL: time.Until(at.expires)}}
	case c.op == opInspect:
		return says(StatusAbsent)
	case c.op == opExtend && at.token == "": // the script writes nothing there
		return says(StatusAbsent)
	case c.op == opExtend && at.token != c.token:
		return says(StatusHeld)
	case c.op == opExtend && !n.expiry(c.ttl).After(at.expires):
		n.changed(c.key)
		return says(StatusOK)
	case c.op == opExtend && n.fenced:
		return answer{NodeResult: NodeResult{Status: StatusFenced, Err: errors.New("NOREPLICAS")}, there: true}
	case n.fenced:
		return answer{NodeResult: NodeResult{Status: StatusFenced, Err: errors.New("NOREPLICAS")}}
	case c.op == opSet && at.token != "":
		return says(StatusHeld)
	case c.op == opSet:
		n.keys[c.key] = memCopy{c.token, n.expiry(c.ttl)}
		if c.numbered {
			clock := n.still
			if clock == 0 {
				clock = uint64(time.Now().UnixMicro())
			}
			n.changed(c.key)
			a := says(StatusOK)
			a.numbers.status, a.number = StatusOK, max(n.numbers[c.key], clock)
			return a
		}
	case at.token == "":
		return says(StatusAbsent)
	case c.op == opFence && at.token != c.token:
		return says(StatusAbsent)
	case c.op == opFence:
		want, _ := strconv.ParseUint(c.value, 10, 64)
		n.numbers[c.key] = max(n.numbers[c.key], want)
		a := says(StatusOK)
		a.number = n.numbers[c.key]
		return a
	case at.token != c.token:
		return says(StatusHeld)
	case c.op == opRelease:
		delete(n.keys, c.key)
	case c.op == opRevoke:
		n.keys[c.key] = memCopy{c.value, at.expires}
	case c.op == opExtend:
		n.keys[c.key] = memCopy{c.token, n.expiry(c.ttl)}
	}
	n.changed(c.key)
	return says(StatusOK)
}

// changed tells those who have read the key; n.mu is held.
func (n *memNode) changed(key string) {
	for t := range n.trackings {
		if t.tracked[key] {
			delete(t.tracked, key)
			t.say(message{changed: true, keys: []string{key}})
		}
	}
}

// inbox is a sink that keeps the answers.
type inbox chan answer

func (b inbox) answered(a answer) { b <- a }

// memDialer is a wire to a memNode. Mutants break a rule on the way.
type memDialer struct {
	node  *memNode
	twist func(batch []*call) []*call // what arrives instead
}

func (w memDialer) open(ctx context.Context) (link, error) {
	w.node.mu.Lock()
	down, hung, resumed, connect := w.node.down, w.node.hung, w.node.resumed, w.node.connect
	w.node.mu.Unlock()
	time.Sleep(connect)
	if down {
		return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	}
	if hung {
		select {
		case <-resumed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	l := &memLink{memDialer: w, kick: make(chan struct{}, 1)}
	w.node.set(func(n *memNode) {
		if l.incarnation = n.incarnation; !n.mute {
			l.runID = fmt.Sprintf("%p run %d", n, n.incarnation)
		}
		n.links = append(n.links, l)
	})
	return l, nil
}

// memLink is a connection to a memNode. Whatever the delays, requests arrive
// in order, and so do replies.
type memLink struct {
	memDialer
	kick        chan struct{}
	incarnation int
	runID       string

	mu         sync.Mutex
	replies    []answer
	deadline   time.Time
	closed     bool
	going      []func() // requests on their way, and replies
	coming     []func()
	there, had time.Time // when the last of them arrive
	reset      bool      // under node.mu: the node was down when a request came
}

func (l *memLink) send(batch []*call) error {
	n := l.node
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.down || l.incarnation != n.incarnation {
		return syscall.ECONNRESET
	}
	sent := append([]*call(nil), batch...)
	arriving := sent
	if l.twist != nil {
		arriving = l.twist(append([]*call(nil), batch...))
	}
	var to, back time.Duration
	if n.delay != nil {
		to, back = n.delay()
	}
	run := func() { // n.mu is held
		n.sent++
		results := make(map[*call]answer)
		for _, c := range arriving {
			results[c] = n.apply(c)
		}
		l.later(&l.coming, &l.had, back, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			for _, c := range sent {
				l.replies = append(l.replies, results[c])
			}
			l.poke()
		})
	}
	// To a hung node too, after the requests on their way there.
	l.later(&l.going, &l.there, to, func() {
		switch {
		case l.reset:
		case n.hung:
			n.buffer = append(n.buffer, run)
		case n.down || l.incarnation != n.incarnation:
			// Nothing arrives on this connection any more, since a request would then
			// get the reply to another.
			l.reset = true
			l.close()
		default: // also after this connection was given up
			run()
		}
	})
	return nil
}

// later calls f after d, but after everything in the queue; n.mu is held, now and then.
func (l *memLink) later(queue *[]func(), last *time.Time, d time.Duration, f func()) {
	at := time.Now().Add(d)
	if at.Before(*last) {
		at = *last
	}
	*last = at
	wait := time.Until(at)
	if wait == 0 && len(*queue) == 0 {
		f()
		return
	}
	*queue = append(*queue, f)
	time.AfterFunc(wait, func() {
		l.node.mu.Lock()
		defer l.node.mu.Unlock()
		first := (*queue)[0] // timers of one instant fire in any order
		*queue = (*queue)[1:]
		first()
	})
}

func (l *memLink) poke() {
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

func (l *memLink) receive(oldest func() *call) (*call, answer, error) {
	for {
		l.mu.Lock()
		if l.closed {
			l.mu.Unlock()
			return nil, answer{}, net.ErrClosed
		}
		wait := time.Until(l.deadline)
		bounded := !l.deadline.IsZero()
		// Like a socket: after its deadline it reads nothing, even if replies are waiting.
		if len(l.replies) > 0 && (!bounded || wait > 0) {
			r := l.replies[0]
			l.replies = l.replies[1:]
			l.mu.Unlock()
			return oldest(), r, nil
		}
		l.mu.Unlock()
		if !bounded {
			<-l.kick
			continue
		}
		if wait <= 0 {
			return nil, answer{}, os.ErrDeadlineExceeded
		}
		select {
		case <-l.kick:
		case <-time.After(wait):
		}
	}
}

func (l *memLink) expect(by time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deadline = by
	l.poke()
}

func (l *memLink) abort() { l.close() }

func (l *memLink) serverID() string { return l.runID }

func (l *memLink) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.poke()
}

// newMemClient is a client over masters in memory.
func newMemClient(t testing.TB, nodes []*memNode, opt Options, twist func(*memNode) func([]*call) []*call) *Client {
	t.Helper()
	return wired(t, nodes, opt, twist, nil, nil)
}

// wired makes clients with connections of another kind; nil: as they are.
func wired(t testing.TB, nodes []*memNode, opt Options, twist func(*memNode) func([]*call) []*call, to func(memDialer) dialer, trackingTo func(*memTracking) trackingConn) *Client {
	t.Helper()
	opt, err := opt.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	named, by := make([]*Node, len(nodes)), make(map[*Node]*memNode)
	for i := range nodes {
		if named[i], err = NewNode(fmt.Sprint("n", i+1), &redis.Options{Addr: "memory"}); err != nil {
			t.Fatal(err)
		}
		by[named[i]] = nodes[i]
	}
	c := newClient(named, opt, func(n *Node, _ *patience) dialer {
		w := memDialer{node: by[n]}
		if twist != nil {
			w.twist = twist(by[n])
		}
		if to != nil {
			return to(w)
		}
		return w
	}, func(n *Node) trackingConn {
		m := &memTracking{node: by[n], heard: make(chan message, 10_000)}
		if trackingTo != nil {
			return trackingTo(m)
		}
		return m
	})
	c.suspended = func() time.Duration { return 0 } // the machine never slept
	return c
}

// sleepy lets the machine of a client sleep.
func sleepy(c *Client) (sleep func(time.Duration)) {
	var slept atomic.Int64
	slept.Store(int64(time.Hour)) // before all this
	c.suspended = func() time.Duration { return time.Duration(slept.Load()) }
	return func(d time.Duration) { slept.Add(int64(d)) }
}

// memTracking is the trackingConn of a memNode. As with Redis, an expiry is not told of.
type memTracking struct {
	node    *memNode
	heard   chan message
	tracked map[string]bool // under node.mu, nil: not open

	mu    sync.Mutex
	by    time.Time
	moved chan struct{} // closed when by has changed
	ended chan struct{} // closed when the connection is
	gone  bool          // for good
}

func (t *memTracking) open(ctx context.Context) (bool, error) {
	n := t.node
	n.mu.Lock()
	down, hung, resumed, connect, trackingDown := n.down, n.hung, n.resumed, n.connect, n.trackingDown
	n.mu.Unlock()
	time.Sleep(connect)
	if down || trackingDown {
		return false, syscall.ECONNREFUSED
	}
	if hung {
		select {
		case <-resumed:
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gone {
		return false, ErrClosed
	}
	for len(t.heard) > 0 {
		<-t.heard
	}
	t.by, t.moved, t.ended = time.Time{}, make(chan struct{}), make(chan struct{})
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.trackings == nil {
		n.trackings = make(map[*memTracking]bool)
	}
	n.trackings[t], t.tracked = true, make(map[string]bool)
	n.opened++
	return !n.deaf, nil
}

func (t *memTracking) say(m message) { t.heard <- m }

func (t *memTracking) ask(key string) error {
	n := t.node
	n.mu.Lock()
	defer n.mu.Unlock()
	if t.tracked == nil {
		return errSpent
	}
	tracked := t.tracked
	f := func() {
		n.reads++
		at := n.get(key)
		if n.trackings[t] {
			t.say(message{there: at.token != "", token: at.token, ttl: time.Until(at.expires)})
			tracked[key] = !n.deaf
		}
	}
	switch {
	case n.down:
		return syscall.ECONNRESET
	case n.hung:
		n.buffer = append(n.buffer, f)
	default:
		f()
	}
	return nil
}

func (t *memTracking) ping() error {
	n := t.node
	n.mu.Lock()
	defer n.mu.Unlock()
	f := func() {
		if n.trackings[t] {
			t.say(message{})
		}
	}
	switch {
	case t.tracked == nil, n.down:
		return syscall.ECONNRESET
	case n.hung:
		n.buffer = append(n.buffer, f)
	default:
		f()
	}
	return nil
}

func (t *memTracking) receive() (message, error) {
	for {
		t.mu.Lock()
		by, moved, ended := t.by, t.moved, t.ended
		t.mu.Unlock()
		if ended == nil { // closed before it was heard
			return message{}, net.ErrClosed
		}
		var late <-chan time.Time
		if !by.IsZero() {
			late = time.After(time.Until(by))
		}
		select {
		case m := <-t.heard:
			return m, nil
		case <-late:
			return message{}, os.ErrDeadlineExceeded
		case <-moved:
		case <-ended:
			return message{}, net.ErrClosed
		}
	}
}

func (t *memTracking) deadline(by time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.moved != nil {
		t.by = by
		close(t.moved)
		t.moved = make(chan struct{})
	}
}

func (t *memTracking) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended == nil {
		return
	}
	close(t.ended)
	t.ended, t.moved = nil, nil
	t.node.set(func(n *memNode) {
		delete(n.trackings, t)
		t.tracked = nil
	})
}

func (t *memTracking) end() {
	t.mu.Lock()
	t.gone = true
	t.mu.Unlock()
	t.close()
}
