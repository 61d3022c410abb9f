package labtest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/base/sleep"
	"redlockctl/internal/lab"
	"redlockctl/redlock"
)

// Direction is a way through a [Proxy].
type Direction int

const (
	ToServer Direction = iota
	ToClient
)

const (
	proxyChunk  = 4 << 10 // bytes that travel together
	proxyPacket = 1400    // of them, through a line of a limited width
	proxyQueue  = 64      // chunks on their way, of one connection in one direction
)

// Proxy is the network between the clients of a test and one server, and does
// to it what a test asks for. Bytes of one connection in one direction always
// arrive in order, as TCP has it; what one connection sends may arrive long
// after what a later one sent, as networks have it. What a client sent before
// it hung up still arrives. Memory is bounded: a sender that goes on while its
// bytes are held back is stopped by TCP.
//
// It is safe for use by many goroutines.
type Proxy struct {
	name, target string
	listener     net.Listener
	work         sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	conns    map[*proxied]struct{}
	accepted int
	least    [2]time.Duration
	most     [2]time.Duration
	held     [2]chan struct{} // closed by Resume; nil: not held back
	cut      [2]int           // bytes to let through before a reset; negative: none
	swallow  bool
	losing   bool
	share    [2]float64       // of what travels that is lost on the way
	again    [2]time.Duration // until that is sent once more
	line     [2]*Line         // nil: as wide as you like
	gone     bool             // nobody can connect, and nothing is heard
}

// Line is a line of a limited width that proxies share, such as that of an office: as in TCP, each
// connection gets a part of it, and little waits in front of it.
type Line struct {
	rate float64 // bytes per second

	mu   sync.Mutex
	free time.Time // when all that was sent has passed
}

// NewLine makes a line for so many bits per second.
func NewLine(bits int) *Line { return &Line{rate: float64(bits) / 8} }

// lineQueue is how long bytes wait in front of a line at most.
const lineQueue = 100 * time.Millisecond

// pass sends n bytes, and returns when they have passed, or how long to wait for room.
func (l *Line) pass(n int) (passed time.Time, wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.free.Before(now) {
		l.free = now
	}
	if wait := l.free.Sub(now) - lineQueue; wait > 0 {
		return time.Time{}, wait
	}
	l.free = l.free.Add(time.Duration(float64(n) / l.rate * float64(time.Second)))
	return l.free, 0
}

// NewProxy puts a proxy in front of a server, for as long as the test.
func NewProxy(tb testing.TB, s *lab.Server) *Proxy {
	tb.Helper()
	return newProxy(tb, s.Node().Name(), s.Addr())
}

func newProxy(tb testing.TB, name, target string) *Proxy {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	p := &Proxy{
		name: name, target: target, listener: l,
		conns: make(map[*proxied]struct{}), cut: [2]int{-1, -1},
	}
	p.work.Go(p.accept)
	tb.Cleanup(p.close)
	return p
}

// Proxies puts a proxy in front of each server.
func Proxies(tb testing.TB, servers []*lab.Server) []*Proxy {
	tb.Helper()
	proxies := make([]*Proxy, len(servers))
	for i, s := range servers {
		proxies[i] = NewProxy(tb, s)
	}
	return proxies
}

// Node is the server, by its own name, as it is reached through the proxy. To connect takes a round
// trip.
func (p *Proxy) Node() *redlock.Node {
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		for _, d := range []Direction{ToServer, ToClient} {
			if err := sleep.For(ctx, p.delay(d)); err != nil {
				return nil, dialError(network, err)
			}
		}
		if p.isGone() {
			<-ctx.Done()
			return nil, dialError(network, os.ErrDeadlineExceeded)
		}
		var d net.Dialer
		return d.DialContext(ctx, network, addr)
	}
	n, err := redlock.NewNode(p.name, &redis.Options{Addr: p.Addr(), Dialer: dial})
	if err != nil {
		panic(err) // the name and address are ours
	}
	return n
}

func dialError(network string, err error) error {
	return &net.OpError{Op: "dial", Net: network, Err: err}
}

// Addr is where the proxy listens.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Conns is how many connections have been accepted.
func (p *Proxy) Conns() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.accepted
}

// Delay delays bytes by a random time in [least, most], also on existing connections.
func (p *Proxy) Delay(d Direction, least, most time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.least[d], p.most[d] = least, max(least, most)
}

// Lose has a share of what travels in a direction be lost on the way: it, and all that is behind it on
// the same connection, arrives only when it was sent once more, after again.
func (p *Proxy) Lose(d Direction, share float64, again time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.share[d], p.again[d] = share, again
}

// Through has what travels in a direction pass a line, which other proxies may share; nil: none.
func (p *Proxy) Through(d Direction, l *Line) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.line[d] = l
}

// CutOff cuts the line to the server, as an unplugged cable does: existing connections stay silent,
// and new ones are never established. [Proxy.Resume] ends that.
func (p *Proxy) CutOff() {
	p.Hold(ToServer)
	p.Hold(ToClient)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gone = true
}

func (p *Proxy) isGone() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.gone
}

// Hold keeps back all bytes in a direction until [Proxy.Resume].
func (p *Proxy) Hold(d Direction) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held[d] == nil {
		p.held[d] = make(chan struct{})
	}
}

// Resume lets go of what [Proxy.Hold] keeps back, in both directions.
func (p *Proxy) Resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gone = false
	for d, held := range p.held {
		if held != nil {
			close(held)
			p.held[d] = nil
		}
	}
}

// Strand holds back what the present connections send in a direction, until release is
// called. Later connections overtake them.
func (p *Proxy) Strand(d Direction) (release func()) {
	gate := make(chan struct{})
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.stranded[d] = append(c.stranded[d], gate)
	}
	return sync.OnceFunc(func() { close(gate) })
}

// StrandFeeds is [Proxy.Strand] for the connections on which a client tracks changes.
func (p *Proxy) StrandFeeds(d Direction) (release func()) {
	gate := make(chan struct{})
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		if c.feed {
			c.stranded[d] = append(c.stranded[d], gate)
		}
	}
	return sync.OnceFunc(func() { close(gate) })
}

// LoseChanges drops the servers' reports of changes, and nothing else.
func (p *Proxy) LoseChanges(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.losing = on
}

// Cut lets n more bytes through in a direction, and then resets the connection of the
// last one: a reply is cut off in the middle. It does so once.
func (p *Proxy) Cut(d Direction, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut[d] = n
}

// Swallow makes a half-open network: connections are accepted, and everything sent on
// them, or on existing ones, disappears. A connection that has lost bytes never
// recovers.
func (p *Proxy) Swallow(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.swallow = on
	for c := range p.conns {
		c.lossy = c.lossy || on
	}
}

// Drop resets all connections, and loses the bytes on their way.
func (p *Proxy) Drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.reset()
	}
}

// Heal ends all faults. It does not restore lost bytes, and does not release stranded
// ones.
func (p *Proxy) Heal() {
	p.Resume()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.least, p.most, p.cut, p.swallow, p.losing = [2]time.Duration{}, [2]time.Duration{}, [2]int{-1, -1}, false, false
	p.share, p.line = [2]float64{}, [2]*Line{}
}

// close ends all, and waits for it.
func (p *Proxy) close() {
	p.mu.Lock()
	p.closed = true
	_ = p.listener.Close()
	for c := range p.conns {
		c.reset()
	}
	p.mu.Unlock()
	p.work.Wait()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.work.Go(func() { p.serve(client) })
	}
}

// serve forwards one connection to the server.
func (p *Proxy) serve(client net.Conn) {
	c := &proxied{proxy: p, ends: [2]net.Conn{ToClient: client}, dead: make(chan struct{})}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		_ = client.Close()
		return
	}
	p.conns[c] = struct{}{}
	p.accepted++
	c.lossy = p.swallow
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.conns, c)
		c.reset()
	}()
	server, err := net.DialTimeout("tcp", p.target, time.Second)
	if err != nil {
		return
	}
	p.mu.Lock()
	c.ends[ToServer] = server
	select {
	case <-c.dead: // meanwhile
		_ = server.Close()
	default:
	}
	p.mu.Unlock()
	var work sync.WaitGroup
	for _, d := range []Direction{ToServer, ToClient} {
		queue := make(chan chunk, proxyQueue)
		work.Go(func() { c.read(d, queue) })
		work.Go(func() { c.write(d, queue) })
	}
	work.Wait()
}

// proxied is one connection through a proxy.
type proxied struct {
	proxy *Proxy
	dead  chan struct{} // closed by reset

	// Guarded by the mutex of the proxy; ends does not change once bytes flow.
	ends     [2]net.Conn // by the direction that leads to it
	stranded [2][]chan struct{}
	lossy    bool
	feed     bool // the client tracks changes
	gone     bool
}

type chunk struct {
	bytes []byte
	due   time.Time
}

// reset ends the connection on both sides at once. The mutex of the proxy is
// held.
func (c *proxied) reset() {
	if c.gone {
		return
	}
	c.gone = true
	close(c.dead)
	for _, end := range c.ends {
		if tcp, ok := end.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // a reset, not a normal close
			_ = tcp.Close()
		}
	}
}

// read reads what one side sends, until it closes.
func (c *proxied) read(d Direction, queue chan<- chunk) {
	defer close(queue)
	last := time.Now()
	for {
		buf := make([]byte, proxyChunk)
		if c.proxy.lineOf(d) != nil {
			buf = buf[:proxyPacket] // connections that share a line pass by turns
		}
		n, err := c.ends[1-d].Read(buf)
		if n > 0 {
			if d == ToServer && bytes.Contains(buf[:n], []byte("TRACKING")) {
				c.proxy.mu.Lock()
				c.feed = true
				c.proxy.mu.Unlock()
			}
			sent, ok := c.passLine(d, n)
			if !ok {
				return
			}
			due := sent.Add(c.proxy.delay(d))
			if due.Before(last) {
				due = last // bytes do not overtake each other
			}
			last = due
			select {
			case queue <- chunk{buf[:n], due}:
			case <-c.dead:
				return
			}
		}
		if err != nil { // also after a reset: bytes sent before it still arrive
			return
		}
	}
}

// delay is how long something travels, and what is lost until it was sent once more.
func (p *Proxy) delay(d Direction) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	took := p.least[d] + rand.N(p.most[d]-p.least[d]+1)
	for again := p.again[d]; p.share[d] > rand.Float64(); again *= 2 {
		took += again
	}
	return took
}

func (p *Proxy) lineOf(d Direction) *Line {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.line[d]
}

// passLine sends n bytes through the line, if there is one; false: the connection has ended.
func (c *proxied) passLine(d Direction, n int) (time.Time, bool) {
	l := c.proxy.lineOf(d)
	if l == nil {
		return time.Now(), true
	}
	for {
		passed, wait := l.pass(n)
		if wait == 0 {
			return passed, true
		}
		select {
		case <-time.After(wait):
		case <-c.dead:
			return time.Time{}, false
		}
	}
}

// write forwards bytes after their delay, and then the end of the stream. The other
// direction continues without this one.
func (c *proxied) write(d Direction, queue <-chan chunk) {
	end := c.ends[d].(*net.TCPConn)
	for next := range queue {
		if !c.travel(d, next.due) {
			return
		}
		if d == ToClient && c.loses() {
			next.bytes = invalidation.ReplaceAll(next.bytes, nil)
		}
		pass, cut, lost := c.allow(d, len(next.bytes))
		if lost {
			continue
		}
		if _, err := end.Write(next.bytes[:pass]); err != nil && !errors.Is(err, io.ErrClosedPipe) {
			for range queue { // no reader is left
			}
			return
		}
		if cut {
			c.proxy.mu.Lock()
			c.reset()
			c.proxy.mu.Unlock()
			return
		}
	}
	if c.travel(d, time.Time{}) && !c.isLossy() {
		_ = end.CloseWrite()
	}
}

// travel waits until bytes may arrive, and reports whether they ever do.
func (c *proxied) travel(d Direction, due time.Time) bool {
	if wait := time.Until(due); wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-c.dead:
			return false
		}
	}
	for gate := c.gate(d); gate != nil; gate = c.gate(d) {
		select {
		case <-gate:
		case <-c.dead:
			return false
		}
	}
	return true
}

// gate is what holds bytes back; nil: nothing does.
func (c *proxied) gate(d Direction) <-chan struct{} {
	c.proxy.mu.Lock()
	defer c.proxy.mu.Unlock()
	for len(c.stranded[d]) > 0 {
		select {
		case <-c.stranded[d][0]:
			c.stranded[d] = c.stranded[d][1:]
		default:
			return c.stranded[d][0]
		}
	}
	return c.proxy.held[d]
}

// invalidation is a server's report of a change; it is so short that it arrives in one piece.
var invalidation = regexp.MustCompile(`>2\r\n\$10\r\ninvalidate\r\n(_\r\n|\*\d+\r\n(\$\d+\r\n[^\r]*\r\n)*)`)

func (c *proxied) loses() bool {
	c.proxy.mu.Lock()
	defer c.proxy.mu.Unlock()
	return c.proxy.losing
}

func (c *proxied) isLossy() bool {
	c.proxy.mu.Lock()
	defer c.proxy.mu.Unlock()
	return c.lossy
}

// allow returns how many of n bytes pass, whether the connection ends after them, and
// whether they disappear.
func (c *proxied) allow(d Direction, n int) (pass int, cut, lost bool) {
	p := c.proxy
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case c.lossy:
		return 0, false, true
	case p.cut[d] < 0:
		return n, false, false
	case p.cut[d] <= n:
		pass = p.cut[d]
		p.cut[d] = -1
		return pass, true, false
	default:
		p.cut[d] -= n
		return n, false, false
	}
}
