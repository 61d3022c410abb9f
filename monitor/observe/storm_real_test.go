package observe_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/redis/go-redis/v9"

	"redlockctl/internal/lab"
	"redlockctl/internal/lab/labtest"
	"redlockctl/monitor"
	"redlockctl/monitor/observe"
	"redlockctl/redlock"
)

// storm changes keys of some servers, in every way that a key can change.
type storm struct {
	rnd     *rand.Rand
	servers []*lab.Server
	clients []*redis.Client
	m       *observe.Monitor
}

func newStorm(t *testing.T, servers []*lab.Server, m *observe.Monitor, seed uint64) *storm {
	s := &storm{rnd: rand.New(rand.NewPCG(seed, 2)), servers: servers, m: m}
	for _, srv := range servers {
		c := srv.Node().Client(1, 10*time.Second)
		t.Cleanup(func() { _ = c.Close() })
		s.clients = append(s.clients, c)
	}
	return s
}

func (s *storm) key() string {
	return fmt.Sprint([]string{"k", "lock.", "redislock:0:", "redislock:1:"}[s.rnd.IntN(4)], s.rnd.IntN(10))
}

// token returns a token in the form of one of several libraries, or of none.
func (s *storm) token() string {
	n := s.rnd.IntN(3)
	return []string{
		fmt.Sprint("t", n),
		fmt.Sprintf("%022dA==", n),                              // redsync
		fmt.Sprintf("%031da", n),                                // node-redlock: keys that share it are one lock
		fmt.Sprintf("6f1c3a52-9d0e-4b7f-8a21-c4d5e6f7080%d", n), // redlock-rb
		fmt.Sprint(1790000000 + n),                              // SETNX with a time stamp
		strings.Repeat(string([]byte{0xf0 + byte(n)}), 24),      // 24 bytes: rueidislock, under its keys
	}[s.rnd.IntN(6)]
}

// blow makes n changes on each server that is not stopped.
func (s *storm) blow(ctx context.Context, n, stopped int) error {
	for i := range s.clients {
		if i == stopped {
			continue
		}
		_, err := s.clients[i].Pipelined(ctx, func(p redis.Pipeliner) error {
			for range n {
				s.change(ctx, p)
			}
			return nil
		})
		// RENAME of a missing key and SETRANGE of a list change nothing.
		var answer redis.Error
		if err != nil && !errors.As(err, &answer) {
			return err
		}
	}
	return nil
}

func (s *storm) change(ctx context.Context, p redis.Pipeliner) {
	key := s.key()
	switch s.rnd.IntN(20) {
	case 0, 1, 2:
		p.Del(ctx, key)
	case 3:
		p.Set(ctx, key, s.token(), 5*time.Millisecond)
	case 4:
		p.RPush(ctx, key, "x")
	case 5:
		p.Persist(ctx, key)
	case 6:
		p.Rename(ctx, key, s.key())
	case 7:
		p.Copy(ctx, key, s.key(), 0, true)
	case 8:
		p.Eval(ctx, "redis.call('SET', KEYS[1], ARGV[1], 'PX', 3600000) redis.call('DEL', KEYS[2])", []string{key, s.key()}, s.token())
	case 9:
		p.PExpire(ctx, key, time.Duration(s.rnd.IntN(3))*time.Hour)
	case 10:
		p.SetRange(ctx, key, int64(s.rnd.IntN(300)), "z")
	case 11:
		p.HSet(ctx, key, s.token(), "1")
	case 12: // Redisson
		p.Eval(ctx, "redis.call('DEL', KEYS[1]) redis.call('HINCRBY', KEYS[1], ARGV[1], 1) redis.call('PEXPIRE', KEYS[1], 3600000)",
			[]string{key}, "6f1c3a52-9d0e-4b7f-8a21-c4d5e6f70819:54")
	case 13:
		p.SAdd(ctx, key, s.token())
	case 14:
		p.ZAdd(ctx, key, redis.Z{Score: 1, Member: s.token()})
	case 15:
		p.XAdd(ctx, &redis.XAddArgs{Stream: key, Values: []string{"f", "v"}})
	default:
		p.Set(ctx, key, s.token(), time.Hour)
	}
}

// fault makes one server do something after which the monitor must start again with it,
// or with all. stopped is a server that does not answer until resume; −1: none.
func (s *storm) fault(ctx context.Context, round int) (stopped int, err error) {
	i := s.rnd.IntN(len(s.servers))
	switch round % 10 {
	case 1:
		return i, s.servers[i].Pause()
	case 3:
		return -1, errors.Join(s.servers[i].Kill(), s.servers[i].Start())
	case 6:
		return -1, s.clients[i].FlushAll(ctx).Err()
	case 7:
		return -1, s.clients[i].FlushDB(ctx).Err()
	case 8: // ends only the connections that report changes
		list, err := s.clients[i].ClientList(ctx).Result()
		for line := range strings.Lines(list) {
			var id string
			feed := false
			for field := range strings.FieldsSeq(line) {
				if v, ok := strings.CutPrefix(field, "id="); ok {
					id = v
				}
				flags, ok := strings.CutPrefix(field, "flags=")
				feed = feed || ok && strings.Contains(flags, "B")
			}
			if feed {
				err = errors.Join(err, s.clients[i].ClientKillByFilter(ctx, "id", id).Err())
			}
		}
		return -1, err
	case 9:
		for _, c := range s.clients {
			if err := c.ClientKillByFilter(ctx, "type", "normal", "skipme", "yes").Err(); err != nil {
				return -1, err
			}
		}
	}
	return -1, nil
}

// round runs a storm with a fault in its middle. Every other stopped server stays stopped
// until the monitor has noticed.
func (s *storm) round(ctx context.Context, round int) error {
	if err := s.blow(ctx, 60, -1); err != nil {
		return err
	}
	stopped, err := s.fault(ctx, round)
	if err == nil {
		err = s.blow(ctx, 10, stopped)
	}
	if stopped >= 0 {
		for end := time.Now().Add(5 * time.Second); round%20 == 1 && time.Now().Before(end); {
			snap := s.m.Snapshot()
			if snap.Nodes[stopped].State == monitor.NodeSlow {
				break
			}
			<-s.m.Changed(snap.Version)
		}
		err = errors.Join(err, s.servers[stopped].Resume())
	}
	return err
}

// differs runs rounds of a storm and returns the first after which the table did not
// match a direct read of all masters in time, or in which the monitor itself found changes
// that were not reported; −1: none.
func (s *storm) differs(t *testing.T, rounds int, patience time.Duration) int {
	t.Helper()
	for round := range rounds {
		if err := s.round(t.Context(), round); err != nil {
			t.Fatal(err)
		}
		quiet := time.Now()
		deadline := time.After(patience)
		for {
			snap := s.m.Snapshot()
			if n := unreported(snap); n != nil {
				t.Logf("round %d: %s did not tell of %d changes, such as that of %s", round, n.Name, n.Facts.Unreported, n.Facts.UnreportedKey)
				return round
			}
			if equal(t, snap, s.servers) {
				break
			}
			if upTo(snap, quiet) {
				t.Logf("round %d: said to be read up to the end of it", round)
				return round
			}
			select {
			case <-s.m.Changed(snap.Version):
				continue
			case <-deadline:
			}
			if s.awaitFeeds(t.Context(), snap) {
				deadline = time.After(patience)
				continue
			}
			return round
		}
	}
	return -1
}

// unreported returns a node that did not report all of its changes, as the monitor's own
// comparison found; nil: none.
func unreported(s *monitor.Snapshot) *monitor.Node {
	for i := range s.Nodes {
		if n := &s.Nodes[i]; !n.Facts.UnreportedAt.IsZero() {
			return n
		}
	}
	return nil
}

// upTo reports whether a snapshot claims to be complete with all changes before a moment.
func upTo(s *monitor.Snapshot, at time.Time) bool {
	return s.Complete && !slices.ContainsFunc(s.Nodes, func(n monitor.Node) bool { return !n.State.Readable() || !n.UpTo.After(at) })
}

// awaitFeeds waits until all nodes report their changes again, and reports whether one
// did not. A node that was silent twice within a minute, as stopped servers are, is not
// asked for a feed for minutes; until then it is read every ScanEvery, an hour here.
func (s *storm) awaitFeeds(ctx context.Context, snap *monitor.Snapshot) (waited bool) {
	scannedAlone := func(n monitor.Node) bool {
		return slices.ContainsFunc(n.Notes, func(note string) bool { return strings.HasPrefix(note, "changes are seen by scanning alone") })
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	for ctx.Err() == nil && slices.ContainsFunc(snap.Nodes, scannedAlone) {
		waited = true
		select {
		case <-s.m.Changed(snap.Version):
		case <-ctx.Done():
		}
		snap = s.m.Snapshot()
	}
	return waited && ctx.Err() == nil
}

// After a storm the table matches a direct read of all masters. Full reads happen only at
// the start and after a gap, so the feed reported everything else.
func TestTheTableEqualsADirectReadAfterAStorm(t *testing.T) {
	servers := labtest.Servers(t, 3)
	opt := slow
	opt.Timeout = 300 * time.Millisecond
	m := watch(t, labtest.Nodes(servers), opt)
	settled(t, m)
	if round := newStorm(t, servers, m, 1).differs(t, 100, 15*time.Second); round >= 0 {
		t.Errorf("not what a direct read says after round %d:\n%s", round, describe(m.Snapshot()))
	}
}

// Monitors that miss a gap fail that test: one does not see flushes (a null push), one
// misses some changes, and one keeps its connection over a broken one behind the proxy,
// so it does not read all again.
func TestStormMutants(t *testing.T) {
	t.Parallel()
	for name, deaf := range map[string]func(*deafProxy){
		"whole":                         func(*deafProxy) {},
		"a null push is ignored":        func(p *deafProxy) { p.noNull = true },
		"a change is overheard":         func(p *deafProxy) { p.notAll = true },
		"a reconnect without full read": func(p *deafProxy) { p.reconnects = true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // they mostly wait
			servers := labtest.Servers(t, 1)
			p := newDeafProxy(t, servers[0].Addr())
			deaf(p)
			m := watch(t, []*redlock.Node{node(t, "n1", &redis.Options{Addr: p.listener.Addr().String()})}, slow)
			settled(t, m)
			s := newStorm(t, servers, m, 3)
			// The monitor also finds a flush by the server's counter, within a second. On a busy
			// machine that may come before the view claims to have all changes.
			rounds, patience := 100, 15*time.Second
			if name == "whole" {
				rounds = 10
			}
			switch round := s.differs(t, rounds, patience); {
			case name == "whole" && round >= 0:
				t.Errorf("not what a direct read says after round %d", round)
			case name != "whole" && round < 0:
				t.Error("not noticed")
			}
		})
	}
}

// deafProxy hides from the clients of a server some of the changes that it reports.
type deafProxy struct {
	listener   net.Listener
	target     string
	noNull     bool // no null push
	notAll     bool // only every other push
	reconnects bool // a feed survives although its server closed the connection

	pushes atomic.Int64
}

func newDeafProxy(t *testing.T, target string) *deafProxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &deafProxy{listener: l, target: target}
	var work sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); work.Wait() })
	work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			work.Go(func() { p.serve(c) })
		}
	})
	return p
}

// serve relays what a client sends, and the part of the server's output that the client
// may see.
func (p *deafProxy) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	var mu sync.Mutex // protects server, said and gone
	gone := false     // the client hung up
	var said []byte   // all that the client sent before its first PING as a feed
	done := make(chan struct{})
	defer func() { mu.Lock(); _ = server.Close(); mu.Unlock(); _ = client.Close(); <-done }()
	isFeed := func() bool { return bytes.Contains(said, []byte("TRACKING")) }
	go func() {
		defer close(done)
		b := make([]byte, 64<<10)
		for {
			n, err := client.Read(b)
			if err != nil {
				mu.Lock()
				gone = true
				_ = server.Close()
				mu.Unlock()
				return
			}
			mu.Lock()
			if !isFeed() && len(said) < 1<<10 {
				said = append(said, b[:n]...)
			}
			_, _ = server.Write(b[:n])
			mu.Unlock()
		}
	}()
	for {
		if !p.relay(client, server) {
			return // the client hung up
		}
		mu.Lock()
		reconnect := p.reconnects && isFeed() && !gone
		if reconnect {
			_ = server.Close()
			time.Sleep(20 * time.Millisecond) // changes in this time are reported to nobody
			var next net.Conn
			if next, err = net.Dial("tcp", p.target); err == nil {
				server = next
				_, err = server.Write(said)
			}
			if err == nil {
				// Drop the answers to that as well.
				_ = server.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
				_, _ = io.Copy(io.Discard, server)
				_ = server.SetReadDeadline(time.Time{})
				_, err = server.Write([]byte("*1\r\n$4\r\nPING\r\n")) // one that was in flight
			}
		}
		mu.Unlock()
		if !reconnect || err != nil {
			return
		}
	}
}

// relay relays lines and whole pushes until the server hangs up; false: the client did.
func (p *deafProxy) relay(client, server net.Conn) bool {
	in := bufio.NewReaderSize(server, 64<<10)
	for {
		line, err := in.ReadSlice('\n')
		message := bytes.Clone(line)
		push := err == nil && line[0] == '>'
		for n := 3; push && err == nil && n > 0; n-- { // $10, invalidate, and its argument
			line, err = in.ReadSlice('\n')
			message = append(message, line...)
			if n == 1 && err == nil && line[0] == '*' {
				var keys int
				_, _ = fmt.Sscanf(string(line), "*%d", &keys)
				for range 2 * keys {
					line, _ = in.ReadSlice('\n')
					message = append(message, line...)
				}
			}
		}
		null := push && bytes.HasSuffix(message, []byte("_\r\n"))
		if !(push && p.pushes.Add(1)%2 == 0 && p.notAll) && !(null && p.noNull) {
			if _, err := client.Write(message); err != nil {
				return false
			}
		}
		if err != nil {
			return !errors.Is(err, bufio.ErrBufferFull)
		}
	}
}

// ending reports whether a copy has one of the storm's shortest TTLs. It may expire between
// the snapshot and the direct read.
func ending(left time.Duration) bool { return left > -time.Second && left < time.Minute }

// equal reports whether a snapshot matches a direct read, except for copies that are about to
// expire.
func equal(t *testing.T, s *monitor.Snapshot, servers []*lab.Server) bool {
	t.Helper()
	got, want := map[string]string{}, direct(t, servers)
	for l := range s.Locks.All() {
		soon := false
		for _, c := range l.Copies.All() {
			soon = soon || c.State == monitor.CopyPresent && !c.Expires.IsZero() && ending(c.Expires.Sub(s.At))
		}
		// Of a lock with several keys, only one shows its copies.
		for _, key := range l.Keys() {
			there := soon
			for i := range servers {
				_, ok := want[fmt.Sprint(i, key.Raw())]
				there = there || ok
				delete(want, fmt.Sprint(i, key.Raw()))
			}
			if !there && l.Held > 0 && l.Earlier == nil { // lost with the data, held until it expires
				return false
			}
		}
		for i, c := range l.Copies.All() {
			if c.State == monitor.CopyPresent && l.Keys() == nil && (c.Expires.IsZero() || !ending(c.Expires.Sub(s.At))) {
				got[fmt.Sprint(i, l.Key.Raw())] = sameText(c.Type, c.Len, c.Token.Raw(), c.Expires.Sub(s.At), c.Expires.IsZero())
			}
		}
	}
	return maps.Equal(got, want)
}

// sameText describes a copy; TTLs to the hour.
func sameText(typ string, length int64, token string, ttl time.Duration, never bool) string {
	if typ != "string" {
		token = ""
	}
	return fmt.Sprintf("%s %d %q %s %t", typ, length, token, max(0, ttl.Round(time.Hour)), never)
}

// direct returns the copies on all masters, read directly.
func direct(t *testing.T, servers []*lab.Server) map[string]string {
	t.Helper()
	ctx := t.Context()
	want := map[string]string{}
	for i, s := range servers {
		c := s.Node().Client(1, 10*time.Second)
		keys, err := c.Keys(ctx, "*").Result()
		if err != nil {
			t.Fatal(err)
		}
		v, err := c.Eval(ctx, `local out = {}
for i, key in ipairs(KEYS) do
  local kind = redis.call('TYPE', key)['ok']
  local size = {string='STRLEN', list='LLEN', hash='HLEN', set='SCARD', zset='ZCARD', stream='XLEN'}
  out[4*i-3] = kind
  out[4*i-2] = size[kind] and redis.call(size[kind], key) or 0
  out[4*i-1] = redis.call('PTTL', key)
  out[4*i] = kind == 'string' and redis.call('GETRANGE', key, 0, 127) or ''
end
return out`, keys).Slice()
		if err != nil {
			t.Fatal(err)
		}
		for k, key := range keys {
			typ, ttl := v[4*k].(string), v[4*k+2].(int64)
			if left := time.Duration(ttl) * time.Millisecond; typ != "none" && (ttl < 0 || !ending(left)) {
				want[fmt.Sprint(i, key)] = sameText(typ, v[4*k+1].(int64), v[4*k+3].(string), left, ttl < 0)
			}
		}
		_ = c.Close()
	}
	return want
}

// Content that is not a lock, and ten thousand copies that change at once: none of it is
// fetched whole, and it is reported.
func TestHostileContent(t *testing.T) {
	servers := labtest.Servers(t, 3)
	opt := slow
	opt.MaxTTL = 2 * time.Hour
	m := watch(t, labtest.Nodes(servers), opt)
	settled(t, m)
	peak := labtest.HeapPeak(t)
	name := strings.Repeat("n", 1<<20)
	c := servers[0].Node().Client(1, time.Minute)
	defer c.Close()
	if err := c.SetRange(t.Context(), "job:huge", 512<<20-1, "x").Err(); err != nil {
		t.Fatal(err)
	}
	for _, srv := range servers {
		do(t, srv, "set", name, "token", "px", "3600000")
		do(t, srv, "set", name[:60<<10], "token", "px", "3600000")
		do(t, srv, "set", "job:\x1b[2J\xff\u202e", "\x1b]0;owned\a\xfe", "px", "3600000")
		do(t, srv, "eval", "for i = 1, 10000 do redis.call('SET', 'job:' .. i, ARGV[1], 'PX', 3600000) end return 1", 0, "\xff\x1b[2J")
		do(t, srv, "eval", "for i = 1, 64 do redis.call('HSET', 'job:hash', string.rep('f', 100000) .. i, 1) end return 1", 0)
		do(t, srv, "hset", "job:hash2", strings.Repeat("f", 1<<20), "1")
		do(t, srv, "rpush", "job:list", strings.Repeat("f", 1<<20))
		do(t, srv, "sadd", "job:set", "a", "b")
		do(t, srv, "zadd", "job:zset", "1", strings.Repeat("f", 1<<20))
		do(t, srv, "xadd", "job:stream", "*", "f", "v")
	}
	all := 1 + 1 + 1 + 10_000 + 6
	s := until(t, m, "all of it", func(s *monitor.Snapshot) bool {
		return s.Locks.Len() == all && s.Counts[monitor.LockHeld] == 10_002 && s.Counts[monitor.LockNotALock] == 6 && lock(s, "job:stream").Copies.At(2).Type == "stream"
	})
	if l := lock(s, "job:huge"); l.State != monitor.LockNoTTL || l.Copies.At(0).Len != 512<<20 || len(l.Copies.At(0).Token.Raw()) != 128 {
		t.Errorf("%+v", l)
	}
	if lock(s, name) != nil {
		t.Error("a name of a megabyte is kept")
	}
	if text := fmt.Sprint(lock(s, "job:1").Holder, lock(s, "job:\x1b[2J\xff\u202e").Key); strings.ContainsAny(text, "\x1b\a\u202e") || !utf8.ValidString(text) {
		t.Error("an escape code on its way to the screen")
	}
	for _, srv := range servers {
		do(t, srv, "eval", "for i = 1, 10000 do redis.call('DEL', 'job:' .. i) end return 1", 0)
	}
	until(t, m, "none of it, and what is found", func(s *monitor.Snapshot) bool {
		return s.Locks.Len() == all-10_000 && found(s, "hostile-content", "") && found(s, "foreign-keys", "") && found(s, "endless-copy", "")
	})
	if s := m.Snapshot(); len(s.Nodes) != s.Cluster.Serving {
		t.Error("the nodes were stalled")
	}
	// A later monitor finds the long name in a full read, and reports it.
	late := watch(t, labtest.Nodes(servers), slow)
	if s := settled(t, late); len(s.Nodes[0].Notes) != 1 || s.Nodes[0].Notes[0] != "1 key with names longer than 64 KiB left out" {
		t.Error(s.Nodes[0].Notes)
	}
	if n := peak(); n > 160<<20 {
		t.Errorf("%d MB of memory in between", n>>20)
	}
}

// found reports whether a snapshot has a finding.
func found(s *monitor.Snapshot, id, node string) bool {
	return slices.ContainsFunc(s.Findings, func(f monitor.Finding) bool { return f.ID == id && f.Node == node && !f.Evidence.Empty() })
}

// A network that cuts, holds back or delays replies affects only the view of that node,
// and leaves no gap.
func TestABadNetworkHoldsUpNobody(t *testing.T) {
	servers := labtest.Servers(t, 3)
	nodes := labtest.Nodes(servers)
	proxy := labtest.NewProxy(t, servers[2])
	nodes[2] = proxy.Node()
	m := watch(t, nodes, observe.Options{Timeout: 300 * time.Millisecond})
	settled(t, m)
	s := newStorm(t, servers, m, 7)
	ctx := t.Context()
	for round := range 12 {
		switch round % 3 {
		case 0:
			proxy.Cut(labtest.ToClient, 50+s.rnd.IntN(3000))
		case 1:
			proxy.Hold(labtest.ToClient)
		case 2:
			proxy.Delay(labtest.ToClient, 0, 30*time.Millisecond)
		}
		if err := s.blow(ctx, 40, -1); err != nil {
			t.Fatal(err)
		}
		key := fmt.Sprint("round:", round)
		for _, srv := range servers[:2] {
			do(t, srv, "set", key, "token", "px", 3600000)
		}
		until(t, m, "what the others say", func(s *monitor.Snapshot) bool { l := lock(s, key); return l != nil && l.Held == 2 })
		proxy.Resume()
		proxy.Delay(labtest.ToClient, 0, 0)
	}
	until(t, m, "what a direct read says", func(snap *monitor.Snapshot) bool { return equal(t, snap, servers) })
}
