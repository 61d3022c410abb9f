package observe_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/internal/lab/labtest"
	"redlockctl/monitor"
	"redlockctl/monitor/observe"
	"redlockctl/redlock"
)

// What the monitor may not read is unknown, and the node is not down.
func TestDeniedIsNotDown(t *testing.T) {
	ss := labtest.Servers(t, 3, "--user", "eye", "on", ">secret", "~*", "&*", "+@all")
	nodes := make([]*redlock.Node, len(ss))
	for i, s := range ss {
		n, err := redlock.NewNode([]string{"n1", "n2", "n3"}[i], &redis.Options{Addr: s.Addr(), Username: "eye", Password: "secret"})
		if err != nil {
			t.Fatal(err)
		}
		nodes[i] = n
	}
	m := watch(t, nodes, observe.Options{})
	until := func(what string, holds func(s *monitor.Snapshot) bool) {
		t.Helper()
		deadline := time.Now().Add(30 * time.Second)
		for s := m.Snapshot(); !holds(s); s = m.Snapshot() {
			if time.Now().After(deadline) {
				t.Fatalf("%s: %+v", what, s.Cluster)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	until("all serve", func(s *monitor.Snapshot) bool { return s.Cluster.Serving == 3 })
	for _, s := range ss {
		do(t, s, "ACL", "SETUSER", "eye", "-scan")
		do(t, s, "CLIENT", "KILL", "USER", "eye")
	}
	until("only the locks are hidden", func(s *monitor.Snapshot) bool {
		return s.Nodes[0].State == monitor.NodeDenied && s.Nodes[1].State == monitor.NodeDenied && s.Nodes[2].State == monitor.NodeDenied &&
			s.Cluster.Serving == 3 && s.Cluster.Hidden == 0 && s.Cluster.Verdict != monitor.VerdictUnavailable
	})
	for _, s := range ss {
		do(t, s, "ACL", "SETUSER", "eye", "resetpass", ">another")
		do(t, s, "CLIENT", "KILL", "USER", "eye")
	}
	until("all is hidden", func(s *monitor.Snapshot) bool {
		return s.Cluster.Hidden == 3 && s.Cluster.Verdict == monitor.VerdictUnknown && strings.Contains(s.Cluster.Reason, "not known if locks can be taken")
	})
	for _, f := range m.Snapshot().Findings {
		if f.ID == "no-quorum" {
			t.Errorf("%+v", f)
		}
	}
}
