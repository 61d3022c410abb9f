package lab_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"redlockctl/internal/lab"
	"redlockctl/redlock"
)

func lockClient(t *testing.T, c lab.Cluster) *redlock.Client {
	t.Helper()
	client, err := redlock.New(c.Nodes(), redlock.Options{NodeTimeout: time.Second, RetryDelay: 5 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// The simulated clients do all that a screen should show, keep to their longest
// TTL, and leave only abandoned locks behind.
func TestClients(t *testing.T) {
	const maxTTL = 8 * time.Second
	c := embedded(t, 5)
	open(t, c)
	locks := lockClient(t, c)
	looker := client(t, c.Nodes()[0])
	ctx, cancel := context.WithCancel(t.Context())
	var tally lab.Tally
	var wg sync.WaitGroup
	wg.Go(func() { lab.Clients{MaxTTL: maxTTL, Prefix: "demo:", Tally: &tally}.Run(ctx, locks) })
	names := map[string]bool{}
	done := func() bool {
		keys, err := looker.Keys(t.Context(), "*").Result()
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range keys {
			names[k] = true
			if !strings.HasPrefix(k, "demo:") {
				t.Errorf("a lock named %q", k)
			}
			if ttl := looker.PTTL(t.Context(), k).Val(); ttl > maxTTL || ttl == -1 {
				t.Errorf("%q has a TTL of %v, over %v", k, ttl, maxTTL)
			}
		}
		n := tally.Counts()
		return n.Acquired > 20 && n.Contended > 0 && n.Extended > 0 && n.Released > 10 && n.Abandoned > 0 && len(names) >= 10
	}
	defer func() {
		if t.Failed() {
			t.Logf("%+v, names %v", tally.Counts(), names)
		}
	}()
	await(t, "the clients have done a bit of everything", done)
	cancel()
	wg.Wait()
	n := tally.Counts()
	if n.Acquired != n.Released+n.Lost+n.Abandoned {
		t.Errorf("not all locks were given back: %+v", n)
	}
	await(t, "abandoned locks expire", func() bool { return looker.DBSize(t.Context()).Val() == 0 })
}

// With a majority down they lose what they hold, take nothing, and go on when
// it is back.
func TestClientsWithoutAMajority(t *testing.T) {
	c := embedded(t, 3)
	open(t, c)
	ctx, cancel := context.WithCancel(t.Context())
	var tally lab.Tally
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	locks := lockClient(t, c)
	wg.Go(func() { lab.Clients{Count: 8, MaxTTL: time.Second, Tally: &tally}.Run(ctx, locks) })
	await(t, "locks are taken", func() bool { return tally.Counts().Acquired > 8 })
	for i := range 2 {
		if err := c.Crash(i); err != nil {
			t.Fatal(err)
		}
	}
	await(t, "locks are lost, and none can be taken", func() bool { n := tally.Counts(); return n.Lost > 0 && n.Failed > 0 })
	for i := range 2 {
		if err := c.Restart(i); err != nil {
			t.Fatal(err)
		}
	}
	before := tally.Counts().Acquired
	// What a guard does when it has waited.
	for i := range 2 {
		if got := say(t, client(t, c.Nodes()[i]), "CONFIG", "SET", "min-replicas-to-write", "0"); got != `"OK"` {
			t.Fatal(got)
		}
	}
	await(t, "locks are taken again", func() bool { return tally.Counts().Acquired > before+8 })
}

func TestClientsEndWithTheirClient(t *testing.T) {
	c := embedded(t, 1)
	open(t, c)
	locks := lockClient(t, c)
	if err := locks.Close(); err != nil {
		t.Fatal(err)
	}
	lab.Clients{Count: 3, MaxTTL: 100 * time.Millisecond}.Run(t.Context(), locks)
}
