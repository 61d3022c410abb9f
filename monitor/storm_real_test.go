package monitor_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/internal/lab"
	"redlockctl/internal/lab/labtest"
	"redlockctl/monitor"
)

// storm changes keys of some servers, in every way that a key can change.
type storm struct {
	rnd     *rand.Rand
	servers []*lab.Server
	clients []*redis.Client
}

func newStorm(t *testing.T, servers []*lab.Server, seed uint64) *storm {
	s := &storm{rnd: rand.New(rand.NewPCG(seed, 2)), servers: servers}
	for _, srv := range servers {
		c := srv.Node().Client(1, 10*time.Second)
		t.Cleanup(func() { _ = c.Close() })
		s.clients = append(s.clients, c)
	}
	return s
}

func (s *storm) key() string { return fmt.Sprint("k", s.rnd.IntN(40)) }

func (s *storm) token() string { return fmt.Sprint("t", s.rnd.IntN(3)) }

// blow makes n changes on each server.
func (s *storm) blow(ctx context.Context, n int) error {
	for i := range s.clients {
		_, err := s.clients[i].Pipelined(ctx, func(p redis.Pipeliner) error {
			for range n {
				s.change(ctx, p)
			}
			return nil
		})
		// RENAME of a key that is not there, SETRANGE of a list: changes nothing.
		var answer redis.Error
		if err != nil && !errors.As(err, &answer) {
			return err
		}
	}
	return nil
}

func (s *storm) change(ctx context.Context, p redis.Pipeliner) {
	key := s.key()
	switch s.rnd.IntN(14) {
	case 0, 1:
		p.Del(ctx, key)
	case 2:
		p.Set(ctx, key, s.token(), 5*time.Millisecond)
	case 3:
		p.RPush(ctx, key, "x")
	case 4:
		p.Persist(ctx, key)
	case 5:
		p.Rename(ctx, key, s.key())
	case 6:
		p.Copy(ctx, key, s.key(), 0, true)
	case 7:
		p.Eval(ctx, "redis.call('SET', KEYS[1], ARGV[1], 'PX', 3600000) redis.call('DEL', KEYS[2])", []string{key, s.key()}, s.token())
	case 8:
		p.PExpire(ctx, key, time.Duration(s.rnd.IntN(3))*time.Hour)
	case 9:
		p.SetRange(ctx, key, int64(s.rnd.IntN(300)), "z")
	case 10:
		p.HSet(ctx, key, s.token(), "1")
	default:
		p.Set(ctx, key, s.token(), time.Hour)
	}
}

// fault does to one of the servers what makes the monitor begin anew with it, or
// with all.
func (s *storm) fault(ctx context.Context, round int) error {
	i := s.rnd.IntN(len(s.servers))
	switch {
	case round%10 == 3:
		return errors.Join(s.servers[i].Kill(), s.servers[i].Start())
	case round%10 == 6:
		return s.clients[i].FlushAll(ctx).Err()
	case round%10 == 7:
		return s.clients[i].FlushDB(ctx).Err()
	case round%10 == 9:
		for _, c := range s.clients {
			if err := c.ClientKillByFilter(ctx, "type", "normal", "skipme", "yes").Err(); err != nil {
				return err
			}
		}
	}
	return nil
}

// After a storm the table says what a direct read of all masters says. Full
// reads come only at the start and after a gap, so all else was told.
func TestTheTableEqualsADirectReadAfterAStorm(t *testing.T) {
	servers := labtest.Servers(t, 3)
	m := watch(t, labtest.Nodes(servers), slow)
	settled(t, m)
	s := newStorm(t, servers, 1)
	for round := range 100 {
		ctx := t.Context()
		if err := s.blow(ctx, 60); err != nil {
			t.Fatal(err)
		}
		if err := s.fault(ctx, round); err != nil {
			t.Fatal(err)
		}
		if err := s.blow(ctx, 10); err != nil {
			t.Fatal(err)
		}
		until(t, m, fmt.Sprint("what a direct read says in round ", round), func(snap *monitor.Snapshot) bool {
			return equal(t, snap, servers)
		})
	}
}

// equal tells if a snapshot says what a direct read says.
func equal(t *testing.T, s *monitor.Snapshot, servers []*lab.Server) bool {
	t.Helper()
	got := map[string]string{}
	for l := range s.Locks.All() {
		for i, c := range l.Copies {
			if c.State == monitor.CopyPresent {
				got[fmt.Sprint(i, l.Key.Raw())] = fmt.Sprint(c.Type, c.Len, c.Type == "string" && c.Token.Empty(), !c.Expires.IsZero())
				if c.Type == "string" {
					got[fmt.Sprint(i, l.Key.Raw())] += c.Token.Raw()
				}
			}
		}
	}
	return maps.Equal(got, direct(t, servers))
}

// direct is what all masters have.
func direct(t *testing.T, servers []*lab.Server) map[string]string {
	t.Helper()
	ctx := t.Context()
	want := map[string]string{}
	for i, s := range servers {
		c := s.Node().Client(1, 10*time.Second)
		defer c.Close()
		keys, err := c.Keys(ctx, "*").Result()
		if err != nil {
			t.Fatal(err)
		}
		v, err := c.Eval(ctx, `local out = {}
for i, key in ipairs(KEYS) do
  local kind = redis.call('TYPE', key)['ok']
  local size = {string='STRLEN', list='LLEN', hash='HLEN'}
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
			typ, token := v[4*k].(string), v[4*k+3].(string)
			if typ != "none" {
				want[fmt.Sprint(i, key)] = fmt.Sprint(typ, v[4*k+1], typ == "string" && token == "", v[4*k+2].(int64) >= 0) + token
			}
		}
	}
	return want
}

// Ten thousand copies that change at once, and content that is no lock.
func TestHostileContent(t *testing.T) {
	servers := labtest.Servers(t, 3)
	m := watch(t, labtest.Nodes(servers), slow)
	settled(t, m)
	name := strings.Repeat("n", 1<<20)
	for _, srv := range servers {
		do(t, srv, "setrange", "job:huge", 128<<20-1, "x")
		do(t, srv, "set", name, "token", "px", "3600000")
		do(t, srv, "set", name[:60<<10], "token", "px", "3600000")
		do(t, srv, "eval", "for i = 1, 10000 do redis.call('SET', 'job:' .. i, ARGV[1], 'PX', 3600000) end return 1", 0, "\xff\x1b[2J")
		do(t, srv, "eval", "for i = 1, 64 do redis.call('HSET', 'job:hash', string.rep('f', 100000) .. i, 1) end return 1", 0)
		do(t, srv, "hset", "job:hash2", strings.Repeat("f", 1<<20), "1")
		do(t, srv, "zadd", "job:zset", "1", strings.Repeat("f", 1<<20))
		do(t, srv, "xadd", "job:stream", "*", "f", "v")
	}
	all := 1 + 1 + 10_000 + 4
	s := until(t, m, "all of it", func(s *monitor.Snapshot) bool {
		return s.Locks.Len() == all && s.Counts[monitor.LockHeld] == 10_001 && lock(s, "job:stream") != nil && lock(s, "job:stream").Copies[2].Type == "stream"
	})
	if l := lock(s, "job:huge"); l.State != monitor.LockImmortal || l.Copies[0].Len != 128<<20 || len(l.Copies[0].Token.Raw()) != 128 {
		t.Errorf("%+v", l)
	}
	if lock(s, name) != nil {
		t.Error("a name of a megabyte is kept")
	}
	if strings.Contains(fmt.Sprint(lock(s, "job:1").Holder), "\x1b") {
		t.Error("an escape code on its way to the screen")
	}
	for _, srv := range servers {
		do(t, srv, "eval", "for i = 1, 10000 do redis.call('DEL', 'job:' .. i) end return 1", 0)
	}
	until(t, m, "none of it", func(s *monitor.Snapshot) bool { return s.Locks.Len() == all-10_000 })
	// Who comes later finds the long name in a full read, and is told so.
	late := watch(t, labtest.Nodes(servers), slow)
	if s := settled(t, late); len(s.Nodes[0].Notes) != 1 || s.Nodes[0].Notes[0] != "1 key with names longer than 64 KiB left out" {
		t.Error(s.Nodes[0].Notes)
	}
}

// A network that cuts replies in the middle, holds them back or delays them
// harms the view of that node alone, and leaves no gap.
func TestABadNetworkHoldsUpNobody(t *testing.T) {
	servers := labtest.Servers(t, 3)
	nodes := labtest.Nodes(servers)
	proxy := labtest.NewProxy(t, servers[2])
	nodes[2] = proxy.Node()
	m := watch(t, nodes, monitor.Options{Timeout: 300 * time.Millisecond})
	settled(t, m)
	s := newStorm(t, servers, 7)
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
		if err := s.blow(ctx, 40); err != nil {
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
