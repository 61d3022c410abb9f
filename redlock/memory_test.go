package redlock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
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

	mu      sync.Mutex
	keys    map[string]memCopy
	down    bool
	fenced  bool
	hung    bool
	resumed chan struct{}                   // closed at the end of a hang
	buffer  []func()                        // what came meanwhile
	delay   func() (to, back time.Duration) // of a pipeline; nil: none
	connect time.Duration                   // that dialling and greeting take
	sent    int                             // pipelines that arrived
}

type memCopy struct {
	token   string
	expires time.Time
}

func newMemNodes(n int) []*memNode {
	nodes := make([]*memNode, n)
	for i := range nodes {
		nodes[i] = &memNode{keys: make(map[string]memCopy)}
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
func (n *memNode) apply(c *call) NodeResult {
	at := n.get(c.key)
	switch {
	case c.op == opInspect && at.token != "":
		return NodeResult{Status: StatusHeld, Type: "string", Token: at.token, TTL: time.Until(at.expires)}
	case c.op == opInspect:
		return NodeResult{Status: StatusAbsent}
	case n.fenced:
		return NodeResult{Status: StatusFenced, Err: errors.New("NOREPLICAS")}
	case c.op == opSet && at.token != "":
		return NodeResult{Status: StatusHeld}
	case c.op == opSet:
		n.keys[c.key] = memCopy{c.token, n.expiry(c.ttl)}
	case at.token == "":
		return NodeResult{Status: StatusAbsent}
	case at.token != c.token:
		return NodeResult{Status: StatusHeld}
	case c.op == opRelease:
		delete(n.keys, c.key)
	case c.op == opExtend:
		if e := n.expiry(c.ttl); e.After(at.expires) {
			n.keys[c.key] = memCopy{c.token, e}
		}
	}
	return NodeResult{Status: StatusOK}
}

// inbox is a sink that keeps the answers.
type inbox chan answer

func (b inbox) answered(a answer) { b <- a }

// memWire is a wire to a memNode. Twins break a rule on the way.
type memWire struct {
	node  *memNode
	twist func(batch []*call) []*call // what arrives instead
}

func (w memWire) open(ctx context.Context) (link, error) {
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
	return &memLink{memWire: w, kick: make(chan struct{}, 1)}, nil
}

// memLink is a connection to a memNode. Whatever the delays, requests arrive
// in order, and so do replies.
type memLink struct {
	memWire
	kick chan struct{}

	mu         sync.Mutex
	replies    []NodeResult
	deadline   time.Time
	closed     bool
	going      []func() // requests on their way, and replies
	coming     []func()
	there, had time.Time // when the last of them arrive
}

func (l *memLink) send(batch []*call) error {
	n := l.node
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.down {
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
		results := make(map[*call]NodeResult)
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
	if n.hung {
		n.buffer = append(n.buffer, run)
		return nil
	}
	l.later(&l.going, &l.there, to, func() {
		switch {
		case n.hung:
			n.buffer = append(n.buffer, run)
		case !n.down: // also after this connection was given up
			run()
		}
	})
	return nil
}

// later does f in d, but behind what is in the queue; n.mu is held, now and then.
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
		if len(l.replies) > 0 {
			r := l.replies[0]
			l.replies = l.replies[1:]
			l.mu.Unlock()
			return oldest(), answer{NodeResult: r}, nil
		}
		wait := time.Until(l.deadline)
		bounded := !l.deadline.IsZero()
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

func (l *memLink) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.poke()
}

// newMemClient is a client over masters in memory.
func newMemClient(t testing.TB, nodes []*memNode, opt Options, twist func(*memNode) func([]*call) []*call) *Client {
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
	return newClient(named, opt, func(n *Node) wire {
		w := memWire{node: by[n]}
		if twist != nil {
			w.twist = twist(by[n])
		}
		return w
	})
}
