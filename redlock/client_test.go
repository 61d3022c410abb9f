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

func countTrue(results []redlock.NodeResult, s redlock.Status) (n int) {
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
	if n := countTrue(l.Nodes(), redlock.StatusOK); n < 3 {
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
	if err != nil || countTrue(results, redlock.StatusOK) < 3 {
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
	if !errors.Is(err, redlock.ErrNotHeld) || countTrue(results, redlock.StatusAbsent) != 5 {
		t.Errorf("released again: %s, %v", statuses(results), err)
	}
	results, err = c.Inspect(t.Context(), "job:1")
	if err != nil || countTrue(results, redlock.StatusAbsent) != 5 {
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

// awaitCopies waits until a lock is on all servers: one that is slow is not waited for.
func awaitCopies(t *testing.T, servers []*lab.Server, key string) {
	t.Helper()
	eventually(t, "not on all", func() bool {
		return !slices.ContainsFunc(servers, func(s *lab.Server) bool { return value(t, s, key) == "" })
	})
}

func TestContendedTellsTheHolder(t *testing.T) {
	servers := labtest.Servers(t, 3)
	c := open(t, servers, patient())
	l := acquire(t, c, "a", 30*time.Second)
	awaitCopies(t, servers, "a")
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
	settled(t, servers) // the SETs in the buffers are followed by a release

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
	watch := redlock.Connect(servers[0].Node(), 1, 10*time.Second)
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
		for user, denied := range map[string]string{"unreported": "-client", "old": "-hello"} {
			if _, err := s.Do(t.Context(), "ACL", "SETUSER", user, "on", ">pw", "~*", "+@all", denied); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, user := range []string{"", "unreported", "old"} {
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
