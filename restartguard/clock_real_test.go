package restartguard_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"redlockctl/internal/lab"
	"redlockctl/internal/lab/labtest"
	"redlockctl/restartguard"
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
			g := guard(t, restartguard.Config{Delay: time.Minute}, s.Node())
			g.reaches(restartguard.PhaseActive)
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
					return st.Phase == restartguard.PhaseClosed && st.Proven
				})
				if writes(t, s) {
					t.Fatal("accepts writes")
				}
				// The server's own record of what it was asked, and in which order.
				if n := readingsToClose(t, s); c.rate == 1 && n > 2 {
					t.Errorf("closed after %d readings of its clock", n)
				}
			case c.told != "":
				if !wait(func() bool { return g.told(c.told) != "" }) {
					t.Fatalf("no event %q", c.told)
				}
				fallthrough
			default:
				// Long enough for many looks, and for a rate to show.
				from := looks()
				wait(func() bool { return looks() > from+150 })
				if st := g.Status()[0]; st.Phase != restartguard.PhaseActive || !writes(t, s) {
					t.Fatalf("%+v", st)
				}
			}
			if c.told == "" && (g.told("clock") != "" || g.told("clock back") != "") {
				t.Fatal("was told")
			}
			if c.told != "" && !strings.Contains(g.told(c.told), "wall clock") {
				t.Fatalf("told %q", g.told(c.told))
			}
		})
	}
}

// readingsToClose is how often the clock of a server was read between the mark that
// its slow log has, and the closing.
func readingsToClose(t *testing.T, s *lab.Server) int {
	t.Helper()
	entries, _ := do(t, s, "SLOWLOG", "GET", "-1").([]any)
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
		case marked && strings.Contains(command, fmt.Sprint(restartguard.FenceClosed)):
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
