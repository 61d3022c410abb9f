package watch_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/internal/lab"
	"redlockctl/internal/lab/labtest"
	"redlockctl/redlock"
	"redlockctl/restartguard"
	"redlockctl/restartguard/watch"
	"redlockctl/server/announce"
	"redlockctl/server/resp"
)

// guardsOn are the guards that announce themselves on a server.
func guardsOn(t *testing.T, s *lab.Server) []announce.Guard {
	t.Helper()
	c := redlock.Connect(s.Node(), 1, time.Second)
	defer c.Close()
	names, err := c.PubSubChannels(context.Background(), announce.Pattern).Result()
	if err != nil {
		return nil // it is restarting
	}
	return announce.DecodeAll(names)
}

// announces waits for what one guard says on a server.
func announces(t *testing.T, s *lab.Server, what string, is func([]announce.Guard) bool) {
	t.Helper()
	var all []announce.Guard
	if !wait(func() bool { all = guardsOn(t, s); return is(all) }) {
		t.Fatalf("%s is not announced: %+v", what, all)
	}
}

func TestAGuardIsSeenOnItsNodes(t *testing.T) {
	s := labtest.Servers(t, 1, "--min-replicas-to-write", "2147483647", "--min-replicas-max-lag", "10")[0]
	g := guard(t, watch.Config{Cluster: "billing", Delay: 400 * time.Millisecond}, s.Node())
	announces(t, s, "a guard", func(all []announce.Guard) bool {
		return len(all) == 1 && all[0].ID == g.ID() && all[0].Delay == 400*time.Millisecond && all[0].Cluster.Raw() == "billing" &&
			all[0].PID > 0 && !all[0].Host.Empty() && all[0].Boot == announce.BootFenced
	})
	g.reaches(restartguard.PhaseServing)
	// Fenced from its start: it is seen while the node refuses writes.
	restart(t, s)
	announces(t, s, "a verified boot fence", func(all []announce.Guard) bool { return len(all) == 1 && all[0].Boot == announce.BootFenced })
	g.reaches(restartguard.PhaseServing)
	g.stop()
	announces(t, s, "the end", func(all []announce.Guard) bool { return len(all) == 0 })
}

// Who looks for the first time learns from a guard that met the node after its data were wiped that this was before.
func TestAGuardSaysSinceWhenItHasSeenNoLoss(t *testing.T) {
	s := fenced(t)
	do(t, s, "FLUSHALL")
	flushed := time.Now()
	guard(t, watch.Config{Delay: 400 * time.Millisecond}, s.Node())
	announces(t, s, "since when nothing was lost", func(all []announce.Guard) bool {
		return len(all) == 1 && all[0].Wipes == 1 && all[0].NoLossSince.After(flushed.Add(-10*time.Millisecond)) && all[0].NoLossSince.Before(time.Now())
	})
}

func TestAGuardTellsOfAnUnfencedStart(t *testing.T) {
	s := labtest.Servers(t, 1)[0]
	g := guard(t, watch.Config{Delay: 300 * time.Millisecond}, s.Node())
	g.reaches(restartguard.PhaseServing)
	restart(t, s)
	announces(t, s, "an unfenced start", func(all []announce.Guard) bool {
		return len(all) == 1 && all[0].Boot == announce.BootUnfenced && all[0].Exposed > 0
	})
}

// A guard that starts later announces the start that another one saw, also when that one has ended, and
// no other start.
func TestAGuardKeepsWhatAnotherSawOfAStart(t *testing.T) {
	for params, boot := range map[string]announce.Boot{"2147483647": announce.BootFenced, "0": announce.BootUnfenced} {
		s := labtest.Servers(t, 1, "--min-replicas-to-write", params, "--min-replicas-max-lag", "10")[0]
		said := func(n int) func([]announce.Guard) bool {
			return func(all []announce.Guard) bool {
				return len(all) == n && !slices.ContainsFunc(all, func(g announce.Guard) bool {
					return g.Boot != boot || (g.Exposed > 0) != (boot == announce.BootUnfenced)
				})
			}
		}
		saw := guard(t, watch.Config{Delay: 300 * time.Millisecond}, s.Node())
		saw.reaches(restartguard.PhaseServing)
		restart(t, s)
		announces(t, s, "the start", said(1))
		saw.reaches(restartguard.PhaseServing)
		dir := t.TempDir()
		m := memoryIn(t, dir)
		later := guard(t, watch.Config{Delay: 300 * time.Millisecond, Memory: m}, s.Node())
		announces(t, s, "the start, by both", said(2))
		saw.stop()
		later.stop()
		_ = m.Close()
		guard(t, watch.Config{Delay: 300 * time.Millisecond, Memory: memoryIn(t, dir)}, s.Node())
		announces(t, s, "the start, by who was told and restarted", said(1))
	}
}

// A guard with an old configuration does not open a node before the one with the
// right one would.
func TestTheGuardWithTheGreatestDelayDecides(t *testing.T) {
	s := labtest.Servers(t, 1)[0]
	const long = 2 * time.Second
	right := guard(t, watch.Config{Delay: long}, s.Node())
	old := guard(t, watch.Config{Delay: 200 * time.Millisecond}, s.Node())
	right.reaches(restartguard.PhaseServing)
	old.reaches(restartguard.PhaseServing)
	old.becomes("that it knows of the other", func(st restartguard.NodeStatus) bool { return st.Delay == long })
	if text := old.tells("delays"); !strings.Contains(text, "2s") || !strings.Contains(text, "200ms") {
		t.Errorf("told: %q", text)
	}
	born := restart(t, s)
	old.reaches(restartguard.PhaseFenced)
	right.stop() // its D counts all the same
	for !writes(t, s) {
		time.Sleep(time.Millisecond)
	}
	notBefore(t, long, born, time.Now())
}

// An absurd D is bounded, and told.
func TestAnAbsurdDelayIsBounded(t *testing.T) {
	s := labtest.Servers(t, 1)[0]
	c := redlock.Connect(s.Node(), 1, time.Second)
	defer c.Close()
	sub := c.Subscribe(t.Context(), "redlockctl:guard:1:id=evil&d=9223372036854775807&host=%1b%5b2J")
	defer sub.Close()
	g := guard(t, watch.Config{}, s.Node())
	g.becomes("bounded", func(st restartguard.NodeStatus) bool { return st.Delay == announce.MostDelay })
	if text := g.tells("delays"); !strings.Contains(text, "no configuration allows") || strings.Contains(text, "\x1b") {
		t.Errorf("told: %q", text)
	}
}

// Without the rights the guard guards by its own D, and says so.
func TestAGuardThatMayNotAnnounceSaysSo(t *testing.T) {
	s := labtest.Servers(t, 1)[0]
	do(t, s, "ACL", "SETUSER", "guard", "on", ">pw", "~*", "+@all", "-@pubsub")
	g := guard(t, watch.Config{}, named(t, redis.Options{Addr: s.Addr(), Username: "guard", Password: "pw"}))
	g.reaches(restartguard.PhaseServing)
	if !wait(func() bool { return strings.Contains(g.told("announce"), "NOPERM") }) {
		t.Fatal("it says nothing")
	}
	born := restart(t, s)
	do(t, s, "ACL", "SETUSER", "guard", "on", ">pw", "~*", "+@all", "-@pubsub")
	g.becomes("closed by its own D", func(st restartguard.NodeStatus) bool { return st.Phase == restartguard.PhaseFenced })
	if !wait(func() bool { return writes(t, s) }) {
		t.Fatal("never opened")
	}
	notBefore(t, delay, born, time.Now())
}

// Whoever publishes on the channel of a guard does not end its announcement.
func TestMessagesDoNotDisturbAnAnnouncement(t *testing.T) {
	s := labtest.Servers(t, 1)[0]
	guard(t, watch.Config{}, s.Node())
	announces(t, s, "a guard", func(all []announce.Guard) bool { return len(all) == 1 })
	channel := guardsOn(t, s)[0].Channel()
	c := redlock.Connect(s.Node(), 1, time.Second)
	defer c.Close()
	changes := 0 // of its announcements: one or two at first
	for range 1000 {
		n, err := c.Publish(t.Context(), channel, strings.Repeat("x", 1000)).Result()
		if n == 0 && err == nil && changes < 3 {
			announces(t, s, "a guard", func(all []announce.Guard) bool { return len(all) == 1 && all[0].Channel() != channel })
			channel = guardsOn(t, s)[0].Channel()
			changes++
		} else if err != nil || n != 1 {
			t.Fatalf("%d listen: %v", n, err)
		}
	}
}

// When clients fill all places, that is what the guard says.
func TestAGuardSaysThatItIsShutOut(t *testing.T) {
	s := labtest.Servers(t, 1, "--maxclients", "2")[0]
	var busy []*redis.Client
	for range 2 {
		c := redlock.Connect(s.Node(), 1, time.Second)
		defer c.Close()
		if err := c.Ping(t.Context()).Err(); err != nil && len(busy) == 0 {
			t.Fatal(err)
		}
		busy = append(busy, c)
	}
	g := guard(t, watch.Config{}, s.Node())
	st := g.reaches(restartguard.PhaseUnreachable)
	t.Logf("%s; %s", st.Reason, st.Err)
	if !wait(func() bool { return strings.Contains(g.told("unreachable"), "shut out") }) {
		t.Fatalf("it says %q", g.told("unreachable"))
	}
}

// More announcements than a guard reads cost a connection, and not the guarding.
func TestAFloodOfAnnouncementsDoesNotBlindAGuard(t *testing.T) {
	s := labtest.Servers(t, 1)[0]
	c := redlock.Connect(s.Node(), 1, 5*time.Second)
	defer c.Close()
	var channels []string
	for range 3000 {
		channels = append(channels, announce.Prefix+strings.Repeat("x", 50)+time.Now().String())
	}
	sub := c.Subscribe(t.Context(), channels...)
	defer sub.Close()
	if _, err := sub.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	g := guard(t, watch.Config{}, s.Node())
	if !wait(func() bool { return strings.Contains(g.told("announce"), "cannot be read") }) {
		t.Fatal("it says nothing")
	}
	g.reaches(restartguard.PhaseServing)
	do(t, s, "FLUSHALL")
	g.reaches(restartguard.PhaseFenced)
	g.reaches(restartguard.PhaseServing)
}

// A node that is the server of another is told, and has no vote of its own.
func TestTheSameServerTwiceIsRefused(t *testing.T) {
	s := labtest.Servers(t, 1)[0]
	proxy := labtest.NewProxy(t, s)
	twice, err := redlock.NewNode("n2", &redis.Options{Addr: proxy.Node().Addr()})
	if err != nil {
		t.Fatal(err)
	}
	g := guard(t, watch.Config{}, s.Node(), twice)
	defer g.stop()
	if !wait(func() bool { return strings.Contains(g.told("same server"), "is the same server as "+s.Node().Name()) }) {
		t.Fatalf("told %q", g.told("same server"))
	}
	st := g.Status()
	if st[0].Same != "" || !st[0].Serves() || st[1].Same != st[0].Node || st[1].Serves() || st[1].Err == "" {
		t.Errorf("%+v", st)
	}
	if o := g.Outlook(); o.Possible() || !strings.Contains(o.Text(), "the server of another node n2") {
		t.Errorf("%+v", o)
	}
}

// A server that answers SUBSCRIBE with what is none ends nobody's guard, and is itself guarded: each node that
// restarts is fenced, and rejoins.
func TestAnInvalidAnswerToAnAnnouncementEndsNoGuard(t *testing.T) {
	for name, answer := range map[string]string{
		"an empty list": "*0\r\n", "no name": "*3\r\n:1\r\n:2\r\n:3\r\n", "lists": "*3\r\n*1\r\n:1\r\n*0\r\n*0\r\n", "one item": "*1\r\n$9\r\nsubscribe\r\n",
		"a push of nothing": ">0\r\n", "null": "_\r\n", "no list": "*-1\r\n", "a map": "%1\r\n+a\r\n+b\r\n", "a number": ":1\r\n", "OK": "+OK\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := labtest.Servers(t, 3, lab.BootFence...)
			nodes := labtest.Nodes(servers)
			nodes[2] = labtest.Misbehaving(t, nodes[2].Name(), servers[2].Addr(), labtest.Mischief{To: "subscribe", Answer: answer})
			for _, s := range servers {
				do(t, s, "CONFIG", "SET", "min-replicas-to-write", "0")
			}
			g := guard(t, watch.Config{}, nodes...)
			serving := func(st restartguard.NodeStatus) bool { return st.Phase == restartguard.PhaseServing }
			for i, s := range servers {
				if !wait(func() bool { return serving(g.Status()[i]) }) {
					t.Fatalf("%+v", g.Status()[i])
				}
				born := restart(t, s)
				notBefore(t, delay, born, firstWrite(t, s))
				if !wait(func() bool { return serving(g.Status()[i]) && g.Status()[i].Verified }) {
					t.Fatalf("%+v", g.Status()[i])
				}
			}
			if !wait(func() bool { return g.Status()[2].Invalid != "" }) {
				t.Errorf("nobody is told: %+v", g.Status()[2])
			}
			if text := g.tells("announce"); !strings.Contains(text, "SUBSCRIBE: "+resp.ErrBad.Error()) {
				t.Errorf("told: %q", text)
			}
			for i, s := range servers[:2] {
				announces(t, s, "the guard", func(all []announce.Guard) bool { return len(all) == 1 && all[0].ID == g.ID() })
				if st := g.Status()[i]; st.Invalid != "" || st.Err != "" {
					t.Errorf("%+v", st)
				}
			}
		})
	}
}
