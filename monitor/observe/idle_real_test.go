package observe_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/internal/lab/labtest"
	"redlockctl/monitor"
	"redlockctl/monitor/observe"
	"redlockctl/redlock"
)

// Connections that a NAT drops without a word are noticed while nothing changes: that of
// the probe, the feed, and the one that reads, also if it may run no scripts.
func TestIdleConnectionsThatAreDroppedInSilence(t *testing.T) {
	for name, rules := range map[string][]any{"scripts": nil, "no scripts": {"-@scripting"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := labtest.Servers(t, 1)[0]
			do(t, srv, append([]any{"acl", "setuser", "watcher", "on", ">p", "~*", "&*", "+@all"}, rules...)...)
			do(t, srv, "set", "k1", "token", "px", 3600000)
			p := labtest.NewProxy(t, srv)
			m := watch(t, []*redlock.Node{node(t, "n1", &redis.Options{Addr: p.Addr(), Username: "watcher", Password: "p"})}, slow)
			settled(t, m)
			until(t, m, "proof", func(s *monitor.Snapshot) bool { return s.Complete && !s.Nodes[0].UpTo.IsZero() })
			had := p.Conns()
			for _, d := range []labtest.Direction{labtest.ToServer, labtest.ToClient} {
				defer p.Strand(d)()
			}
			dropped := time.Now()
			until(t, m, "the connections opened again", func(s *monitor.Snapshot) bool {
				return p.Conns() >= had+3 && s.Complete && s.Nodes[0].UpTo.After(dropped)
			})
			t.Logf("after %s", time.Since(dropped).Round(time.Millisecond))
			do(t, srv, "set", "k1", "other", "px", 3600000)
			until(t, m, "the change", func(s *monitor.Snapshot) bool { return lock(s, "k1").Holder.Raw() == "other" })
		})
	}
}

// A line that is cut several times in a minute takes no feed away: the node answered
// nothing else either.
func TestALineThatIsCutKeepsItsFeed(t *testing.T) {
	t.Parallel()
	srv := labtest.Servers(t, 1)[0]
	p := labtest.NewProxy(t, srv)
	m := watch(t, []*redlock.Node{node(t, "n1", &redis.Options{Addr: p.Addr()})}, observe.Options{})
	settled(t, m)
	listens := func(s *monitor.Snapshot) bool { return s.Complete && s.At.Sub(s.Nodes[0].UpTo) < 700*time.Millisecond }
	for range 3 {
		until(t, m, "the feed", listens)
		p.Swallow(true)
		until(t, m, "the cut", func(s *monitor.Snapshot) bool { return s.Nodes[0].State != monitor.NodeServing })
		time.Sleep(time.Second)
		p.Heal()
		p.Drop()
	}
	until(t, m, "the feed", listens)
	if l := m.Snapshot().Nodes[0].Limits; len(l) > 0 {
		t.Error(l)
	}
}
