package watch_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/internal/lab"
	"redlockctl/internal/lab/labtest"
	"redlockctl/redlock"
	"redlockctl/restartguard"
	"redlockctl/restartguard/boot"
	"redlockctl/restartguard/memory"
	"redlockctl/restartguard/oneshot"
	"redlockctl/restartguard/watch"
	"redlockctl/server/fences"
	"redlockctl/server/minreplicas"
)

// lockUser is the user of the lock clients, who comes up without the right to
// write; the guard is the default user.
var lockUser = []string{"--user", "locks", "on", ">pw", "~*", "&*", "+@all", "-@write"}

var aclMethod = fences.Method{Kind: fences.ACL, User: "locks"}

func aclGuard(t *testing.T, s *lab.Server, cfg watch.Config) *guarded {
	cfg.Methods = map[string]fences.Method{s.Node().Name(): aclMethod}
	return guard(t, cfg, s.Node())
}

// lockClient is a client that is logged in as the user of the lock clients.
func lockClient(t *testing.T, s *lab.Server) *redis.Client {
	c := redlock.Connect(named(t, redis.Options{Addr: s.Addr(), Username: "locks", Password: "pw"}), 1, time.Second)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func locks(t *testing.T, c *redis.Client) bool {
	t.Helper()
	err := c.Set(context.Background(), "k", "v", time.Second).Err()
	if err != nil && !redis.HasErrorPrefix(err, "NOPERM") {
		t.Fatalf("write: %v", err)
	}
	return err == nil
}

func TestACLRestartRejoinsAfterD(t *testing.T) {
	s := labtest.Servers(t, 1, lockUser...)[0]
	g := aclGuard(t, s, watch.Config{})
	g.reaches(restartguard.PhaseServing)
	born := restart(t, s)
	c := lockClient(t, s)
	for !locks(t, c) {
		time.Sleep(time.Millisecond)
	}
	notBefore(t, delay, born, time.Now())
	st := g.reaches(restartguard.PhaseServing)
	if !st.Known || !st.Verified || st.Exposed != 0 {
		t.Fatalf("boot fence is not verified: %+v", st)
	}
	rules := fmt.Sprint(do(t, s, "ACL", "GETUSER", "locks"))
	if !strings.Contains(rules, "-flushall") || !strings.Contains(rules, "~*") || strings.Contains(rules, "-@write") {
		t.Fatalf("opened with other rules: %s", rules)
	}
}

func TestACLFencesConnectionsThatAreLoggedIn(t *testing.T) {
	s := labtest.Servers(t, 1, "--user", "locks", "on", ">pw", "~*", "&*", "+@all")[0]
	g := aclGuard(t, s, watch.Config{Delay: time.Minute})
	g.reaches(restartguard.PhaseServing)
	c := lockClient(t, s)
	if !locks(t, c) {
		t.Fatal("an open node refuses locks")
	}
	do(t, s, "FLUSHALL")
	g.becomes("closed and proven", func(st restartguard.NodeStatus) bool { return st.Phase == restartguard.PhaseFenced && st.Proven })
	if locks(t, c) {
		t.Fatal("a closed node gives a lock to a connection that was there before")
	}
	if !writes(t, s) {
		t.Fatal("another user is fenced")
	}
}

func TestACLCordon(t *testing.T) {
	s := labtest.Servers(t, 1, lockUser...)[0]
	g := aclGuard(t, s, watch.Config{Delay: 50 * time.Millisecond})
	g.reaches(restartguard.PhaseServing)
	if err := oneshot.Cordon(t.Context(), s.Node(), aclMethod); err != nil {
		t.Fatal(err)
	}
	g.reaches(restartguard.PhaseCordoned)
	time.Sleep(200 * time.Millisecond)
	if g.reaches(restartguard.PhaseCordoned); locks(t, lockClient(t, s)) {
		t.Fatal("a held node gives a lock")
	}
	old := g.reaches(restartguard.PhaseCordoned).RunID
	restart(t, s)
	g.becomes("held in its new life", func(st restartguard.NodeStatus) bool {
		return st.Phase == restartguard.PhaseCordoned && st.RunID != old
	})
	time.Sleep(100 * time.Millisecond)
	if locks(t, lockClient(t, s)) {
		t.Fatal("a held node gives a lock after its restart")
	}
	if err := oneshot.RejoinNow(t.Context(), s.Node(), aclMethod); err != nil {
		t.Fatal(err)
	}
	if g.reaches(restartguard.PhaseServing); !locks(t, lockClient(t, s)) {
		t.Fatal("an opened node gives no lock")
	}
	if rules := fmt.Sprint(do(t, s, "ACL", "GETUSER", "locks")); strings.Contains(rules, "redlockctl") {
		t.Fatalf("the mark is left: %s", rules)
	}
}

func TestACLUserThatCannotBeJudged(t *testing.T) {
	for name, args := range map[string][]string{
		"no ACL user":      nil,
		"selectors of its": {"--user", "locks", "on", ">pw", "-@all", "(+set ~lock:*)"},
	} {
		t.Run(name, func(t *testing.T) {
			s := labtest.Servers(t, 1, args...)[0]
			g := aclGuard(t, s, watch.Config{Delay: time.Minute})
			if st := g.reaches(restartguard.PhaseServing); !strings.Contains(st.Err, name) {
				t.Fatalf("%+v", st)
			}
			if err := oneshot.Cordon(t.Context(), s.Node(), aclMethod); !errors.Is(err, oneshot.ErrNotFenced) {
				t.Fatalf("hold: %v", err)
			}
		})
	}
}

func TestLosses(t *testing.T) {
	// Each ends what a master remembers, in one incarnation.
	for name, c := range map[string]struct {
		args []string
		lose func(*testing.T, *lab.Server)
	}{
		"FLUSHALL":     {nil, func(t *testing.T, s *lab.Server) { do(t, s, "FLUSHALL") }},
		"FLUSHDB":      {nil, func(t *testing.T, s *lab.Server) { do(t, s, "FLUSHDB", "ASYNC") }},
		"SWAPDB":       {nil, func(t *testing.T, s *lab.Server) { do(t, s, "SWAPDB", "0", "1") }},
		"a script":     {nil, func(t *testing.T, s *lab.Server) { do(t, s, "EVAL", "return redis.call('FLUSHALL')", "0") }},
		"DEBUG RELOAD": {nil, func(t *testing.T, s *lab.Server) { do(t, s, "DEBUG", "RELOAD") }},
		"an eviction": {[]string{"--maxmemory-policy", "volatile-lru"}, func(t *testing.T, s *lab.Server) {
			for i := range 50 {
				do(t, s, "SET", fmt.Sprint("lock:", i), strings.Repeat("x", 10000), "PX", 60000)
			}
			do(t, s, "CONFIG", "SET", "maxmemory", "1")
			_, _ = s.Do(context.Background(), "SET", "one", "more")
			do(t, s, "CONFIG", "SET", "maxmemory", "0")
		}},
		"a replica between two looks": {nil, func(t *testing.T, s *lab.Server) {
			atOnce(t, s, []any{"REPLICAOF", "127.0.0.1", "1"}, []any{"REPLICAOF", "NO", "ONE"})
		}},
		"a counter that went back": {nil, func(t *testing.T, s *lab.Server) {
			if !wait(func() bool { return fmt.Sprint(do(t, s, "EXISTS", restartguard.CounterKey)) == "1" }) {
				t.Fatal("nobody counts")
			}
			do(t, s, "DEL", restartguard.CounterKey)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := labtest.Servers(t, 1, c.args...)[0]
			g := guard(t, watch.Config{Delay: time.Minute, CountEvery: 10 * time.Millisecond}, s.Node())
			run := g.reaches(restartguard.PhaseServing).RunID
			c.lose(t, s)
			if st := g.reaches(restartguard.PhaseFenced); st.RunID != run || writes(t, s) {
				t.Fatalf("%+v", st)
			}
		})
	}
	t.Run("a reset and a wipe between two looks, where the count is what it was", func(t *testing.T) {
		t.Parallel()
		s := labtest.Servers(t, 1)[0]
		g := guard(t, watch.Config{}, s.Node())
		g.reaches(restartguard.PhaseServing)
		do(t, s, "FLUSHALL")
		g.reaches(restartguard.PhaseFenced)
		g.reaches(restartguard.PhaseServing)
		atOnce(t, s, []any{"CONFIG", "RESETSTAT"}, []any{"FLUSHALL"})
		if g.reaches(restartguard.PhaseFenced); writes(t, s) {
			t.Fatal("accepts writes")
		}
	})
	t.Run("a node that loses nothing stays open, and has no counter unless asked for", func(t *testing.T) {
		s := labtest.Servers(t, 1)[0]
		g := guard(t, watch.Config{Delay: time.Minute}, s.Node())
		g.reaches(restartguard.PhaseServing)
		do(t, s, "SET", "k", "v", "PX", 1)
		do(t, s, "CONFIG", "RESETSTAT")
		time.Sleep(100 * time.Millisecond)
		if g.reaches(restartguard.PhaseServing); fmt.Sprint(do(t, s, "KEYS", "redlockctl*")) != "[]" {
			t.Fatal("a key is left")
		}
	})
}

// atOnce sends commands in one transaction, so that no look comes in between.
func atOnce(t *testing.T, s *lab.Server, commands ...[]any) {
	t.Helper()
	c := redlock.Connect(s.Node(), 1, time.Second)
	defer c.Close()
	_, err := c.TxPipelined(t.Context(), func(p redis.Pipeliner) error {
		for _, args := range commands {
			p.Do(t.Context(), args...)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func openMemory(t *testing.T, dir string) *memory.Store {
	t.Helper()
	m, err := memory.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestGuardIsRestarted kills the guard in the middle of a node's waiting: the
// next one opens it when the first would have.
func TestGuardIsRestarted(t *testing.T) {
	s, dir := fenced(t), t.TempDir()
	m := openMemory(t, dir)
	const d = time.Second
	g := guard(t, watch.Config{Delay: d, Memory: m}, s.Node())
	g.reaches(restartguard.PhaseServing)
	born := restart(t, s)
	g.reaches(restartguard.PhaseFenced)
	until := g.Status()[0].Until
	g.stop()
	if writes(t, s) {
		t.Fatal("a guard opened a node on its way out")
	}
	_ = m.Close()

	m = openMemory(t, dir)
	defer m.Close()
	g = guard(t, watch.Config{Delay: d, Memory: m}, s.Node())
	st := g.reaches(restartguard.PhaseFenced)
	if off := st.Until.Sub(until); off < 0 || off > 50*time.Millisecond {
		t.Fatalf("the deadline moved by %s", off)
	}
	if !st.Known || !st.Verified {
		t.Fatalf("forgot how the node came up: %+v", st)
	}
	notBefore(t, d, born, firstWrite(t, s))
	g.stop()
	known, err := memory.Read(dir)
	if n := known["n1"]; err != nil || !n.Verified || !n.Served || n.Incarnations != 2 || n.Wait != 0 {
		t.Fatalf("%+v, %v", known, err)
	}
}

// TestALossIsWrittenDownBeforeItIsActedOn looks at the file at the moment at
// which the order to close goes out: a guard that is killed then has forgotten
// nothing.
func TestALossIsWrittenDownBeforeItIsActedOn(t *testing.T) {
	s, dir := labtest.Servers(t, 1)[0], t.TempDir()
	type answer struct {
		known map[string]restartguard.Fact
		err   error
	}
	got := make(chan answer, 1)
	node := meddled(t, s, raiseText, func() {
		known, err := memory.Read(dir)
		got <- answer{known, err}
	})
	m := openMemory(t, dir)
	defer m.Close()
	g := guard(t, watch.Config{Delay: time.Minute, Memory: m}, node)
	first := g.reaches(restartguard.PhaseServing).RunID
	restart(t, s)
	select {
	case a := <-got:
		if n := a.known["n1"]; a.err != nil || n.RunID == "" || n.RunID == first || n.Wait <= 0 {
			t.Fatalf("%+v, %v", a.known, a.err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the node was never closed")
	}
	g.stop()
}

func TestRestartWhileNoGuardRan(t *testing.T) {
	s, dir := labtest.Servers(t, 1)[0], t.TempDir()
	for round := range 2 {
		m := openMemory(t, dir)
		g := guard(t, watch.Config{Delay: time.Minute, Memory: m}, s.Node())
		if round == 0 {
			g.reaches(restartguard.PhaseServing)
		} else if g.reaches(restartguard.PhaseFenced); writes(t, s) {
			t.Fatal("accepts writes")
		}
		g.stop()
		_ = m.Close()
		if round == 0 {
			restart(t, s)
		}
	}
}

func TestSuccessorGoesOn(t *testing.T) {
	s := fenced(t)
	g := guard(t, watch.Config{Delay: time.Minute}, s.Node())
	g.reaches(restartguard.PhaseServing)
	restart(t, s)
	until := g.reaches(restartguard.PhaseFenced).Until
	g.stop()
	for d, want := range map[time.Duration]time.Duration{time.Second: 0, 2 * time.Minute: time.Minute} {
		next, err := g.Successor([]*redlock.Node{s.Node()}, watch.Config{Delay: d, Poll: 10 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); _ = next.Run(ctx) }()
		if !wait(func() bool { return next.Status()[0].Until.Equal(until.Add(want)) }) {
			t.Fatalf("D %s: waits until %s, not %s", d, next.Status()[0].Until, until.Add(want))
		}
		if err := next.Healthy(); err != nil {
			t.Fatal(err)
		}
		cancel()
		<-done
	}
}

func TestAdviceLeavesTheServerAlone(t *testing.T) {
	s := labtest.Servers(t, 1)[0]
	g := guard(t, watch.Config{Methods: map[string]fences.Method{"n1": {Kind: fences.None}}}, s.Node())
	g.reaches(restartguard.PhaseServing)
	restart(t, s)
	g.reaches(restartguard.PhaseExposed)
	if !writes(t, s) {
		t.Fatal("closed all the same")
	}
	g.reaches(restartguard.PhaseServing)
	g.tells("exposed")
}

func TestNoQuorumIsTold(t *testing.T) {
	ss := labtest.Servers(t, 3, lab.BootFence...)
	for _, s := range ss {
		do(t, s, "CONFIG", "SET", "min-replicas-to-write", "0")
	}
	g := guard(t, watch.Config{Delay: time.Second}, labtest.Nodes(ss)...)
	if !wait(g.Met) {
		t.Fatal("not all nodes were met")
	}
	restart(t, ss[0])
	restart(t, ss[1])
	g.tells("quorum")
	if text := g.told("no quorum"); !strings.Contains(text, "1 of 3 nodes serve") && !strings.Contains(text, "0 of 3") {
		t.Fatalf("no quorum: %q", text)
	}
}

// withFile starts a server with a configuration file of these lines.
func withFile(t *testing.T, lines string, more map[string]string, args ...string) *lab.Server {
	t.Helper()
	dir := t.TempDir()
	for name, text := range more {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "redis.conf")
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(lines, "DIR", dir)), 0o600); err != nil {
		t.Fatal(err)
	}
	// The path of the file must be the first argument.
	return startWrapped(t, fmt.Sprintf("exec %s %s \"$@\"", labtest.RedisServer(t), path), t.TempDir(), args...)
}

// startWrapped starts a server by a line of shell, with its other files in dir.
func startWrapped(t *testing.T, line, dir string, args ...string) *lab.Server {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "redis-server")
	// A process that another test starts just now must not inherit it open for
	// writing: it could not be executed.
	syscall.ForkLock.RLock()
	err := os.WriteFile(bin, []byte("#!/bin/sh\n"+line+"\n"), 0o700)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	s, err := lab.StartServer(bin, "n1", dir, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Kill() })
	return s
}

func TestCheckBoot(t *testing.T) {
	const fence = "min-replicas-to-write 2147483647\nmin-replicas-max-lag 10\n"
	for name, c := range map[string]struct {
		file   string
		more   map[string]string
		method fences.Method
		want   boot.State
		part   string
	}{
		"an included file with anchors": {fence + "include DIR/f.conf\n", map[string]string{"f.conf": fence}, fences.Method{}, boot.Fenced, "f.conf:1 sets the fence"},
		"by a pattern too":              {fence + "include DIR/*.inc\n", map[string]string{"f.inc": fence}, fences.Method{}, boot.Fenced, "f.inc:1"},
		"an included file alone":        {"include DIR/f.conf\n", map[string]string{"f.conf": fence}, fences.Method{}, boot.Fragile, "CONFIG REWRITE adds one behind it"},
		"the main file is fragile":      {fence, nil, fences.Method{}, boot.Fragile, "CONFIG REWRITE"},
		"the last line wins": {"include DIR/f.conf\nmin-slaves-to-write 0\n", map[string]string{"f.conf": fence},
			fences.Method{}, boot.Unfenced, "redis.conf:2 sets min-replicas-to-write 0"},
		"a lag of 0 switches it off": {"include DIR/f.conf\nmin-replicas-max-lag 0\n", map[string]string{"f.conf": fence},
			fences.Method{}, boot.Unfenced, "switches the fence off"},
		"1 is no fence":            {"include DIR/f.conf\n", map[string]string{"f.conf": "min-replicas-to-write 1\n"}, fences.Method{}, boot.Unfenced, "no fence"},
		"a file that says nothing": {"# nothing\n", nil, fences.Method{}, boot.Unknown, "command line"},
		"neither says anything":    {"set-proc-title no\n", nil, fences.Method{}, boot.Unfenced, "nor its command line"},
		"a user of the file":       {"user locks on >hunter2 ~* +@all -@write\n", nil, aclMethod, boot.Fragile, "without commands that write"},
		"a user that may write":    {"user locks on >hunter2 ~* +@all\n", nil, aclMethod, boot.Unfenced, "with commands that write"},
		"a user that gets one back": {"user locks on >hunter2 ~* -@write +set\n", nil,
			aclMethod, boot.Unfenced, "with commands that write"},
		"a user of the ACL file": {"aclfile DIR/users.acl\n", map[string]string{"users.acl": "user default on nopass ~* &* +@all\nuser locks on >hunter2 ~* -@all +@read +eval\n"},
			aclMethod, boot.Fragile, "users.acl:2"},
		"no such user": {"# nothing\n", nil, aclMethod, boot.Unknown, "has the user"},
		"no fence":     {fence, nil, fences.Method{Kind: fences.None}, boot.Unfenced, "nothing starts it fenced"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := withFile(t, c.file, c.more)
			// What is set now must not count.
			do(t, s, "CONFIG", "SET", "min-replicas-to-write", "0")
			if c.method.Kind == fences.ACL {
				do(t, s, "ACL", "SETUSER", "locks", "on", "+@all")
			}
			got, err := boot.CheckNode(t.Context(), s.Node(), c.method, nil)
			all := strings.Join(got.Because, "; ")
			if err != nil || got.Boot != c.want || !strings.Contains(all, c.part) || strings.Contains(all, "hunter2") {
				t.Fatalf("%s, %q, %v; want %s, %q", got.Boot, all, err, c.want, c.part)
			}
		})
	}
	t.Run("a life that started fenced by its command line is evidence", func(t *testing.T) {
		s := labtest.Servers(t, 1, lab.BootFence...)[0]
		got, err := boot.CheckNode(t.Context(), s.Node(), fences.Method{}, nil)
		if err != nil || got.Boot != boot.Fenced {
			t.Fatalf("%+v, %v", got, err)
		}
		do(t, s, "CONFIG", "SET", "min-replicas-to-write", "0")
		if got, err = boot.CheckNode(t.Context(), s.Node(), fences.Method{}, nil); err != nil || got.Boot != boot.Unknown {
			t.Fatalf("%+v, %v", got, err)
		}
		o, err := oneshot.Inspect(t.Context(), s.Node(), fences.Method{})
		if err != nil {
			t.Fatal(err)
		}
		for verified, want := range map[bool]boot.State{true: boot.Fenced, false: boot.Unfenced} {
			seen := &restartguard.Fact{RunID: o.RunID, Known: true, Verified: verified}
			if got, _ = boot.CheckNode(t.Context(), s.Node(), fences.Method{}, seen); got.Boot != want {
				t.Fatalf("%+v", got)
			}
		}
		if got, _ = boot.CheckNode(t.Context(), s.Node(), fences.Method{}, &restartguard.Fact{RunID: "other", Known: true, Verified: true}); got.Boot != boot.Unknown {
			t.Fatalf("%+v", got)
		}
	})
	t.Run("a node that was closed later says nothing of its boot", func(t *testing.T) {
		s := labtest.Servers(t, 1)[0]
		do(t, s, "CONFIG", "SET", "min-replicas-to-write", fmt.Sprint(minreplicas.FenceUp))
		got, err := boot.CheckNode(t.Context(), s.Node(), fences.Method{}, nil)
		if err != nil || got.Boot != boot.Unknown {
			t.Fatalf("%+v, %v", got, err)
		}
	})
	t.Run("a node that is down cannot be verified", func(t *testing.T) {
		node := named(t, redis.Options{Addr: "127.0.0.1:1"})
		if _, err := boot.CheckNode(t.Context(), node, fences.Method{}, nil); !errors.Is(err, restartguard.ErrUnreachable) {
			t.Fatalf("%v", err)
		}
		if err := oneshot.Unused(t.Context(), node); err != nil {
			t.Fatal(err)
		}
	})
}

// A master that wants a replica and has none refuses writes, behind no fence: it does
// not serve, for whoever waits, for the guard and for its outlook.
func TestAMasterWithoutTheReplicasThatItWantsDoesNotServe(t *testing.T) {
	s := labtest.Servers(t, 1, "--min-replicas-to-write", "1", "--min-replicas-max-lag", "10")[0]
	if writes(t, s) {
		t.Fatal("accepts writes")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := oneshot.WaitServing(ctx, s.Node(), fences.Method{}); !errors.Is(err, oneshot.ErrWait) || !strings.Contains(err.Error(), "lack of replicas") {
		t.Errorf("wait: %v", err)
	}
	g := guard(t, watch.Config{}, s.Node())
	g.becomes("lacking", func(st restartguard.NodeStatus) bool { return st.Lacking })
	if o := g.Outlook(); o.Possible() || len(o.Lacking) != 1 || g.Status()[0].Serves() {
		t.Errorf("%+v", o)
	}
	do(t, s, "CONFIG", "SET", "min-replicas-to-write", "0")
	g.becomes("serving", func(st restartguard.NodeStatus) bool { return st.Serves() })
	if o := g.Outlook(); !o.Possible() {
		t.Errorf("%+v", o)
	}
	g.stop()
}
