package observe

import (
	"testing"
	"time"
)

// A node that accepts writes right after its restart has no boot fence; one
// that was out of sight may have waited.
func TestARestartThatStartsUnfenced(t *testing.T) {
	for name, c := range map[string]struct {
		fence  string
		uptime string
		want   bool
	}{
		"open at once":          {"0", "0", true},
		"closed":                {"2147483647", "0", false},
		"out of sight for long": {"0", "31", false},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Now()
			w := newTestWorld(t, now, "n1")
			w.answered(0, sight{sent: now, received: now, info: master("uptime_in_seconds", "100"), config: fence("0")}, now)
			if !w.nodes[0].Facts.OpenAt.IsZero() {
				t.Fatal("the first sight is no restart")
			}
			w.answered(0, sight{sent: now, received: now, info: master("run_id", "two", "uptime_in_seconds", c.uptime), config: fence(c.fence)}, now)
			if got := !w.nodes[0].Facts.OpenAt.IsZero(); got != c.want {
				t.Error(got)
			}
		})
	}
}
