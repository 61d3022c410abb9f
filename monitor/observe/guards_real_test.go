package observe_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/internal/lab/labtest"
	"redlockctl/monitor"
	"redlockctl/monitor/observe"
	"redlockctl/redlock"
	"redlockctl/server/announce"
	"redlockctl/server/safetext"
)

// announced subscribes to the channel of a guard until the subscription is closed.
func announced(t *testing.T, node *redlock.Node, g announce.Guard) *redis.PubSub {
	t.Helper()
	c := redlock.Connect(node, 1, 5*time.Second)
	t.Cleanup(func() { _ = c.Close() })
	sub := c.Subscribe(t.Context(), g.Channel())
	t.Cleanup(func() { _ = sub.Close() })
	if _, err := sub.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	return sub
}

func TestGuardsAreSeenByTheirAnnouncements(t *testing.T) {
	nodes := labtest.Nodes(labtest.Servers(t, 2))
	m := watch(t, nodes, observe.Options{MaxTTL: 10 * time.Second})
	until(t, m, "no guards, and that known", func(s *monitor.Snapshot) bool {
		return s.Nodes[0].GuardsKnown && s.Nodes[1].GuardsKnown && len(s.Nodes[0].Guards)+len(s.Nodes[1].Guards) == 0
	})
	g := announce.Guard{
		ID: "A", Delay: 30 * time.Second, Host: safetext.New("ops"), PID: 7, Cluster: safetext.New("c"),
		Boot: announce.BootUnfenced, Exposed: 3 * time.Millisecond,
	}
	one := announced(t, nodes[0], g)
	announced(t, nodes[0], announce.Guard{ID: "B", Delay: time.Minute})
	s := until(t, m, "two guards on n1", func(s *monitor.Snapshot) bool { return len(s.Nodes[0].Guards) == 2 })
	if got := s.Nodes[0].Guards; got[0].ID != "B" || got[1] != g {
		t.Errorf("seen: %+v", got)
	}
	if len(s.Nodes[1].Guards) > 0 {
		t.Errorf("on n2: %+v", s.Nodes[1].Guards)
	}
	_ = one.Close()
	until(t, m, "one guard, since the other has ended", func(s *monitor.Snapshot) bool { return len(s.Nodes[0].Guards) == 1 })
}

// Guards that cannot be read are unknown, and the snapshot says so.
func TestGuardsThatCannotBeReadAreUnknown(t *testing.T) {
	servers := labtest.Servers(t, 1)
	admin := redlock.Connect(servers[0].Node(), 1, 5*time.Second)
	defer admin.Close()
	announced(t, servers[0].Node(), announce.Guard{ID: "A", Delay: time.Second})
	if err := admin.Do(context.Background(), "ACL", "SETUSER", "looker", "on", ">pw", "~*", "+@all", "-pubsub").Err(); err != nil {
		t.Fatal(err)
	}
	looker, err := redlock.NewNode("n1", &redis.Options{Addr: servers[0].Addr(), Username: "looker", Password: "pw"})
	if err != nil {
		t.Fatal(err)
	}
	m := watch(t, []*redlock.Node{looker}, observe.Options{MaxTTL: 10 * time.Second})
	s := until(t, m, "a note of it", func(s *monitor.Snapshot) bool { return len(s.Nodes[0].Notes) > 0 })
	if n := s.Nodes[0]; n.GuardsKnown || n.Notes[0] != "PUBSUB denied: guards are not seen" || n.State != monitor.NodeServing {
		t.Errorf("known %v, state %s, notes %q", n.GuardsKnown, n.State, n.Notes)
	}
	if err := admin.Do(context.Background(), "ACL", "SETUSER", "looker", "+pubsub|channels").Err(); err != nil {
		t.Fatal(err)
	}
	until(t, m, "the guard, once it may", func(s *monitor.Snapshot) bool {
		return s.Nodes[0].GuardsKnown && len(s.Nodes[0].Guards) == 1 && len(s.Nodes[0].Notes) == 0
	})
}

// Guards with different D are a danger that names both values. What one of them knows
// about a boot fence is known here.
func TestGuardsThatDoNotAgreeAreADanger(t *testing.T) {
	nodes := labtest.Nodes(labtest.Servers(t, 1))
	m := watch(t, nodes, observe.Options{MaxTTL: 30 * time.Second})
	announced(t, nodes[0], announce.Guard{ID: "A", Delay: 30350 * time.Millisecond, Host: safetext.New("ops1"), Boot: announce.BootUnfenced, Exposed: 4 * time.Millisecond})
	finding := func(s *monitor.Snapshot, id string) *monitor.Finding {
		for i := range s.Findings {
			if s.Findings[i].ID == id {
				return &s.Findings[i]
			}
		}
		return nil
	}
	s := until(t, m, "an unfenced start", func(s *monitor.Snapshot) bool { return finding(s, "boot-fence") != nil })
	if f := finding(s, "boot-fence"); !strings.Contains(f.Evidence.Raw(), "4ms") {
		t.Errorf("%+v", f)
	}
	if finding(s, "guard-delays") != nil || finding(s, "unsafe-persistence") != nil {
		t.Errorf("%+v", s.Findings)
	}
	old := announced(t, nodes[0], announce.Guard{ID: "B", Delay: 5100 * time.Millisecond, Host: safetext.New("laptop\x1b[2J")})
	s = until(t, m, "a danger", func(s *monitor.Snapshot) bool { return finding(s, "guard-delays") != nil })
	f := finding(s, "guard-delays")
	if text := f.Evidence.String(); f.Severity != monitor.SeverityDanger || !strings.Contains(text, "30.35s") || !strings.Contains(text, "5.1s") || !strings.Contains(text, "laptop") {
		t.Errorf("%s %s", f.Severity, f.Evidence)
	}
	_ = old.Close()
	until(t, m, "agreement", func(s *monitor.Snapshot) bool { return finding(s, "guard-delays") == nil })
	announced(t, nodes[0], announce.Guard{ID: "C", Delay: 300 * time.Hour})
	s = until(t, m, "an absurd delay", func(s *monitor.Snapshot) bool { return finding(s, "guard-delays") != nil })
	if f := finding(s, "guard-delays"); !strings.Contains(f.Title, "invalid delay") {
		t.Errorf("%+v", f)
	}
}

func TestADelayBelowMaxTTLIsADanger(t *testing.T) {
	nodes := labtest.Nodes(labtest.Servers(t, 1))
	m := watch(t, nodes, observe.Options{MaxTTL: time.Minute})
	announced(t, nodes[0], announce.Guard{ID: "A", Delay: 30350 * time.Millisecond})
	until(t, m, "a danger", func(s *monitor.Snapshot) bool {
		for _, f := range s.Findings {
			if f.ID == "guard-delays" && f.Severity == monitor.SeverityDanger && strings.Contains(f.Evidence.Raw(), "max_ttl here is 1m0s") {
				return true
			}
		}
		return false
	})
}
