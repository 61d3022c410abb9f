package watch_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"redlockctl/internal/lab"
	"redlockctl/internal/lab/labtest"
	"redlockctl/redlock"
	"redlockctl/restartguard"
	"redlockctl/restartguard/memory"
	"redlockctl/restartguard/watch"
	"redlockctl/server/minreplicas"
	"redlockctl/server/resp"
)

// TestClockOfARealServer sets the wall clock of a real server, or lets it run at
// another rate.
func TestClockOfARealServer(t *testing.T) {
	for name, c := range map[string]struct {
		offset time.Duration
		rate   float64
		closed bool
		told   string // kind of the event
	}{
		"30 s forward":        {30 * time.Second, 1, true, "clock"},
		"1 s forward":         {time.Second, 1, true, "clock"},
		"1 s back":            {-time.Second, 1, false, "clock back"},
		"1 % fast":            {0, 1.01, true, "clock"},
		"half a percent fast": {0, 1.005, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := labtest.ClockServers(t, 1)[0]
			g := guard(t, watch.Config{Delay: time.Minute}, s.Node())
			g.reaches(restartguard.PhaseServing)
			looks := func() int { return commandCalls(t, s, "time") }
			before := looks()
			if !wait(func() bool { return looks() > before }) {
				t.Fatal("the guard does not look")
			}
			do(t, s, "CONFIG", "SET", "slowlog-log-slower-than", "0", "slowlog-max-len", "100000")
			if err := s.SetClock(c.offset, c.rate); err != nil {
				t.Fatal(err)
			}
			do(t, s, "ECHO", "from here on")
			switch {
			case c.closed:
				g.becomes("closed and proven", func(st restartguard.NodeStatus) bool {
					return st.Phase == restartguard.PhaseFenced && st.Proven
				})
				if writes(t, s) {
					t.Fatal("accepts writes")
				}
				// The server's own record of what it was asked, and in which order.
				if n := readingsToClose(t, s); c.rate == 1 && n > 2 {
					t.Errorf("closed after %d readings of its clock", n)
				}
			case c.told != "":
				g.tells(c.told)
				fallthrough
			default:
				// Long enough for many looks, and for a rate to show.
				from := looks()
				wait(func() bool { return looks() > from+150 })
				if st := g.Status()[0]; st.Phase != restartguard.PhaseServing || !writes(t, s) {
					t.Fatalf("%+v", st)
				}
			}
			if c.told == "" && (g.told("clock") != "" || g.told("clock back") != "") {
				t.Fatal("was told")
			}
			if c.told != "" && !strings.Contains(g.tells(c.told), "wall clock") {
				t.Fatalf("told %q", g.told(c.told))
			}
		})
	}
}

// readingsToClose is how often the clock of a server was read between the mark that
// its slow log has, and the closing.
func readingsToClose(t *testing.T, s *lab.Server) int {
	t.Helper()
	c := redlock.Connect(s.Node().Within(resp.NewBudget(64<<20, 0)), 1, 5*time.Second) // the log of all commands is long
	defer c.Close()
	answer, err := c.Do(t.Context(), "SLOWLOG", "GET", "-1").Result()
	if err != nil {
		t.Fatal(err)
	}
	entries, _ := answer.([]any)
	n, marked := 0, false
	for _, e := range slices.Backward(entries) { // the latest is the first
		entry, _ := e.([]any)
		if len(entry) < 4 {
			t.Fatalf("an entry of the slow log: %v", e)
		}
		switch command := fmt.Sprint(entry[3]); {
		case strings.HasPrefix(command, "[ECHO") || strings.HasPrefix(command, "[echo"):
			marked = true
		case marked && strings.EqualFold(command, "[time]"):
			n++
		case marked && strings.Contains(command, fmt.Sprint(minreplicas.FenceUp)):
			return n
		}
	}
	t.Fatalf("no mark (%t) or no closing in %d entries", marked, len(entries))
	return 0
}

// commandCalls is how often a server has carried out a command.
func commandCalls(t *testing.T, s *lab.Server, name string) (n int) {
	t.Helper()
	for line := range strings.Lines(fmt.Sprint(do(t, s, "INFO", "commandstats"))) {
		if rest, ok := strings.CutPrefix(line, "cmdstat_"+name+":calls="); ok {
			_, err := fmt.Sscanf(rest, "%d", &n)
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return n
}

// A guard that is killed and started again compares each node's clock with the last reading, with
// any TTL: a step that happened meanwhile is a loss.
func TestClockStepBehindTheBackOfAGuard(t *testing.T) {
	s := labtest.ClockServers(t, 1)[0]
	dir := t.TempDir()
	m, err := memory.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	const delay = 2 * time.Second
	g := guard(t, watch.Config{Delay: delay, Memory: m}, s.Node())
	g.reaches(restartguard.PhaseServing)
	time.Sleep(delay + delay/2) // calm, for longer than D: only the clock is written down
	// What is on disk when it is killed.
	left := t.TempDir()
	if err := os.CopyFS(left, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	g.stop()
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	do(t, s, "SET", "lock", "a", "NX", "PX", 20000)
	if err := s.SetClock(30*time.Second, 1); err != nil {
		t.Fatal(err)
	}
	if m, err = memory.Open(left); err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	again := guard(t, watch.Config{Delay: time.Minute, Memory: m}, s.Node())
	st := again.becomes("fenced", func(st restartguard.NodeStatus) bool { return st.Phase == restartguard.PhaseFenced && st.Proven })
	if writes(t, s) || !strings.Contains(again.tells("clock"), "stepped forward by 30") {
		t.Errorf("%+v, told %q", st, again.tells("clock"))
	}
	// The step may have been at any moment since the last reading of the first guard.
	if st.Exposed < 2*time.Millisecond || st.Exposed > time.Minute {
		t.Errorf("served for at most %s", st.Exposed)
	}
	again.stop()
}
