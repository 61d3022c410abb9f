package observe_test

import (
	"testing"
	"time"

	"redlockctl/internal/lab/labtest"
	"redlockctl/monitor"
	"redlockctl/monitor/observe"
)

// A wipe of a node's data is reported as soon as the node has been read again, with its
// cost.
func TestAWipeIsToldAtOnce(t *testing.T) {
	servers := labtest.Servers(t, 3)
	m := watch(t, labtest.Nodes(servers), observe.Options{LockPatterns: []string{"job:*"}})
	settled(t, m)
	for _, s := range servers {
		do(t, s, "set", "job:1", "token", "px", 60000)
	}
	until(t, m, "held", func(s *monitor.Snapshot) bool { l := lock(s, "job:1"); return l != nil && l.Held == 3 })
	wiped := time.Now()
	do(t, servers[0], "flushall")
	do(t, servers[1], "flushall")
	lost := until(t, m, "a lost majority", func(s *monitor.Snapshot) bool {
		l := lock(s, "job:1")
		return l != nil && l.State == monitor.LockLostMajority
	})
	told := until(t, m, "both wipes", func(s *monitor.Snapshot) bool {
		n := 0
		for _, e := range s.Events {
			if e.Kind == "data wiped" {
				n += e.Cost.Lost
			}
		}
		return n == 2
	})
	if after := told.At.Sub(lost.At); after > 700*time.Millisecond {
		t.Errorf("told %s after the lock lost its majority, %s after the wipe", after, told.At.Sub(wiped))
	}
}
