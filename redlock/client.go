package redlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"redlockctl/base/crash"
	"redlockctl/redlock/attempt"
)

// The order of mutexes. While a mutex is held, only one further to the right in the
// same line may be locked:
//
//	Keeper.mu → Lock.mu → run.mu
//	waitQueues.mu → waitQueue.mu → tracker.mu → redisTracking.mu
//
// All others are leaves: while Client.mu, warmup.mu, admission.mu, servers.mu,
// gather.mu, replies.mu, stream.mu, life.mu or sleepClock.mu is held, no other mutex is
// locked and no sink is called. A sink ([sink.answered]) is called without any mutex
// held, and locks only its own.

// Client runs the Redlock algorithm over a fixed set of masters. It is safe for use by
// many goroutines. It has one connection to each node, however many requests there are,
// and a second one while somebody waits for a lock.
type Client struct {
	nodes     []*Node
	opt       Options
	streams   []*stream
	admission *admission
	warm      *warmup
	waits     *waitQueues
	token     func(note) string // draws a token
	closing   chan struct{}     // closed when Close is called
	// suspended is how long the machine was suspended since it was started.
	suspended func() time.Duration
	ended     sync.Pool // waits that have ended, to be used again

	mu     sync.Mutex
	closed bool
	ops    sync.WaitGroup
}

// newClient opens a client over any kind of dialer and tracking connection.
func newClient(nodes []*Node, opt Options, to func(*Node, *patience) dialer, trackingTo func(*Node) trackingConn) *Client {
	c := &Client{
		nodes: slices.Clone(nodes), opt: opt, token: tokenWith(opt.Owner), suspended: newSleepClock(suspended).suspended,
		streams: make([]*stream, len(nodes)), closing: make(chan struct{}),
		warm: newWarmup(len(nodes)),
	}
	c.admission = &admission{}
	names, conns := make([]string, len(c.nodes)), make([]trackingConn, len(c.nodes))
	for i, n := range c.nodes {
		names[i], conns[i] = n.Name(), trackingTo(n)
	}
	c.waits = newWaitQueues(conns, opt)
	servers := newServers(names)
	for i, n := range c.nodes {
		reply := newPatience(opt.NodeTimeout)
		c.streams[i] = newStream(to(n, reply), reply, opt.ConnectTimeout, hooks{
			first: c.warm.tried, freed: c.admission.poke,
			claim: func(id string) error { return servers.claim(i, id) },
		})
		c.admission.windows = append(c.admission.windows, c.streams[i].window)
	}
	for _, s := range c.streams { // only now: each may ask for room of the others
		s.start()
	}
	return c
}

// Close ends all connections. Locks that are held stay until their TTL ends. Operations
// under way fail with [ErrClosed]; the releases that they owe are still sent, and Close
// waits for them for at most twice the node timeout. The error is always nil.
func (c *Client) Close() error {
	if c == nil || c.closing == nil {
		return nil // it was not made by New
	}
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
	wg.Go(crash.Safe(c.waits.close))
	for _, s := range c.streams {
		wg.Go(crash.Safe(func() { s.close(2 * c.nodeTimeout()) }))
	}
	wg.Wait()
	return nil
}

// nodeTimeout is what a node may take to answer now: what was set, or what the slowest
// node that is well needs.
func (c *Client) nodeTimeout() time.Duration {
	if c.opt.NodeTimeout > 0 {
		return c.opt.NodeTimeout
	}
	most := DefaultNodeTimeout
	for _, s := range c.streams {
		if s.window.well.Load() {
			most = max(most, s.patience.lasts())
		}
	}
	return most
}

// roundTrip is that of the farthest node, as it was last measured; zero: none was.
func (c *Client) roundTrip() (most time.Duration) {
	for _, s := range c.streams {
		most = max(most, s.patience.roundTrip())
	}
	return most
}

// tooShort says why no node can answer within wait, if the round trip is longer; "": it
// is not.
func (c *Client) tooShort(wait, ttl time.Duration) string {
	trip := c.roundTrip()
	if trip < wait {
		return ""
	}
	text := fmt.Sprintf("a round trip takes %s, and a node has %s to answer", trip.Round(time.Millisecond), wait)
	if c.opt.NodeTimeout > 0 && c.opt.NodeTimeout < ttl/10 {
		return text + ": node_timeout (NodeTimeout) is too short for this network; without it, it follows the round trip"
	}
	return text + fmt.Sprintf(", a tenth of the TTL: it needs a TTL of more than %s", (15*trip).Round(100*time.Millisecond))
}

// wait is how long an attempt waits for any node.
func (c *Client) wait(ttl time.Duration) time.Duration { return min(c.nodeTimeout(), ttl/10) }

// Nodes are the N masters, in the order they were configured.
func (c *Client) Nodes() []*Node {
	if c == nil {
		return nil
	}
	return slices.Clone(c.nodes)
}

// Quorum is ⌊N/2⌋ + 1.
func (c *Client) Quorum() int { return Quorum(len(c.nodes)) }

// observe calls [Options.Observe] for an operation that begins. The caller defers the
// function that it returns, with the operation's error.
func (c *Client) observe(ctx context.Context, op, resource string) (ended func(err *error)) {
	if c == nil || c.opt.Observe == nil || ctx == nil {
		return func(*error) {}
	}
	end := c.opt.Observe(ctx, op, resource)
	return func(err *error) { end(*err) }
}

// enter begins an operation, which Close waits for.
func (c *Client) enter(ctx context.Context, op, resource string) error {
	switch {
	case c == nil || c.closing == nil:
		return invalid(op, resource, "the client was not made by New")
	case ctx == nil:
		return invalid(op, resource, "the context is nil")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return &Error{Op: op, Resource: resource, Kind: ErrClosed}
	}
	c.ops.Add(1)
	return nil
}

// enterConnected is enter after the first try to connect to the nodes. If it fails,
// nothing has begun.
func (c *Client) enterConnected(ctx context.Context, op, resource string) error {
	if err := c.enter(ctx, op, resource); err != nil {
		return err
	}
	if err := c.warm.wait(ctx, c.closing, c.opt.ConnectTimeout, c.nodeTimeout); err != nil {
		c.ops.Done()
		return c.endedBy(ctx, op, resource, err, nil)
	}
	return nil
}

// blank returns the results before any node has answered.
func (c *Client) blank() []NodeResult {
	results := make([]NodeResult, len(c.nodes))
	for i, n := range c.nodes {
		results[i].Node = n.Name()
	}
	return results
}

// keep stores an answer in its node's result.
func (c *Client) keep(results []NodeResult, a answer) {
	a.NodeResult.Node = c.nodes[a.node].Name()
	results[a.node] = a.NodeResult
}

// send enqueues a call to all nodes.
func (c *Client) send(ask *request) {
	if ask.queued.IsZero() {
		ask.queued = time.Now()
	}
	calls := make([]call, len(c.streams))
	for i, s := range c.streams {
		calls[i] = call{request: ask, node: i}
		s.enqueue(&calls[i])
	}
}

// gather collects the answers of all nodes to a request.
type gather struct {
	client *Client
	ask    request
	enough func(results []NodeResult) bool // nil: all
	done   chan<- struct{}                 // has room for one
	by     time.Time                       // later answers do not count

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

// complete reports whether the gathering has ended; g.mu is held.
func (g *gather) complete() bool {
	g.ended = g.ended || g.left == 0 || g.enough != nil && g.enough(g.results)
	return g.ended
}

// overdue is called when the node timeout has passed. Nodes that are not healthy have
// failed by now. A healthy node answers, or its stream finds that it hangs, as soon as
// this process has time to read; last says not to wait for that.
func (g *gather) overdue(timeout time.Duration, last bool) (complete bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range g.results {
		if r := &g.results[i]; !g.ended && r.Status == StatusUnanswered && (last || !g.client.streams[i].window.well.Load()) {
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

// ask sends a request to all nodes and waits until there are enough answers. It waits for
// no node longer than its timeout, and not after stop is closed.
func (c *Client) ask(ask request, stop <-chan struct{}, enough func([]NodeResult) bool) []NodeResult {
	timeout := c.nodeTimeout()
	most := max(timeout, takeWindow)
	switch ask.op {
	case opRelease, opRevoke, opTakeHash:
		// Only what was done within this time counts, so that no keeper can have put a
		// copy back that has settled meanwhile.
		timeout, most = min(timeout, takeWindow), takeWindow
	}
	start := time.Now()
	wait := c.startWait(timeout)
	defer c.endWait(wait)
	g := &gather{client: c, ask: ask, enough: enough, done: wait.ready, results: c.blank(), left: len(c.nodes), by: start.Add(most)}
	g.ask.to = g
	c.send(&g.ask)
	for {
		select {
		case <-wait.ready:
			return g.end()
		case <-stop:
			return g.end()
		case now := <-wait.timer.C:
			if g.overdue(timeout, !now.Before(g.by)) {
				return g.end()
			}
			wait.timer.Reset(min(timeout, time.Until(g.by)))
		}
	}
}

// opWait is what an operation waits with, for a moment.
type opWait struct {
	timer *time.Timer
	ready chan struct{} // has room for one
}

// startWait returns an opWait that [Client.endWait] takes back.
func (c *Client) startWait(d time.Duration) *opWait {
	w, ok := c.ended.Get().(*opWait)
	if !ok {
		return &opWait{time.NewTimer(d), make(chan struct{}, 1)}
	}
	w.timer.Reset(d)
	return w
}

// endWait takes w back when nobody can send to w.ready any more.
func (c *Client) endWait(w *opWait) {
	w.timer.Stop()
	select {
	case <-w.ready:
	default:
	}
	c.ended.Put(w)
}

// endedBy is the error of an operation that was cancelled.
func (c *Client) endedBy(ctx context.Context, op, resource string, err error, results []NodeResult) error {
	if errors.Is(err, ErrClosed) {
		return &Error{Op: op, Resource: resource, Kind: ErrClosed, Nodes: results}
	}
	return &Error{Op: op, Resource: resource, Kind: context.Cause(ctx), Nodes: results, ended: ctx.Err()}
}

// MostName is how many bytes the name of a resource may have. A longer one would keep other requests
// to the same node waiting while it travels.
const MostName = 64 << 10

// invalid is the error of an operation whose arguments can never work.
func invalid(op, resource, detail string) error {
	return &Error{Op: op, Resource: resource[:min(len(resource), 256)], Kind: ErrInvalid, detail: detail}
}

// ReservedPrefix begins the keys of this program: counters, canaries, fencing tokens. No lock may have
// such a name.
const ReservedPrefix = "redlockctl:"

func checkResource(op, resource string) error {
	switch {
	case resource == "":
		return invalid(op, resource, "the name of the resource is empty")
	case strings.HasPrefix(resource, ReservedPrefix) && (op == "acquire" || op == "extend"):
		return invalid(op, resource, "names that begin with "+ReservedPrefix+" belong to redlockctl, and no view shows them as locks")
	case len(resource) > MostName:
		return invalid(op, resource, fmt.Sprintf("the name of the resource has %d bytes, more than %d", len(resource), MostName))
	}
	return nil
}

func checkNames(op, resource, token string) error {
	if err := checkResource(op, resource); err != nil || token != "" {
		return err
	}
	return invalid(op, resource, "the token is empty")
}

func (c *Client) checkTTL(op, resource string, ttl time.Duration) error {
	if c == nil || c.closing == nil {
		return invalid(op, resource, "the client was not made by New")
	}
	detail := ""
	switch drift := c.opt.Drift(ttl); {
	case ttl < time.Millisecond:
		detail = fmt.Sprintf("TTL %s is below 1ms, the unit of Redis", ttl)
	case ttl > LongestTTL:
		detail = fmt.Sprintf("TTL %s is above %s", ttl, LongestTTL)
	case drift >= ttl:
		detail = fmt.Sprintf("TTL %s leaves no validity: the drift allowance is %s", ttl, drift)
	default:
		return nil
	}
	return invalid(op, resource, detail)
}

// takeWindow is the time within which answers to a forced removal count.
const takeWindow = attempt.SettleTime / 2
