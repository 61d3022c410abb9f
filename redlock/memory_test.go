package redlock

import (
	"context"
	"errors"
	"fmt"
	"net"
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

// memWire is a wire to a memNode. Twins break a rule on the way.
type memWire struct {
	node    *memNode
	timeout time.Duration
	twist   func(batch []*call) []*call // what arrives instead

	mu     sync.Mutex
	up     bool
	ended  chan struct{}
	ending bool
}

func newMemWire(n *memNode, timeout time.Duration) *memWire {
	return &memWire{node: n, timeout: timeout, ended: make(chan struct{})}
}

func (w *memWire) open(ctx context.Context) error {
	w.node.mu.Lock()
	down, hung, resumed, connect := w.node.down, w.node.hung, w.node.resumed, w.node.connect
	w.node.mu.Unlock()
	time.Sleep(connect)
	if down {
		return &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	}
	if hung {
		select {
		case <-resumed:
		case <-ctx.Done():
			return ctx.Err()
		case <-w.ended:
			return ErrClosed
		}
	}
	w.mu.Lock()
	w.up = true
	w.mu.Unlock()
	return nil
}

func (w *memWire) send(ctx context.Context, batch []*call) ([]answer, error) {
	fail := func(s Status, err error, sent bool) ([]answer, error) {
		answers := make([]answer, len(batch))
		for i := range answers {
			answers[i] = answer{NodeResult: NodeResult{Status: s, Err: err}, sent: sent}
		}
		w.mu.Lock()
		w.up = false
		w.mu.Unlock()
		return answers, err
	}
	w.mu.Lock()
	up := w.up
	w.mu.Unlock()
	if !up {
		return fail(StatusDown, errSpent, false)
	}
	n := w.node
	n.mu.Lock()
	if n.down {
		n.mu.Unlock()
		return fail(StatusDown, syscall.ECONNRESET, true)
	}
	arriving := batch
	if w.twist != nil {
		arriving = w.twist(append([]*call(nil), batch...))
	}
	results := make(map[*call]NodeResult)
	run := func() {
		n.sent++
		for _, c := range arriving {
			results[c] = n.apply(c)
		}
	}
	if n.hung {
		n.buffer = append(n.buffer, run)
		n.mu.Unlock()
		select {
		case <-time.After(w.timeout):
		case <-w.ended:
		}
		return fail(StatusSlow, context.DeadlineExceeded, true)
	}
	var to, back time.Duration
	if n.delay != nil {
		to, back = n.delay()
	}
	if to == 0 {
		run()
		n.mu.Unlock()
	} else {
		n.mu.Unlock()
		if to >= w.timeout { // it arrives after the connection was given up
			time.AfterFunc(to, func() { n.set(func(*memNode) { run() }) })
			time.Sleep(w.timeout)
			return fail(StatusSlow, context.DeadlineExceeded, true)
		}
		time.Sleep(to)
		n.set(func(*memNode) { run() })
	}
	if to+back >= w.timeout {
		time.Sleep(w.timeout - to)
		return fail(StatusSlow, context.DeadlineExceeded, true)
	}
	time.Sleep(back)
	answers := make([]answer, len(batch))
	for i, c := range batch {
		answers[i] = answer{NodeResult: results[c], sent: true}
	}
	return answers, nil
}

func (w *memWire) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ending {
		w.ending = true
		close(w.ended)
	}
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
		w := newMemWire(by[n], opt.NodeTimeout)
		if twist != nil {
			w.twist = twist(by[n])
		}
		return w
	})
}
