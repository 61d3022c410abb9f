package observe_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

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
		c := redlock.Connect(srv.Node(), 1, 10*time.Second)
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
		// Of a lock with several keys, only one shows its copies; others may be lost.
		there := soon || l.Keys() == nil
		for _, key := range l.Keys() {
			for i := range servers {
				_, ok := want[fmt.Sprint(i, key.Raw())]
				there = there || ok
				delete(want, fmt.Sprint(i, key.Raw()))
			}
		}
		if !there && l.Held > 0 && l.Earlier == nil { // lost with the data, held until it expires
			return false
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
		c := redlock.Connect(s.Node(), 1, 10*time.Second)
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
