package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"redlockctl/internal/config"
	"redlockctl/internal/lab"
	"redlockctl/internal/lab/labtest"
	"redlockctl/internal/operator"
	"redlockctl/redlock"
	"redlockctl/restartguard"
	"redlockctl/restartguard/memory"
	"redlockctl/restartguard/watch"
	"redlockctl/server/announce"
	"redlockctl/tui/action"
)

// twoClusters is what the screen changes between: bank is read-only, shop is
// not. Both are the same masters.
func twoClusters(t *testing.T, servers []*lab.Server) *Clusters {
	t.Helper()
	var cfg strings.Builder
	for _, name := range []string{"shop", "bank"} {
		fmt.Fprintf(&cfg, "[clusters.%[1]s]\nmax_ttl = \"30s\"\nread_only = %[2]v\n[clusters.%[1]s.redlock]\nnode_timeout = \"1s\"\n", name, name == "bank")
		for i, s := range servers {
			fmt.Fprintf(&cfg, "[[clusters.%s.nodes]]\nname = \"n%d\"\naddr = %q\n", name, i+1, s.Addr())
		}
	}
	all := switchOf(t, cfg.String())
	all.Guard = GuardNever
	return all
}

// switchOf is what the screen opens the clusters of a configuration with.
func switchOf(t *testing.T, cfg string) *Clusters {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "config.toml")
	if err := os.WriteFile(path, []byte(cfg), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"HOME": dir, "XDG_STATE_HOME": filepath.Join(dir, "state"), "REDLOCKCTL_CONFIG": path}
	set, err := config.LoadAll([]string{path}, func(k string) string { return env[k] })
	if err != nil {
		t.Fatal(err)
	}
	all := &Clusters{Set: set, Context: t.Context()}
	t.Cleanup(all.Close)
	return all
}

// A read-only cluster refuses each action of the screen where commands are sent; another cluster
// in the same program does not.
func TestReadOnlyIsAClustersOwn(t *testing.T) {
	servers := labtest.Servers(t, 3)
	for _, s := range servers {
		get(t, s, "SET", "job:1", "aaa", "PX", "20000")
	}
	all := twoClusters(t, servers)
	acts := func(name string) map[string]error {
		t.Helper()
		c, err := all.Open(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		a, ctx := c.Actions, t.Context()
		if a.ReadOnly() != (name == "bank") {
			t.Errorf("%s says of itself read-only: %v", name, a.ReadOnly())
		}
		errs := map[string]error{}
		_, errs["acquire"] = a.AcquireWith(ctx, "job:2", time.Second, operator.AcquireOptions{})
		var k action.Kept
		if k, errs["keep"] = a.Keep(ctx, "job:3", 10*time.Second, operator.AcquireOptions{}); k != nil {
			_, errs["release of what is kept"] = k.Release(ctx)
		}
		_, errs["extend"] = a.Extend(ctx, "job:1", "aaa", 10*time.Second)
		remove := func(way operator.RemovalKind) error {
			return a.Remove(ctx, operator.Removal{Kind: way, Keys: []string{"job:1"}, Tokens: []string{"aaa"}, Reason: "test"}).Err()
		}
		errs["revoke"] = remove(operator.Revoke)
		_, errs["release"] = a.Release(ctx, "job:1", "aaa")
		errs["force-release"] = remove(operator.ForceRelease)
		errs["fence"] = a.Cordon(ctx, "n1", "test")
		errs["open"] = a.RejoinNow(ctx, "n1", "test")
		return errs
	}
	for act, err := range acts("bank") {
		if !errors.Is(err, operator.ErrReadOnly) {
			t.Errorf("%s: %v; want ErrReadOnly", act, err)
		}
	}
	for _, s := range servers {
		if v := get(t, s, "GET", "job:1"); v != "aaa" {
			t.Errorf("a read-only cluster has %v now", v)
		}
	}
	for act, err := range acts("shop") {
		if errors.Is(err, operator.ErrReadOnly) {
			t.Errorf("%s is refused by a cluster that is not read-only: %v", act, err)
		}
		// Its token is gone by then, and that is all.
		if gone := act == "release" || act == "force-release"; err != nil && !gone || gone && !errors.Is(err, redlock.ErrNotHeld) && !errors.Is(err, operator.ErrChanged) {
			t.Errorf("%s: %v", act, err)
		}
	}
	if v, _ := get(t, servers[1], "GET", "job:1").(string); !redlock.IsTombstone(v) {
		t.Errorf("after it was revoked n2 has %q", v)
	}
}

// The settings in [guard] apply to the guard in the console as to the daemon.
func TestConsoleGuardsAsConfigured(t *testing.T) {
	s := labtest.Servers(t, 1)[0]
	all := switchOf(t, fmt.Sprintf("[cluster]\nname = \"shop\"\nmax_ttl = \"1s\"\n[guard]\ncounter = true\n[[nodes]]\nname = \"n1\"\naddr = %q\n", s.Addr()))
	if _, err := all.Open(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); get(t, s, "EXISTS", restartguard.CounterKey) != int64(1); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("counter = true, and the guard of the console does not count")
		}
	}
}

// get is what a server answers.
func get(t *testing.T, s *lab.Server, args ...any) any {
	t.Helper()
	v, err := s.Do(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// A console that relies on the guard of this machine tells what that one has written down: when a node
// rejoins, and when there is a quorum again.
func TestConsoleTellsWhatAGuardHereWaitsFor(t *testing.T) {
	s := labtest.Servers(t, 1)[0]
	dir := filepath.Join(t.TempDir(), "guard")
	memory, err := memory.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	guard, err := watch.New([]*redlock.Node{s.Node()}, watch.Config{Delay: time.Minute, Cluster: "shop", FirstContact: restartguard.Fence, Memory: memory, N: 1})
	if err != nil {
		t.Fatal(err)
	}
	var run sync.WaitGroup
	defer run.Wait()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	run.Go(func() { _ = guard.Run(ctx) })
	// A console that begins before the guard announces itself runs one of its own.
	for deadline := time.Now().Add(30 * time.Second); len(get(t, s, "PUBSUB", "CHANNELS", announce.Pattern).([]any)) == 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the guard does not announce itself")
		}
	}
	all := switchOf(t, fmt.Sprintf("[cluster]\nname = \"shop\"\nmax_ttl = \"30s\"\n[guard]\nstate_dir = %q\n[[nodes]]\nname = %q\naddr = %q\n", dir, s.Node().Name(), s.Addr()))
	c, err := all.Open(t.Context(), "shop")
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		told := c.Guard.Status()
		if len(told) == 1 && told[0].Phase == restartguard.PhaseFenced && time.Until(told[0].Until) > 30*time.Second {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the guard on this machine waits for %v, and the console is told %v", guard.Status(), told)
		}
	}
	if c.Guard.ID() != "" {
		t.Error("the console says that it runs a guard")
	}
	// What one that has ended wrote down promises nothing.
	stop()
	run.Wait()
	if err := memory.Close(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); len(c.Guard.Status()) > 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the guard has ended, and the console is told %v", c.Guard.Status())
		}
	}
}
