package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"redlockctl/internal/lab"
)

// TestConsole drives the real program by its keys: each dangerous action, and what it
// must not do.
func TestConsole(t *testing.T) {
	bin := build(t)
	for name, scenario := range map[string]func(*testing.T, string){
		"ForceRelease":       forceRelease,
		"Revoke":             revoke,
		"MarkedForceRelease": markedForceRelease,
		"Forms":              forms,
		"CordonAndUncordon":  cordonAndUncordon,
		"Keep":               keep,
		"ReadOnly":           readOnly,
		"CrashFenceRejoin":   crashFenceRejoin,
		"Resize":             resize,
		"Replay":             replay,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scenario(t, bin)
		})
	}
}

// A lock that another process acquired is seen, force-released through the dialog, and
// gone from every master; and the action is in the audit log.
func forceRelease(t *testing.T, bin string) {
	c := newCluster(t, bin, "60s")
	term := c.terminal(t, 120, 40)
	for _, node := range []string{"n1", "n2", "n3", "n4", "n5"} {
		term.shows(node, "● serving")
	}
	term.shows("redlockctl", "e2e", "5 nodes", "quorum 3")
	term.shows("UNPROTECTED", "start not seen yet")

	c.run(t, "acquire", "job:1", "--ttl", "60s")
	term.shows("job:1", "held", "5/5")

	term.keys("X")
	term.shows("Force-release job:1")
	term.settle()
	term.keys("Enter")
	term.shows("a reason is missing")
	term.text("the holder's host is gone")
	term.keys("Tab")
	term.text("job:2")
	term.keys("Enter")
	if n := c.exists(t, "job:1"); n != 5 {
		t.Fatalf("with the wrong name typed, %d of 5 copies are left", n)
	}
	term.keys("BSpace")
	term.text("1")
	term.keys("Enter")
	term.until("the lock to be gone", func(string) bool { return c.exists(t, "job:1") == 0 })
	term.shows("5 copies deleted")
	term.settle()
	term.keys("Escape")
	term.until("no row of job:1", func(s string) bool {
		return lineWith(s, "job:1", "5/5") == "" && lineWith(s, "copies deleted") == ""
	})

	c.recorded(t, "force-release", "job:1", "intent done")
	term.keys("q")
	term.shows("exit code 0")
}

// A revoked lock stays locked with its TTL, and its holder can no longer extend it.
func revoke(t *testing.T, bin string) {
	c := newCluster(t, bin, "60s")
	token := c.token(t, "job:1", "60s")
	term := c.terminal(t, 100, 30)
	term.shows("job:1", "held", "5/5")
	term.keys("R")
	term.confirm("Revoke job:1", "runs for hours", "job:1")
	term.shows("5 copies revoked")
	for i := range c.servers {
		value, err := c.do(t, i, "GET", "job:1")
		left, err2 := c.do(t, i, "PTTL", "job:1")
		if s, _ := value.(string); err != nil || err2 != nil || !strings.HasPrefix(s, "redlockctl:revoked:") || left.(int64) < 20_000 {
			t.Errorf("n%d has %v for %v ms (%v, %v)", i+1, value, left, err, err2)
		}
	}
	if out, code := c.try(t, "extend", "job:1", "--token", token, "--ttl", "60s"); code != 5 {
		t.Errorf("its holder extends it: exit code %d\n%s", code, out)
	}
	if out, code := c.try(t, "acquire", "job:1", "--ttl", "10s"); code != 3 {
		t.Errorf("another one gets in: exit code %d\n%s", code, out)
	}
	c.recorded(t, "revoke", "job:1", "intent done")
	term.settle()
	term.keys("Enter")
	term.shows("job:1", "revoked")
	term.keys("R")
	term.shows("it is revoked already")
}

// Marked locks are force-released one by one after one question; the others stay.
func markedForceRelease(t *testing.T, bin string) {
	c := newCluster(t, bin, "60s")
	for _, name := range []string{"job:1", "job:2", "job:3", "job:4"} {
		c.run(t, "acquire", name, "--ttl", "60s")
	}
	term := c.terminal(t, 100, 30)
	for _, name := range []string{"job:1", "job:2", "job:3", "job:4"} {
		term.shows(name, "held", "5/5")
	}
	// Equal locks are sorted by name, and each mark moves the cursor down.
	term.keys("m")
	term.shows("■", "job:1")
	term.keys("m", "m")
	// The page of a lock acts on that lock only; two escapes at once lead back.
	term.keys("o", "X")
	term.shows("Force-release job:4?")
	term.keys("Escape", "Escape")
	term.until("the list of locks", func(s string) bool { return lineWith(s, "Locks 4", "3 marked") != "" })
	term.keys("X")
	term.shows("Force-release 3 marked locks?")
	term.settle()
	term.text("host gone")
	term.keys("Tab")
	term.text("4 locks")
	term.keys("Enter")
	term.shows("that is not how many there are: type \"3 locks\"")
	term.keys("C-u")
	term.text("3 locks")
	if n := c.exists(t, "job:1") + c.exists(t, "job:2") + c.exists(t, "job:3"); n != 15 {
		t.Fatalf("%d of 15 copies are there before it was confirmed", n)
	}
	term.keys("Enter")
	told := term.shows("3 locks force-released")
	for name, want := range map[string]int{"job:1": 0, "job:2": 0, "job:3": 0, "job:4": 5} {
		if n := c.exists(t, name); n != want {
			t.Errorf("%d copies of %s are left; want %d", n, name, want)
		}
	}
	for _, name := range []string{"job:1", "job:2", "job:3"} {
		if lineWith(told, name, "5 copies deleted") == "" {
			t.Errorf("%s is not told of:\n%s", name, told)
		}
		c.recorded(t, "force-release", name, "intent done")
	}
	c.recorded(t, "force-release", "job:4", "")
}

// A lock of several keys is removed as a whole, each key logged; so is a lock of
// Redisson, which is a hash; its read-write lock is refused.
func forms(t *testing.T, bin string) {
	c := newCluster(t, bin, "60s")
	const token, holder = "9d929f533c431dc9d4778b26beffebf3", "6f1c3a52-9d0e-4b7f-8a21-c4d5e6f70819:54"
	for i := range c.servers {
		for _, cmd := range [][]any{
			{"SET", "job:a", token, "PX", 60_000}, {"SET", "job:b", token, "PX", 60_000},
			{"HSET", "job:hash", holder, 1}, {"PEXPIRE", "job:hash", 60_000},
			{"HSET", "job:rw", "mode", "write", holder + ":write", 1}, {"PEXPIRE", "job:rw", 60_000},
		} {
			if _, err := c.do(t, i, cmd...); err != nil {
				t.Fatal(err)
			}
		}
	}
	term := c.terminal(t, 120, 40)
	term.shows("job:a", "5/5")
	term.shows("job:hash", "5/5")
	term.shows("job:rw")
	take := func(name string) {
		t.Helper()
		term.keys(":")
		term.text("force-release " + name)
		term.keys("Enter")
	}
	take("job:a")
	term.confirm("2 keys with this token", "holder is dead", "job:a")
	term.until("both keys told as deleted", func(s string) bool {
		return lineWith(s, "force-release job:a: done") != "" && lineWith(s, "job:b: 5 copies deleted") != ""
	})
	if n := c.exists(t, "job:a") + c.exists(t, "job:b"); n != 0 {
		t.Errorf("%d copies of the two keys are left", n)
	}
	c.recorded(t, "force-release", "job:a", "intent done")
	c.recorded(t, "force-release", "job:b", "intent done")
	term.settle()
	term.keys("Enter")
	take("job:hash")
	term.confirm("Made by", "holder is dead", "job:hash")
	term.shows("force-release job:hash: done")
	if n := c.exists(t, "job:hash"); n != 0 {
		t.Errorf("%d copies of the hash are left", n)
	}
	term.settle()
	term.keys("Enter")
	take("job:rw")
	term.shows("a Redisson read-write lock keeps its mode")
	if n := c.exists(t, "job:rw"); n != 5 {
		t.Errorf("%d of 5 copies of the read-write lock are left", n)
	}
}

// A cordoned master refuses writes until it is uncordoned, and the guard in the console
// does not change that.
func cordonAndUncordon(t *testing.T, bin string) {
	c := newCluster(t, bin, "1s") // the guard would end a fence of its own within about a second
	term := c.terminal(t, 100, 30)
	term.shows("n2", "● serving")
	term.keys("3", "Down", "C")
	term.confirm("Cordon n2", "disk is failing", "n2")
	term.shows("it refuses writes now")
	if _, err := c.do(t, 1, "SET", "x", "y"); err == nil || !strings.HasPrefix(err.Error(), "NOREPLICAS") {
		t.Errorf("a write to the cordoned node: %v; want NOREPLICAS", err)
	}
	term.settle()
	term.keys("Enter")
	term.shows("n2", "cordoned")
	time.Sleep(1500 * time.Millisecond) // longer than the guard's delay
	if _, err := c.do(t, 1, "SET", "x", "y"); err == nil {
		t.Error("the guard uncordoned a node that an operator cordoned")
	}
	term.keys("U")
	term.shows("Uncordon n2")
	term.settle()
	term.keys("Tab")
	term.text("n2")
	term.keys("Enter")
	term.shows("a reason is missing")
	term.text("new disk")
	term.keys("Enter")
	term.shows("n2", "● serving")
	if _, err := c.do(t, 1, "SET", "x", "y"); err != nil {
		t.Error(err)
	}
	c.recorded(t, "node cordon", "n2", "intent done")
	c.recorded(t, "node uncordon", "n2", "intent done")
}

// A kept lock outlives its TTL, and is released when its console ends.
func keep(t *testing.T, bin string) {
	c := newCluster(t, bin, "60s")
	term := c.terminal(t, 100, 30)
	term.shows("UNPROTECTED")
	term.keys("a")
	term.shows("Acquire a lock by hand")
	term.settle()
	term.text("migration")
	term.keys("Tab", "C-u")
	term.text("3s")
	term.keys("Tab", "Space", "Enter")
	term.shows("acquire migration: done")
	taken := time.Now()
	term.settle()
	term.keys("Enter")
	term.shows("KEPT HERE", "migration", "held")
	time.Sleep(time.Until(taken.Add(4 * time.Second)))
	if n := c.exists(t, "migration"); n < 3 {
		t.Errorf("%d copies are left after the TTL", n)
	}
	term.keys("q")
	term.shows("Kept here", "migration")
	term.settle()
	term.keys("Enter")
	term.shows("exit code 0")
	if n := c.exists(t, "migration"); n != 0 {
		t.Errorf("%d copies are left after it was released", n)
	}
	c.recorded(t, "acquire", "migration", "intent done")
	c.recorded(t, "release", "migration", "intent done")
}

// With --read-only no key changes anything.
func readOnly(t *testing.T, bin string) {
	c := newCluster(t, bin, "60s")
	c.run(t, "acquire", "job:1", "--ttl", "60s")
	term := c.terminal(t, 60, 15, "--read-only")
	term.shows("job:1", "5/5")
	for _, key := range []string{"a", "e", "r", "R", "X"} {
		term.keys(key)
		term.shows("read-only: actions are refused")
		term.keys("Escape")
		term.until("no refusal", func(s string) bool { return !strings.Contains(s, "read-only") })
	}
	term.keys("3", "C")
	term.shows("read-only: actions are refused")
	if n := c.exists(t, "job:1"); n != 5 {
		t.Errorf("%d of 5 copies are left", n)
	}
}

// A master that is killed and starts fenced is shown with its countdown, and the guard in
// the console lets it rejoin.
func crashFenceRejoin(t *testing.T, bin string) {
	c := newCluster(t, bin, "3s")
	term := c.terminal(t, 120, 40)
	// The guard verifies a restart of a server that it saw before it.
	term.shows("n2", "● serving", "start not seen yet")
	if err := c.servers[1].Kill(); err != nil {
		t.Fatal(err)
	}
	term.shows("DEGRADED", "n2 down")
	if err := c.servers[1].Start(lab.BootFence...); err != nil {
		t.Fatal(err)
	}
	back := time.Now()
	term.shows("n2", "fenced")
	term.shows("UNPROTECTED")
	if waited := time.Since(back); waited < 3*time.Second {
		t.Errorf("n2 rejoined %s after its start: sooner than the max TTL of 3s", waited)
	}
	term.shows("n2", "✓ verified")
}

// The screen follows the terminal's size, and says so if there is no room.
func resize(t *testing.T, bin string) {
	c := newCluster(t, bin, "60s")
	c.run(t, "acquire", "job:1", "--ttl", "60s")
	term := c.terminal(t, 200, 60)
	term.shows("job:1", "5/5")
	for _, size := range [][2]string{{"60", "15"}, {"80", "24"}, {"120", "40"}} {
		term.tmux("resize-window", "-x", size[0], "-y", size[1])
		term.shows("job:1", "5/5")
	}
	term.tmux("resize-window", "-x", "20", "-y", "5")
	term.until("a word about the size", func(s string) bool { return !strings.Contains(s, "job:1") && strings.TrimSpace(s) != "" })
	term.tmux("resize-window", "-x", "80", "-y", "24")
	term.shows("job:1", "5/5")
}

// token acquires a lock as another process would, and returns its token.
func (c *cluster) token(t *testing.T, name, ttl string) string {
	t.Helper()
	for line := range strings.Lines(c.run(t, "acquire", name, "--ttl", ttl)) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == "token" {
			return f[1]
		}
	}
	t.Fatal("acquire tells no token")
	return ""
}

// recorded fails unless the audit log has these phases of an action on a target.
func (c *cluster) recorded(t *testing.T, act, target, want string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(c.dir, "redlockctl", "audit.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var phases []string
	for line := range strings.Lines(string(b)) {
		var r struct{ Phase, Act, Target string }
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("audit line %q: %v", line, err)
		}
		if r.Act == act && r.Target == target {
			phases = append(phases, r.Phase)
		}
	}
	if got := strings.Join(phases, " "); got != want {
		t.Errorf("the audit log says %q of %s %s; want %q", got, act, target, want)
	}
}
