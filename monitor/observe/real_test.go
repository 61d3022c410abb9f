package observe_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"redlockctl/base/race"
	"redlockctl/internal/lab"
	"redlockctl/internal/lab/labtest"
	"redlockctl/monitor"
	"redlockctl/monitor/observe"
	"redlockctl/redlock"
)

// watch runs a monitor over nodes until the test ends.
func watch(t *testing.T, nodes []*redlock.Node, opt observe.Options) *observe.Monitor {
	t.Helper()
	m, err := observe.New(nodes, opt)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); m.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return m
}

// until waits for a snapshot for which ok is true.
func until(t *testing.T, m *observe.Monitor, what string, ok func(*monitor.Snapshot) bool) *monitor.Snapshot {
	t.Helper()
	deadline := time.After(3 * time.Minute) // on a busy machine
	for {
		s := m.Snapshot()
		if ok(s) {
			return s
		}
		select {
		case <-m.Changed(s.Version):
		case <-deadline:
			t.Fatalf("no snapshot with %s; the last one:\n%s", what, describe(s))
		}
	}
}

func describe(s *monitor.Snapshot) string {
	out := fmt.Sprintf("%+v\n", s.Cluster)
	for _, n := range s.Nodes {
		out += fmt.Sprintf("%s %s locks=%d restarts=%d notes=%q err=%s\n", n.Name, n.State, n.Locks, n.Restarts, n.Notes, n.Err)
	}
	for l := range s.Locks.All() {
		out += fmt.Sprintf("%s %s held=%d tokens=%d margin=%d holder=%s", l.Key, l.State, l.Held, l.Tokens, l.Margin(), l.Holder)
		for _, c := range l.Copies.All() {
			out += fmt.Sprintf(" [%d %s %s]", c.State, c.Type, c.Token)
		}
		out += "\n"
	}
	for _, e := range s.Events {
		out += fmt.Sprintf("%d %s %s %s %s: %s\n", e.Seq, e.Level, e.Kind, e.Node, e.Key, e.Text)
	}
	return out
}

func settled(t *testing.T, m *observe.Monitor) *monitor.Snapshot {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	if err := m.Settled(ctx); err != nil {
		t.Fatalf("not settled: %v\n%s", err, describe(m.Snapshot()))
	}
	return m.Snapshot()
}

func do(t *testing.T, s *lab.Server, args ...any) any {
	t.Helper()
	v, err := s.Do(t.Context(), args...)
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return v
}

func lock(s *monitor.Snapshot, key string) *monitor.Lock {
	return s.Locks.Get(key)
}

func event(s *monitor.Snapshot, kind string) *monitor.Event {
	for i := range s.Events {
		if s.Events[i].Kind == kind {
			return &s.Events[i]
		}
	}
	return nil
}

func TestSeesALockOnAllNodes(t *testing.T) {
	servers := labtest.Servers(t, 5)
	begun := time.Now()
	for _, s := range servers {
		do(t, s, "set", "job:1", "token", "px", 20000)
	}
	set := time.Now()
	m := watch(t, labtest.Nodes(servers), observe.Options{})
	s := settled(t, m)
	l := lock(s, "job:1")
	if l == nil || l.State != monitor.LockHeld || l.Held != 5 || l.Margin() != 2 || l.Holder.Raw() != "token" {
		t.Fatal(describe(s))
	}
	for _, c := range l.Copies.All() {
		if early, late := begun.Add(20*time.Second-time.Second), set.Add(20*time.Second+time.Second); c.Expires.Before(early) || c.Expires.After(late) {
			t.Errorf("expires in %s", time.Until(c.Expires))
		}
	}
	if s.Cluster.Verdict != monitor.VerdictUnprotected || s.Cluster.CanLose != 2 {
		t.Error(describe(s))
	}
}

func TestAKilledNodeIsDownAndItsCopiesUnknown(t *testing.T) {
	servers := labtest.Servers(t, 3)
	for _, s := range servers {
		do(t, s, "set", "job:1", "token", "px", 60000)
	}
	m := watch(t, labtest.Nodes(servers), observe.Options{})
	settled(t, m)
	if err := servers[1].Kill(); err != nil {
		t.Fatal(err)
	}
	s := until(t, m, "n2 down", func(s *monitor.Snapshot) bool { return s.Nodes[1].State == monitor.NodeDown })
	l := lock(s, "job:1")
	if l == nil || l.Held != 2 || l.Copies.At(1).State != monitor.CopyUnknown || l.Copies.At(1).Token.Raw() != "token" ||
		l.State != monitor.LockBareMajority || l.Margin() != 0 {
		t.Fatal(describe(s))
	}
	if s.Cluster.Verdict != monitor.VerdictDegraded || s.Cluster.CanLose != 0 || s.Cluster.Absent != "n2 down" {
		t.Error(describe(s))
	}
	if s.Nodes[1].Locks != 0 || s.Nodes[0].Locks != 1 || s.Nodes[1].Err.Empty() {
		t.Error(describe(s))
	}
	if e := event(s, "down"); e == nil || e.Node != "n2" || e.Level != monitor.LevelAlarm {
		t.Error(describe(s))
	}
}

func TestARestartedNodeHasLostItsCopies(t *testing.T) {
	servers := labtest.Servers(t, 5)
	for i, s := range servers {
		do(t, s, "set", "whole", "a", "px", 60000)
		if i < 3 {
			do(t, s, "set", "narrow", "b", "px", 60000)
		}
		if i < 4 {
			do(t, s, "set", "four", "c", "px", 60000)
		}
	}
	m := watch(t, labtest.Nodes(servers), observe.Options{})
	before := settled(t, m)
	if l := lock(before, "narrow"); l == nil || l.State != monitor.LockBareMajority || l.Margin() != 0 {
		t.Fatal(describe(before))
	}
	if err := servers[0].Kill(); err != nil {
		t.Fatal(err)
	}
	if err := servers[0].Start(lab.BootFence...); err != nil {
		t.Fatal(err)
	}
	s := until(t, m, "n1 back", func(s *monitor.Snapshot) bool {
		l := lock(s, "whole")
		return s.Nodes[0].Restarts == 1 && s.Nodes[0].State == monitor.NodeFenced && l != nil &&
			l.Copies.At(0).State == monitor.CopyLost && event(s, "lost majority") != nil
	})
	if e := event(s, "restart"); e == nil || e.Node != "n1" || e.Text.String() != "n1 restarted: 3 locks lost a copy, 1 has a bare majority now, 1 lost its majority: held to "+lock(s, "narrow").HeldUntil().Format("15:04:05") {
		t.Error(describe(s))
	}
	if e := event(s, "lost majority"); e.Key.Raw() != "narrow" || !e.Part {
		t.Error(describe(s))
	}
	if l := lock(s, "narrow"); l.State != monitor.LockLostMajority || l.Held != 2 || l.Lost != 1 {
		t.Error(describe(s))
	}
	if l := lock(s, "whole"); l.Held != 4 || l.State != monitor.LockHeld || l.Margin() != 1 {
		t.Error(describe(s))
	}
	if l := lock(s, "four"); l.Held != 3 || l.State != monitor.LockBareMajority || l.Margin() != 0 {
		t.Error(describe(s))
	}
	for _, k := range []string{"released", "acquired", "expired"} {
		if event(s, k) != nil {
			t.Errorf("%s was told:\n%s", k, describe(s))
		}
	}
	if s.Nodes[0].RunID == before.Nodes[0].RunID {
		t.Error("the run_id is the old one")
	}
}

func TestAFenceAndItsLiftShow(t *testing.T) {
	servers := labtest.Servers(t, 3)
	m := watch(t, labtest.Nodes(servers), observe.Options{})
	settled(t, m)
	is := func(want monitor.NodeState) *monitor.Snapshot {
		return until(t, m, want.String(), func(s *monitor.Snapshot) bool { return s.Nodes[0].State == want })
	}
	do(t, servers[0], "config", "set", "min-replicas-to-write", "2147483647")
	if s := is(monitor.NodeFenced); s.Cluster.Serving != 2 || s.Nodes[0].MinReplicasToWrite != 2147483647 || event(s, "fenced") == nil {
		t.Error(describe(s))
	}
	do(t, servers[0], "config", "set", "min-replicas-to-write", "2147483646")
	if s := is(monitor.NodeCordoned); event(s, "cordoned") == nil {
		t.Error(describe(s))
	}
	do(t, servers[0], "config", "set", "min-replicas-to-write", "0")
	if s := is(monitor.NodeServing); event(s, "rejoined") == nil || s.Cluster.Verdict != monitor.VerdictUnprotected {
		t.Error(describe(s))
	}
	// One replica is required and none is connected: the node refuses writes too.
	do(t, servers[0], "config", "set", "min-replicas-to-write", "1")
	is(monitor.NodeFenced)
	// A lag of 0 switches the fence off, whatever its value.
	do(t, servers[0], "config", "set", "min-replicas-to-write", "2147483647", "min-replicas-max-lag", "0")
	if s := is(monitor.NodeServing); len(s.Nodes[0].Notes) != 1 {
		t.Error(describe(s))
	}
}

func TestAFenceIsSeenWithoutConfig(t *testing.T) {
	servers := labtest.Servers(t, 1)
	do(t, servers[0], "acl", "setuser", "viewer", "on", ">secret", "~*", "+@read", "+@scripting", "+@connection", "+info", "+time", "+pubsub|channels", "-config")
	m := watch(t, []*redlock.Node{node(t, "n1", &redis.Options{Addr: servers[0].Addr(), Username: "viewer", Password: "secret"})}, observe.Options{})
	if s := settled(t, m); s.Nodes[0].State != monitor.NodeServing || s.Nodes[0].MinReplicasToWrite != -1 || len(s.Nodes[0].Notes) != 1 {
		t.Fatal(describe(s))
	}
	do(t, servers[0], "config", "set", "min-replicas-to-write", "2147483647")
	until(t, m, "fenced", func(s *monitor.Snapshot) bool { return s.Nodes[0].State == monitor.NodeFenced })
	do(t, servers[0], "config", "set", "min-replicas-to-write", "0")
	until(t, m, "serving", func(s *monitor.Snapshot) bool { return s.Nodes[0].State == monitor.NodeServing })
}

func node(t *testing.T, name string, opt *redis.Options) *redlock.Node {
	t.Helper()
	n, err := redlock.NewNode(name, opt)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A server that accepts commands without a password is found, whoever the monitor logs in
// as.
func TestServersWithoutAPasswordAreSeen(t *testing.T) {
	guarded := labtest.Servers(t, 1, "--requirepass", "right")[0]
	plain := labtest.Servers(t, 2)
	do(t, plain[1], "acl", "setuser", "ops", "on", ">right", "+@all", "~*", "&*")
	do(t, plain[1], "acl", "setuser", "default", "off")
	m := watch(t, []*redlock.Node{
		node(t, "password", &redis.Options{Addr: guarded.Addr(), Password: "right"}),
		node(t, "open", &redis.Options{Addr: plain[0].Addr()}),
		node(t, "off", &redis.Options{Addr: plain[1].Addr(), Username: "ops", Password: "right"}),
	}, observe.Options{})
	s := settled(t, m)
	for i, open := range []bool{false, true, false} {
		if s.Nodes[i].State != monitor.NodeServing || s.Nodes[i].Facts.Open != open {
			t.Errorf("%s: %s, open %v, want %v", s.Nodes[i].Name, s.Nodes[i].State, s.Nodes[i].Facts.Open, open)
		}
	}
}

func TestAWrongPasswordIsDenied(t *testing.T) {
	servers := labtest.Servers(t, 2, "--requirepass", "right")
	m := watch(t, []*redlock.Node{
		node(t, "wrong", &redis.Options{Addr: servers[0].Addr(), Password: "hunter2"}),
		node(t, "none", &redis.Options{Addr: servers[0].Addr()}),
		node(t, "right", &redis.Options{Addr: servers[1].Addr(), Password: "right"}),
	}, observe.Options{})
	s := settled(t, m)
	if s.Nodes[0].State != monitor.NodeDenied || s.Nodes[1].State != monitor.NodeDenied || s.Nodes[2].State != monitor.NodeServing {
		t.Fatal(describe(s))
	}
	if text := s.Nodes[0].Err.String(); !strings.Contains(text, "WRONGPASS") || strings.Contains(describe(s), "hunter2") {
		t.Error(describe(s))
	}
}

func TestOnlyAnIndependentMasterServes(t *testing.T) {
	servers := labtest.Servers(t, 2)
	_, port, _ := strings.Cut(servers[0].Addr(), ":")
	do(t, servers[0], "set", "job:1", "token", "px", 60000)
	do(t, servers[1], "replicaof", "127.0.0.1", port)
	shard := labtest.Servers(t, 1, "--cluster-enabled", "yes")
	m := watch(t, append(labtest.Nodes(servers), node(t, "n3", &redis.Options{Addr: shard[0].Addr()})), observe.Options{})
	s := settled(t, m)
	if s.Nodes[1].State != monitor.NodeWrongRole || !strings.Contains(s.Nodes[1].Err.String(), "replica of 127.0.0.1:"+port) {
		t.Error(describe(s))
	}
	if s.Nodes[2].State != monitor.NodeWrongRole || !strings.Contains(s.Nodes[2].Err.String(), "cluster mode") {
		t.Error(describe(s))
	}
	if s.Cluster.Verdict != monitor.VerdictUnavailable {
		t.Error(describe(s))
	}
	// The replica's copy is not a vote.
	if l := lock(s, "job:1"); l == nil || l.Held != 1 {
		t.Error(describe(s))
	}
	do(t, servers[1], "replicaof", "no", "one")
	until(t, m, "n2 serving", func(s *monitor.Snapshot) bool { return s.Nodes[1].State == monitor.NodeServing })
}

func TestWhatIsNoLockIsShownAsSuch(t *testing.T) {
	servers := labtest.Servers(t, 1)
	s1 := servers[0]
	do(t, s1, "rpush", "lock:list", "a", "b", "c")
	do(t, s1, "hset", "lock:hash", "f", "v")
	do(t, s1, "sadd", "lock:set", "a", "b")
	do(t, s1, "zadd", "lock:zset", "1", "a")
	do(t, s1, "xadd", "lock:stream", "*", "f", "v")
	do(t, s1, "set", "lock:forever", "token")
	do(t, s1, "set", "lock:long", "token", "ex", "3600")
	do(t, s1, "set", "else:where", "token", "ex", "30")
	hostile := "lock:\x1b[2J\xff\u202e\x00"
	do(t, s1, "set", hostile, "to\x1bken\xfe", "ex", "30")
	check := func(m *observe.Monitor) {
		t.Helper()
		s := settled(t, m)
		for key, want := range map[string]struct {
			state monitor.LockState
			typ   string
			len   int64
		}{
			"lock:list":    {monitor.LockNotALock, "list", 3},
			"lock:hash":    {monitor.LockNotALock, "hash", 1},
			"lock:set":     {monitor.LockNotALock, "set", 2},
			"lock:zset":    {monitor.LockNotALock, "zset", 1},
			"lock:stream":  {monitor.LockNotALock, "stream", 1},
			"lock:forever": {monitor.LockNoTTL, "string", 5},
			"lock:long":    {monitor.LockOverTTL, "string", 5},
			hostile:        {monitor.LockBareMajority, "string", 7},
		} {
			l := lock(s, key)
			if l == nil || l.State != want.state || l.Copies.At(0).Type != want.typ || l.Copies.At(0).Len != want.len {
				t.Errorf("%q: want %v in\n%s", key, want, describe(s))
			}
		}
		if l := lock(s, hostile); l.Holder.Raw() != "to\x1bken\xfe" || strings.ContainsAny(describe(s), "\x1b\x00") || !utf8.ValidString(describe(s)) {
			t.Error("raw bytes on the way to the screen")
		}
		if s.Locks.Len() != 8 || s.Nodes[0].Locks != 3 {
			t.Error(describe(s))
		}
	}
	opt := observe.Options{LockPatterns: []string{"lock:*", "lock:l*"}, MaxTTL: time.Minute}
	m := watch(t, labtest.Nodes(servers), opt)
	check(m)
	if n := m.Snapshot().Nodes[0].Notes; n != nil {
		t.Error(n)
	}
	// The same without the right to run scripts.
	do(t, s1, "acl", "setuser", "plain", "on", ">p", "~*", "+@all", "-@scripting")
	m = watch(t, []*redlock.Node{node(t, "n1", &redis.Options{Addr: s1.Addr(), Username: "plain", Password: "p"})}, opt)
	check(m)
	if n := m.Snapshot().Nodes[0].Notes; len(n) != 1 || n[0] != "scripts denied: reading by MULTI, locks in hashes are not seen" {
		t.Errorf("%q", n)
	}
	// And with EVAL_RO missing.
	do(t, s1, "acl", "setuser", "old", "on", ">p", "~*", "+@all", "-eval_ro", "-evalsha_ro")
	m = watch(t, []*redlock.Node{node(t, "n1", &redis.Options{Addr: s1.Addr(), Username: "old", Password: "p"})}, opt)
	check(m)
	if n := m.Snapshot().Nodes[0].Notes; len(n) != 1 || n[0] != "EVAL_RO refused: reading by EVAL" {
		t.Errorf("%q", n)
	}
	// A monitor that may not read is denied, and the node says so.
	do(t, s1, "acl", "setuser", "blind", "on", ">p", "~*", "+@all", "-scan")
	m = watch(t, []*redlock.Node{node(t, "n1", &redis.Options{Addr: s1.Addr(), Username: "blind", Password: "p"})}, opt)
	if s := settled(t, m); s.Nodes[0].State != monitor.NodeDenied || !strings.Contains(s.Nodes[0].Err.String(), "NOPERM") {
		t.Error(describe(s))
	}
}

func TestAHugeValueIsNotFetched(t *testing.T) {
	servers := labtest.Servers(t, 1)
	do(t, servers[0], "setrange", "job:huge", 64<<20-1, "x")
	sent := func() int64 {
		info := fmt.Sprint(do(t, servers[0], "info", "stats"))
		_, rest, _ := strings.Cut(info, "total_net_output_bytes:")
		text, _, _ := strings.Cut(rest, "\r")
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := sent()
	m := watch(t, labtest.Nodes(servers), observe.Options{})
	s := settled(t, m)
	l := lock(s, "job:huge")
	if l == nil || l.State != monitor.LockNoTTL || l.Copies.At(0).Len != 64<<20 || len(l.Copies.At(0).Token.Raw()) != 128 {
		t.Fatalf("%+v", l)
	}
	if n := sent() - before; n > 1<<20 {
		t.Errorf("the server sent %d bytes", n)
	}
}

func TestAHungNodeIsSlowAndHoldsUpNobody(t *testing.T) {
	servers := labtest.Servers(t, 3)
	for _, s := range servers {
		do(t, s, "set", "job:1", "token", "px", 60000)
	}
	m := watch(t, labtest.Nodes(servers), observe.Options{Timeout: 300 * time.Millisecond})
	settled(t, m)
	if err := servers[2].Pause(); err != nil {
		t.Fatal(err)
	}
	until(t, m, "n3 slow", func(s *monitor.Snapshot) bool { return s.Nodes[2].State == monitor.NodeSlow })
	for _, s := range servers[:2] {
		do(t, s, "set", "job:2", "token", "px", 60000)
	}
	s := until(t, m, "job:2", func(s *monitor.Snapshot) bool {
		l := lock(s, "job:2")
		return l != nil && l.Held == 2
	})
	if s.Nodes[0].State != monitor.NodeServing || s.Nodes[1].State != monitor.NodeServing || s.Nodes[2].State != monitor.NodeSlow {
		t.Error(describe(s))
	}
	if err := servers[2].Resume(); err != nil {
		t.Fatal(err)
	}
	s = until(t, m, "n3 back", func(s *monitor.Snapshot) bool {
		l := lock(s, "job:1")
		return s.Nodes[2].State == monitor.NodeServing && l != nil && l.Held == 3
	})
	if s.Nodes[2].Restarts != 0 || event(s, "acquired").Key.Raw() != "job:2" {
		t.Error(describe(s))
	}
}

func TestSettledCountsNodesThatDoNotAnswer(t *testing.T) {
	servers := labtest.Servers(t, 1)
	port, err := lab.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	m := watch(t, []*redlock.Node{servers[0].Node(), node(t, "n2", &redis.Options{Addr: fmt.Sprintf("127.0.0.1:%d", port)})}, observe.Options{})
	if s := settled(t, m); s.Nodes[0].State != monitor.NodeServing || s.Nodes[1].State != monitor.NodeDown {
		t.Error(describe(s))
	}
}

func TestALifeOfALockIsTold(t *testing.T) {
	servers := labtest.Servers(t, 3)
	m := watch(t, labtest.Nodes(servers), observe.Options{})
	settled(t, m)
	for _, s := range servers {
		do(t, s, "set", "a", "one", "px", 60000)
		do(t, s, "set", "b", "two", "px", 1500)
	}
	until(t, m, "acquired", func(s *monitor.Snapshot) bool { return event(s, "acquired") != nil && lock(s, "a") != nil })
	for _, s := range servers {
		do(t, s, "del", "a")
	}
	s := until(t, m, "released and expired", func(s *monitor.Snapshot) bool {
		return event(s, "released") != nil && event(s, "expired") != nil && s.Locks.Len() == 0
	})
	if event(s, "released").Key.Raw() != "a" || event(s, "expired").Key.Raw() != "b" {
		t.Error(describe(s))
	}
	for _, e := range s.Events {
		if e.Level != monitor.LevelInfo {
			t.Errorf("an ordinary life of a lock raised %s: %s", e.Kind, e.Text)
		}
	}
}

func TestTheClockOfANodeIsMeasured(t *testing.T) {
	t.Parallel()
	servers := labtest.Servers(t, 1)
	m := watch(t, labtest.Nodes(servers), observe.Options{ProbeEvery: 20 * time.Millisecond})
	s := until(t, m, "a drift", func(s *monitor.Snapshot) bool { return s.Nodes[0].Drift.Valid })
	// The server shares our clock: the true offset is 0 and must lie within the limits.
	n := s.Nodes[0]
	if !n.Offset.Valid || n.Offset.Offset.Abs() > n.Offset.Bound {
		t.Errorf("offset %s ± %s", n.Offset.Offset, n.Offset.Bound)
	}
	if math.Abs(n.Drift.PPM) > n.Drift.Bound {
		t.Errorf("drift %f ± %f", n.Drift.PPM, n.Drift.Bound)
	}
	t.Logf("offset %s ± %s, drift %f ± %f, round trip %s", n.Offset.Offset, n.Offset.Bound, n.Drift.PPM, n.Drift.Bound, n.RTT)
}

func TestMain(m *testing.M) {
	if addrs := os.Getenv(watchedAddrs); addrs != "" {
		if err := watchAlone(strings.Split(addrs, ",")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// The embedded masters of the lab are watched like real ones.
func TestEmbeddedMasters(t *testing.T) {
	c, err := lab.Embedded(3)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := lab.Unfence(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	for _, n := range c.Nodes() {
		client := redlock.Connect(n, 1, time.Second)
		if err := client.Set(t.Context(), "job:1", "token", time.Minute).Err(); err != nil {
			t.Fatal(err)
		}
		_ = client.Close()
	}
	m := watch(t, c.Nodes(), observe.Options{})
	s := settled(t, m)
	if l := lock(s, "job:1"); s.Cluster.Verdict != monitor.VerdictUnprotected || l == nil || l.Held != 3 ||
		len(s.Nodes[0].Notes) != 1 || !strings.Contains(s.Nodes[0].Notes[0], "scanning alone: the server does not know CLIENT TRACKING") {
		t.Fatal(describe(s))
	}
	if err := errors.Join(c.Crash(0), c.Restart(0)); err != nil {
		t.Fatal(err)
	}
	s = until(t, m, "n1 fenced", func(s *monitor.Snapshot) bool {
		return s.Nodes[0].State == monitor.NodeFenced && s.Nodes[0].Restarts == 1
	})
	if l := lock(s, "job:1"); l == nil || l.Held != 2 {
		t.Error(describe(s))
	}
}

// A server that sends nonsense, half a reply, too late or nothing is not a master. It is
// detected, costs no memory and delays nobody, whether it misbehaves from the start or
// later.
func TestServersThatMisbehave(t *testing.T) {
	servers := labtest.Servers(t, 3)
	good := servers[:2]
	for _, s := range servers {
		do(t, s, "set", "job:1", "token", "px", 600000)
	}
	lazy := labtest.NewProxy(t, servers[2])
	lazy.Delay(labtest.ToClient, 1500*time.Millisecond, 2*time.Second)
	bad := []*redlock.Node{lazy.Node()}
	for i, m := range labtest.Mischiefs() {
		if race.Enabled && m.To != "" && i%4 != 0 {
			continue
		}
		switch m.To {
		case "", "hello", "ping", "info", "time", "scan", "evalsha_ro":
			bad = append(bad, labtest.Misbehaving(t, m.Name, servers[2].Addr(), m))
		}
	}
	peak := labtest.HeapPeak(t)
	for some := range slices.Chunk(bad, 12) {
		ctx, cancel := context.WithCancel(t.Context())
		monitors := make([]*observe.Monitor, len(some))
		var ended sync.WaitGroup
		for i, n := range some {
			m, err := observe.New(append(labtest.Nodes(good), n), observe.Options{Timeout: time.Second, ProbeEvery: 50 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			monitors[i] = m
			ended.Go(func() { m.Run(ctx) })
		}
		for i, m := range monitors {
			until(t, m, "what the others have", func(s *monitor.Snapshot) bool {
				l := lock(s, "job:1")
				return s.Nodes[0].State == monitor.NodeServing && l != nil && l.Held >= 2
			})
			until(t, m, "what is found of "+some[i].Name(), func(s *monitor.Snapshot) bool {
				n := some[i].Name()
				return s.Nodes[2].State != monitor.NodeServing && found(s, "node-down", n) || s.Nodes[2].State == monitor.NodeServing && found(s, "limited-sight", n)
			})
		}
		cancel()
		ended.Wait()
	}
	if n := peak(); n > 128<<20 {
		t.Errorf("%d MB of memory in between", n>>20)
	}
}
