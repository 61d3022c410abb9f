package observe_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"redlockctl/internal/lab/labtest"
	"redlockctl/monitor"
	"redlockctl/monitor/observe"
	"redlockctl/redlock"
)

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
	c := redlock.Connect(servers[0].Node(), 1, time.Minute)
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
