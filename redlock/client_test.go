package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"redlockctl/internal/lab"
	"redlockctl/internal/lab/labtest"
	"redlockctl/redlock"
)

// patient are options for a machine that is busy with other tests: a node that
// answers at all answers within them.
func patient() redlock.Options {
	return redlock.Options{NodeTimeout: time.Second, ConnectTimeout: 2 * time.Second, Retries: -1}
}

func open(t *testing.T, servers []*lab.Server, opt redlock.Options) *redlock.Client {
	t.Helper()
	c, err := redlock.New(labtest.Nodes(servers), opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func acquire(t *testing.T, c *redlock.Client, resource string, ttl time.Duration) *redlock.Lock {
	t.Helper()
	l, err := c.Acquire(t.Context(), resource, ttl)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func statuses(results []redlock.NodeResult) string {
	var b strings.Builder
	for i, r := range results {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(r.Status.String())
	}
	return b.String()
}

func count(results []redlock.NodeResult, s redlock.Status) (n int) {
	for _, r := range results {
		if r.Status == s {
			n++
		}
	}
	return n
}

// eventually waits for what takes a moment on a real server.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(what)
		}
	}
}

// value is the value of a key on one server; empty: no such key.
func value(t *testing.T, s *lab.Server, key string) string {
	t.Helper()
	v, err := s.Do(context.Background(), "GET", key)
	if errors.Is(err, redis.Nil) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return v.(string)
}

// settled waits until no server has a key.
func settled(t *testing.T, servers []*lab.Server) {
	t.Helper()
	eventually(t, "keys are left behind", func() bool {
		for _, s := range servers {
			if n, err := s.Do(context.Background(), "DBSIZE"); err != nil || n != int64(0) {
				return false
			}
		}
		return true
	})
}

func TestAcquireInspectExtendRelease(t *testing.T) {
	servers := labtest.Servers(t, 5)
	c := open(t, servers, patient())
	before := time.Now()
	l := acquire(t, c, "job:1", 30*time.Second)
	if l.Resource() != "job:1" || len(l.Token()) != 27 || l.TTL() != 30*time.Second {
		t.Errorf("got %q %q %s", l.Resource(), l.Token(), l.TTL())
	}
	drift := 302 * time.Millisecond
	if u := l.Until(); u.Before(before.Add(30*time.Second-drift)) || u.After(time.Now().Add(30*time.Second-drift)) {
		t.Errorf("valid until %s after the start", u.Sub(before))
	}
	if !l.Valid(time.Now()) || l.Valid(l.Until()) {
		t.Error("valid before its end, and not at it")
	}
	if n := count(l.Nodes(), redlock.StatusOK); n < 3 {
		t.Errorf("held with %d", n)
	}
	eventually(t, "the lock is not on all five", func() bool {
		results, err := c.Inspect(t.Context(), "job:1")
		for _, r := range results {
			if err != nil || r.Status != redlock.StatusHeld || r.Token != l.Token() || r.Type != "string" ||
				r.Len != 27 || r.TTL <= 20*time.Second || r.TTL > 30*time.Second {
				return false
			}
		}
		return true
	})

	first := l.Until()
	if err := l.Extend(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	if l.TTL() != time.Minute || !l.Until().After(first.Add(20*time.Second)) {
		t.Errorf("extended to %s, until %s later", l.TTL(), l.Until().Sub(first))
	}

	results, err := l.Release(context.Background())
	if err != nil || count(results, redlock.StatusOK) < 3 {
		t.Errorf("released: %s, %v", statuses(results), err)
	}
	settled(t, servers)
	if l.Valid(time.Now()) {
		t.Error("valid after its release")
	}
	if err := l.Extend(t.Context(), time.Minute); !errors.Is(err, redlock.ErrNotHeld) {
		t.Errorf("extended after its release: %v", err)
	}
	results, err = l.Release(context.Background())
	if !errors.Is(err, redlock.ErrNotHeld) || count(results, redlock.StatusAbsent) != 5 {
		t.Errorf("released again: %s, %v", statuses(results), err)
	}
	results, err = c.Inspect(t.Context(), "job:1")
	if err != nil || count(results, redlock.StatusAbsent) != 5 {
		t.Errorf("inspected: %s, %v", statuses(results), err)
	}
}

func TestOneAndEvenNodes(t *testing.T) {
	for _, n := range []int{1, 2, 4} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			servers := labtest.Servers(t, n)
			c := open(t, servers, patient())
			l := acquire(t, c, "a", 10*time.Second)
			if _, err := c.TryAcquire(t.Context(), "a", 10*time.Second); !errors.Is(err, redlock.ErrContended) {
				t.Errorf("taken twice: %v", err)
			}
			if _, err := l.Release(t.Context()); err != nil {
				t.Error(err)
			}
			settled(t, servers)
			if n == 1 {
				return
			}
			for _, s := range servers[n/2:] {
				if err := s.Kill(); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := c.TryAcquire(t.Context(), "a", 10*time.Second); !errors.Is(err, redlock.ErrNoQuorum) {
				t.Errorf("half of the nodes: %v", err)
			}
		})
	}
}

func TestContendedTellsTheHolder(t *testing.T) {
	servers := labtest.Servers(t, 3)
	c := open(t, servers, patient())
	l := acquire(t, c, "a", 30*time.Second)
	eventually(t, "not on all", func() bool {
		return !slices.ContainsFunc(servers, func(s *lab.Server) bool { return value(t, s, "a") == "" })
	})
	opt := patient()
	opt.Retries, opt.RetryDelay = 2, time.Millisecond
	other := open(t, servers, opt)
	_, err := other.Acquire(t.Context(), "a", 30*time.Second)
	var e *redlock.Error
	if !errors.Is(err, redlock.ErrContended) || !errors.As(err, &e) {
		t.Fatal(err)
	}
	if e.Attempts != 3 || e.Op != "acquire" || e.Resource != "a" || len(e.Nodes) != 3 {
		t.Errorf("%+v", e)
	}
	for _, r := range e.Nodes {
		if r.Token != l.Token() || r.TTL <= 0 || r.Status != redlock.StatusHeld {
			t.Errorf("%+v", r)
		}
	}
	if want := fmt.Sprintf("acquire \"a\": held by %q on n1, n2, n3 for another", l.Token()); !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%s\nwant %s…", err, want)
	}
	for _, s := range servers {
		if v := value(t, s, "a"); v != l.Token() {
			t.Errorf("the failed attempts touched the copy: %q", v)
		}
	}
}

func TestErrorsAreSafeToShow(t *testing.T) {
	servers := labtest.Servers(t, 1)
	c := open(t, servers, patient())
	key, val := "a\x1b[2J\u202e", "\x1b]0;x\a\xff"+strings.Repeat("v", 1000)
	if _, err := servers[0].Do(t.Context(), "SET", key, val); err != nil {
		t.Fatal(err)
	}
	_, err := c.TryAcquire(t.Context(), key, time.Second)
	if !errors.Is(err, redlock.ErrContended) {
		t.Fatal(err)
	}
	for _, r := range err.Error() {
		if r < ' ' || r == 0x7f || r == '\u202e' {
			t.Fatalf("%q", err.Error())
		}
	}
	if !strings.Contains(err.Error(), "without end") || len(err.Error()) > 500 {
		t.Error(err)
	}
	results, err := c.Inspect(t.Context(), key)
	if err != nil || results[0].Token != val[:256] || results[0].Len != int64(len(val)) || results[0].TTL >= 0 {
		t.Errorf("%v %v", results, err)
	}
}

func TestMinorityDownOrHung(t *testing.T) {
	servers := labtest.Servers(t, 5)
	opt := patient()
	opt.NodeTimeout = time.Second // a busy machine must not look like a hung node
	c := open(t, servers, opt)
	acquire(t, c, "warm", 100*time.Second)
	if err := servers[0].Kill(); err != nil {
		t.Fatal(err)
	}
	if err := servers[1].Pause(); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		l := acquire(t, c, fmt.Sprint("a", i), 100*time.Second)
		if i%2 == 0 { // does not wait for the others
			if results, err := l.Release(t.Context()); err != nil || count(results, redlock.StatusOK) != 3 {
				t.Fatalf("released: %s, %v", statuses(results), err)
			}
			continue
		}
		results, err := c.Release(t.Context(), l.Resource(), l.Token())
		if err != nil || count(results, redlock.StatusOK) != 3 {
			t.Fatalf("released: %s, %v", statuses(results), err)
		}
		if results[0].Err == nil || results[1].Err == nil {
			t.Errorf("no reason: %+v", results)
		}
	}
	// One more, and there is no quorum.
	if err := servers[2].Kill(); err != nil {
		t.Fatal(err)
	}
	_, err := c.TryAcquire(t.Context(), "b", 100*time.Second)
	if !errors.Is(err, redlock.ErrNoQuorum) {
		t.Fatal(err)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a node's timeout looks like the caller's: %v", err)
	}
	for _, want := range []string{"n1 ", "n2 ", "n3 ", "no quorum of 3 in 5 nodes"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %s", want, err)
		}
	}
	// A token's fate is open while a quorum does not tell.
	if _, err := c.Extend(t.Context(), "warm", "sometoken", 100*time.Second); !errors.Is(err, redlock.ErrNoQuorum) {
		t.Errorf("extended: %v", err)
	}
	if results, err := c.Release(t.Context(), "warm", "sometoken"); !errors.Is(err, redlock.ErrNoQuorum) {
		t.Errorf("released: %s, %v", statuses(results), err)
	}

	// What the hung node finds in its buffers when it wakes up is taken away again.
	if err := servers[1].Resume(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the woken node keeps copies", func() bool {
		n, err := servers[1].Do(context.Background(), "DBSIZE")
		return err == nil && n == int64(1) // warm
	})
}

func TestNodeComesBack(t *testing.T) {
	servers := labtest.Servers(t, 3)
	c := open(t, servers, patient())
	acquire(t, c, "warm", 100*time.Second)
	if err := servers[2].Kill(); err != nil {
		t.Fatal(err)
	}
	for i := range 10 { // until it is skipped
		acquire(t, c, fmt.Sprint("a", i), 100*time.Second)
	}
	eventually(t, "never skipped", func() bool {
		results, _ := c.Inspect(t.Context(), "warm")
		return results[2].Status == redlock.StatusSkipped
	})
	if err := servers[2].Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "not used again", func() bool {
		results, err := c.Inspect(t.Context(), "warm")
		return err == nil && results[2].Status == redlock.StatusAbsent
	})
}

// TestIdleConnectionsClosedByTheServer: the first attempt after a long pause
// finds its connections closed, and loses nothing by it.
func TestIdleConnectionsClosedByTheServer(t *testing.T) {
	servers := labtest.Servers(t, 3)
	c := open(t, servers, patient())
	for i := range 5 {
		for _, s := range servers {
			if _, err := s.Do(t.Context(), "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := c.TryAcquire(t.Context(), fmt.Sprint("a", i), 10*time.Second); err != nil {
			t.Errorf("after %d: %v", i, err)
		}
	}
}

func TestFencedNodes(t *testing.T) {
	fenced := labtest.Servers(t, 3, lab.BootFence...)
	c := open(t, fenced, patient())
	_, err := c.TryAcquire(t.Context(), "a", 10*time.Second)
	var e *redlock.Error
	if !errors.Is(err, redlock.ErrNoQuorum) || !errors.As(err, &e) || count(e.Nodes, redlock.StatusFenced) < 2 {
		t.Fatal(err)
	}
	if !strings.Contains(err.Error(), "n1 fenced") && !strings.Contains(err.Error(), "n2 fenced") {
		t.Error(err)
	}
	if results, err := c.Inspect(t.Context(), "a"); err != nil || count(results, redlock.StatusAbsent) != 3 {
		t.Errorf("a fenced node can be read: %s, %v", statuses(results), err)
	}
	// Opened, locked, and closed again with the copies in place.
	set := func(s *lab.Server, v int) {
		t.Helper()
		if _, err := s.Do(t.Context(), "CONFIG", "SET", "min-replicas-to-write", v); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range fenced {
		set(s, 0)
	}
	l := acquire(t, c, "a", 50*time.Second)
	eventually(t, "not on the third", func() bool { return value(t, fenced[2], "a") != "" })
	set(fenced[2], 2147483647)
	if err := l.Extend(t.Context(), 60*time.Second); err != nil {
		t.Errorf("extended beside a fenced minority: %v", err)
	}
	if _, err := c.Inspect(t.Context(), "a"); err != nil { // the third has refused by then
		t.Fatal(err)
	}
	results, err := l.Release(t.Context()) // does not wait for the third
	if said := statuses(results); err != nil || said != "ok ok fenced" && said != "ok ok unanswered" {
		t.Fatalf("%s, %v", statuses(results), err)
	}
	if results[0].MayLiveUntil != (time.Time{}) {
		t.Errorf("a clean node: %+v", results[0])
	}
	if left := time.Until(results[2].MayLiveUntil); left < 40*time.Second || left > 70*time.Second {
		t.Errorf("the copy on the fenced node lives for %s: %+v", left, results)
	}
}

// TestDeniedByACL: a node that refuses for want of a right is told apart from a
// fenced one, does not count, and the error says which right it is that is
// missing.
func TestDeniedByACL(t *testing.T) {
	servers := labtest.Servers(t, 3)
	user := func(name string, rules ...any) {
		t.Helper()
		for _, s := range servers {
			if _, err := s.Do(t.Context(), append([]any{"ACL", "SETUSER", name, "reset", "on", ">pw", "allkeys", "allchannels", "+@all"}, rules...)...); err != nil {
				t.Fatal(err)
			}
		}
	}
	as := func(name, password string) *redlock.Client {
		t.Helper()
		nodes := make([]*redlock.Node, len(servers))
		for i, s := range servers {
			n, err := redlock.NewNode(s.Node().Name(), &redis.Options{Addr: s.Addr(), Username: name, Password: password})
			if err != nil {
				t.Fatal(err)
			}
			nodes[i] = n
		}
		c, err := redlock.New(nodes, patient())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	denied := func(err error, wants ...string) {
		t.Helper()
		var e *redlock.Error
		if !errors.Is(err, redlock.ErrNoQuorum) || !errors.As(err, &e) || count(e.Nodes, redlock.StatusDenied) < 2 {
			t.Errorf("not told as denied: %v", err)
			return
		}
		for _, want := range append(wants, " denied (") {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q is not in: %v", want, err)
			}
		}
		if strings.Contains(err.Error(), "fenced") {
			t.Errorf("denied is no fence: %v", err)
		}
	}
	owner := open(t, servers, patient())
	held := acquire(t, owner, "held", time.Minute)
	everywhere(t, owner, held)

	user("reader", "-@write", "-@scripting")
	reader := as("reader", "pw")
	_, err := reader.TryAcquire(t.Context(), "a", 10*time.Second)
	denied(err, "'set'")
	_, err = reader.Release(t.Context(), "held", held.Token())
	denied(err, "'eval") // evalsha, or eval of a script that it has lost
	if results, err := reader.Inspect(t.Context(), "a"); err != nil || results[0].Status != redlock.StatusAbsent {
		t.Errorf("the right to read: %s, %v", statuses(results), err)
	}

	// Scripts may run, and their commands not: servers before 7.2 do not say which.
	user("half", "-del", "-pexpire", "-strlen")
	half := as("half", "pw")
	_, err = half.Release(t.Context(), "held", held.Token())
	denied(err, "strlen, get and del")
	_, err = half.Extend(t.Context(), "held", held.Token(), time.Minute)
	denied(err, "pexpire")
	_, err = half.Revoke(t.Context(), "held", held.Token(), time.Minute)
	denied(err, "strlen, get, pttl and set")
	results, _ := half.Inspect(t.Context(), "held")
	if count(results, redlock.StatusDenied) != 3 || !strings.Contains(results[0].Err.Error(), "'strlen'") {
		t.Errorf("a look that is denied: %s, %v", statuses(results), results[0].Err)
	}

	user("elsewhere", "resetkeys", "~job:*")
	elsewhere := as("elsewhere", "pw")
	_, err = elsewhere.TryAcquire(t.Context(), "a", 10*time.Second)
	denied(err, "one of the keys")
	_, err = elsewhere.AcquireFenced(t.Context(), "job:1", 10*time.Second)
	denied(err, "fencing token", "one of the keys")

	_, err = as("reader", "wrong").TryAcquire(t.Context(), "a", 10*time.Second)
	denied(err, "WRONGPASS")
	if _, err := held.Release(context.Background()); err != nil {
		t.Error(err)
	}
	settled(t, servers)
}

func TestScriptsLostByTheServer(t *testing.T) {
	servers := labtest.Servers(t, 3)
	c := open(t, servers, patient())
	for i := range 3 {
		l := acquire(t, c, "a", 10*time.Second)
		for _, s := range servers {
			if _, err := s.Do(t.Context(), "SCRIPT", "FLUSH"); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Extend(t.Context(), 20*time.Second); err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
		for _, s := range servers {
			if _, err := s.Do(t.Context(), "SCRIPT", "FLUSH"); err != nil {
				t.Fatal(err)
			}
		}
		results, err := c.Release(t.Context(), l.Resource(), l.Token())
		if err != nil || count(results, redlock.StatusOK) != 3 {
			t.Fatalf("round %d: %s, %v", i, statuses(results), err)
		}
	}
	settled(t, servers)
}

func TestWrongTypeUnderTheKey(t *testing.T) {
	servers := labtest.Servers(t, 3)
	c := open(t, servers, patient())
	for _, s := range servers {
		if _, err := s.Do(t.Context(), "HSET", "a", "f", "v"); err != nil {
			t.Fatal(err)
		}
	}
	_, err := c.TryAcquire(t.Context(), "a", 10*time.Second)
	if !errors.Is(err, redlock.ErrContended) || !strings.Contains(err.Error(), "held by a hash on n1, n2, n3 without end") {
		t.Errorf("acquire: %v", err)
	}
	results, err := c.Inspect(t.Context(), "a")
	if err != nil || results[0].Status != redlock.StatusProtocol || results[0].Type != "hash" || results[0].Err == nil {
		t.Errorf("inspect: %+v, %v", results, err)
	}
	if _, err := c.Extend(t.Context(), "a", "token", 10*time.Second); !errors.Is(err, redlock.ErrNotHeld) {
		t.Errorf("extend: %v", err)
	}
	if _, err := c.Release(t.Context(), "a", "token"); !errors.Is(err, redlock.ErrNotHeld) {
		t.Errorf("release: %v", err)
	}
	for _, s := range servers {
		if v, err := s.Do(t.Context(), "HGET", "a", "f"); err != nil || v != "v" {
			t.Errorf("the hash was touched: %v, %v", v, err)
		}
	}
}

// TestReleaseNeverDeletesAnotherGrant: neither a late release nor one with a
// made-up token, shorter or longer, touches what others hold.
func TestReleaseNeverDeletesAnotherGrant(t *testing.T) {
	servers := labtest.Servers(t, 3)
	c := open(t, servers, patient())
	old := acquire(t, c, "a", 10*time.Second)
	for _, s := range servers {
		eventually(t, "no copy", func() bool { return value(t, s, "a") != "" }) // the third comes later
		if _, err := s.Do(t.Context(), "DEL", "a"); err != nil {                // it expired
			t.Fatal(err)
		}
	}
	var l *redlock.Lock
	eventually(t, "not free", func() bool {
		var err error
		l, err = c.TryAcquire(t.Context(), "a", 10*time.Second)
		return err == nil
	})
	for _, token := range []string{old.Token(), l.Token()[1:], l.Token() + "x", "*", "x"} {
		results, err := c.Release(t.Context(), "a", token)
		if !errors.Is(err, redlock.ErrNotHeld) || count(results, redlock.StatusHeld)+count(results, redlock.StatusAbsent) != 3 {
			t.Errorf("%q: %s, %v", token, statuses(results), err)
		}
	}
	for _, s := range servers {
		if v := value(t, s, "a"); v != l.Token() {
			t.Errorf("%q is there", v)
		}
	}
}

func TestExtensionNeverRevives(t *testing.T) {
	servers := labtest.Servers(t, 3)
	c := open(t, servers, patient())
	l := acquire(t, c, "a", 10*time.Second)
	eventually(t, "not on all", func() bool {
		return !slices.ContainsFunc(servers, func(s *lab.Server) bool { return value(t, s, "a") == "" })
	})
	// A minority has lost it: held, and still not there.
	if _, err := servers[0].Do(t.Context(), "DEL", "a"); err != nil {
		t.Fatal(err)
	}
	if err := l.Extend(t.Context(), 20*time.Second); err != nil {
		t.Fatal(err)
	}
	if v := value(t, servers[0], "a"); v != "" {
		t.Errorf("made anew: %q", v)
	}
	// A majority has lost it: lost for good, by the token too.
	if _, err := servers[1].Do(t.Context(), "SET", "a", "another", "PX", 60000); err != nil {
		t.Fatal(err)
	}
	if err := l.Extend(t.Context(), 30*time.Second); !errors.Is(err, redlock.ErrNotHeld) {
		t.Fatal(err)
	}
	if l.Valid(time.Now()) {
		t.Error("valid though it is known to be lost")
	}
	if _, err := c.Extend(t.Context(), "a", l.Token(), 30*time.Second); !errors.Is(err, redlock.ErrNotHeld) {
		t.Errorf("by token: %v", err)
	}
	if v := value(t, servers[0], "a"); v != "" {
		t.Errorf("made anew: %q", v)
	}
	if v := value(t, servers[1], "a"); v != "another" {
		t.Errorf("overwritten: %q", v)
	}
}

func TestExtendByToken(t *testing.T) {
	servers := labtest.Servers(t, 3)
	c := open(t, servers, patient())
	l := acquire(t, c, "a", 10*time.Second)
	eventually(t, "not on all", func() bool {
		return !slices.ContainsFunc(servers, func(s *lab.Server) bool { return value(t, s, "a") == "" })
	})
	other := open(t, servers, patient())
	m, err := other.Extend(t.Context(), "a", l.Token(), 40*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if m.Token() != l.Token() || !m.Valid(time.Now().Add(30*time.Second)) {
		t.Errorf("%q until %s", m.Token(), m.Until())
	}
	// An extension with a shorter TTL shortens nothing that is relied upon.
	if err := m.Extend(t.Context(), time.Second); err != nil {
		t.Fatal(err)
	}
	if !m.Valid(time.Now().Add(30 * time.Second)) {
		t.Error("the validity became shorter")
	}
	// A node that did not know the script yet carries it out behind what came after.
	eventually(t, "a copy is shorter", func() bool {
		results, err := other.Inspect(t.Context(), "a")
		return err == nil && !slices.ContainsFunc(results, func(r redlock.NodeResult) bool { return r.TTL < 30*time.Second })
	})
	if _, err := m.Release(t.Context()); err != nil {
		t.Error(err)
	}
	settled(t, servers)
}

func TestContextEndReleasesCopies(t *testing.T) {
	servers := labtest.Servers(t, 3)
	opt := patient()
	opt.NodeTimeout = 5 * time.Second
	c := open(t, servers, opt)
	if _, err := c.Inspect(t.Context(), "warm"); err != nil {
		t.Fatal(err)
	}
	for _, s := range servers[:2] { // so that the attempt stays undecided
		if err := s.Pause(); err != nil {
			t.Fatal(err)
		}
	}
	why := errors.New("the operator went home")
	ctx, cancel := context.WithCancelCause(t.Context())
	failed := make(chan error)
	go func() {
		_, err := c.Acquire(ctx, "a", 100*time.Second)
		failed <- err
	}()
	eventually(t, "no copy on the third", func() bool { return value(t, servers[2], "a") != "" })
	cancel(why)
	err := <-failed
	if !errors.Is(err, why) || !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
	if errors.Is(err, redlock.ErrContended) || errors.Is(err, redlock.ErrNoQuorum) {
		t.Errorf("given up looks like something else: %v", err)
	}
	eventually(t, "the copy stays", func() bool { return value(t, servers[2], "a") == "" })
	for _, s := range servers[:2] {
		if err := s.Resume(); err != nil {
			t.Fatal(err)
		}
	}
	settled(t, servers) // the SETs that lay in the buffers have a release behind them

	if _, err := c.Acquire(ctx, "a", 10*time.Second); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that is over: %v", err)
	}
	l := acquire(t, c, "a", 10*time.Second)
	if _, err := l.Release(ctx); err != nil {
		t.Errorf("released with a context that is over: %v", err)
	}
	settled(t, servers)
}

func TestContextEndWhileWaitingToRetry(t *testing.T) {
	servers := labtest.Servers(t, 3)
	opt := patient()
	opt.Retries, opt.RetryDelay = 1, time.Hour
	c := open(t, servers, opt)
	acquire(t, c, "a", 100*time.Second)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := c.Acquire(ctx, "a", 10*time.Second)
	var e *redlock.Error
	if !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &e) || e.Attempts != 1 {
		t.Errorf("%v", err)
	}
}

// TestTokenNamesOneAttempt looks at the SETs that arrived at a server.
func TestTokenNamesOneAttempt(t *testing.T) {
	// The slow log, told that everything is slow, is a record of all commands.
	servers := labtest.Servers(t, 1, "--slowlog-log-slower-than", "0", "--slowlog-max-len", "1000")
	opt := patient()
	opt.Retries, opt.RetryDelay = 4, time.Millisecond
	c := open(t, servers, opt)
	if _, err := servers[0].Do(t.Context(), "SET", "a", "foreign"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Acquire(t.Context(), "a", 10*time.Second); !errors.Is(err, redlock.ErrContended) {
		t.Fatal(err)
	}
	watch := servers[0].Node().Client(1, 10*time.Second)
	defer watch.Close()
	log, err := watch.SlowLogGet(t.Context(), 1000).Result()
	if err != nil {
		t.Fatal(err)
	}
	tokens, sets := make(map[string]bool), 0
	for _, l := range log {
		if strings.EqualFold(l.Args[0], "set") && l.Args[2] != "foreign" {
			tokens[l.Args[2]] = true
			sets++
		}
	}
	if sets != 5 || len(tokens) != 5 {
		t.Errorf("%d attempts with %d tokens, want 5 with 5", sets, len(tokens))
	}
}

// TestStorm: eight clients fight for one lock; there is never more than one
// holder, each gets in, and nothing is left behind.
func TestStorm(t *testing.T) {
	servers := labtest.Servers(t, 5)
	var inside, grants atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		opt := patient()
		opt.Retries, opt.RetryDelay = 1000, 4*time.Millisecond
		c := open(t, servers, opt)
		wg.Go(func() {
			for range 5 {
				l, err := c.Acquire(t.Context(), "a", 100*time.Second)
				if err != nil {
					t.Error(err)
					return
				}
				if inside.Add(1) != 1 {
					t.Error("two holders")
				}
				grants.Add(1)
				inside.Add(-1)
				if _, err := l.Release(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if grants.Load() != 40 {
		t.Errorf("%d grants", grants.Load())
	}
	settled(t, servers)
}

func TestClose(t *testing.T) {
	servers := labtest.Servers(t, 3)
	ignore := goleak.IgnoreCurrent()
	c, err := redlock.New(labtest.Nodes(servers), patient())
	if err != nil {
		t.Fatal(err)
	}
	l := acquire(t, c, "a", 100*time.Second)
	// A contended attempt leaves releases behind, a node hangs, another is gone.
	if _, err := c.TryAcquire(t.Context(), "a", 10*time.Second); !errors.Is(err, redlock.ErrContended) {
		t.Fatal(err)
	}
	if err := servers[0].Pause(); err != nil {
		t.Fatal(err)
	}
	if err := servers[1].Kill(); err != nil {
		t.Fatal(err)
	}
	waiting := make(chan error)
	go func() {
		_, err := c.Acquire(context.Background(), "b", 100*time.Second)
		waiting <- err
	}()
	eventually(t, "no copy of b", func() bool { return value(t, servers[2], "b") != "" })
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := <-waiting; !errors.Is(err, redlock.ErrClosed) && !errors.Is(err, redlock.ErrNoQuorum) {
		t.Errorf("under way: %v", err)
	}
	if v := value(t, servers[2], "b"); v != "" {
		t.Errorf("Close left a copy behind")
	}
	if v := value(t, servers[2], "a"); v != l.Token() {
		t.Errorf("Close touched a lock that is held: %q", v)
	}
	goleak.VerifyNone(t, ignore)
	if err := c.Close(); err != nil {
		t.Errorf("again: %v", err)
	}
	_, acquired := c.Acquire(t.Context(), "a", time.Second)
	_, inspected := c.Inspect(t.Context(), "a")
	extended := l.Extend(t.Context(), time.Second)
	_, released := l.Release(t.Context())
	for _, err := range []error{acquired, inspected, extended, released} {
		if !errors.Is(err, redlock.ErrClosed) {
			t.Error(err)
		}
	}
}

func TestInvalidArguments(t *testing.T) {
	node := func(name string) *redlock.Node {
		n, err := redlock.NewNode(name, &redis.Options{Addr: "127.0.0.1:1"})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for what, f := range map[string]func() (*redlock.Client, error){
		"no nodes":   func() (*redlock.Client, error) { return redlock.New(nil, redlock.Options{}) },
		"a nil node": func() (*redlock.Client, error) { return redlock.New([]*redlock.Node{nil}, redlock.Options{}) },
		"the same name": func() (*redlock.Client, error) {
			return redlock.New([]*redlock.Node{node("a"), node("a")}, redlock.Options{})
		},
		"negative timeout": func() (*redlock.Client, error) {
			return redlock.New([]*redlock.Node{node("a")}, redlock.Options{NodeTimeout: -1})
		},
		"drift of all": func() (*redlock.Client, error) {
			return redlock.New([]*redlock.Node{node("a")}, redlock.Options{DriftFactor: 1})
		},
	} {
		if c, err := f(); !errors.Is(err, redlock.ErrInvalid) {
			t.Errorf("%s: %v, %v", what, c, err)
		}
	}
	c, err := redlock.New([]*redlock.Node{node("a")}, redlock.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx := t.Context()
	for what, f := range map[string]func() error{
		"no name":          func() error { _, err := c.Acquire(ctx, "", time.Second); return err },
		"no TTL":           func() error { _, err := c.Acquire(ctx, "a", 0); return err },
		"negative TTL":     func() error { _, err := c.Acquire(ctx, "a", -time.Second); return err },
		"TTL below 1ms":    func() error { _, err := c.Acquire(ctx, "a", time.Millisecond-1); return err },
		"TTL all drift":    func() error { _, err := c.Acquire(ctx, "a", 2*time.Millisecond); return err },
		"endless TTL":      func() error { _, err := c.TryAcquire(ctx, "a", 1<<63-1); return err },
		"extend no token":  func() error { _, err := c.Extend(ctx, "a", "", time.Second); return err },
		"extend no TTL":    func() error { _, err := c.Extend(ctx, "a", "t", 0); return err },
		"release no token": func() error { _, err := c.Release(ctx, "a", ""); return err },
		"release no name":  func() error { _, err := c.Release(ctx, "", "t"); return err },
		"inspect no name":  func() error { _, err := c.Inspect(ctx, ""); return err },
	} {
		if err := f(); !errors.Is(err, redlock.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestWaitingWithoutPolling: who waits is woken by the release, although the
// next pause would end in hours; where tracking is denied, by the pause.
func TestWaitingWithoutPolling(t *testing.T) {
	servers := labtest.Servers(t, 3)
	for _, s := range servers {
		for user, denied := range map[string]string{"untold": "-client", "old": "-hello"} {
			if _, err := s.Do(t.Context(), "ACL", "SETUSER", user, "on", ">pw", "~*", "+@all", denied); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, user := range []string{"", "untold", "old"} {
		t.Run("user "+user, func(t *testing.T) {
			opt := patient()
			opt.Retries, opt.RetryDelay = 1000, 10*time.Hour
			var nodes []*redlock.Node
			for _, s := range servers {
				o := &redis.Options{Addr: s.Addr()}
				if user != "" {
					o.Username, o.Password = user, "pw"
					opt.RetryDelay = 20 * time.Millisecond
				}
				n, err := redlock.NewNode(s.Addr(), o)
				if err != nil {
					t.Fatal(err)
				}
				nodes = append(nodes, n)
			}
			other, err := redlock.New(nodes, opt)
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close()
			c := open(t, servers, patient())
			for _, ttl := range []time.Duration{time.Hour, 300 * time.Millisecond} { // released, and expired
				l := acquire(t, c, "a", ttl)
				go func() {
					time.Sleep(100 * time.Millisecond)
					if ttl == time.Hour {
						_, _ = l.Release(context.Background())
					}
				}()
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				got, err := other.Acquire(ctx, "a", time.Hour)
				cancel()
				if err != nil {
					t.Fatalf("TTL %s: %v", ttl, err)
				}
				if _, err := got.Release(t.Context()); err != nil {
					t.Error(err)
				}
			}
			settled(t, servers)
		})
	}
}
