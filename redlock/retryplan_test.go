package redlock

import (
	"testing"
	"time"
)

// newTestRetryPlan is a retryPlan over n nodes that are up, its first reads
// answered by see.
func newTestRetryPlan(n int, see func(m *retryPlan, node int, now time.Time)) (*retryPlan, time.Time) {
	now := time.Now()
	m := newRetryPlan(n, time.Second, func() float64 { return 0.5 })
	for i := range n {
		m.up(i)
	}
	m.rotation = rotation{known: true}
	m.begin(false, now)
	for _, i := range m.step(slotMin, now).ask {
		see(m, i, now)
	}
	m.step(slotMin, now)
	return m, now
}

func heldBy(token string, ttl time.Duration) func(*retryPlan, int, time.Time) {
	return func(m *retryPlan, node int, now time.Time) { m.read(node, true, true, token, ttl, now) }
}

func TestLookoutWakesWithTheQuorum(t *testing.T) {
	m, now := newTestRetryPlan(5, heldBy("t", time.Hour))
	for i := range 3 {
		if m.step(slotMin, now).attempt {
			t.Fatalf("an attempt with %d free", i)
		}
		m.changed(i)
	}
	if !m.step(slotMin, now).attempt {
		t.Error("no attempt with a quorum free")
	}
}

func TestLookoutKnowsTheMajorityEnd(t *testing.T) {
	m, now := newTestRetryPlan(5, func(m *retryPlan, node int, now time.Time) {
		m.read(node, true, true, "t", time.Duration(node+1)*time.Second-time.Millisecond, now)
	})
	at := m.step(slotMin, now).at
	if want := now.Add(3 * time.Second); !at.Equal(want) {
		t.Errorf("wakes in %s, the third copy ends in %s", at.Sub(now), want.Sub(now))
	}
	if m.step(slotMin, at.Add(-1)).attempt || !m.step(slotMin, at).attempt {
		t.Error("an attempt before the end, or none at it")
	}
	// A copy without a TTL never ends.
	m, now = newTestRetryPlan(5, heldBy("t", -1))
	if do := m.step(slotMin, now); do.attempt || !do.at.IsZero() {
		t.Errorf("%+v", do)
	}
}

// TestLookoutHoldsBack: who has seen fewer changes of hands than the last winner
// waits a slot for each, and finds the lock taken.
func TestLookoutHoldsBack(t *testing.T) {
	m, now := newTestRetryPlan(5, heldBy("t", time.Hour))
	m.rotation.round = 3
	for i := range 5 {
		m.changed(i)
	}
	do := m.step(slotMin, now)
	if do.attempt || do.at.Sub(now) != lookAfter*slotMin {
		t.Fatalf("%+v in %s", do, do.at.Sub(now))
	}
	now = do.at
	do = m.step(slotMin, now)
	if len(do.ask) != 1 {
		t.Fatalf("far from its turn it reads %d nodes", len(do.ask))
	}
	heldBy("u", time.Hour)(m, do.ask[0], now)
	if m.step(slotMin, now).attempt || m.losses != 1 || m.phase != watching {
		t.Errorf("%d losses, phase %d", m.losses, m.phase)
	}
	// Had it been free there, it would have gone on holding back, and looked at all
	// nodes then.
	m.losses = 0
	m.changed(do.ask[0])
	since := now
	now = m.step(slotMin, now).at
	do = m.step(slotMin, now)
	m.read(do.ask[0], false, true, "", 0, now)
	if do = m.step(slotMin, now); do.attempt || do.at.Sub(since) != 3*slotMin {
		t.Fatalf("%+v in %s", do, do.at.Sub(since))
	}
	now = do.at
	if do = m.step(slotMin, now); do.attempt || len(do.ask) != 4 {
		t.Fatalf("%+v", do)
	}
	for _, i := range do.ask {
		m.read(i, false, true, "", 0, now)
	}
	if !m.step(slotMin, now).attempt {
		t.Error("free everywhere, and no attempt")
	}
}

// TestLookoutLearnsFromTheWinner: its token says how long it has waited.
func TestLookoutLearnsFromTheWinner(t *testing.T) {
	m, now := newTestRetryPlan(5, heldBy(newToken(note{waited: 7}), time.Hour))
	if want := (rotation{known: true, round: 7}); m.rotation != want {
		t.Errorf("%+v", m.rotation)
	}
	for _, token := range []string{newToken(note{waited: unwaited}), "a foreign one", ""} {
		for i := range 5 {
			m.changed(i)
			m.read(i, true, true, token, time.Hour, now)
		}
		if m.step(slotMin, now); m.rotation.round != 7 {
			t.Errorf("%q: %+v", token, m.rotation)
		}
	}
	for _, losses := range []int{0, 3, 254, 255, 1000} {
		m.losses, m.holder = losses, "t"
		if got := noteOf(newToken(m.note())); int(got.waited) != min(losses, 254) || got.serial != m.serial+1 {
			t.Errorf("%d are told as %+v", losses, got)
		}
	}
}

// TestLookoutIsNotFooled: where what can be seen looks free for ever and is
// not, attempts become as rare as by the pauses.
func TestLookoutIsNotFooled(t *testing.T) {
	see := func(m *retryPlan, node int, now time.Time) {
		if node < 2 {
			m.read(node, false, true, "", 0, now)
		} else {
			m.down(node)
		}
	}
	m, now := newTestRetryPlan(5, see)
	end, attempts := now.Add(time.Minute), 0
	for now.Before(end) {
		do := m.step(slotMin, now)
		for _, i := range do.ask {
			see(m, i, now)
		}
		if do.attempt {
			attempts++
			m.changed(0)
			m.changed(1)
			m.failed(slotMin, now)
		}
		if now = now.Add(time.Millisecond); do.at.After(now) {
			now = do.at
		}
	}
	if attempts < 10 || attempts > 200 {
		t.Errorf("%d attempts in a minute", attempts)
	}
}

// TestLookoutMakesNoLoop: with nothing to be seen it leaves it to the pauses.
func TestLookoutMakesNoLoop(t *testing.T) {
	m, now := newTestRetryPlan(3, func(m *retryPlan, node int, _ time.Time) { m.down(node) })
	for range 3 {
		if do := m.step(slotMin, now); do.attempt || !do.at.IsZero() || do.ask != nil {
			t.Fatalf("%+v", do)
		}
		m.failed(0, now)
		now = now.Add(time.Second)
	}
}

// TestNoteOfATokenWithOwner: turns are taken whether tokens tell an owner or not.
func TestNoteOfATokenWithOwner(t *testing.T) {
	if got := noteOf(tokenWith("ann@web-7:4711")(note{serial: 9, waited: 7})); got != (note{serial: 9, waited: 7}) {
		t.Errorf("note %+v", got)
	}
}
