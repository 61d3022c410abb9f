package watch_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/internal/lab/labtest"
	"redlockctl/redlock"
	"redlockctl/restartguard"
	"redlockctl/restartguard/watch"
)

// The password of the guard's user is changed on all servers while clients go on
// locking: the guard says that it is blind, and not that nothing can be locked.
func TestDeniedIsNotDown(t *testing.T) {
	ss := labtest.Servers(t, 3, aclUser()...)
	nodes := make([]*redlock.Node, len(ss))
	for i, s := range ss {
		n, err := redlock.NewNode([]string{"n1", "n2", "n3"}[i], &redis.Options{Addr: s.Addr(), Username: "guard", Password: "secret"})
		if err != nil {
			t.Fatal(err)
		}
		nodes[i] = n
	}
	g := guard(t, watch.Config{Delay: time.Second}, nodes...)
	if !wait(func() bool { return g.Met() && g.Outlook().Possible() }) {
		t.Fatal("not all nodes were met")
	}
	if err := g.Sees(); err != nil {
		t.Fatal(err)
	}
	for _, s := range ss {
		do(t, s, "ACL", "SETUSER", "guard", "resetpass", ">another")
		do(t, s, "CLIENT", "KILL", "USER", "guard")
	}
	if !wait(func() bool { return len(g.Outlook().Denied) == 3 }) {
		t.Fatalf("%+v", g.Status())
	}
	o := g.Outlook()
	if !o.Unknown() || strings.Contains(o.Text(), "NOTHING") {
		t.Errorf("outlook: %s", o.Text())
	}
	err := g.Sees()
	if !errors.Is(err, watch.ErrBlind) || !strings.Contains(err.Error(), "n1, n2, n3") || !strings.Contains(err.Error(), "WRONGPASS") {
		t.Errorf("sees: %v", err)
	}
	if err := g.Healthy(); err != nil {
		t.Errorf("to start it again would not help: %v", err)
	}
	for _, s := range ss {
		do(t, s, "SET", "job:1", "x", "PX", "20000") // locks are taken all the while
		do(t, s, "ACL", "SETUSER", "guard", ">secret")
	}
	if !wait(func() bool { return g.Outlook().Possible() && g.Sees() == nil }) {
		t.Errorf("it does not see again: %v", g.Sees())
	}
	if g.told("no quorum") != "" {
		t.Errorf("told: %s", g.told("no quorum"))
	}
	if text := g.tells("denied"); !strings.Contains(text, "cannot protect") {
		t.Errorf("told: %q", text)
	}
}

// A guard that may not read the clocks says what it misses.
func TestWithoutTimeAClockStepIsMissedAloud(t *testing.T) {
	s := labtest.Servers(t, 1, aclUser("-time")...)[0]
	g := guard(t, watch.Config{}, named(t, redis.Options{Addr: s.Addr(), Username: "guard", Password: "secret"}))
	st := g.reaches(restartguard.PhaseServing)
	g.tells("clock unseen")
	if !strings.Contains(st.Err, "TIME is denied") {
		t.Errorf("status: %q", st.Err)
	}
}
