package watch_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"go.uber.org/goleak"

	"redlockctl/internal/lab"
	"redlockctl/internal/lab/labtest"
	"redlockctl/redlock"
	"redlockctl/restartguard"
	"redlockctl/restartguard/oneshot"
	"redlockctl/restartguard/watch"
	"redlockctl/server/fences"
)

func TestMain(m *testing.M) {
	logging.Disable() // go-redis writes each failed dial to stderr
	goleak.VerifyTestMain(m)
}

const delay = 300 * time.Millisecond

// guarded is a guard at work.
type guarded struct {
	*watch.Guard
	t    *testing.T
	stop func()

	mu     sync.Mutex
	events []restartguard.Event
	passed int // events before the phase that was reached last
}

// guard runs one that takes servers as they are, though they were only just started.
func guard(t *testing.T, cfg watch.Config, nodes ...*redlock.Node) *guarded {
	t.Helper()
	if cfg.FirstContact == restartguard.Adopt {
		cfg.FirstContact = restartguard.AdoptYoung
	}
	return guardBy(t, cfg, func(cfg watch.Config) (*watch.Guard, error) { return watch.New(nodes, cfg) })
}

func guardBy(t *testing.T, cfg watch.Config, create func(watch.Config) (*watch.Guard, error)) *guarded {
	t.Helper()
	g := &guarded{t: t}
	if cfg.Delay == 0 {
		cfg.Delay = delay
	}
	cfg.Poll = cmp.Or(cfg.Poll, 10*time.Millisecond)
	cfg.OnEvent = func(e restartguard.Event) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.events = append(g.events, e)
	}
	var err error
	if g.Guard, err = create(cfg); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := g.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	}()
	g.stop = func() { cancel(); <-done }
	t.Cleanup(func() {
		g.stop()
		if t.Failed() {
			g.mu.Lock()
			defer g.mu.Unlock()
			for _, e := range g.events {
				t.Logf("%s %s %s: %s", e.At.Format("05.000"), e.Node, e.Kind, e.Text)
			}
		}
	})
	return g
}

func (g *guarded) told(kind string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, e := range g.events {
		if e.Kind == kind {
			return e.Text
		}
	}
	return ""
}

// tells waits for an event: the state changes a moment before it is told.
func (g *guarded) tells(kind string) string {
	g.t.Helper()
	if !wait(func() bool { return g.told(kind) != "" }) {
		g.t.Fatalf("never told %q", kind)
	}
	return g.told(kind)
}

// becomes waits until the first node is as it should be.
func (g *guarded) becomes(what string, is func(restartguard.NodeStatus) bool) restartguard.NodeStatus {
	g.t.Helper()
	var st restartguard.NodeStatus
	if !wait(func() bool { st = g.Status()[0]; return is(st) }) {
		g.t.Fatalf("never became %s: %+v", what, st)
	}
	return st
}

// reaches waits until the first node is in this phase. That it was fenced counts too: on a busy machine it
// serves again before somebody looks.
func (g *guarded) reaches(p restartguard.Phase) restartguard.NodeStatus {
	g.t.Helper()
	st := g.becomes(p.String(), func(s restartguard.NodeStatus) bool {
		return s.Phase == p || p == restartguard.PhaseFenced && g.wasFenced(s.Node)
	})
	g.mu.Lock()
	defer g.mu.Unlock()
	g.passed = len(g.events)
	return st
}

// wasFenced reports whether a node was fenced since the last phase was reached.
func (g *guarded) wasFenced(node string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.ContainsFunc(g.events[g.passed:], func(e restartguard.Event) bool { return e.Node == node && e.Kind == "fenced" })
}

func wait(is func() bool) bool {
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if is() {
			return true
		}
	}
	return false
}

func do(t *testing.T, s *lab.Server, args ...any) any {
	t.Helper()
	v, err := s.Do(context.Background(), args...)
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return v
}

// writes reports whether the server accepts a write, and fails the test if it refuses
// it for anything but a fence.
func writes(t *testing.T, s *lab.Server) bool {
	t.Helper()
	_, err := s.Do(context.Background(), "SET", "k", "v", "PX", 1000)
	if err != nil && !redis.IsNoReplicasError(err) {
		t.Fatalf("write: %v", err)
	}
	return err == nil
}

// restart kills the server, starts it again and returns a moment before the
// new incarnation began.
func restart(t *testing.T, s *lab.Server) time.Time {
	t.Helper()
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	born := time.Now()
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	return born
}

// firstWrite hammers the server until a write gets through, and tells when it
// was sent. The test's own monotonic clock is the witness.
func firstWrite(t *testing.T, s *lab.Server) time.Time {
	t.Helper()
	c := redlock.Connect(s.Node(), 1, time.Second)
	defer c.Close()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if err := c.Set(context.Background(), "witness", "v", time.Second).Err(); err == nil {
			return time.Now()
		}
	}
	t.Fatal("no write was ever accepted")
	return time.Time{}
}

func notBefore(t *testing.T, d time.Duration, from, got time.Time) {
	t.Helper()
	if e := got.Sub(from); e < d {
		t.Fatalf("accepted a write %s after its start, D is %s", e, d)
	}
}

// fenced starts a server that starts fenced, and opens its first life.
func fenced(t *testing.T, args ...string) *lab.Server {
	t.Helper()
	s := labtest.Servers(t, 1, append(append([]string{}, lab.BootFence...), args...)...)[0]
	do(t, s, "CONFIG", "SET", "min-replicas-to-write", "0")
	return s
}

func TestRestartWithBootFenceRejoinsAfterD(t *testing.T) {
	s := fenced(t)
	g := guard(t, watch.Config{}, s.Node())
	if st := g.reaches(restartguard.PhaseServing); st.Known {
		t.Fatalf("knows of a start that it did not see: %+v", st)
	}
	born := restart(t, s)
	notBefore(t, delay, born, firstWrite(t, s))
	st := g.reaches(restartguard.PhaseServing)
	if !st.Known || !st.Verified || st.Exposed != 0 {
		t.Fatalf("boot fence is not verified: %+v", st)
	}
	if text := g.tells("restart"); !strings.Contains(text, "started fenced") {
		t.Fatalf("restart: %q", text)
	}
	g.tells("waiting")
	g.tells("rejoined")
}

func TestRestartWithoutBootFenceIsClosed(t *testing.T) {
	s := labtest.Servers(t, 1)[0]
	g := guard(t, watch.Config{Delay: time.Minute}, s.Node())
	g.reaches(restartguard.PhaseServing)
	restart(t, s)
	st := g.becomes("closed and proven", func(st restartguard.NodeStatus) bool {
		return st.Phase == restartguard.PhaseFenced && st.Proven
	})
	if !st.Known || st.Verified || st.Exposed <= 0 {
		t.Fatalf("%+v", st)
	}
	if writes(t, s) {
		t.Fatal("accepts writes")
	}
	if text := g.tells("fenced"); !strings.Contains(text, "served for at most") {
		t.Fatalf("closed: %q", text)
	}
}

func TestRestartWithoutBootFenceRejoins(t *testing.T) {
	s := labtest.Servers(t, 1)[0]
	g := guard(t, watch.Config{}, s.Node())
	g.reaches(restartguard.PhaseServing)
	born := restart(t, s)
	g.reaches(restartguard.PhaseFenced)
	notBefore(t, delay, born, firstWrite(t, s))
	g.reaches(restartguard.PhaseServing)
}

func TestRestartInsideTheFenceStartsDAgain(t *testing.T) {
	s := fenced(t)
	g := guard(t, watch.Config{}, s.Node())
	first := g.reaches(restartguard.PhaseServing).RunID
	restart(t, s)
	second := g.becomes("fenced", func(st restartguard.NodeStatus) bool {
		return st.Phase == restartguard.PhaseFenced && st.RunID != first
	})
	// As late as can be: the former deadline would come soon after.
	time.Sleep(time.Until(second.Until) - delay/4)
	born := restart(t, s)
	notBefore(t, delay, born, firstWrite(t, s))
}

func TestCordonIsNeverRemoved(t *testing.T) {
	s := fenced(t)
	g := guard(t, watch.Config{Delay: 50 * time.Millisecond}, s.Node())
	g.reaches(restartguard.PhaseServing)
	if err := oneshot.Cordon(t.Context(), s.Node(), fences.Method{}); err != nil {
		t.Fatal(err)
	}
	g.reaches(restartguard.PhaseCordoned)
	time.Sleep(200 * time.Millisecond)
	if writes(t, s) {
		t.Fatal("a held node accepts writes")
	}
	// The restart makes the server forget the hold; the guard does not.
	old := g.reaches(restartguard.PhaseCordoned).RunID
	restart(t, s)
	g.becomes("held in its new life", func(st restartguard.NodeStatus) bool {
		return st.Phase == restartguard.PhaseCordoned && st.RunID != old
	})
	time.Sleep(200 * time.Millisecond)
	if writes(t, s) {
		t.Fatal("a held node accepts writes after its restart")
	}
	if err := oneshot.RejoinNow(t.Context(), s.Node(), fences.Method{}); err != nil {
		t.Fatal(err)
	}
	g.reaches(restartguard.PhaseServing)
	if !writes(t, s) {
		t.Fatal("an opened node is closed")
	}
}

func TestGuardThatEndsLeavesTheNodeFenced(t *testing.T) {
	s := fenced(t)
	g := guard(t, watch.Config{}, s.Node())
	g.reaches(restartguard.PhaseServing)
	restart(t, s)
	st := g.reaches(restartguard.PhaseFenced)
	g.stop()
	time.Sleep(time.Until(st.Until) + delay)
	if writes(t, s) {
		t.Fatal("opened by a guard that had ended")
	}

	// The next one has no memory, and waits D from its own start.
	begin := time.Now()
	g = guard(t, watch.Config{}, s.Node())
	notBefore(t, delay, begin, firstWrite(t, s))
	g.reaches(restartguard.PhaseServing)
}

func TestFirstContactMayFence(t *testing.T) {
	s := labtest.Servers(t, 1)[0]
	begin := time.Now()
	g := guard(t, watch.Config{FirstContact: restartguard.Fence}, s.Node())
	g.reaches(restartguard.PhaseFenced)
	notBefore(t, delay, begin, firstWrite(t, s))
}

func TestFlushFences(t *testing.T) {
	for _, flush := range [][]any{{"FLUSHALL"}, {"FLUSHDB"}, {"SWAPDB", 0, 1}, {"EVAL", "return redis.call('flushall')", 0}} {
		t.Run(fmt.Sprint(flush[0]), func(t *testing.T) {
			s := labtest.Servers(t, 1)[0]
			g := guard(t, watch.Config{Delay: time.Minute}, s.Node())
			g.reaches(restartguard.PhaseServing)
			do(t, s, flush...)
			g.reaches(restartguard.PhaseFenced)
			if writes(t, s) {
				t.Fatal("accepts writes")
			}
			g.tells("wiped")
		})
	}
}

func TestLagOfZeroIsSetWhenClosing(t *testing.T) {
	s := labtest.Servers(t, 1, "--min-replicas-to-write", "2147483647", "--min-replicas-max-lag", "0")[0]
	if !writes(t, s) {
		t.Fatal("a lag of 0 was believed to switch the fence off")
	}
	g := guard(t, watch.Config{Delay: time.Minute}, s.Node())
	g.reaches(restartguard.PhaseServing)
	restart(t, s)
	g.reaches(restartguard.PhaseFenced)
	if writes(t, s) {
		t.Fatal("accepts writes")
	}
}

func TestUnfencedByAnotherGoesOnServing(t *testing.T) {
	s := fenced(t)
	g := guard(t, watch.Config{Delay: time.Minute}, s.Node())
	g.reaches(restartguard.PhaseServing)
	restart(t, s)
	g.reaches(restartguard.PhaseFenced)
	if err := oneshot.RejoinNow(t.Context(), s.Node(), fences.Method{}); err != nil {
		t.Fatal(err)
	}
	g.reaches(restartguard.PhaseServing)
	time.Sleep(100 * time.Millisecond)
	if !writes(t, s) {
		t.Fatal("closed again")
	}
}

func TestTwoGuards(t *testing.T) {
	s := labtest.Servers(t, 1)[0]
	a := guard(t, watch.Config{}, s.Node())
	b := guard(t, watch.Config{Delay: 2 * delay}, s.Node())
	a.reaches(restartguard.PhaseServing)
	b.reaches(restartguard.PhaseServing)
	for range 3 {
		born := restart(t, s)
		a.reaches(restartguard.PhaseFenced)
		b.reaches(restartguard.PhaseFenced)
		notBefore(t, delay, born, firstWrite(t, s))
		a.reaches(restartguard.PhaseServing)
		b.reaches(restartguard.PhaseServing)
	}
}

func TestStoppedServerIsUnreachableAndComesBackInTheSameIncarnation(t *testing.T) {
	s := fenced(t)
	g := guard(t, watch.Config{Timeout: 100 * time.Millisecond}, s.Node())
	g.reaches(restartguard.PhaseServing)
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	if st := g.reaches(restartguard.PhaseUnreachable); st.Err == "" {
		t.Fatalf("no error: %+v", st)
	}
	if err := s.Resume(); err != nil {
		t.Fatal(err)
	}
	g.reaches(restartguard.PhaseServing)
	if g.told("restart") != "" || !writes(t, s) {
		t.Fatal("taken for a restart")
	}
}

func TestUnreachable(t *testing.T) {
	port, err := lab.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	node := named(t, redis.Options{Addr: fmt.Sprintf("127.0.0.1:%d", port)})
	st := guard(t, watch.Config{}, node).reaches(restartguard.PhaseUnreachable)
	if !strings.Contains(st.Err, "refused") {
		t.Fatalf("err %q", st.Err)
	}
}

func TestWrongPassword(t *testing.T) {
	s := labtest.Servers(t, 1, "--requirepass", "right")[0]
	for _, password := range []string{"wrong", ""} {
		st := guard(t, watch.Config{}, named(t, redis.Options{Addr: s.Addr(), Password: password})).
			reaches(restartguard.PhaseUnreachable)
		if !strings.Contains(st.Err, "WRONGPASS") && !strings.Contains(st.Err, "NOAUTH") {
			t.Fatalf("err %q", st.Err)
		}
	}
	guard(t, watch.Config{}, named(t, redis.Options{Addr: s.Addr(), Password: "right"})).reaches(restartguard.PhaseServing)
}

// aclUser are arguments for a user without some rights.
func aclUser(rights ...string) []string {
	return append([]string{"--user", "guard", "on", ">secret", "~*", "&*", "+@all"}, rights...)
}

func TestConfigDenied(t *testing.T) {
	user := func(s *lab.Server) *redlock.Node {
		return named(t, redis.Options{Addr: s.Addr(), Username: "guard", Password: "secret"})
	}
	t.Run("a restart that starts unfenced is exposed, until D is over", func(t *testing.T) {
		s := labtest.Servers(t, 1, aclUser("-config")...)[0]
		g := guard(t, watch.Config{Delay: 500 * time.Millisecond}, user(s))
		st := g.reaches(restartguard.PhaseServing)
		if !strings.Contains(st.Err, "NOPERM") {
			t.Fatalf("err %q", st.Err)
		}
		restart(t, s)
		st = g.becomes("exposed by a denied CONFIG", func(st restartguard.NodeStatus) bool {
			return st.Phase == restartguard.PhaseExposed && strings.Contains(st.Err, "NOPERM")
		})
		if st.Exposed <= 0 {
			t.Fatalf("%+v", st)
		}
		g.reaches(restartguard.PhaseServing)
	})
	t.Run("only setting denied is the same", func(t *testing.T) {
		s := labtest.Servers(t, 1, aclUser("-config|set")...)[0]
		g := guard(t, watch.Config{Delay: time.Minute}, user(s))
		g.reaches(restartguard.PhaseServing)
		restart(t, s)
		g.becomes("exposed by a denied CONFIG SET", func(st restartguard.NodeStatus) bool {
			return st.Phase == restartguard.PhaseExposed && strings.Contains(st.Err, "NOPERM")
		})
	})
	t.Run("a restart that starts fenced stays fenced", func(t *testing.T) {
		s := fenced(t, aclUser("-config")...)
		g := guard(t, watch.Config{Delay: 50 * time.Millisecond}, user(s))
		g.reaches(restartguard.PhaseServing)
		restart(t, s)
		g.reaches(restartguard.PhaseFenced)
		time.Sleep(200 * time.Millisecond)
		if st := g.reaches(restartguard.PhaseFenced); !strings.Contains(st.Err, "NOPERM") || writes(t, s) {
			t.Fatalf("%+v", st)
		}
		if err := oneshot.RejoinNow(t.Context(), s.Node(), fences.Method{}); err != nil {
			t.Fatal(err)
		}
		g.reaches(restartguard.PhaseServing)
	})
}

func TestNoRedisAtAll(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var conns sync.WaitGroup
	t.Cleanup(func() { ln.Close(); conns.Wait() })
	conns.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			conns.Go(func() {
				defer c.Close()
				_ = c.SetDeadline(time.Now().Add(time.Second))
				b := make([]byte, 4096)
				for {
					if _, err := c.Read(b); err != nil {
						return
					}
					if _, err := c.Write([]byte("-ERR \x1b[31mno\x1b[0m\r\n")); err != nil {
						return
					}
				}
			})
		}
	})
	st := guard(t, watch.Config{Timeout: 100 * time.Millisecond}, named(t, redis.Options{Addr: ln.Addr().String()})).
		reaches(restartguard.PhaseUnreachable)
	if st.Err == "" || strings.ContainsRune(st.Err, '\x1b') {
		t.Fatalf("err %q", st.Err)
	}
}

func named(t *testing.T, opt redis.Options) *redlock.Node {
	t.Helper()
	n, err := redlock.NewNode("n1", &opt)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestFenceThatIsNone(t *testing.T) {
	for deaf, part := range map[bool]string{false: "canary write got through", true: "min-replicas-to-write 0"} {
		t.Run(part, func(t *testing.T) {
			l, node := startLiar(t, deaf)
			g := guard(t, watch.Config{Delay: time.Minute}, node)
			g.reaches(restartguard.PhaseServing)
			l.restart()
			g.becomes("exposed", func(st restartguard.NodeStatus) bool {
				return st.Phase == restartguard.PhaseExposed && strings.Contains(st.Err, part)
			})
			if err := oneshot.Cordon(t.Context(), node, fences.Method{}); !errors.Is(err, oneshot.ErrNotFenced) || !strings.Contains(err.Error(), part) {
				t.Fatalf("hold: %v", err)
			}
		})
	}
}

func TestOneDeadNodeDoesNotHoldUpAnother(t *testing.T) {
	live := fenced(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	dead, err := redlock.NewNode("n2", &redis.Options{Addr: ln.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	g := guard(t, watch.Config{Timeout: 5 * time.Second}, live.Node(), dead)
	g.reaches(restartguard.PhaseServing)
	restart(t, live)
	g.reaches(restartguard.PhaseFenced)
	g.reaches(restartguard.PhaseServing)
	if st := g.Status()[1]; st.Node != "n2" || st.Phase == restartguard.PhaseServing {
		t.Fatalf("%+v", st)
	}
}

func TestNew(t *testing.T) {
	node := named(t, redis.Options{Addr: "127.0.0.1:1"})
	for name, c := range map[string]struct {
		nodes []*redlock.Node
		cfg   watch.Config
		part  string
	}{
		"no nodes":         {nil, watch.Config{Delay: 1}, "no nodes"},
		"no delay":         {[]*redlock.Node{node}, watch.Config{}, "delay 0s"},
		"negative delay":   {[]*redlock.Node{node}, watch.Config{Delay: -1}, "delay -1ns"},
		"negative poll":    {[]*redlock.Node{node}, watch.Config{Delay: 1, Poll: -1}, "poll"},
		"negative timeout": {[]*redlock.Node{node}, watch.Config{Delay: 1, Timeout: -1}, "timeout"},
		"no first contact": {[]*redlock.Node{node}, watch.Config{Delay: 1, FirstContact: 7}, "first contact"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := watch.New(c.nodes, c.cfg); err == nil || !strings.Contains(err.Error(), c.part) {
				t.Fatalf("error %v", err)
			}
		})
	}
}

func TestDelay(t *testing.T) {
	const forever = time.Duration(math.MaxInt64)
	for name, c := range map[string]struct {
		ttl    time.Duration
		factor float64
		margin time.Duration
		want   time.Duration
	}{
		"the default for 30 s is 30.35 s":      {30 * time.Second, 0.01, 50 * time.Millisecond, 30350 * time.Millisecond},
		"a part of a nanosecond is rounded up": {1, 0.01, 0, 2},
		"no allowance":                         {time.Second, 0, 0, time.Second},
		"a huge TTL does not overflow":         {forever, 0.01, 50 * time.Millisecond, forever},
		"a huge factor does not overflow":      {time.Hour, math.MaxFloat64, 0, forever},
		"an infinite factor":                   {time.Hour, math.Inf(1), 0, forever},
		"a huge margin does not overflow":      {time.Hour, 0.01, forever, forever},
		"what is negative counts as nothing":   {time.Second, -1, -time.Second, time.Second},
		"no number counts as nothing":          {time.Second, math.NaN(), 0, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			if got := restartguard.Delay(c.ttl, c.factor, c.margin); got != c.want {
				t.Fatalf("got %s, want %s", got, c.want)
			}
		})
	}
}
