package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/internal/crash"
	"redlockctl/internal/sleep"
	"redlockctl/redlock"
)

// ErrKind is returned by [Wrong.Start] for a kind that there is not.
var ErrKind = errors.New("no such kind of clients")

// WrongKind is a way to use locks wrongly.
type WrongKind struct{ Name, Does string }

// WrongKinds are all of them.
func WrongKinds() []WrongKind {
	return []WrongKind{
		{"leak", "lock without a TTL and never release: blocked for ever"},
		{"overstay", "ask for three times max TTL: longer than D covers"},
		{"split", "give up half way and do not clean up: copies of two tokens"},
	}
}

// Wrong starts clients that use locks wrongly, so that it can be seen what that
// looks like. What they have set is taken away when they end. It is safe for use
// by many goroutines.
type Wrong struct {
	nodes  []*redlock.Node
	maxTTL time.Duration

	mu      sync.Mutex
	clients map[string][]*wrongClient
	started int
	closed  bool
}

// NewWrong starts nothing yet; maxTTL is that of the cluster.
func NewWrong(nodes []*redlock.Node, maxTTL time.Duration) *Wrong {
	return &Wrong{nodes: nodes, maxTTL: maxTTL, clients: map[string][]*wrongClient{}}
}

// Running is how many of a kind are at work.
func (w *Wrong) Running(kind string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.clients[kind])
}

// Start starts n more clients of a kind; 0 ends all of that kind, and waits
// until they have cleaned up.
func (w *Wrong) Start(kind string, n int) error {
	if !slices.ContainsFunc(WrongKinds(), func(k WrongKind) bool { return k.Name == kind }) {
		return fmt.Errorf("%w: %q", ErrKind, kind)
	}
	if n == 0 {
		w.mu.Lock()
		clients := w.clients[kind]
		delete(w.clients, kind)
		w.mu.Unlock() // they may take a while, and Running is asked for meanwhile
		end(clients)
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return ErrClosed
	}
	for range n {
		w.started++
		ctx, cancel := context.WithCancel(context.Background())
		c := &wrongClient{
			kind: kind, key: kind + ":" + strconv.Itoa(w.started), token: fmt.Sprintf("%s-client-%d", kind, w.started),
			maxTTL: w.maxTTL, cancel: cancel, done: make(chan struct{}),
		}
		for _, node := range w.nodes {
			c.nodes = append(c.nodes, node.Client(1, unfenceTimeout))
		}
		w.clients[kind] = append(w.clients[kind], c)
		crash.Go(func() { c.run(ctx) })
	}
	return nil
}

// Close ends all clients.
func (w *Wrong) Close() {
	w.mu.Lock()
	w.closed = true
	var all []*wrongClient
	for _, clients := range w.clients {
		all = append(all, clients...)
	}
	clear(w.clients)
	w.mu.Unlock()
	end(all)
}

func end(clients []*wrongClient) {
	for _, c := range clients {
		c.cancel()
	}
	for _, c := range clients {
		<-c.done
	}
}

// wrongClient is one of them, with a lock of its own.
type wrongClient struct {
	kind, key, token string
	maxTTL           time.Duration
	nodes            []*redis.Client
	cancel           context.CancelFunc
	done             chan struct{}
}

func (c *wrongClient) run(ctx context.Context) {
	defer close(c.done)
	defer func() {
		for _, n := range c.nodes {
			_ = n.Close()
		}
	}()
	for ctx.Err() == nil {
		c.each(ctx, c.act)
		if sleep.For(ctx, max(c.maxTTL/4, 100*time.Millisecond)) != nil {
			break
		}
	}
	// A master that hangs must not keep the others' copies.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unfenceTimeout)
	defer cancel()
	c.each(ctx, func(ctx context.Context, _ int, n *redis.Client) { _ = n.Del(ctx, c.key).Err() })
}

// each does something on every node at once.
func (c *wrongClient) each(ctx context.Context, do func(context.Context, int, *redis.Client)) {
	var wg sync.WaitGroup
	for i, n := range c.nodes {
		wg.Go(crash.Safe(func() { do(ctx, i, n) }))
	}
	wg.Wait()
}

// act does the wrong thing on one node. A node that is down or closed refuses
// it, as it should.
func (c *wrongClient) act(ctx context.Context, i int, n *redis.Client) {
	switch c.kind {
	case "leak":
		_ = n.SetNX(ctx, c.key, c.token, 0).Err()
	case "overstay":
		_ = n.SetNX(ctx, c.key, c.token, 3*c.maxTTL).Err()
	case "split":
		// Two clients that started at the same moment, each got half, and neither
		// released its half.
		token := c.token + []string{"-a", "-b"}[i%2]
		_ = n.SetNX(ctx, c.key, token, c.maxTTL).Err()
	}
}
