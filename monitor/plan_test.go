package monitor

import (
	"testing"
	"time"
)

// What to do about a node that does not tell of its changes follows from the cause: no
// right helps where the connection went silent.
func TestAdviceFollowsTheCause(t *testing.T) {
	now := time.Now()
	var plan feedPlan
	plan.failed(errMute, now)
	plan.failed(errMute, now.Add(time.Second))
	if got := plan.why; got != (limit{errMute.Error(), adviceSilence}) {
		t.Errorf("silent: %+v", got)
	}
	plan.failed(errFlood, now)
	if got := plan.why; got != (limit{errFlood.Error(), adviceFlood}) {
		t.Errorf("flooded: %+v", got)
	}
}
