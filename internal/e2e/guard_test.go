package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"redlockctl/server/announce"
)

// announced counts the guards that announce themselves on the first master.
func (c *cluster) announced(t *testing.T) int {
	t.Helper()
	v, err := c.do(t, 0, "PUBSUB", "CHANNELS", announce.Pattern)
	if err != nil {
		t.Fatal(err)
	}
	list, _ := v.([]any)
	return len(list)
}

// A console beside a daemon runs no guard, however short the max_ttl of its own
// configuration is; it says which guard watches, the D that applies, and when that guard
// is gone. The next console is the only one, and runs a guard; --guard always runs one.
func TestConsoleYieldsToADaemon(t *testing.T) {
	t.Parallel()
	c := newCluster(t, build(t), "30s")
	daemon := exec.Command(c.bin, "guard")
	daemon.Env = append(os.Environ(), c.env()...)
	var log strings.Builder
	daemon.Stderr = &log
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = daemon.Wait() }()
	stop := func() {
		_ = daemon.Process.Signal(syscall.SIGTERM)
		<-ended
	}
	defer stop()
	for deadline := time.Now().Add(30 * time.Second); c.announced(t) != 1; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the daemon does not announce itself:\n%s", log.String())
		}
	}

	b, err := os.ReadFile(c.config)
	if err != nil {
		t.Fatal(err)
	}
	old := *c
	old.dir = t.TempDir()
	old.config = filepath.Join(old.dir, "old.toml")
	if err := os.WriteFile(old.config, []byte(strings.NewReplacer(`max_ttl = "30s"`, `max_ttl = "1s"`, `node_timeout = "1s"`, `node_timeout = "100ms"`).Replace(string(b))), 0o600); err != nil {
		t.Fatal(err)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	name := "guard@" + host[:min(len(host), 8)]
	console := old.terminal(t, 200, 40)
	console.shows(name, "D 30.35s")
	console.keys("6")
	console.shows("D = 30.35s", name, "this console runs no guard")
	console.keys("4")
	console.shows("watches this cluster", "this console runs none")
	if n := c.announced(t); n != 1 {
		t.Errorf("%d guards announce themselves", n)
	}

	asked := old.terminal(t, 200, 40, "--guard")
	asked.shows("guard here and "+name, "D 30.35s")
	if n := c.announced(t); n != 2 {
		t.Errorf("with --guard %d guards announce themselves", n)
	}
	asked.keys("q")
	asked.shows("exit code 0")

	stop()
	console.shows("is gone; this console relied on it")
	console.keys("6")
	console.shows("no guard is seen")
	if n := c.announced(t); n != 0 {
		t.Errorf("it took over: %d guards announce themselves", n)
	}
	console.keys("q")
	console.shows("exit code 0")

	alone := c.terminal(t, 200, 40)
	alone.shows("guard here, D 30.35s")
	alone.keys("q")
	alone.shows("exit code 0")
}
