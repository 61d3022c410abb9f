package redlock

import (
	"testing"
	"time"
)

// A copy that goes while an extension is under way is looked after by another one: the
// first may have been sent before.
func TestALossMeanwhileIsNotForgotten(t *testing.T) {
	now := time.Now()
	k := keepPlan{ttl: time.Minute, every: 20 * time.Second, until: now.Add(time.Minute)}
	k.plan(0)
	if act, _ := k.next(now); act != keepWait {
		t.Fatalf("%d before there is a reason", act)
	}
	k.missed(now)
	for range 2 {
		if act, _ := k.next(now); act != keepExtend {
			t.Fatalf("%d when a copy has gone", act)
		}
		k.missed(now)
		k.extended(now, now.Add(time.Minute), 0)
	}
	limited := keepPlan{ttl: time.Minute, every: 20 * time.Second, until: now.Add(time.Minute), extensions: 3}
	limited.plan(0)
	limited.missed(now)
	if act, _ := limited.next(now); act != keepWait {
		t.Errorf("%d with a limit of extensions", act)
	}
}
