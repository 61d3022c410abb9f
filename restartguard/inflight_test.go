package restartguard

import (
	"errors"
	"net"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/redlock"
)

// redials lets the connection be given up and another one be made.
func (s *script) redials() *script { s.conn++; return s }

func (s *script) killed(o Observation, p Params) *script {
	s.t.Helper()
	o.About, o.RunID, o.Params = Killing, s.state.RunID, p
	return s.step(o)
}

func killIt(run string, conn int64) Action { return Action{Kind: Kill, RunID: run, Conn: conn} }

var (
	gone   = Observation{Gone: true}
	denied = Observation{Err: "NOPERM"}
)

// lifting is a node that is due, with a lift that was sent and has no answer.
func lifting(t *testing.T) *script {
	return newScript(t).sees("a", shut).canary(CanaryFenced, shut).after(testDelay).sees("a", shut).does(liftIt("a"))
}

func TestStray(t *testing.T) {
	t.Run("after a lift without answer its connection is ended before anything else", func(t *testing.T) {
		s := lifting(t).redials().sees("a", shut).does(killIt("a", 1))
		s.killed(gone, shut).does(liftIt("a")).lifted(shut, openParams).phase(PhaseActive)
		s.redials().sees("a", openParams).does()
	})
	t.Run("a loss is noticed, and D counts, before the connection is ended", func(t *testing.T) {
		s := lifting(t).redials().step(Observation{About: Seen, RunID: "a", Role: "master", Wipes: 1, Params: openParams}).
			does(killIt("a", 1)).told("wiped", "").until(2 * testDelay)
		s.killed(gone, openParams).phase(PhaseExposed).does(closeIt("a"))
	})
	t.Run("one that is lost on its way is sent again, for the same connection", func(t *testing.T) {
		lifting(t).redials().sees("a", shut).does(killIt("a", 1)).lost("timeout").redials().sees("a", shut).does(killIt("a", 1)).
			killed(gone, shut).does(liftIt("a"))
	})
	t.Run("a closing without answer is ended, too", func(t *testing.T) {
		newScript(t).sees("a", openParams).sees("b", openParams).does(closeIt("b")).redials().sees("b", openParams).does(killIt("b", 1)).
			killed(denied, openParams).does(closeIt("b"))
	})
	t.Run("an order that was answered is not astray", func(t *testing.T) {
		lifting(t).lifted(shut, openParams).redials().sees("a", openParams).does()
	})
	t.Run("an order to another life is not astray", func(t *testing.T) {
		lifting(t).redials().sees("b", shut).does(proveIt("b"))
	})
	t.Run("where the server does not let us, no other lift is sent for D", func(t *testing.T) {
		s := lifting(t).redials().sees("a", shut).killed(denied, shut).told("stray", "cannot be ruled out: ").phase(PhaseClosed).until(2 * testDelay)
		s.after(testDelay-1).sees("a", shut).does(killIt("a", 1)).killed(denied, shut).does()
		if s.count("stray") != 1 {
			t.Fatalf("%+v", s.events)
		}
		s.after(1).sees("a", shut).does(liftIt("a")).lifted(shut, openParams).phase(PhaseActive)
	})
	t.Run("and what it opens after a loss is closed again", func(t *testing.T) {
		s := lifting(t).redials().sees("a", openParams).killed(denied, openParams).phase(PhaseActive)
		s.after(tick).step(Observation{About: Seen, RunID: "a", Role: "master", Wipes: 1, Params: openParams}).killed(denied, openParams).does(closeIt("a")).
			closed(openParams, shut).canary(CanaryFenced, shut).until(2*testDelay + tick)
		s.after(tick).step(Observation{About: Seen, RunID: "a", Role: "master", Wipes: 1, Params: openParams}).killed(denied, openParams).
			phase(PhaseExposed).does(closeIt("a")).told("stray", "opened before its time").until(2*testDelay + tick)
	})
	t.Run("rights that come later are made use of", func(t *testing.T) {
		s := lifting(t).redials().sees("a", shut).killed(denied, shut).sees("a", shut).does(killIt("a", 1)).killed(gone, shut)
		if s.state.Astray != (Stray{}) {
			t.Fatalf("%+v", s.state.Astray)
		}
	})
	t.Run("it survives the guard", func(t *testing.T) {
		old := lifting(t)
		s := &script{t: t, policy: Policy{Delay: testDelay}, now: old.now, conn: 8, state: old.state.Remembered(old.now, bootNow, testDelay)}
		s.sees("a", shut).does(killIt("a", 1)).killed(denied, shut).does(proveIt("a")).until(2*testDelay).told("stray", "cannot be ruled out")
		for _, until := range []time.Duration{0, testDelay} {
			if old.state.Astray.Until = (time.Time{}); until != 0 {
				old.state.Astray.Until = old.now.Add(until)
			}
			s := &script{t: t, policy: Policy{Delay: testDelay, Sweep: true}, now: old.now, conn: 8,
				state: old.state.Remembered(old.now, bootNow, testDelay)}
			s.sees("a", shut).does(Action{Kind: Kill, RunID: "a", Conn: 1, All: true}).killed(Observation{Gone: true, Swept: true}, shut).does(liftIt("a"))
		}
	})
	t.Run("a guard with a state directory ends what it has left before, once", func(t *testing.T) {
		sweep := Action{Kind: Kill, RunID: "a", All: true}
		s := newScript(t)
		s.policy.Sweep = true
		s.sees("a", shut).does(sweep).lost("timeout").redials().sees("a", shut).does(sweep).killed(Observation{Swept: true}, shut).does(proveIt("a")).
			until(testDelay)
		s.redials().sees("a", shut).does(proveIt("a")).sees("b", shut).does(proveIt("b"))
		if s.has("stray", "") {
			t.Fatalf("%+v", s.events)
		}
	})
	t.Run("one that only advises ends nothing", func(t *testing.T) {
		s := newScript(t)
		s.policy.Sweep, s.policy.Advice = true, true
		s.sees("a", openParams).does().sees("b", openParams).does().redials().sees("b", openParams).does()
	})
}

// TestRivals: a loss without a restart ends the connections of all other guards behind the
// closing, and what one of them has opened in between is closed again.
func TestRivals(t *testing.T) {
	endAll := Action{Kind: Kill, RunID: "a", Others: true}
	ended := Observation{Others: true, Swept: true}
	wiped := func(p Params) Observation {
		return Observation{About: Seen, RunID: "a", Role: "master", Wipes: 1, Params: p}
	}
	t.Run("behind the closing", func(t *testing.T) {
		newScript(t).sees("a", openParams).step(wiped(openParams)).does(closeIt("a")).closed(openParams, shut).does(endAll).
			killed(ended, shut).does(proveIt("a")).canary(CanaryFenced, shut).phase(PhaseClosed).step(wiped(shut)).does()
	})
	t.Run("what was opened meanwhile is closed again", func(t *testing.T) {
		s := newScript(t).sees("a", openParams).step(wiped(openParams)).closed(openParams, shut)
		s.killed(ended, openParams).does(closeIt("a")).closed(openParams, shut).does(proveIt("a")).phase(PhaseExposed)
	})
	t.Run("also where another has closed it first", func(t *testing.T) {
		newScript(t).sees("a", openParams).step(wiped(shut)).does(endAll).killed(ended, openParams).does(closeIt("a"))
	})
	t.Run("again where the answer is lost", func(t *testing.T) {
		newScript(t).sees("a", openParams).step(wiped(openParams)).closed(openParams, shut).does(endAll).redials().step(wiped(shut)).does(endAll).
			killed(ended, shut).does(proveIt("a"))
	})
	t.Run("not after a restart: its connections have ended", func(t *testing.T) {
		newScript(t).sees("a", openParams).sees("b", openParams).does(closeIt("b")).closed(openParams, shut).does(proveIt("b"))
	})
	t.Run("where that is denied and another guard is known, it is told", func(t *testing.T) {
		s := newScript(t).sees("a", openParams).step(wiped(openParams)).closed(openParams, shut)
		if s.killed(Observation{Others: true, Err: "NOPERM"}, shut).does(proveIt("a")).has("stray", "") {
			t.Fatalf("%+v", s.events)
		}
		o := wiped(openParams)
		o.Heard = testDelay
		newScript(t).sees("a", openParams).step(o).closed(openParams, shut).
			killed(Observation{Others: true, Err: "NOPERM"}, shut).told("stray", "another guard is about to open it").does(proveIt("a"))
	})
	t.Run("it survives the guard", func(t *testing.T) {
		old := newScript(t).sees("a", openParams).step(wiped(openParams)).closed(openParams, shut)
		s := &script{t: t, policy: old.policy, now: old.now, conn: 8, state: old.state.Remembered(old.now, bootNow, testDelay)}
		s.step(wiped(shut)).does(endAll)
	})
}

func TestConnsNamed(t *testing.T) {
	list := "id=3 addr=127.0.0.1:1 name=redlockctl:guard:A age=1 user=name=redlockctl:guard:A\n" +
		"id=4 addr=127.0.0.1:2 name=redlockctl:guard:AB age=1\nid=5 addr=127.0.0.1:3 name=redlockctl:guard:A\n" +
		"id=6 addr=127.0.0.1:4 name=redlockctl:guard age=1\nid=7 addr=127.0.0.1:5 name= age=1\n\nid=x name=redlockctl:guard:A\n"
	own := func(name string) bool { return name == "redlockctl:guard:A" }
	if got := connsNamed(list, own, 5); !slices.Equal(got, []int64{3}) {
		t.Fatal(got)
	}
	if got := connsNamed(list, isGuardName, 5); !slices.Equal(got, []int64{3, 4, 6}) {
		t.Fatal(got)
	}
}

// TestGuardConnectionsEndByReset: what is not delivered yet is dropped, not sent
// for minutes after its sender has gone.
func TestGuardConnectionsEndByReset(t *testing.T) {
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listen.Close()
	ended := make(chan error, 1)
	go func() {
		c, err := listen.Accept()
		if err != nil {
			ended <- err
			return
		}
		defer c.Close()
		for buf := make([]byte, 1<<10); err == nil; {
			_, err = c.Read(buf)
		}
		ended <- err
	}()
	node, err := redlock.NewNode("n", &redis.Options{Addr: listen.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	l := dial(node, Method{}, 50*time.Millisecond)
	_, _ = l.look(t.Context())
	l.close()
	if err := <-ended; !isReset(err) {
		t.Fatal(err)
	}
}

func isReset(err error) bool { return errors.Is(err, syscall.ECONNRESET) }
