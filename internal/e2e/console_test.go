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

// A lock that another process took is seen, force-released through the
// dialog, and gone from every master; and the act is on the record.
func TestForceReleaseThroughTheDialog(t *testing.T) {
	c := newCluster(t, "60s")
	term := c.terminal(t, 120, 40)
	for _, node := range []string{"n1", "n2", "n3", "n4", "n5"} {
		term.shows(node, "serving")
	}
	term.shows("e2e", "5 masters", "quorum 3", "SAFE")

	c.run(t, "acquire", "job:1", "--ttl", "60s")
	term.shows("job:1", "held", "5/5")

	term.keys("X")
	term.shows("Force-release job:1")
	// A dialog ignores keys that were typed before it stood still.
	time.Sleep(500 * time.Millisecond)
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
	time.Sleep(500 * time.Millisecond)
	term.keys("Escape")
	term.until("no row of job:1", func(s string) bool {
		return lineWith(s, "job:1", "5/5") == "" && lineWith(s, "copies deleted") == ""
	})

	phases := auditPhases(t, c.dir, "force-release", "job:1")
	if strings.Join(phases, " ") != "intent done" {
		t.Errorf("the audit log says %q of the act, want intent, then done", phases)
	}
	term.keys("q")
	term.shows("exit code 0")
}

// A master that is killed and comes back closed is shown with its countdown
// and rejoins by the guard in the console.
func TestCrashFenceRejoin(t *testing.T) {
	c := newCluster(t, "3s")
	term := c.terminal(t, 120, 40)
	term.shows("n2", "serving")
	if err := c.servers[1].Kill(); err != nil {
		t.Fatal(err)
	}
	term.shows("degraded", "n2 down")
	if err := c.servers[1].Start(lab.BootFence...); err != nil {
		t.Fatal(err)
	}
	back := time.Now()
	term.shows("n2", "fenced")
	term.shows("SAFE")
	if waited := time.Since(back); waited < 3*time.Second {
		t.Errorf("n2 rejoined %s after its start: sooner than the max TTL of 3s", waited)
	}
	term.shows("n2", "boot fence verified")
}

// The screen follows the terminal's size, and says so when there is no room.
func TestResize(t *testing.T) {
	c := newCluster(t, "60s")
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

// auditPhases are the phases that the audit log has of an act on a target.
func auditPhases(t *testing.T, dir, act, target string) []string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "redlockctl", "audit.jsonl"))
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
	return phases
}
