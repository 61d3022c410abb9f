package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"redlockctl/internal/lab"
)

// replay is an operator's night: a master crashed, a lock was split and another was
// force-released. The console goes back to it with a few keys, and history, report and
// replay show exactly that.
func replay(t *testing.T, bin string) {
	c := newCluster(t, bin, "8s")
	term := c.terminal(t, 120, 40)
	term.shows("n2", "● serving")
	c.run(t, "acquire", "leader", "--ttl", "3s")
	term.shows("leader", "5/5")
	if err := c.servers[1].Kill(); err != nil {
		t.Fatal(err)
	}
	term.shows("n2", "down")
	if err := c.servers[1].Start(lab.BootFence...); err != nil {
		t.Fatal(err)
	}
	term.shows("n2", "fenced")
	for i, token := range map[int]string{0: "one", 2: "one", 3: "two", 4: "two"} {
		if _, err := c.do(t, i, "SET", "torn", token, "PX", "8000"); err != nil {
			t.Fatal(err)
		}
	}
	term.shows("torn", "split")
	c.eventually(t, "the split lock at its moment", func() bool {
		return strings.Contains(c.run(t, "replay", "--at", "now"), "2+2/5")
	})
	split := time.Now()
	term.shows("n2", "● serving")
	c.run(t, "acquire", "job", "--ttl", "3s")
	term.shows("job", "held", "5/5")
	c.run(t, "force-release", "job", "--reason", "its host is gone", "--yes")

	// Three keys: the console is at the time when the lock was split or the master was
	// out.
	c.eventually(t, "the force-release to be recorded", func() bool {
		return strings.Contains(c.run(t, "history", "job"), "force-released")
	})
	term.keys("[")
	term.shows("REPLAY", "recorded by console@", "actions are off")
	seen := ""
	for range 2 {
		if seen = term.screen(); lineWith(seen, "n2", "fenced") == "" {
			before := lineWith(seen, "REPLAY")
			term.keys("[")
			seen = term.until("another moment", func(s string) bool { return lineWith(s, "REPLAY") != before })
		}
	}
	if lineWith(seen, "n2", "fenced") == "" {
		t.Errorf("three keys do not reach the trouble:\n%s", seen)
	}
	term.keys("X")
	term.shows("this is the past: actions are off; . goes to now")
	term.keys("Escape")
	term.until("no refusal", func(s string) bool { return !strings.Contains(s, "enter or esc closes this") })
	term.keys(".")
	term.until("the present", func(s string) bool { return lineWith(s, "REPLAY") == "" && lineWith(s, "n2", "● serving") != "" })
	term.keys("q")
	term.shows("exit code 0")

	// The same from the file alone, in a narrow terminal.
	at := split.UTC().Format(time.RFC3339Nano)
	records, err := filepath.Glob(filepath.Join(c.dir, "redlockctl", "record", "*.db"))
	if err != nil || len(records) != 1 {
		t.Fatal(records, err)
	}
	c.config = "/nonexistent"
	narrow := c.terminal(t, 80, 24, "replay", "--file", records[0], "--at", at)
	narrow.shows("REPLAY", split.Local().Format("15:04:05"), ". end")
	narrow.shows("torn", "split")
	narrow.shows("n2", "fenced")
	narrow.keys("q")
	narrow.shows("exit code 0")

	for args, want := range map[string][]string{
		"history":        {"restart", "n2 restarted", "split", "torn", "force-released"},
		"history job":    {"force-released"},
		"report":         {"n2", "fenced", "down", "force-released", "torn", "leader"},
		"report -o html": {"<svg", "n2", "torn"},
	} {
		out := c.run(t, append(strings.Fields(args), "--file", records[0], "--since", "10m")...)
		for _, w := range want {
			if !strings.Contains(out, w) {
				t.Errorf("%s does not show %s:\n%s", args, w, out)
			}
		}
	}
	// One cause is one line, however many sources report it.
	for _, cause := range []string{" n2 is down", " n2 restarted", " n2 accepts writes"} {
		for _, args := range [][]string{{"history", "--node", "n2"}, {"report"}} {
			told := c.run(t, append(args, "--file", records[0], "--since", "10m")...)
			if n := strings.Count(told, cause); n != 1 {
				t.Errorf("%s tells%s %d times:\n%s", args[0], cause, n, told)
			}
		}
	}
	out := c.run(t, "replay", "--file", records[0], "--at", at)
	for _, words := range [][]string{{"REPLAY", "console@"}, {"n2", "fenced", "rejoins in"}, {"torn", "split", "2+2/5"}} {
		if lineWith(out, words...) == "" {
			t.Errorf("at %s there is no line with %q:\n%s", at, words, out)
		}
	}
}

// eventually waits for an effect of another process.
func (c *cluster) eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(fmt.Sprint("never saw ", what))
		}
	}
}
