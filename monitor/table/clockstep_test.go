package table

import (
	"strings"
	"testing"
	"time"

	"redlockctl/monitor"
)

// A step of a clock ends copies early. That they are gone may be seen before the step is.
func TestAStepIsSeenAfterTheCopiesAreGone(t *testing.T) {
	const ttl = 30 * time.Second
	r := newRig(5, ttl).first()
	r.pass(time.Hour)
	r.set("bare", "a", ttl, 0, 1, 2)
	r.set("spare", "b", ttl, 0, 1, 2, 3)
	r.scanAll()
	end := r.lock("bare").MajorityEnd()
	r.pass(3 * time.Second)
	r.del("bare", 2)
	r.del("spare", 2)
	r.scan(2)
	r.pass(200 * time.Millisecond)
	r.Stepped(2, 50*time.Second, r.now)
	for range 20 {
		r.scanAll()
		r.pass(100 * time.Millisecond)
	}
	l := r.lock("bare")
	if l.State != monitor.LockLostMajority || l.HeldUntil().Sub(end).Abs() > 10*time.Millisecond || monitor.LossCause(r.records["bare"].Copies[2].Type) != monitor.LostByClock {
		t.Errorf("%+v", l)
	}
	if text := r.text("lost majority"); strings.Contains(text, "deleted") {
		t.Error(text)
	}
	if text := r.text("lost copy"); !strings.Contains(text, "its clock was stepped") {
		t.Error(text)
	}
}
