package operator_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"redlockctl/internal/audit"
	"redlockctl/internal/lab"
	"redlockctl/internal/lab/labtest"
	"redlockctl/internal/operator"
	"redlockctl/redlock"
)

// bench is an operator on real servers.
type bench struct {
	*operator.Operator
	t       *testing.T
	servers []*lab.Server
	client  *redlock.Client
	log     string
}

func start(t *testing.T, n int, change func(*operator.Options)) *bench {
	t.Helper()
	b := &bench{t: t, servers: labtest.Servers(t, n), log: filepath.Join(t.TempDir(), "audit.jsonl")}
	log, err := audit.Open(b.log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	// Long, so that a slow machine does not make a node look slow.
	b.client, err = redlock.New(labtest.Nodes(b.servers), redlock.Options{NodeTimeout: 2 * time.Second, Retries: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.client.Close() })
	opt := operator.Options{Cluster: "test", Log: log, MaxTTL: time.Minute}
	if change != nil {
		change(&opt)
	}
	b.Operator = operator.New(b.client, opt)
	return b
}

func (b *bench) do(i int, args ...any) any {
	b.t.Helper()
	v, err := b.servers[i].Do(b.t.Context(), args...)
	if err != nil {
		b.t.Fatalf("n%d: %v: %v", i+1, args, err)
	}
	return v
}

// copies returns each node's value of key; "-" means none.
func (b *bench) copies(key string) string {
	b.t.Helper()
	var all []string
	for i := range b.servers {
		v := b.do(i, "MGET", key).([]any)[0]
		if v == nil {
			v = "-"
		}
		all = append(all, fmt.Sprint(v))
	}
	return strings.Join(all, " ")
}

// left is copies after a release, which does not wait for the last node.
func (b *bench) left(key string) (copies string) {
	b.t.Helper()
	none := strings.TrimSuffix(strings.Repeat("- ", len(b.servers)), " ")
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if copies = b.copies(key); copies == none {
			break
		}
	}
	return copies
}

func (b *bench) phases() string {
	b.t.Helper()
	f, err := os.Open(b.log)
	if err != nil {
		b.t.Fatal(err)
	}
	defer f.Close()
	var out []string
	for s := bufio.NewScanner(f); s.Scan(); {
		var r audit.Record
		if err := json.Unmarshal(s.Bytes(), &r); err != nil {
			b.t.Fatal(err)
		}
		out = append(out, r.Act+":"+r.Phase)
	}
	return strings.Join(out, " ")
}

func TestLifeOfALockByHand(t *testing.T) {
	b := start(t, 3, nil)
	lock, err := b.AcquireWith(t.Context(), "job", 30*time.Second, operator.AcquireOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.AcquireWith(t.Context(), "job", 30*time.Second, operator.AcquireOptions{}); !errors.Is(err, redlock.ErrContended) {
		t.Errorf("a second acquire: %v; want ErrContended", err)
	}
	if _, err := b.Extend(t.Context(), "job", lock.Token(), 50*time.Second); err != nil {
		t.Error(err)
	}
	extended := 0 // at least a quorum: an extension does not wait for the last node
	for i := range b.servers {
		if b.do(i, "PTTL", "job").(int64) > 30_000 {
			extended++
		}
	}
	if extended < 2 {
		t.Errorf("the extension reached %d of 3 nodes", extended)
	}
	results, err := b.Release(t.Context(), "job", lock.Token())
	if err != nil || len(results) != 3 || b.left("job") != "- - -" {
		t.Errorf("release: %v, %v, left: %s", results, err, b.copies("job"))
	}
	if got, want := b.phases(), "acquire:intent acquire:done acquire:intent acquire:failed extend:intent extend:done release:intent release:done"; got != want {
		t.Errorf("the log is\n%s; want\n%s", got, want)
	}
	if raw, _ := os.ReadFile(b.log); strings.Contains(string(raw), lock.Token()) || !strings.Contains(string(raw), audit.TokenSHA(lock.Token())) {
		t.Error("the log must hold the hash of the token, and not the token")
	}
}

// A kept lock outlives its TTL, and is free after its release.
func TestKeepOnServers(t *testing.T) {
	b := start(t, 3, nil)
	k, err := b.Keep(t.Context(), "job", 3*time.Second, operator.AcquireOptions{})
	if err != nil {
		t.Fatal(err)
	}
	first := k.Until()
	for end := time.Now().Add(20 * time.Second); !k.Until().After(first.Add(500 * time.Millisecond)); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not extended: %s, %v", k.State(), k.Err())
		}
	}
	if got, want := b.copies("job"), strings.Join([]string{k.Token(), k.Token(), k.Token()}, " "); got != want {
		t.Errorf("the copies are %s; want %s", got, want)
	}
	if _, err := k.Release(t.Context()); err != nil || b.left("job") != "- - -" || k.State() != redlock.Released {
		t.Errorf("release: %v, %s, left %s", err, k.State(), b.copies("job"))
	}
	if got, want := b.phases(), "acquire:intent acquire:done release:intent release:done"; got != want {
		t.Errorf("the log is\n%s; want\n%s", got, want)
	}
}

func TestForceReleaseOnServers(t *testing.T) {
	b := start(t, 5, nil)
	set := func(key string, tokens ...string) {
		for i, token := range tokens {
			if token != "" {
				b.do(i, "SET", key, token, "PX", 60_000)
			}
		}
	}

	set("split", "aaa", "aaa", "bbb", "", "bbb")
	if _, err := b.ForceRelease(t.Context(), "split", "aaa", "test"); err != nil || b.copies("split") != "- - bbb - bbb" {
		t.Errorf("only the token shown: %v, left %s", err, b.copies("split"))
	}
	_, err := b.ForceRelease(t.Context(), "split", "aaa", "test")
	if !errors.Is(err, operator.ErrChanged) || !strings.Contains(err.Error(), "bbb") || b.copies("split") != "- - bbb - bbb" {
		t.Errorf("a token that is gone: %v, left %s; want ErrChanged and nothing deleted", err, b.copies("split"))
	}
	// The nodes with copies of bbb hang: no answer shows that the holder changed.
	set("late", "bbb", "bbb", "bbb", "aaa")
	for _, s := range b.servers[:3] {
		if err := s.Pause(); err != nil {
			t.Fatal(err)
		}
	}
	_, err = b.ForceRelease(t.Context(), "late", "bbb", "test")
	if !errors.Is(err, redlock.ErrNoQuorum) || errors.Is(err, operator.ErrChanged) || !strings.Contains(err.Error(), "n1, n2, n3 did not answer in time: whether the holder changed is not known") {
		t.Errorf("the holder's nodes hang: %v", err)
	}
	for _, s := range b.servers[:3] {
		if err := s.Resume(); err != nil {
			t.Fatal(err)
		}
	}
	set("split", "aaa")
	if r, err := b.ForceRelease(t.Context(), "split", "", "test"); err != nil || b.copies("split") != "- - - - -" ||
		r[0].Status != redlock.StatusOK || r[2].Status != redlock.StatusOK || r[3].Status != redlock.StatusAbsent {
		t.Errorf("whatever is there: %v, %v, left %s", r, err, b.copies("split"))
	}
	if _, err := b.ForceRelease(t.Context(), "split", "", "test"); !errors.Is(err, redlock.ErrNotHeld) {
		t.Errorf("nothing there: %v; want ErrNotHeld", err)
	}

	b.do(1, "RPUSH", "list", "x")
	b.do(0, "SET", "list", "aaa", "PX", 60_000)
	if _, err := b.ForceRelease(t.Context(), "list", "", "test"); !errors.Is(err, operator.ErrRefused) || !strings.Contains(err.Error(), "list") || b.do(0, "EXISTS", "list") != int64(1) {
		t.Errorf("a list on one node: %v; want ErrRefused and nothing deleted", err)
	}
	set("long", strings.Repeat("x", 100_000))
	if _, err := b.ForceRelease(t.Context(), "long", "", "test"); !errors.Is(err, operator.ErrRefused) || b.do(0, "EXISTS", "long") != int64(1) {
		t.Errorf("a long value: %v; want ErrRefused and nothing deleted", err)
	}
	hostile := "k\x1b[2J\xff"
	set(hostile, "tok\x1b\xff")
	if _, err := b.ForceRelease(t.Context(), hostile, "tok\x1b\xff", "test"); err != nil || b.do(0, "EXISTS", hostile) != int64(0) {
		t.Errorf("hostile bytes: %v", err)
	}

	set("minority down", "aaa", "aaa", "aaa", "aaa", "aaa")
	for _, i := range []int{3, 4} {
		if err := b.servers[i].Kill(); err != nil {
			t.Fatal(err)
		}
	}
	r, err := b.ForceRelease(t.Context(), "minority down", "aaa", "test")
	if err != nil || len(r) != 5 || r[2].Status != redlock.StatusOK || r[4].Status == redlock.StatusOK {
		t.Errorf("with a minority down: %v, %v", r, err)
	}
}

func TestReadOnlyChangesNothingOnServers(t *testing.T) {
	b := start(t, 3, func(o *operator.Options) { o.ReadOnly, o.Log = true, nil })
	for i := range b.servers {
		b.do(i, "SET", "job", "aaa", "PX", 60_000)
		b.do(i, "CONFIG", "RESETSTAT")
	}
	_, acquire := b.AcquireWith(t.Context(), "other", time.Second, operator.AcquireOptions{})
	_, keep := b.Keep(t.Context(), "other", time.Second, operator.AcquireOptions{})
	_, revoke := b.Revoke(t.Context(), "job", "aaa", "test")
	_, extend := b.Extend(t.Context(), "job", "aaa", time.Second)
	_, release := b.Release(t.Context(), "job", "aaa")
	_, force := b.ForceRelease(t.Context(), "job", "aaa", "test")
	for _, err := range []error{acquire, keep, extend, release, revoke, force, b.Cordon(t.Context(), "n1", "test"), b.RejoinNow(t.Context(), "n1", "test")} {
		if !errors.Is(err, operator.ErrReadOnly) {
			t.Errorf("got %v; want ErrReadOnly", err)
		}
	}
	for i := range b.servers {
		stats := fmt.Sprint(b.do(i, "INFO", "commandstats"))
		for _, sent := range []string{"cmdstat_set", "cmdstat_eval", "cmdstat_get", "cmdstat_pexpire", "cmdstat_config|set"} {
			if strings.Contains(stats, sent) {
				t.Errorf("n%d got something: %s", i+1, stats)
			}
		}
	}
}

func TestNodeIsFencedAndOpened(t *testing.T) {
	b := start(t, 3, nil)
	if err := b.Cordon(t.Context(), "n2", "test"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.servers[1].Do(context.Background(), "SET", "x", "y"); err == nil || !strings.Contains(err.Error(), "NOREPLICAS") {
		t.Errorf("a write to the fenced node: %v; want NOREPLICAS", err)
	}
	if err := b.RejoinNow(t.Context(), "n2", "test"); err != nil {
		t.Fatal(err)
	}
	b.do(1, "SET", "x", "y")
	if err := b.servers[1].Kill(); err != nil {
		t.Fatal(err)
	}
	if err := b.Cordon(t.Context(), "n2", "test"); err == nil {
		t.Error("fencing a node that is down succeeded")
	}
	if got, want := b.phases(), "node cordon:intent node cordon:done node rejoin:intent node rejoin:done node cordon:intent node cordon:failed"; got != want {
		t.Errorf("the log is\n%s; want\n%s", got, want)
	}
}

// TestForceReleaseOfRedisson: a plain lock is removed; a fair one, which has further
// keys, and a read-write one are not changed.
func TestForceReleaseOfRedisson(t *testing.T) {
	b := start(t, 3, nil)
	const holder = "8743c9c0-0795-4907-87fd-6c719a6b4586:1"
	for i := range b.servers {
		b.do(i, "HSET", "plain", holder, "1")
		b.do(i, "HSET", "fair", holder, "1")
		b.do(i, "RPUSH", "redisson_lock_queue:{fair}", "waiter")
		b.do(i, "HSET", "rw", "mode", "read", holder, "1")
	}
	release := func(key, token string) error {
		out := b.Remove(t.Context(), operator.Removal{Kind: operator.ForceRelease, Keys: []string{key}, Tokens: []string{token}, Reason: "its host is gone"})
		return out.Err()
	}
	if err := release("plain", holder); err != nil {
		t.Error(err)
	}
	for _, c := range []struct{ key, token string }{{"fair", holder}, {"rw", "mode"}, {"rw", holder + ":write"}} {
		if err := release(c.key, c.token); !errors.Is(err, operator.ErrUnsupported) {
			t.Errorf("%s of %s: %v", c.key, c.token, err)
		}
	}
	for key, want := range map[string]int64{"plain": 0, "fair": 1, "rw": 1} {
		if got := b.do(0, "EXISTS", key); got != want {
			t.Errorf("%s: %v, want %d", key, got, want)
		}
	}
}
