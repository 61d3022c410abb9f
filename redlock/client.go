package redlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// The order of locks. Whoever holds a mutex may lock one that stands further to
// the right in the same line, and no other:
//
//	Keeper.mu → Lock.mu → run.mu
//	watcher.mu → line.mu → ear.mu → redisTap.mu
//
// All the others are leaves: while Client.mu, warmth.mu, gate.mu, servers.mu,
// gather.mu, numbers.mu, stream.mu, life.mu or sleepClock.mu is held, no other mutex
// is locked and no sink is called. A sink ([sink.answered]) is called with nothing
// held, and locks its own alone.

// Client runs the Redlock algorithm over a fixed set of masters. It is safe
// for use by many goroutines. It has one connection for each node, whatever the
// number of requests, and one more while somebody waits for a lock.
type Client struct {
	nodes   []*Node
	opt     Options
	streams []*stream
	gate    *gate
	warm    *warmth
	watcher *watcher
	token   func(note) string // draws one
	closing chan struct{}     // closed when Close is called
	// suspended is for how long the machine has slept since it was started.
	suspended func() time.Duration

	mu     sync.Mutex
	closed bool
	ops    sync.WaitGroup
}

// New opens a client; it does not wait for any node to answer. Connections
// are opened in the background at once, and again whenever one was lost. It
// fails for options that contradict themselves, for no nodes, and for two
// nodes of the same name.
func New(nodes []*Node, opt Options) (*Client, error) {
	opt, err := opt.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if len(nodes) == 0 {
		return nil, fmt.Errorf("%w: no nodes", ErrInvalid)
	}
	seen := make(map[string]bool)
	for _, n := range nodes {
		switch {
		case n == nil:
			return nil, fmt.Errorf("%w: a node is nil", ErrInvalid)
		case seen[n.Name()]:
			return nil, fmt.Errorf("%w: two nodes are named %s", ErrInvalid, quote(n.Name()))
		}
		seen[n.Name()] = true
	}
	return newClient(nodes, opt, func(n *Node) wire {
		return redisWire{n, opt.NodeTimeout, opt.ConnectTimeout}
	}, func(n *Node) tap { return newRedisTap(n, opt.ConnectTimeout) }), nil
}

// newClient opens a client over any kind of wire and tap.
func newClient(nodes []*Node, opt Options, to func(*Node) wire, tapTo func(*Node) tap) *Client {
	c := &Client{
		nodes: slices.Clone(nodes), opt: opt, token: tokenWith(opt.Owner), suspended: newSleepClock(suspended).suspended,
		streams: make([]*stream, len(nodes)), closing: make(chan struct{}),
		warm: newWarmth(len(nodes)),
	}
	c.gate = &gate{}
	names, taps := make([]string, len(c.nodes)), make([]tap, len(c.nodes))
	for i, n := range c.nodes {
		names[i], taps[i] = n.Name(), tapTo(n)
	}
	c.watcher = newWatcher(taps, opt)
	servers := newServers(names)
	for i, n := range c.nodes {
		c.streams[i] = newStream(to(n), opt.NodeTimeout, opt.ConnectTimeout, hooks{
			first: c.warm.tried, freed: c.gate.poke,
			claim: func(id string) error { return servers.claim(i, id) },
		})
		c.gate.rooms = append(c.gate.rooms, c.streams[i].room)
	}
	for _, s := range c.streams { // which may ask for the others' room
		s.start()
	}
	return c
}

// Close ends all connections. Locks that are held stay until their TTL ends.
// Operations under way are given up with [ErrClosed]; releases that they left
// behind are still sent, for which Close waits no longer than twice the node
// timeout. The error is always nil.
func (c *Client) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	close(c.closing)
	c.mu.Unlock()
	c.ops.Wait()
	var wg sync.WaitGroup
	wg.Go(c.watcher.close)
	for _, s := range c.streams {
		wg.Go(func() { s.close(2 * c.opt.NodeTimeout) })
	}
	wg.Wait()
	return nil
}

// Nodes are the N masters, in the order they were configured.
func (c *Client) Nodes() []*Node { return slices.Clone(c.nodes) }

// Quorum is ⌊N/2⌋ + 1.
func (c *Client) Quorum() int { return Quorum(len(c.nodes)) }

// enter begins an operation, which Close waits for.
func (c *Client) enter(op, resource string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return &Error{Op: op, Resource: resource, Kind: ErrClosed}
	}
	c.ops.Add(1)
	return nil
}

// blank are the results of nodes that have not answered.
func (c *Client) blank() []NodeResult {
	results := make([]NodeResult, len(c.nodes))
	for i, n := range c.nodes {
		results[i].Node = n.Name()
	}
	return results
}

// keep puts an answer in its place.
func (c *Client) keep(results []NodeResult, a answer) {
	a.NodeResult.Node = c.nodes[a.node].Name()
	results[a.node] = a.NodeResult
}

// send enqueues a call to all nodes.
func (c *Client) send(proto call) {
	if proto.queued.IsZero() {
		proto.queued = time.Now()
	}
	calls := make([]call, len(c.streams))
	for i, s := range c.streams {
		calls[i] = proto
		calls[i].node = i
		s.enqueue(&calls[i])
	}
}

// gather collects the answers of all nodes to one call.
type gather struct {
	client *Client
	enough func(results []NodeResult) bool // nil: all
	done   chan struct{}                   // has room for one
	by     time.Time                       // what comes later does not count

	mu      sync.Mutex
	results []NodeResult
	left    int // answers that are still to come
	ended   bool
}

func (g *gather) answered(a answer) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended || a.at.After(g.by) || g.results[a.node].Status != StatusUnanswered {
		return
	}
	g.client.keep(g.results, a)
	g.left--
	if g.complete() {
		g.done <- struct{}{}
	}
}

// complete reports whether no more answers are waited for; g.mu is held.
func (g *gather) complete() bool {
	g.ended = g.ended || g.left == 0 || g.enough != nil && g.enough(g.results)
	return g.ended
}

// overdue is told that the node timeout is over. The nodes that are not well have
// failed by now; one that is well answers, or is found hung by its stream, as soon as
// this process has the time to look, which last tells not to wait for.
func (g *gather) overdue(timeout time.Duration, last bool) (complete bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range g.results {
		if r := &g.results[i]; !g.ended && r.Status == StatusUnanswered && (last || !g.client.streams[i].room.well.Load()) {
			r.Status, r.Err = StatusSlow, fmt.Errorf("no answer within %s", timeout)
			g.left--
		}
	}
	return g.complete()
}

// end stops counting answers.
func (g *gather) end() []NodeResult {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ended = true
	return g.results
}

// ask sends a call to all nodes and waits for the answers, until they are
// enough, but for no node that is silent longer than its timeout, and not after stop
// is closed.
func (c *Client) ask(proto call, stop <-chan struct{}, enough func([]NodeResult) bool) []NodeResult {
	timeout, most := c.opt.NodeTimeout, max(c.opt.NodeTimeout, takeWindow)
	switch proto.op {
	case opRelease, opRevoke, opTakeHash:
		// What counts was done within this time, so that no keeper can have put a copy
		// back, and have it settled, behind the back of it.
		timeout, most = min(timeout, takeWindow), takeWindow
	}
	start := time.Now()
	g := &gather{client: c, enough: enough, done: make(chan struct{}, 1), results: c.blank(), left: len(c.nodes), by: start.Add(most)}
	proto.to = g
	c.send(proto)
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for {
		select {
		case <-g.done:
			return g.end()
		case <-stop:
			return g.end()
		case now := <-timer.C:
			if g.overdue(timeout, !now.Before(g.by)) {
				return g.end()
			}
			timer.Reset(min(timeout, time.Until(g.by)))
		}
	}
}

// Inspect reads the copies of a resource on all nodes, and changes nothing. Of
// each node it tells:
//
//   - [StatusHeld]: a string is there; Token is its value, of which at most the
//     first 256 bytes are read, Len its whole length, TTL what is left;
//   - [StatusAbsent]: nothing is there;
//   - [StatusProtocol] with a Type: something that is no token is there;
//   - else: why the node did not tell.
//
// A node that does not answer does not fail it. It fails with [ErrNoQuorum]
// when no node answered at all, with [ErrInvalid], [ErrClosed], or the cause of
// the context's end.
func (c *Client) Inspect(ctx context.Context, resource string) ([]NodeResult, error) {
	const op = "inspect"
	if resource == "" {
		return nil, &Error{Op: op, Resource: resource, Kind: ErrInvalid, detail: "the name of the resource is empty"}
	}
	if err := c.enter(op, resource); err != nil {
		return nil, err
	}
	defer c.ops.Done()
	if err := c.warm.wait(ctx, c.closing, c.opt); err != nil {
		return nil, c.endedBy(ctx, op, resource, err, nil)
	}
	results := c.look(ctx, resource)
	if ctx.Err() != nil {
		return results, c.endedBy(ctx, op, resource, ctx.Err(), results)
	}
	for _, r := range results {
		if answered(r) {
			return results, nil
		}
	}
	return results, &Error{Op: op, Resource: resource, Kind: ErrNoQuorum, Nodes: results}
}

func (c *Client) look(ctx context.Context, resource string) []NodeResult {
	return c.lookUntil(ctx, resource, nil)
}

func (c *Client) lookUntil(ctx context.Context, resource string, enough func([]NodeResult) bool) []NodeResult {
	if c.gate.enter(ctx, false, c.closing) != nil {
		return c.blank()
	}
	return c.ask(call{op: opInspect, key: resource, admitted: true, notAfter: time.Now().Add(c.opt.NodeTimeout)}, ctx.Done(), enough)
}

// answered tells if a node was there.
func answered(r NodeResult) bool {
	switch r.Status {
	case StatusUnanswered, StatusDown, StatusSlow, StatusSkipped:
		return false
	}
	return true
}

// Release deletes the copies of token on all N nodes, and only those: each
// node compares. It is sent although ctx is over, and waits for no silent node longer
// than the node timeout. A node that is down does not fail it, and is told as
// soon as it answers again while the client is open.
//
// Clean is a node that deleted the copy, has nothing there or has another
// value there. The error is nil when a quorum is clean and a copy was
// deleted: the token holds no quorum any more. It is [ErrNotHeld] when a quorum
// is clean and none of it had the token, and [ErrNoQuorum] when less than a
// quorum is clean: the token may go on holding the lock until its copies
// expire. The results tell of each node if a copy may be left on it.
func (c *Client) Release(ctx context.Context, resource, token string) ([]NodeResult, error) {
	return c.release(ctx, call{key: resource, token: token}, nil)
}

// release is Release, of which more may be known (see [call]); enough ends the
// waiting before all nodes have answered.
func (c *Client) release(ctx context.Context, ask call, enough func([]NodeResult) bool) ([]NodeResult, error) {
	const op = "release"
	resource, token := ask.key, ask.token
	if err := checkNames(op, resource, token); err != nil {
		return nil, err
	}
	if err := c.enter(op, resource); err != nil {
		return nil, err
	}
	defer c.ops.Done()
	// Without ctx: a release is sent all the same.
	_ = c.warm.wait(context.WithoutCancel(ctx), nil, c.opt)
	ask.op, ask.admitted = opRelease, c.enterRelease(ctx)
	results := c.ask(ask, nil, enough)
	err := c.judgeRelease(op, resource, results)
	if err == nil {
		c.watcher.released(resource)
	}
	return results, err
}

// enterRelease waits for room for a release, and tells if there is any: as long
// as ctx runs, and after its end for no longer than a node may take to answer.
func (c *Client) enterRelease(ctx context.Context) bool {
	if ctx.Err() == nil && c.gate.enter(ctx, true, nil) == nil {
		return true
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.opt.NodeTimeout)
	defer cancel()
	return c.gate.enter(ctx, true, nil) == nil
}

// judgeRelease says what the answers to a release mean.
func (c *Client) judgeRelease(op, resource string, results []NodeResult) error {
	clean, deleted := tally(results)
	switch {
	case clean < c.Quorum():
		return &Error{Op: op, Resource: resource, Kind: ErrNoQuorum, Nodes: results}
	case deleted == 0:
		return &Error{Op: op, Resource: resource, Kind: ErrNotHeld, Nodes: results}
	}
	return nil
}

// released tells if a token holds no quorum any more, whatever the nodes say
// that have not answered.
func (c *Client) released(results []NodeResult) bool {
	clean, deleted := tally(results)
	return clean >= c.Quorum() && deleted > 0
}

func tally(results []NodeResult) (clean, deleted int) {
	for i := range results {
		if isClean(results[i]) {
			clean++
		}
		if results[i].Status == StatusOK {
			deleted++
		}
	}
	return clean, deleted
}

// isClean tells of a node's part in a release if no copy of the token is left
// there.
func isClean(r NodeResult) bool {
	switch r.Status {
	case StatusOK, StatusAbsent, StatusHeld:
		return true
	}
	return wrongType(r)
}

// wrongType tells that the key holds something that is no string, hence not
// the token.
func wrongType(r NodeResult) bool {
	return r.Status == StatusProtocol && r.Err != nil && says(r.Err, "WRONGTYPE")
}

// endedBy is the error of an operation that was given up.
func (c *Client) endedBy(ctx context.Context, op, resource string, err error, results []NodeResult) error {
	if errors.Is(err, ErrClosed) {
		return &Error{Op: op, Resource: resource, Kind: ErrClosed, Nodes: results}
	}
	return &Error{Op: op, Resource: resource, Kind: context.Cause(ctx), Nodes: results, ended: ctx.Err()}
}

func checkNames(op, resource, token string) error {
	switch {
	case resource == "":
		return &Error{Op: op, Resource: resource, Kind: ErrInvalid, detail: "the name of the resource is empty"}
	case token == "":
		return &Error{Op: op, Resource: resource, Kind: ErrInvalid, detail: "the token is empty"}
	}
	return nil
}

func (c *Client) checkTTL(op, resource string, ttl time.Duration) error {
	detail := ""
	switch drift := c.opt.Drift(ttl); {
	case ttl < time.Millisecond:
		detail = fmt.Sprintf("TTL %s is below 1ms, the unit of Redis", ttl)
	case ttl > maxTTL:
		detail = fmt.Sprintf("TTL %s is above %s", ttl, maxTTL)
	case drift >= ttl:
		detail = fmt.Sprintf("TTL %s leaves no validity: the drift allowance is %s", ttl, drift)
	default:
		return nil
	}
	return &Error{Op: op, Resource: resource, Kind: ErrInvalid, detail: detail}
}

// warmth lets the first operations of a client wait for connections that are
// being opened, so that opening them does not use up their node timeout. It is
// over for good when all nodes have been tried, or when a node has held an
// operation up once.
type warmth struct {
	mu      sync.Mutex
	untried int
	up      int
	need    int
	ready   chan struct{} // closed when a quorum is up
	over    chan struct{}
	end     func() // closes over
}

func newWarmth(n int) *warmth {
	w := &warmth{untried: n, need: Quorum(n), ready: make(chan struct{}), over: make(chan struct{})}
	w.end = sync.OnceFunc(func() { close(w.over) })
	return w
}

// tried is told the end of each node's first try to connect.
func (w *warmth) tried(up bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if up {
		if w.up++; w.up == w.need {
			close(w.ready)
		}
	}
	if w.untried--; w.untried == 0 {
		w.end()
	}
}

// wait waits until all nodes have been tried, but no longer than it may take
// to connect, and once a quorum is up no longer than a node timeout.
func (w *warmth) wait(ctx context.Context, closing <-chan struct{}, opt Options) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	select {
	case <-w.over:
		return nil
	default:
	}
	timer := time.NewTimer(opt.ConnectTimeout)
	defer timer.Stop()
	ready := w.ready
	for {
		select {
		case <-w.over:
			return nil
		case <-ready:
			ready = nil
			timer.Reset(opt.NodeTimeout)
		case <-timer.C:
			w.end()
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-closing:
			return ErrClosed
		}
	}
}
