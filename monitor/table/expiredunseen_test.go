package table

import (
	"slices"
	"testing"
	"time"

	"redlockctl/monitor"
)

// A lock expires by the majority that is seen, a moment before its copies on nodes that crashed: those count as well.
func TestACopyOfALockThatExpiredAMomentBefore(t *testing.T) {
	r := newRig(5, 30*time.Second).first()
	r.pass(time.Hour)
	for i := range 5 {
		r.set("k", "a", 10*time.Second-time.Duration(i)*20*time.Millisecond, i)
	}
	r.scanAll()
	r.scanAll()
	r.Unreachable(0, r.now)
	r.pass(9800 * time.Millisecond)
	for range 400 {
		r.scanAll()
		r.pass(time.Millisecond)
	}
	k := r.kinds()
	if k[len(k)-1] != "expired" {
		t.Fatal(k)
	}
	told := 0
	r.OnRestart = func(_ int, cost monitor.RestartCost, _ time.Time) {
		if told++; cost.Expired != 1 {
			t.Errorf("%+v", cost)
		}
	}
	r.restart(0, false, false)
	if r.rounds(); told != 1 {
		t.Error(told)
	}
}

// A lock of a bare majority that nobody extends has expired, though its copies end a moment after each other and
// a node is silent: an extension that this node received reached another one too, and would be seen there.
func TestABareMajorityExpiresBesideASilentNode(t *testing.T) {
	for _, step := range []time.Duration{0, time.Millisecond, 20 * time.Millisecond} {
		r := newRig(5, 30*time.Second).first()
		r.pass(time.Hour)
		r.Unreachable(2, r.now)
		for k, i := range []int{1, 3, 4} {
			r.set("k", "a", 4*time.Second+time.Duration(k)*step, i)
		}
		r.scanAll()
		r.scanAll()
		r.pass(3900 * time.Millisecond)
		for range 400 {
			r.scanAll()
			r.pass(time.Millisecond)
		}
		if got := r.kinds(); !slices.Equal(got, []string{"acquired", "expired"}) {
			t.Errorf("%s: %q", step, got)
		}
	}
}
