package lab_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"redlockctl/internal/lab"
	"redlockctl/internal/lab/labtest"
	"redlockctl/redlock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func embedded(t *testing.T, n int) *lab.EmbeddedCluster {
	t.Helper()
	c, err := lab.Embedded(n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c.(*lab.EmbeddedCluster)
}

func open(t *testing.T, c lab.Cluster) {
	t.Helper()
	if err := lab.Unfence(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

func client(t *testing.T, n *redlock.Node, with ...func(*redis.Options)) *redis.Client {
	t.Helper()
	c := redlock.Connect(n, 1, 5*time.Second, with...)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// say is the answer to a command as text: value or error.
func say(t *testing.T, c *redis.Client, args ...any) string {
	t.Helper()
	v, err := c.Do(t.Context(), args...).Result()
	switch {
	case errors.Is(err, redis.Nil):
		return "(nil)"
	case err != nil:
		return "(error) " + err.Error()
	}
	if pairs, ok := v.([]any); ok && args[0] == "CONFIG" { // in no order
		m := map[any]any{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i]] = pairs[i+1]
		}
		v = m
	}
	return text(v)
}

func text(v any) string {
	switch v := v.(type) {
	case nil:
		return "(nil)"
	case string:
		return strconv.Quote(v)
	case error:
		return "(error) " + v.Error()
	case []any:
		var parts []string
		for _, e := range v {
			parts = append(parts, text(e))
		}
		return "[" + strings.Join(parts, " ") + "]"
	case map[any]any:
		var parts []string
		for k, e := range v {
			parts = append(parts, text(k)+": "+text(e))
		}
		slices.Sort(parts)
		return "{" + strings.Join(parts, " ") + "}"
	}
	return fmt.Sprint(v)
}

const (
	compareAndDelete = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`
	compareAndExtend = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0`
	readTogether     = `return {redis.call('TYPE', KEYS[1]), redis.call('GET', KEYS[1]), redis.call('STRLEN', KEYS[1])}`
)

// Each step has the same answer from an embedded master as from a real server.
func TestEmbeddedAnswersAsARealServer(t *testing.T) {
	do := func(args ...any) []any { return args }
	closed := do("CONFIG", "SET", "min-replicas-to-write", "2147483647")
	opened := do("CONFIG", "SET", "min-replicas-to-write", "0")
	steps := []struct {
		name string
		do   []any
		like string // regular expression for both answers where they may differ
	}{
		{name: "take", do: do("SET", "job", "tok", "NX", "PX", 60000)},
		{name: "taken by another", do: do("SET", "job", "other", "NX", "PX", 60000)},
		{name: "read", do: do("GET", "job")},
		{name: "remaining", do: do("PTTL", "job"), like: `^59[0-9]{3}|60000$`},
		{name: "remaining of none", do: do("PTTL", "none")},
		{name: "no ttl", do: do("SET", "forever", "x")},
		{name: "remaining without ttl", do: do("PTTL", "forever")},
		{name: "type", do: do("TYPE", "job")},
		{name: "type of none", do: do("TYPE", "none")},
		{name: "length", do: do("STRLEN", "job")},
		{name: "prefix", do: do("GETRANGE", "job", 0, 1)},
		{name: "delete of another's", do: do("EVAL", compareAndDelete, 1, "job", "other")},
		{name: "extend", do: do("EVAL", compareAndExtend, 1, "job", "tok", 90000)},
		{name: "extended", do: do("PTTL", "job"), like: `^89[0-9]{3}|90000$`},
		{name: "read together", do: do("EVAL_RO", readTogether, 1, "job")},
		{name: "read none together", do: do("EVAL_RO", readTogether, 1, "none")},
		{name: "time in a read-only script", do: do("EVAL_RO", "return #redis.call('TIME')", 0)},
		{name: "write in a read-only script", do: do("EVAL_RO", "return redis.call('SET', KEYS[1], 'x')", 1, "job")},
		{name: "write caught in a read-only script", do: do("EVAL_RO", "return redis.pcall('SET', KEYS[1], 'x')", 1, "job")},
		{name: "revoke", do: do("SET", "job", "tomb", "XX", "KEEPTTL")},
		{name: "revoked", do: do("GET", "job")},
		{name: "delete own", do: do("EVAL", compareAndDelete, 1, "job", "tomb")},
		{name: "gone", do: do("GET", "job")},
		{name: "load", do: do("SCRIPT", "LOAD", "return 7")},
		{name: "by digest", do: do("EVALSHA", redis.NewScript("return 7").Hash(), 0)},
		{name: "by digest, read-only", do: do("EVALSHA_RO", redis.NewScript("return 7").Hash(), 0)},
		{name: "by an unknown digest", do: do("EVALSHA", strings.Repeat("0", 40), 0)},
		{name: "a script with a syntax error", do: do("EVAL", "return foo(", 0), like: `^\(error\) ERR Error compiling script`},
		{name: "a script that fails", do: do("EVAL", "error('x')", 0)},
		{name: "a script with an unknown command", do: do("EVAL", "return redis.call('NOPE')", 0)},
		{name: "a script with a forbidden command", do: do("EVAL", "return redis.call('CONFIG', 'GET', '*')", 0)},
		{name: "a script's own error", do: do("EVAL", "return redis.error_reply('MY error')", 0)},
		{name: "list", do: do("RPUSH", "list", "a", "b")},
		{name: "wrong type", do: do("GET", "list")},
		{name: "wrong type in a script", do: do("EVAL", "\n return redis.call('GET', KEYS[1])", 1, "list")},
		{name: "wrong type caught in a script", do: do("EVAL", "return redis.pcall('GET', KEYS[1])", 1, "list")},
		{name: "list type", do: do("TYPE", "list")},
		{name: "hash", do: do("HSET", "hash", "f", "1")},
		{name: "hash length", do: do("HLEN", "hash")},
		{name: "scan", do: do("SCAN", "0", "MATCH", "for*", "COUNT", 1000)},
		{name: "keys", do: do("DBSIZE")},
		{name: "role", do: do("ROLE")},
		{name: "cluster", do: do("CLUSTER", "INFO")},
		{name: "config", do: do("CONFIG", "GET", "maxmemory-policy")},
		{name: "several of config", do: do("CONFIG", "GET", "min-replicas-*", "appendonly")},
		{name: "alias of config", do: do("CONFIG", "GET", "min-slaves-to-write")},
		{name: "config of none", do: do("CONFIG", "GET", "none")},
		{name: "config set", do: do("CONFIG", "SET", "maxmemory-policy", "volatile-lru")},
		{name: "config was set", do: do("CONFIG", "GET", "maxmemory-policy")},
		{name: "config set back", do: do("CONFIG", "SET", "maxmemory-policy", "noeviction", "min-replicas-max-lag", "11")},
		{name: "both were set", do: do("CONFIG", "GET", "maxmemory-p*", "min-replicas-max-lag")},
		{name: "config set of none", do: do("CONFIG", "SET", "none", "1")},
		{name: "config set below", do: do("CONFIG", "SET", "min-replicas-to-write", "-1")},
		{name: "config set of a word", do: do("CONFIG", "SET", "min-replicas-to-write", "many")},
		{name: "config set of a wrong policy", do: do("CONFIG", "SET", "maxmemory-policy", "some")},
		{name: "config rewrite", do: do("CONFIG", "REWRITE")},
		{name: "config without more", do: do("CONFIG")},
		{name: "config set without value", do: do("CONFIG", "SET", "port")},

		{name: "close", do: closed},
		{name: "closed: set", do: do("SET", "job", "tok", "NX", "PX", 60000)},
		{name: "closed: delete", do: do("DEL", "forever")},
		{name: "closed: flush", do: do("FLUSHALL")},
		{name: "closed: swap", do: do("SWAPDB", 0, 1)},
		{name: "closed: set in a script", do: do("EVAL", "return redis.call('SET', KEYS[1], 'x')", 1, "job")},
		{name: "closed: caught in a script", do: do("EVAL", "return redis.pcall('SET', KEYS[1], 'x')", 1, "job")},
		{name: "closed: compare and delete of another's", do: do("EVAL", compareAndDelete, 1, "forever", "other")},
		{name: "closed: compare and delete", do: do("EVAL", compareAndDelete, 1, "forever", "x")},
		{name: "closed: script that reads", do: do("EVAL", readTogether, 1, "forever")},
		{name: "closed: read-only script", do: do("EVAL_RO", readTogether, 1, "forever")},
		{name: "closed: write in a read-only script", do: do("EVAL_RO", "return redis.call('SET', KEYS[1], 'x')", 1, "job")},
		{name: "closed: get", do: do("GET", "forever")},
		{name: "closed: ttl", do: do("PTTL", "forever")},
		{name: "closed: scan", do: do("SCAN", "0", "MATCH", "for*", "TYPE", "string")},
		{name: "closed: publish", do: do("PUBLISH", "c", "m")},
		{name: "closed: ping", do: do("PING")},
		{name: "closed: time", do: do("TIME"), like: `^\["[0-9]{10}" "[0-9]{1,6}"\]$`},
		{name: "closed: script load", do: do("SCRIPT", "LOAD", "return 8")},
		{name: "the held value closes too", do: do("CONFIG", "SET", "min-replicas-to-write", "2147483646")},
		{name: "held: set", do: do("SET", "job", "tok", "NX", "PX", 60000)},
		{name: "one replica closes too", do: do("CONFIG", "SET", "min-replicas-to-write", "1")},
		{name: "one: set", do: do("SET", "job", "tok", "NX", "PX", 60000)},
		{name: "no lag", do: do("CONFIG", "SET", "min-replicas-max-lag", "0")},
		{name: "no lag opens", do: do("SET", "job", "tok", "NX", "PX", 60000)},
		{name: "lag", do: do("CONFIG", "SET", "min-replicas-max-lag", "10")},
		{name: "lag closes", do: do("DEL", "job")},

		{name: "multi, closed", do: do("MULTI")},
		{name: "queue a write, closed", do: do("SET", "job", "other")},
		{name: "queue a read", do: do("GET", "job")},
		{name: "exec, closed", do: do("EXEC")},
		{name: "multi of reads, closed", do: do("MULTI")},
		{name: "queue a type", do: do("TYPE", "job")},
		{name: "queue a get", do: do("GET", "job")},
		{name: "exec of reads, closed", do: do("EXEC")},
		{name: "open", do: opened},
		{name: "multi", do: do("MULTI")},
		{name: "queue a write", do: do("SET", "job", "third")},
		{name: "exec", do: do("EXEC")},
		{name: "written", do: do("GET", "job")},
		{name: "multi again", do: do("MULTI")},
		{name: "discard", do: do("DISCARD")},
		{name: "flush", do: do("FLUSHALL")},
		{name: "flushed", do: do("DBSIZE")},
	}
	server := labtest.Servers(t, 1, lab.BootFence...)[0]
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprintf("RESP%d", protocol), func(t *testing.T) {
			c := embedded(t, 1)
			with := func(o *redis.Options) { o.Protocol = protocol }
			ours, real := client(t, c.Nodes()[0], with), client(t, server.Node(), with)
			for _, s := range []*redis.Client{ours, real} {
				if got := say(t, s, opened...); got != `"OK"` {
					t.Fatal(got)
				}
				say(t, s, "FLUSHALL")
				say(t, s, "CONFIG", "SET", "min-replicas-max-lag", "10")
			}
			for _, step := range steps {
				got, want := say(t, ours, step.do...), say(t, real, step.do...)
				if step.like != "" {
					like := regexp.MustCompile(step.like)
					if !like.MatchString(got) || !like.MatchString(want) {
						t.Errorf("%s: %v: embedded %s, real %s: not like %s", step.name, step.do, got, want, step.like)
					}
				} else if got != want {
					t.Errorf("%s: %v\n embedded %s\n real     %s", step.name, step.do, got, want)
				}
			}
		})
	}
}

// A write that was queued while the node served does not run after another connection
// has fenced it.
func TestEmbeddedClosesOverAQueuedWrite(t *testing.T) {
	c := embedded(t, 1)
	server := labtest.Servers(t, 1)[0]
	open(t, c)
	for name, node := range map[string]*redlock.Node{"embedded": c.Nodes()[0], "real": server.Node()} {
		a, b := client(t, node), client(t, node)
		say(t, a, "MULTI")
		say(t, a, "SET", "k", "v")
		say(t, b, "CONFIG", "SET", "min-replicas-to-write", "2147483647")
		want := "(error) EXECABORT Transaction discarded because of: NOREPLICAS Not enough good replicas to write."
		if got := say(t, a, "EXEC"); got != want {
			t.Errorf("%s: %s", name, got)
		}
		if got := say(t, a, "GET", "k"); got != "(nil)" {
			t.Errorf("%s: after a refused EXEC the connection answers %s", name, got)
		}
	}
}

func fields(info string) map[string]string {
	m := map[string]string{}
	for line := range strings.SplitSeq(info, "\r\n") {
		if k, v, ok := strings.Cut(line, ":"); ok {
			m[k] = v
		}
	}
	return m
}

func info(t *testing.T, c *redis.Client, sections ...string) map[string]string {
	t.Helper()
	text, err := c.Info(t.Context(), sections...).Result()
	if err != nil {
		t.Fatal(err)
	}
	return fields(text)
}

// What INFO tells has the names of a real server, and the values that a console
// decides on.
// Commands that come together are answered together, to the last one; and one
// who reads nothing does not keep others from theirs.
func TestEmbeddedAnswersAPipeline(t *testing.T) {
	c := embedded(t, 1)
	conn := dial(t, c)
	if _, err := conn.Write(bytes.Repeat([]byte("*1\r\n$4\r\nPING\r\n"), 1000)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte("*1\r\n$4\r\nQUIT\r\n")); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(conn)
	if want := strings.Repeat("+PONG\r\n", 1000) + "+OK\r\n"; err != nil || string(got) != want {
		t.Fatalf("%d bytes of %d, %v", len(got), len(want), err)
	}
	deaf := dial(t, c)
	_ = deaf.SetWriteDeadline(time.Now().Add(time.Second))
	big := strings.Repeat("x", 1<<16)
	for range 1000 {
		if _, err := fmt.Fprintf(deaf, "*2\r\n$4\r\nECHO\r\n$%d\r\n%s\r\n", len(big), big); err != nil {
			if got := say(t, client(t, c.Nodes()[0]), "PING"); got != `"PONG"` { // it waits for us, and others do not
				t.Error(got)
			}
			return
		}
	}
	t.Fatal("64 MiB of replies that nobody reads are kept")
}

func dial(t *testing.T, c *lab.EmbeddedCluster) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", c.Nodes()[0].Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	return conn
}

func TestEmbeddedInfo(t *testing.T) {
	began := time.Now()
	c := embedded(t, 1)
	ours, real := client(t, c.Nodes()[0]), client(t, labtest.Servers(t, 1, lab.BootFence...)[0].Node())
	for _, sections := range [][]string{nil, {"server"}, {"replication"}, {"memory", "stats", "clients"}, {"persistence"}, {"cluster"}, {"all"}} {
		want := info(t, real, sections...)
		for name := range info(t, ours, sections...) {
			if _, ok := want[name]; !ok && !strings.HasPrefix(name, "cmdstat_") {
				t.Errorf("INFO %v: a real server has no %s", sections, name)
			}
		}
	}
	all := info(t, ours, "everything")
	for name, want := range map[string]string{
		"redis_version": "7.0.0", "redis_mode": "standalone", "config_file": "",
		"role": "master", "connected_slaves": "0", "min_slaves_good_slaves": "0", "cluster_enabled": "0",
		"loading": "0", "aof_enabled": "0", "evicted_keys": "0", "maxmemory_policy": "noeviction",
	} {
		if got, ok := all[name]; !ok || got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	// Whole seconds of the wall clock: one more may have begun than have passed.
	if up, err := strconv.Atoi(all["uptime_in_seconds"]); err != nil || up < 0 || float64(up) > time.Since(began).Seconds()+1 {
		t.Errorf("uptime_in_seconds is %q, %s after the start", all["uptime_in_seconds"], time.Since(began))
	}
	_, port, _ := net.SplitHostPort(c.Nodes()[0].Addr())
	if all["tcp_port"] != port {
		t.Errorf("tcp_port %s, want %s", all["tcp_port"], port)
	}
	if !regexp.MustCompile(`^[0-9a-f]{40}$`).MatchString(all["run_id"]) {
		t.Errorf("run_id %q", all["run_id"])
	}
	if n := info(t, ours, "nosuch"); len(n) != 0 {
		t.Errorf("an unknown section has %v", n)
	}

	for _, s := range []*redis.Client{ours, real} {
		say(t, s, "CONFIG", "RESETSTAT")
		say(t, s, "SET", "refused", "x")
		say(t, s, "CONFIG", "SET", "min-replicas-to-write", "0")
		say(t, s, "SET", "a", "1", "PX", 60000)
		say(t, s, "SET", "b", "1")
		say(t, s, "EVAL", "return redis.call('FLUSHDB')", 0)
		say(t, s, "SWAPDB", 0, 1)
		say(t, s, "FLUSHALL")
		say(t, s, "FLUSHALL")
		say(t, s, "SET", "a", "1", "PX", 60000)
		say(t, s, "SET", "b", "1")
		say(t, s, "GET", "b")
	}
	calls := regexp.MustCompile(`calls=\d+`)
	rejected := regexp.MustCompile(`rejected_calls=\d+`)
	got, want := info(t, ours, "commandstats"), info(t, real, "commandstats")
	for _, name := range []string{"set", "get", "flushall", "flushdb", "swapdb", "eval", "config|set"} {
		g, w := got["cmdstat_"+name], want["cmdstat_"+name]
		if calls.FindString(g) != calls.FindString(w) || rejected.FindString(g) != rejected.FindString(w) {
			t.Errorf("%s: embedded %q, real %q", name, g, w)
		}
	}
	keyspace := regexp.MustCompile(`keys=2,expires=1`)
	if g, w := info(t, ours, "keyspace")["db0"], info(t, real, "keyspace")["db0"]; !keyspace.MatchString(g) || !keyspace.MatchString(w) {
		t.Errorf("keyspace: embedded %q, real %q", g, w)
	}
}

func TestEmbeddedClientCommands(t *testing.T) {
	c := embedded(t, 1)
	a := client(t, c.Nodes()[0], func(o *redis.Options) { o.Protocol = 3; o.ClientName = "console"; o.DisableIdentity = false })
	b := client(t, c.Nodes()[0])
	if x, y := say(t, a, "CLIENT", "ID"), say(t, b, "CLIENT", "ID"); x == y {
		t.Errorf("two connections have the id %s", x)
	}
	if got := say(t, a, "CLIENT", "GETNAME"); got != `"console"` {
		t.Errorf("name %s", got)
	}
	if got := say(t, a, "CLIENT", "TRACKING", "ON"); !strings.HasPrefix(got, "(error) ERR unknown subcommand") {
		t.Errorf("tracking: %s", got)
	}
	hello := say(t, a, "HELLO", "3")
	for _, part := range []string{`"server": "redis"`, `"version": "7.0.0"`, `"proto": 3`, `"role": "master"`} {
		if !strings.Contains(hello, part) {
			t.Errorf("HELLO has no %s: %s", part, hello)
		}
	}
}

// Copies expire by the master's own clock.
func TestEmbeddedExpiry(t *testing.T) {
	c := embedded(t, 2)
	open(t, c)
	a, b := client(t, c.Nodes()[0]), client(t, c.Nodes()[1])
	for _, r := range []*redis.Client{a, b} {
		say(t, r, "SET", "job", "tok", "NX", "PX", 60000)
	}
	c.Skew(0, 2*time.Minute)
	if got := say(t, a, "GET", "job"); got != "(nil)" {
		t.Errorf("after a step past the TTL the copy is %s", got)
	}
	if got := say(t, b, "GET", "job"); got != `"tok"` {
		t.Errorf("the step reached another master: %s", got)
	}
	say(t, a, "SET", "short", "tok", "PX", 20)
	deadline := time.Now().Add(10 * time.Second)
	for say(t, a, "EXISTS", "short") != "0" {
		if time.Now().After(deadline) {
			t.Fatal("a copy of 20 ms did not expire")
		}
	}
}

func TestEmbeddedClocksDiffer(t *testing.T) {
	c := embedded(t, 5)
	offset := func(i int) (low, high time.Duration) {
		r := client(t, c.Nodes()[i])
		say(t, r, "PING")
		before := time.Now()
		at, err := r.Time(t.Context()).Result()
		after := time.Now()
		if err != nil {
			t.Fatal(err)
		}
		return at.Sub(after) - time.Microsecond, at.Sub(before) + time.Microsecond
	}
	for i := range c.Nodes() {
		if low, high := offset(i); low > 4*time.Millisecond || high < -4*time.Millisecond {
			t.Errorf("n%d is between %v and %v off", i+1, low, high)
		}
	}
	for i := range c.Nodes() {
		want := time.Duration(i-2) * time.Hour
		c.Skew(i, want)
		if low, high := offset(i); low > want || high < want {
			t.Errorf("n%d is between %v and %v off, want %v", i+1, low, high, want)
		}
	}
}
