package app

import (
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"redlockctl/internal/audit"
	"redlockctl/internal/lab/labtest"
	"redlockctl/internal/operator"
	"redlockctl/internal/who"
	"redlockctl/monitor"
)

// Of a force-released lock the console has the words of the commands: when, by whom, and until
// when its holder may rely on it.
func TestAConsoleTellsAForceRelease(t *testing.T) {
	servers := labtest.Servers(t, 3)
	all := twoClusters(t, servers)
	c, err := all.Open(t.Context(), "shop")
	if err != nil {
		t.Fatal(err)
	}
	lock, err := c.Actions.AcquireWith(t.Context(), "job:1", 20*time.Second, operator.AcquireOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if told := c.ForceReleased("job:1", nil, time.Now()); told != "" {
		t.Errorf("before: %s", told)
	}
	if err := c.Actions.Remove(t.Context(), operator.Removal{Kind: operator.ForceRelease, Keys: []string{"job:1"}, Tokens: []string{lock.Token()}, Reason: "host \\burnt"}).Err(); err != nil {
		t.Fatal(err)
	}
	cfg, err := all.Set.Choose("shop")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	told := c.ForceReleased("job:1", nil, now)
	if !regexp.MustCompile(`^it was force-released at [0-9:]+ by .+: host \\burnt; its holder may rely on it until [0-9:]+$`).MatchString(told) || told != KeptBy(cfg).ForceReleased("job:1", nil, now) {
		t.Errorf("%q", told)
	}
	look := func() *monitor.Lock {
		s, err := Look(t.Context(), cfg, Aim{Keys: []string{"job:1"}})
		if err != nil || s.LockNamed("job:1") == nil {
			t.Fatal("the lock is not seen", err)
		}
		if n := len(slices.DeleteFunc(s.Findings, func(f monitor.Finding) bool { return f.ID != "force-released" })); (n == 1) != (c.ForceReleased("job:1", s.LockNamed("job:1"), s.At) != "") {
			t.Errorf("%d findings", n)
		}
		return s.LockNamed("job:1")
	}
	again := func(token string) {
		for _, s := range servers {
			if _, err := s.Do(t.Context(), "set", "job:1", token, "px", 20_000); err != nil {
				t.Fatal(err)
			}
		}
	}
	again(lock.Token())
	if told := c.ForceReleased("job:1", look(), now); told != "" {
		t.Errorf("its holder has it again: %s", told)
	}
	again("the-next-client")
	if next := c.ForceReleased("job:1", look(), now); next != told {
		t.Errorf("the next client has it: %q, not %q", next, told)
	}
	if told := c.ForceReleased("job:1", nil, now.Add(time.Minute)); told != "" {
		t.Errorf("after its end: %s", told)
	}
}

// forceReleases writes lines of somebody's force-release of job:1 to an audit log.
func forceReleases(t *testing.T, path string, phases ...string) {
	log, err := audit.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	for _, phase := range phases {
		r := audit.Record{Time: time.Now(), ID: "1", Phase: phase, Actor: "alice@host", Cluster: "shop", Act: "force-release", Target: "job:1", Reason: "host burnt"}
		if phase == audit.Done {
			r.Detail = "its holder may rely on it until " + time.Now().Add(time.Minute).UTC().Format(time.RFC3339) + "; n1 ok, n2 ok, n3 ok"
		}
		if err := log.Write(r); err != nil {
			t.Fatal(err)
		}
	}
}

// overtaken is what an operator is told whose force-release found nothing.
var overtaken = regexp.MustCompile(`^it was force-released at [0-9:]+ by alice@host: host burnt; its holder may rely on it until [0-9:]+$`)

// Of two operators who force-release a lock at the same moment, the one that finds nothing learns who was faster.
func TestAForceReleaseThatWasOvertaken(t *testing.T) {
	all := twoClusters(t, labtest.Servers(t, 3))
	c, err := all.Open(t.Context(), "shop")
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := all.Set.Choose("shop")
	if err != nil {
		t.Fatal(err)
	}
	forceReleases(t, cfg.Audit.Path, audit.Intent, audit.Done)
	err = c.Actions.Remove(t.Context(), operator.Removal{Kind: operator.ForceRelease, Keys: []string{"job:1"}, Tokens: []string{"aaa"}, Reason: "dead"}).Err()
	if !overtaken.MatchString(operator.OvertakenBy(err)) {
		t.Error(err)
	}
}

// It learns it too if the log has the outcome of the other a moment later.
func TestAnOvertakenForceReleaseWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := Kept{Cluster: "shop", Audit: filepath.Join(t.TempDir(), "audit.log"), MaxTTL: time.Minute}
		forceReleases(t, kept.Audit, audit.Intent)
		told := make(chan string, 1)
		go func() { told <- kept.Overtaken(t.Context(), "job:1") }()
		synctest.Wait()
		forceReleases(t, kept.Audit, audit.Done)
		if text := <-told; !overtaken.MatchString(text) {
			t.Errorf("%q", text)
		}
	})
}

// An answer is compared with a look: that one may see more copies of the lock, or nothing.
func TestWhoReliesOnALock(t *testing.T) {
	servers := labtest.Servers(t, 3)
	for _, s := range servers[:2] {
		get(t, s, "SET", "job:1", "token", "PX", "20000")
	}
	cfg, err := twoClusters(t, servers).Set.Choose("shop")
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]bool{"job:1": true, "job:2": false} {
		l, s := ReliedOn(t.Context(), cfg, &who.Answer{Key: key, Held: 1, N: 3}, nil)
		if (l != nil) != want || s == nil {
			t.Errorf("%s: %+v %v", key, l, s)
		}
	}
}
