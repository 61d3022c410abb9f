package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"redlockctl/cli/printer"
	"redlockctl/internal/lab"
	"redlockctl/internal/lab/labtest"
	"redlockctl/internal/who"
	"redlockctl/monitor"
	"redlockctl/monitor/observe"
	"redlockctl/redlock"
	"redlockctl/restartguard"
	"redlockctl/restartguard/memory"
	"redlockctl/restartguard/watch"
)

// roundHangs is how long a round of a part may take: much longer than it does on a busy machine.
const roundHangs = 5 * time.Minute

// answers is how many random answers are given; REDLOCKCTL_ANSWERS says another number, as scripts/fuzz does.
const answers = 5_000

// askingCommands are one-shots that ask servers and end by themselves.
var askingCommands = []string{
	"status", "locks", "locks job:1", "nodes", "doctor --for 300ms", "guard status", "who job:1 --for 300ms", "info", "acquire JOB --ttl 500ms", "run JOB --ttl 1s -- true",
	"release job:1 --token x", "extend job:1 --token x --ttl 1s", "node boot-fence n4", "revoke job:2 --yes --reason x", "force-release job:2 --yes --reason x",
}

// Whatever two of five servers answer, to whatever they are asked, and whatever they push, in any type of RESP2 and RESP3:
// nothing panics, hangs or leaks, the other nodes are guarded and seen, and locks are taken on them.
func TestRandomAnswers(t *testing.T) {
	most := answers
	if text := os.Getenv("REDLOCKCTL_ANSWERS"); text != "" {
		var err error
		if most, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	redis.SetLogger(noLog{})
	before := goleak.IgnoreCurrent()
	t.Run("all", func(t *testing.T) { playRandomAnswers(t, most) })
	if err := goleak.Find(before); err != nil { // after the servers have ended
		t.Error(err)
	}
}

func playRandomAnswers(t *testing.T, most int) {
	servers := labtest.Servers(t, 5, lab.BootFence...)
	good := labtest.Nodes(servers[:3])
	for _, s := range servers {
		if _, err := s.Do(t.Context(), "CONFIG", "SET", "min-replicas-to-write", "0"); err != nil {
			t.Fatal(err)
		}
	}
	var lies labtest.Lies
	liars := make([]*redlock.Node, 12)
	if most > answers {
		liars = make([]*redlock.Node, 48)
	}
	for i := range liars {
		liars[i] = labtest.Lying(t, fmt.Sprintf("liar%d", i), servers[3+i%2].Addr(), uint64(i), &lies)
	}
	five := append(slices.Clone(good), liars[:2]...)
	dir := t.TempDir()
	text := "[cluster]\nmax_ttl = \"5s\"\n[redlock]\nnode_timeout = \"300ms\"\n[monitor]\ntimeout = \"500ms\"\n[guard]\nstate_dir = \"" + filepath.Join(dir, "guard") + "\"\n"
	for i, n := range five {
		text += fmt.Sprintf("[[nodes]]\nname = \"n%d\"\naddr = %q\n", i+1, n.Addr())
	}
	if err := os.WriteFile(filepath.Join(dir, "config.toml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	memory, err := memory.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()

	began, rounds, mu := time.Now(), map[string]int{}, sync.Mutex{}
	var all sync.WaitGroup
	end, bounded := t.Deadline() // of the test: what is there by then counts
	more := func() bool {
		return lies.Total() < most && !t.Failed() && !(bounded && time.Until(end) < time.Minute)
	}
	// Each part runs until this many answers were given, and restarts again and again, as a process
	// would. The first round is played to its end.
	part := func(name string, round func(ctx context.Context) error) {
		all.Go(func() {
			for n := 0; n == 0 || more(); n++ {
				ctx, cancel := context.WithTimeout(t.Context(), roundHangs)
				if err := round(ctx); err != nil {
					t.Errorf("%s: %v", name, err)
				} else if ctx.Err() != nil {
					t.Errorf("%s hangs", name)
				}
				cancel()
				mu.Lock()
				rounds[name]++
				mu.Unlock()
			}
		})
	}
	part("guard", func(ctx context.Context) error {
		g, err := watch.New(append(slices.Clone(good), liars...), watch.Config{
			Delay: 200 * time.Millisecond, Poll: 5 * time.Millisecond, Timeout: 500 * time.Millisecond, Memory: memory, CountEvery: 50 * time.Millisecond, N: len(good),
		})
		if err != nil {
			return err
		}
		run, stop := context.WithCancel(ctx)
		done := make(chan error, 1)
		go func() { done <- g.Run(run) }()
		defer func() { stop(); <-done }()
		serve := func() bool {
			return !slices.ContainsFunc(g.Status()[:len(good)], func(s restartguard.NodeStatus) bool { return s.Phase != restartguard.PhaseServing })
		}
		for until := time.Now().Add(time.Second); time.Now().Before(until) || !serve(); time.Sleep(10 * time.Millisecond) {
			if ctx.Err() != nil {
				return fmt.Errorf("it lost sight of others: %+v", g.Status()[:len(good)])
			}
		}
		return nil
	})
	part("monitor", func(ctx context.Context) error {
		m, err := observe.New(append(slices.Clone(good), liars...), observe.Options{Timeout: 500 * time.Millisecond, ProbeEvery: 10 * time.Millisecond, InfoEvery: 20 * time.Millisecond, ScanEvery: 10 * time.Millisecond})
		if err != nil {
			return err
		}
		run, stop := context.WithCancel(ctx)
		done := make(chan struct{})
		go func() { defer close(done); m.Run(run) }()
		defer func() { stop(); <-done }()
		serve := func() bool {
			return !slices.ContainsFunc(m.Snapshot().Nodes[:len(good)], func(n monitor.Node) bool { return n.State != monitor.NodeServing })
		}
		for until := time.Now().Add(time.Second); time.Now().Before(until) || !serve(); time.Sleep(10 * time.Millisecond) {
			if ctx.Err() != nil {
				return fmt.Errorf("it lost sight of others: %+v", m.Snapshot().Nodes[:len(good)])
			}
		}
		return nil
	})
	part("locks", func(ctx context.Context) error {
		c, err := redlock.New(five, redlock.Options{NodeTimeout: 500 * time.Millisecond, ConnectTimeout: 500 * time.Millisecond})
		if err != nil {
			return err
		}
		defer c.Close()
		for range 10 {
			var first *redlock.Lock
			for first == nil {
				if ctx.Err() != nil {
					return fmt.Errorf("not all locks were taken: %w", errors.Join(ctx.Err(), err))
				}
				first, err = c.AcquireFenced(ctx, "job:1", 5*time.Second)
			}
			waited := make(chan struct{})
			go func() { // who waits listens to each node, too
				defer close(waited)
				if second, err := c.Acquire(ctx, "job:1", 5*time.Second); err == nil {
					_, _ = second.Release(ctx)
				}
			}()
			_ = first.Extend(ctx, 5*time.Second)
			_, _ = c.Inspect(ctx, "job:1")
			_, _ = first.Release(ctx)
			<-waited
		}
		return nil
	})
	part("who", func(ctx context.Context) error {
		var each sync.WaitGroup
		for _, n := range liars {
			each.Go(func() { _, _ = who.Monitor(ctx, n, "job:1", true, 100*time.Millisecond) })
		}
		_, _ = who.Observe(ctx, liars, who.Options{Key: "job:1", For: 300 * time.Millisecond, Timeout: 100 * time.Millisecond})
		each.Wait()
		return nil
	})
	next := 0
	part("commands", func(ctx context.Context) error {
		command := strings.Replace(askingCommands[next%len(askingCommands)], "JOB", fmt.Sprintf("job:%d", 10+next), 1)
		next++
		var out lockedLog // what runs under a lock writes to it, too
		env := map[string]string{"REDLOCKCTL_CONFIG": filepath.Join(dir, "config.toml"), "HOME": dir, "XDG_STATE_HOME": dir, "USER": "test"}
		a := newCommandLine(&printer.Printer{In: strings.NewReader(""), Out: &out, Err: &out, Getenv: func(name string) string { return env[name] }})
		code := a.main(ctx, strings.Fields(command))
		if code == 2 && !strings.HasPrefix(command, "doctor") || strings.Contains(out.String(), "\x1b") {
			return fmt.Errorf("%s: exit code %d: %s", command, code, out.String())
		}
		return nil
	})
	all.Wait()

	for _, args := range [][]string{nil, {"guard"}} { // as processes, the console in a terminal
		code, _, out, err := runHostile(t.Context(), dir, args, 2*time.Second, "", args == nil)
		if err != nil || code != 0 && code != 130 || strings.Contains(out, "goroutine ") {
			t.Errorf("%q: exit code %d, %v\n%s", args, code, err, out)
		}
	}
	t.Logf("%d answers in %s; rounds: %v\n%s", lies.Total(), time.Since(began).Round(time.Second), rounds, &lies)
}
