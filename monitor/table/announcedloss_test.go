package table

import (
	"testing"
	"time"

	"redlockctl/monitor"
	"redlockctl/server/announce"
)

// announced makes a view that has just lost sight of some nodes, of which guards announce that
// they have lost their votes of k; they restarted before the lock began.
func announced(silent ...int) (r *rig, tell func()) {
	r = oldRig()
	for _, i := range silent {
		r.restart(i, false, false)
	}
	r.scanAll()
	r.pass(5 * time.Minute)
	r.set("k", "token-a", viewTTL, 0, 1, 2)
	r.scanAll()
	r.scanAll()
	end := r.lock("k").MajorityEnd()
	v := announce.Lock{Key: r.lock("k").Key, Token: announce.TokenSum("token-a"), Short: announce.ShortToken("token-a"), Until: end}
	for _, i := range silent {
		v.Lost = append(v.Lost, r.names[i])
		r.pass(time.Second)
		r.Unreachable(i, r.now)
	}
	return r, func() {
		r.Heard([]announce.Lock{v}, r.now)
		r.pass(0)
	}
}

// A vote that is announced as lost before its loss is seen is part of the cost of that loss, once.
func TestAnAnnouncedLossIsPartOfTheCostOfItsRestart(t *testing.T) {
	for name, told := range map[string]bool{"announced": true, "not announced": false} {
		t.Run(name, func(t *testing.T) {
			r, tell := announced(1, 2)
			if told {
				tell()
				tell()
			}
			var sum monitor.RestartCost
			r.OnRestart = func(_ int, c monitor.RestartCost, _ time.Time) {
				sum.Lost += c.Lost
				sum.LostMajority += c.LostMajority
				if c.HeldUntil.After(sum.HeldUntil) {
					sum.HeldUntil = c.HeldUntil
				}
			}
			for _, i := range []int{1, 2} {
				r.restart(i, true, false)
				r.scan(i)
				if c := r.lock("k").Copies.At(i); c.State != monitor.CopyLost || c.Cause != monitor.LostByRestart || !c.LostAt.Equal(r.Time(r.nodes[i].restarted)) {
					t.Errorf("%+v", c)
				}
				if sum.Lost != i || sum.LostMajority != 1 && told || sum.HeldUntil.IsZero() && told {
					t.Errorf("after %d: %+v", i, sum)
				}
			}
			r.scanAll()
			tell()
			r.restart(1, true, false) // it has nothing to lose now
			r.scanAll()
			r.scanAll()
			if sum.Lost != 2 || sum.LostMajority != 1 {
				t.Errorf("%+v", sum)
			}
		})
	}
}

// The last start of a node before the lock began is not when the lock lost its copy there.
func TestAnAnnouncedLossIsNotBeforeTheLock(t *testing.T) {
	r, tell := announced(2)
	tell()
	if c := r.lock("k").Copies.At(2); c.State != monitor.CopyLost || !c.LostAt.IsZero() || c.Cause != monitor.LostUnseen {
		t.Errorf("%+v", c)
	}
	r.Reachable(2, false) // the same server, without the copy: a later restart has not taken it
	clear(r.servers[2])
	r.scanAll()
	lost := 0
	r.OnRestart = func(_ int, c monitor.RestartCost, _ time.Time) { lost += c.Lost }
	r.restart(2, true, false)
	r.scanAll()
	if c := r.lock("k").Copies.At(2); lost != 0 || c.State != monitor.CopyLost || !c.LostAt.IsZero() || c.Cause != monitor.LostUnseen {
		t.Errorf("%d, %+v", lost, c)
	}
}

// The cause of an announced loss is what was seen of the node.
func TestTheCauseOfAnAnnouncedLoss(t *testing.T) {
	for name, c := range map[string]struct {
		wipe func(r *rig, tell func())
		want monitor.LossCause
	}{
		"wiped, then announced": {func(r *rig, tell func()) {
			r.Reachable(2, false)
			r.Wiped(2, r.now)
			r.Unreachable(2, r.now)
			tell()
		}, monitor.LostByWipe},
		"announced, then wiped": {func(r *rig, tell func()) {
			tell()
			r.pass(time.Second)
			r.Reachable(2, false)
			r.Wiped(2, r.now)
			r.scanAll()
		}, monitor.LostByWipe},
		"only announced": {func(_ *rig, tell func()) { tell() }, monitor.LostUnseen},
	} {
		t.Run(name, func(t *testing.T) {
			r, tell := announced(2)
			lost := 0
			r.OnRestart = func(_ int, c monitor.RestartCost, _ time.Time) { lost += c.Lost }
			clear(r.servers[2])
			c.wipe(r, tell)
			r.pass(costPatience + time.Second)
			got := r.lock("k").Copies.At(2)
			if got.State != monitor.CopyLost || got.Cause != c.want || got.LostAt.IsZero() != (c.want == monitor.LostUnseen) {
				t.Errorf("%+v", got)
			}
			if (lost == 1) != (c.want == monitor.LostByWipe) || lost > 1 {
				t.Error(lost)
			}
		})
	}
}

// A revoked lock has no majority to lose, and the cost of a loss says nothing of it.
func TestARevokedLockHasNoBareMajority(t *testing.T) {
	r := oldRig()
	r.set("k", "redlockctl:revoked:xyz", viewTTL, 0, 1, 2, 3)
	r.scanAll()
	r.scanAll()
	var cost *monitor.RestartCost
	r.OnRestart = func(_ int, c monitor.RestartCost, _ time.Time) { cost = &c }
	clear(r.servers[3])
	r.Wiped(3, r.now)
	r.scanAll()
	r.scanAll()
	if s, held, _ := r.states("k"); s != monitor.LockRevoked || held != 3 {
		t.Fatal(s, held)
	}
	if cost == nil || cost.Lost != 1 || cost.Bare != 0 || cost.LostMajority != 0 {
		t.Errorf("%+v", cost)
	}
}
