package observe_test

import (
	"testing"

	"redlockctl/internal/lab/labtest"
	"redlockctl/monitor"
	"redlockctl/monitor/observe"
)

// A lock with 3 copies beside a rival with 2 has no margin: if one node forgets its vote,
// the rival can get a quorum. The client that lost its majority is still shown, since it
// relies on the lock.
func TestMarginBesideARival(t *testing.T) {
	servers := labtest.Servers(t, 5)
	m := watch(t, labtest.Nodes(servers), observe.Options{})
	settled(t, m)
	for i, token := range []string{"aaa", "aaa", "aaa", "bbb", "bbb"} {
		do(t, servers[i], "set", "job", token, "px", 60000)
	}
	until(t, m, "3 + 2", func(s *monitor.Snapshot) bool {
		l := lock(s, "job")
		return l != nil && l.State == monitor.LockSplit && l.Held == 3 && l.Holder.Raw() == "aaa" && l.Margin() == 0 && !l.Nobody
	})
	// The rival can get a vote that a restart forgets.
	do(t, servers[0], "flushall")
	if got := do(t, servers[0], "set", "job", "bbb", "nx", "px", 60000); got != "OK" {
		t.Fatalf("the rival does not get the vote: %v", got)
	}
	until(t, m, "the rival's quorum", func(s *monitor.Snapshot) bool {
		l := lock(s, "job")
		return l != nil && l.Held == 3 && l.Holder.Raw() == "bbb" && l.Margin() == 0 && l.Earlier != nil
	})
	do(t, servers[0], "del", "job")
	// Both were granted the lock, and neither has released it.
	until(t, m, "2 + 2", func(s *monitor.Snapshot) bool {
		l := lock(s, "job")
		return l != nil && l.State == monitor.LockSplit && l.Held == 2 && !l.Nobody && l.Earlier != nil && l.Earlier.Token.Raw() == "aaa"
	})
}
