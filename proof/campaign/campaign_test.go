package campaign_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9/logging"
	"go.uber.org/goleak"

	"redlockctl/internal/lab"
	"redlockctl/internal/lab/labtest"
	"redlockctl/proof/campaign"
	"redlockctl/restartguard"
	"redlockctl/restartguard/watch"
)

func TestMain(m *testing.M) {
	logging.Disable() // go-redis writes each failed dial to stderr
	var err error
	if scratch, err = os.MkdirTemp("", "campaign"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(scratch)
		os.Exit(code)
	}))
}

// play runs a short campaign; the long ones are scripts/crash-campaign.
func play(t *testing.T, cfg campaign.Config) *campaign.Report {
	t.Helper()
	cfg.RedisServer, cfg.Dir, cfg.Seed = labtest.RedisServer(t), t.TempDir(), uint64(time.Now().UnixNano())
	report, err := campaign.Run(t.Context(), cfg)
	if report != nil {
		var text strings.Builder
		report.Print(&text)
		t.Log("\n" + text.String())
	}
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// No lock is ever held by two, and no master accepts a SET between its start and its
// rejoining, D or more after it, whoever guards and whatever is killed.
func TestNothingFound(t *testing.T) {
	program := redlockctl(t)
	for name, cfg := range map[string]campaign.Config{
		"guard":                {},
		"guard that is killed": {Guarding: campaign.Killed, Redlockctl: program},
		"two that are killed":  {Guarding: campaign.Killed, Redlockctl: program, Guards: 2},
		"ACL":                  {ACL: true},
		"ACL, guard is killed": {ACL: true, Guarding: campaign.Killed, Redlockctl: program},
		"before the start":     {Guarding: campaign.Delayed, Redlockctl: program},
		"early rejoin":         {Early: true},
		"drains":               {Drains: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			switch cfg.Cycles = 10; {
			case name == "guard":
				cfg.Cycles = 25
			case cfg.Early || cfg.Drains: // their locks live for long
				cfg.Cycles = 5
			}
			for range 10 { // a busy machine may leave no time for what is to be tried
				r := play(t, cfg)
				if !r.Clean() || r.Accepted > 0 {
					t.Fatal("something was found")
				}
				if r.Kills+r.GuardKills >= cfg.Cycles && r.Voters > 0 && r.Grants > 0 && r.Rejoined > 0 && (!r.Config.Early || r.Rejoins.Early > 0) && (!r.Drains || r.Drained > 0 && r.Cuts > 0) {
					return
				}
			}
			t.Error("nothing was tried")
		})
	}
}

// The same campaigns fail without a guard, and with one that is wrong: they can fail.
func TestFound(t *testing.T) {
	program := redlockctl(t)
	for name, cfg := range map[string]campaign.Config{
		"no guard":                        {Guarding: campaign.Nothing},
		"no guard, ACL":                   {Guarding: campaign.Nothing, ACL: true},
		"half of D":                       {DelayShare: 0.5},
		"half of D, ACL":                  {DelayShare: 0.5, ACL: true},
		"half of D, guard is killed":      {DelayShare: 0.5, Guarding: campaign.Killed, Redlockctl: program},
		"half of D, before the start":     {DelayShare: 0.5, Guarding: campaign.Delayed, Redlockctl: program},
		"early rejoin by the wrong locks": {Early: true, Pattern: "nothing:*"},
		"half of D, drains":               {DelayShare: 0.5, Drains: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg.Cycles = 1000
			if r := play(t, cfg); r.Clean() || (cfg.Guarding == campaign.Nothing || cfg.Early) && len(r.Violations) == 0 {
				t.Errorf("not found in %d kills", r.Kills)
			}
		})
	}
}

// redlockctl returns the path of the program.
func redlockctl(t *testing.T) string {
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var built = sync.OnceValues(func() (string, error) {
	return labtest.Program(scratch, "../..")
})

// scratch is a directory for all tests.
var scratch string

// A clock that jumps forward ends locks before their time: the guard closes that
// node at once, and one that goes back costs nothing.
func TestClockStep(t *testing.T) {
	const poll = 20 * time.Millisecond
	servers := labtest.ClockServers(t, 3)
	g, err := watch.New(labtest.Nodes(servers), watch.Config{Delay: time.Second, Poll: poll})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = g.Run(t.Context()) }()
	t.Cleanup(func() { <-done })
	becomes := func(node int, phase restartguard.Phase) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); g.Status()[node].Phase != phase; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("never %s: %+v", phase, g.Status()[node])
			}
		}
	}
	for i := range servers {
		becomes(i, restartguard.PhaseServing)
	}
	closed := func(node int) bool {
		_, err := servers[node].Do(t.Context(), "SET", "probe:clock", "x", "PX", "1")
		return err != nil && strings.HasPrefix(err.Error(), "NOREPLICAS")
	}
	time.Sleep(10 * poll) // the guard of real servers has to see their clocks a few times
	stepped := time.Now()
	if err := servers[0].SetClock(30*time.Second, 1); err != nil {
		t.Fatal(err)
	}
	if err := servers[1].SetClock(-time.Second, 1); err != nil {
		t.Fatal(err)
	}
	becomes(0, restartguard.PhaseFenced)
	if !closed(0) {
		t.Error("the node whose clock jumped forward takes writes")
	}
	if closed(1) || closed(2) {
		t.Error("a node whose clock did not jump forward is closed")
	}
	becomes(0, restartguard.PhaseServing)
	if took := time.Since(stepped); took < time.Second {
		t.Errorf("open again after %s", took)
	}
}

// A guard that was suspended over its deadline, and over a restart, opens nothing by
// what it knew before: D counts from when it sees the new incarnation.
func TestGuardSuspended(t *testing.T) {
	const delay = 302_500 * time.Microsecond // of the max TTL below
	s := labtest.Servers(t, 1, lab.BootFence...)[0]
	if _, err := s.Do(t.Context(), "CONFIG", "SET", "min-replicas-to-write", "0"); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	text := fmt.Sprintf("[cluster]\nmax_ttl = \"250ms\"\n[guard]\npoll = \"10ms\"\ntimeout = \"100ms\"\nstate_dir = %q\n[[nodes]]\nname = \"n1\"\naddr = %q\n", dir+"/guard", s.Addr())
	if err := os.WriteFile(dir+"/config.toml", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	guard := exec.Command(redlockctl(t), "guard", "--config", dir+"/config.toml")
	if err := guard.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = guard.Process.Kill()
		_ = guard.Wait()
	}()
	watched := func() bool {
		list, err := s.Do(t.Context(), "CLIENT", "LIST")
		return err == nil && strings.Contains(fmt.Sprint(list), "redlockctl:guard")
	}
	wait := func(what string, f func() bool) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); !f(); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("never " + what)
			}
		}
	}
	votes := func() bool {
		_, err := s.Do(t.Context(), "SET", "probe", "x", "PX", "1")
		return err == nil
	}
	restart := func() {
		t.Helper()
		if err := s.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := s.Start(); err != nil {
			t.Fatal(err)
		}
	}
	wait("watched", watched)
	time.Sleep(delay / 2) // it has looked
	restart()
	wait("watched in its second life", watched)
	if err := guard.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	restart()
	time.Sleep(2 * delay)
	if votes() {
		t.Fatal("it is open, and its guard stands still")
	}
	again := time.Now()
	if err := guard.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	wait("open", votes)
	if d := time.Since(again); d < delay {
		t.Errorf("opened %s after its guard went on, and D is %s", d, delay)
	}
}
