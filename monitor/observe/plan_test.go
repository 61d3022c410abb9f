package observe

import (
	"testing"
	"time"

	"redlockctl/monitor"

	"redlockctl/monitor/wire"
)

// The advice for a node that does not report its changes depends on the cause: no right
// helps if the connection went silent.
func TestAdviceFollowsTheCause(t *testing.T) {
	now := time.Now()
	var plan feedPlan
	plan.failed(errMute, now)
	plan.failed(errMute, now.Add(time.Second))
	if got := plan.why; got != (monitor.Limit{Text: errMute.Error(), Do: adviceSilence}) {
		t.Errorf("silent: %+v", got)
	}
	plan.failed(wire.ErrFlood, now)
	if got := plan.why; got != (monitor.Limit{Text: wire.ErrFlood.Error(), Do: adviceFlood}) {
		t.Errorf("flooded: %+v", got)
	}
}
