package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"hash/fnv"
	"io"
	mathrand "math/rand/v2"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/internal/who"
	"redlockctl/redlock"
)

// beat is a pace of extensions. Applications with the same beat extend at the same
// moments, also where it is irregular.
type beat struct {
	start  time.Time
	pace   time.Duration
	jitter float64 // part of the pace
	seed   uint64
}

func (b beat) at(k int) time.Time {
	h := fnv.New64a()
	fmt.Fprint(h, b.seed, k)
	off := (float64(h.Sum64()%1000)/1000 - 0.5) * b.jitter
	return b.start.Add(time.Duration((float64(k) + off) * float64(b.pace)))
}

// trapApp is an application in which everything is known: who asks about its locks can be
// judged.
type trapApp struct {
	trap     string
	name     string // of its connections; empty: they have none
	numbered bool   // each connection has a name of its own
	from     string // the address from which it connects
	conns    int
	fifo     bool
	brief    bool          // a connection for each command
	lasts    time.Duration // of a connection; 0: for ever
	relay    *relay        // between it and the servers; nil: none
	beats    []beat        // of its locks
	after    time.Duration // after the beat
	pauses   bool          // it stops for seconds, again and again
	gives    time.Duration // it releases its locks after this time, and acquires them again; 0: never
	shares   string        // the name of its lock, if others want it too
	chatter  float64       // other commands in a second

	world *trapWorld
	pools []*redis.Client
	mu    sync.Mutex
	ports map[string]bool // its ends of connections, ever
	conn  int
}

// trapWorld are applications on one cluster, for some seconds.
type trapWorld struct {
	ctx    context.Context
	addrs  []string
	apps   []*trapApp
	holder sync.Map // token → *trapApp
	keys   []trapKey
}

type trapKey struct{ trap, key string }

func (a *trapApp) groups(g who.Group) bool {
	switch {
	case a.numbered:
		return strings.HasPrefix(g.Name, a.name+"-")
	case a.name != "":
		return g == who.Group{Name: a.name}
	case a.relay != nil:
		return g == who.Group{Host: a.relay.from}
	}
	return g == who.Group{Host: a.from}
}

// bears reports whether one of its connections had this address.
func (a *trapApp) bears(addr string) bool {
	if a.relay != nil {
		return strings.HasPrefix(addr, a.relay.from+":")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ports[addr]
}

func (a *trapApp) options(node int) *redis.Options {
	addr := a.world.addrs[node]
	if a.relay != nil {
		addr = a.relay.addrs[node]
	}
	o := &redis.Options{
		Addr: addr, Protocol: 2, PoolSize: a.conns, MinIdleConns: a.conns, PoolFIFO: a.fifo, DisableIdentity: true,
		ConnMaxLifetime: a.lasts, MaxRetries: -1, ClientName: a.name, ReadTimeout: 2 * time.Second,
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(a.from)}}
			c, err := d.DialContext(ctx, network, addr)
			if err == nil {
				a.mu.Lock()
				a.ports[c.LocalAddr().String()] = true
				a.mu.Unlock()
			}
			return c, err
		},
	}
	if a.brief {
		o.PoolSize, o.MinIdleConns = 1, 0
	}
	if a.numbered {
		o.ClientName = ""
		o.OnConnect = func(ctx context.Context, c *redis.Conn) error {
			a.mu.Lock()
			a.conn++
			n := a.conn
			a.mu.Unlock()
			return c.ClientSetName(ctx, fmt.Sprint(a.name, "-", n)).Err()
		}
	}
	return o
}

// each does something on all nodes at once, and returns on how many it worked.
func (a *trapApp) each(do func(*redis.Client) bool) (n int) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	for i := range a.world.addrs {
		wg.Go(func() {
			c := a.pools[i]
			if a.brief {
				c = redis.NewClient(a.options(i))
				defer c.Close()
			}
			if do(c) {
				mu.Lock()
				n++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return n
}

const (
	trapExtend  = `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end return 0`
	trapRelease = `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0`
	trapTTL     = 20000
)

func (a *trapApp) acquire(key string) (token string) {
	token = rand.Text()
	a.world.holder.Store(token, a)
	got := a.each(func(c *redis.Client) bool {
		return c.SetNX(a.world.ctx, key, token, trapTTL*time.Millisecond).Val()
	})
	if got < redlock.Quorum(len(a.world.addrs)) {
		a.release(key, token)
		return ""
	}
	return token
}

func (a *trapApp) release(key, token string) {
	a.each(func(c *redis.Client) bool { return c.Eval(a.world.ctx, trapRelease, []string{key}, token).Err() == nil })
}

// hold keeps one lock, at a beat.
func (a *trapApp) hold(key string, b beat) {
	token, since := "", time.Time{}
	for k := 0; a.world.ctx.Err() == nil; k++ {
		at := b.at(k).Add(a.after)
		if time.Until(at) < 0 {
			continue
		}
		pauseUntil(a.world.ctx, at)
		switch {
		case token == "":
			token, since = a.acquire(key), time.Now()
		case a.gives > 0 && time.Since(since) > a.gives:
			a.release(key, token)
			token = ""
			pause(a.world.ctx, b.pace, b.pace)
		case a.each(func(c *redis.Client) bool {
			n, err := c.Eval(a.world.ctx, trapExtend, []string{key}, token, trapTTL).Int()
			return err == nil && n == 1
		}) == 0:
			token = ""
		case a.pauses && mathrand.IntN(6) == 0:
			pause(a.world.ctx, 2*time.Second, 3*time.Second)
		}
	}
}

// talk sends other commands: half of them take and release locks.
func (a *trapApp) talk() {
	every := time.Duration(float64(time.Second) / a.chatter)
	for a.world.ctx.Err() == nil {
		key := fmt.Sprint("short:", a.trap, ":", mathrand.IntN(1000))
		if mathrand.IntN(2) == 0 {
			a.each(func(c *redis.Client) bool { return c.Get(a.world.ctx, key).Err() == nil })
		} else if token := a.acquire(key); token != "" {
			pause(a.world.ctx, every/4, every/4)
			a.release(key, token)
		}
		pause(a.world.ctx, every/2, every)
	}
}

func pauseUntil(ctx context.Context, t time.Time) {
	select {
	case <-ctx.Done():
	case <-time.After(time.Until(t)):
	}
}

// run works until the world ends.
func (a *trapApp) run() {
	a.ports = map[string]bool{}
	for i := range a.world.addrs {
		if a.brief {
			a.pools = append(a.pools, nil)
			continue
		}
		c := redis.NewClient(a.options(i))
		defer c.Close()
		a.pools = append(a.pools, c)
	}
	var wg sync.WaitGroup
	for i, b := range a.beats {
		wg.Go(func() { a.hold(a.key(i), b) })
	}
	if a.chatter > 0 {
		wg.Go(a.talk)
	}
	wg.Wait()
}

func (a *trapApp) key(lock int) string {
	if a.shares != "" {
		return a.shares
	}
	return fmt.Sprintf("%s:%p:%d", a.trap, a, lock)
}

// relay is a proxy: servers see its address.
type relay struct {
	from      string
	addrs     []string
	listeners []net.Listener
}

func newRelay(from string, addrs []string) (*relay, error) {
	r := &relay{from: from}
	for _, to := range addrs {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		r.listeners, r.addrs = append(r.listeners, l), append(r.addrs, l.Addr().String())
		go func() {
			for {
				in, err := l.Accept()
				if err != nil {
					return
				}
				d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
				out, err := d.Dial("tcp", to)
				if err != nil {
					_ = in.Close()
					continue
				}
				go func() { _, _ = io.Copy(out, in); _ = out.Close() }()
				go func() { _, _ = io.Copy(in, out); _ = in.Close() }()
			}
		}()
	}
	return r, nil
}

func (r *relay) close() {
	for _, l := range r.listeners {
		_ = l.Close()
	}
}

// traps are what has misled, or might mislead, an inference. Each adds applications to a
// world; serial is different for each.
var traps = []struct {
	name string
	add  func(w *trapWorld, serial int) []*trapApp
}{
	{"pair", func(w *trapWorld, n int) []*trapApp {
		b := randomBeat()
		return []*trapApp{{name: name("left", n), conns: pool(), beats: []beat{b}}, {name: name("right", n), conns: pool(), beats: []beat{b}, after: shortly()}}
	}},
	{"named beside nameless", func(w *trapWorld, n int) []*trapApp {
		b := randomBeat()
		return []*trapApp{{name: name("named", n), conns: pool(), beats: []beat{b}}, {conns: pool(), beats: []beat{b}, after: shortly()}}
	}},
	{"two addresses", func(w *trapWorld, n int) []*trapApp {
		b := randomBeat()
		return []*trapApp{{from: address(), conns: pool(), beats: []beat{b}}, {from: address(), conns: pool(), beats: []beat{b}, after: shortly()}}
	}},
	{"brief connections", func(w *trapWorld, n int) []*trapApp {
		b := randomBeat()
		return []*trapApp{
			{name: []string{"", name("brief", n)}[mathrand.IntN(2)], from: address(), brief: true, beats: []beat{b}},
			{name: name("stays", n), conns: pool(), beats: []beat{b}, after: shortly()},
		}
	}},
	{"numbered connections", func(w *trapWorld, n int) []*trapApp {
		b := randomBeat()
		return []*trapApp{
			{name: name("worker", n), numbered: true, conns: 5, fifo: true, beats: []beat{b}},
			{name: name("beside", n), conns: pool(), beats: []beat{b}, after: shortly()},
		}
	}},
	{"pools", func(w *trapWorld, n int) []*trapApp {
		return []*trapApp{
			{name: name("fifo", n), conns: 8, fifo: true, chatter: 2, beats: []beat{randomBeat()}},
			{name: name("lifo", n), conns: 8, chatter: 2, beats: []beat{randomBeat()}},
		}
	}},
	{"one address", func(w *trapWorld, n int) []*trapApp {
		b, host := randomBeat(), address()
		return []*trapApp{
			{from: host, conns: pool(), beats: []beat{b}}, {from: host, conns: 1, beats: []beat{randomBeat()}}, {from: host, conns: 1, beats: []beat{b}, after: shortly()},
			{name: name("here-too", n), from: host, conns: 2, beats: []beat{b}, after: shortly()},
		}
	}},
	{"several locks", func(w *trapWorld, n int) []*trapApp {
		b := []beat{randomBeat(), randomBeat(), randomBeat()}
		return []*trapApp{{name: name("several", n), conns: 3, beats: b}, {name: name("one", n), conns: 1, beats: b[:1], after: shortly()}}
	}},
	{"pauses", func(w *trapWorld, n int) []*trapApp {
		b := randomBeat()
		return []*trapApp{{name: name("pauses", n), conns: pool(), beats: []beat{b}, pauses: true}, {name: name("steady", n), conns: pool(), beats: []beat{b}, after: shortly()}}
	}},
	{"reconnects", func(w *trapWorld, n int) []*trapApp {
		b := randomBeat()
		return []*trapApp{
			{name: name("again", n), conns: 2, lasts: 700 * time.Millisecond, beats: []beat{b}},
			{name: name("stays", n), conns: pool(), beats: []beat{b}, after: shortly()},
		}
	}},
	{"proxies", func(w *trapWorld, n int) []*trapApp {
		r, err := newRelay(address(), w.addrs)
		if err != nil {
			return nil
		}
		context.AfterFunc(w.ctx, r.close)
		b := randomBeat()
		return []*trapApp{
			{relay: r, conns: pool(), beats: []beat{b}}, {relay: r, conns: 1, beats: []beat{randomBeat()}},
			{relay: r, name: name("proxied", n), conns: pool(), beats: []beat{randomBeat()}},
			{name: name("direct", n), conns: pool(), beats: []beat{b}, after: shortly()},
		}
	}},
	{"contention", func(w *trapWorld, n int) []*trapApp {
		b, key := randomBeat(), fmt.Sprint("contended:", n)
		var apps []*trapApp
		for i, who := range []string{name("first", n), name("second", n), ""} {
			apps = append(apps, &trapApp{name: who, conns: 1, beats: []beat{b}, shares: key, gives: 8 * time.Second, after: time.Duration(i) * 10 * time.Millisecond})
		}
		return apps
	}},
	{"busy", func(w *trapWorld, n int) []*trapApp {
		return []*trapApp{
			{name: name("busy", n), conns: 4, chatter: 40, beats: []beat{randomBeat()}}, {from: address(), conns: 2, chatter: 20, beats: []beat{randomBeat()}},
			{name: name("calm", n), conns: 1, beats: []beat{randomBeat()}},
		}
	}},
	{"alone", func(w *trapWorld, n int) []*trapApp {
		return []*trapApp{{name: name("alone", n), conns: 1, beats: []beat{randomBeat()}}, {name: name("idle", n), conns: 3}}
	}},
	{"our own", func(w *trapWorld, n int) []*trapApp {
		b := randomBeat()
		return []*trapApp{
			{conns: 1, from: address(), beats: []beat{b}},
			{name: fmt.Sprintf("redlockctl:console:ann@web:%d", n), conns: 1, chatter: 5},
			{name: fmt.Sprintf("redlockctl:run:bob@web:%d", n), conns: 1, beats: []beat{randomBeat()}},
		}
	}},
}

func name(what string, n int) string { return fmt.Sprint(what, n) }

// pool is the size of a pool: of half of them 1.
func pool() int { return max(1, mathrand.IntN(6)-1) }

func shortly() time.Duration { return time.Duration(mathrand.IntN(8)) * time.Millisecond }

func address() string { return fmt.Sprintf("127.0.%d.%d", 1+mathrand.IntN(200), 1+mathrand.IntN(200)) }

func randomBeat() beat {
	pace := 250*time.Millisecond + mathrand.N(1250*time.Millisecond)
	return beat{start: time.Now().Add(mathrand.N(pace)), pace: pace, jitter: []float64{0, 0, 0.1, 0.4}[mathrand.IntN(4)], seed: mathrand.Uint64()}
}

// newTrapWorld begins a world of some traps.
func newTrapWorld(ctx context.Context, addrs []string, serial int, chosen []int) (*trapWorld, *sync.WaitGroup) {
	w, running := &trapWorld{ctx: ctx, addrs: addrs}, &sync.WaitGroup{}
	for _, i := range chosen {
		serial++
		for _, a := range traps[i].add(w, serial) {
			a.trap, a.world = traps[i].name, w
			if a.from == "" {
				a.from = "127.0.0.1"
			}
			for lock := range a.beats {
				w.keys = append(w.keys, trapKey{a.trap, a.key(lock)})
			}
			w.apps = append(w.apps, a)
			running.Go(a.run)
		}
	}
	return w, running
}
