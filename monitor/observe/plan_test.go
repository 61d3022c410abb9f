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
	plan.failed(errAllMute, now.Add(time.Second))
	if plan.why.Text != "" {
		t.Errorf("cut off: %+v", plan.why)
	}
	plan.failed(errMute, now.Add(time.Second))
	if got := plan.why; got != (monitor.Limit{Text: errMute.Error(), Do: adviceSilence}) {
		t.Errorf("silent: %+v", got)
	}
	plan.failed(wire.ErrFlood, now)
	if got := plan.why; got != (monitor.Limit{Text: wire.ErrFlood.Error(), Do: adviceFlood}) {
		t.Errorf("flooded: %+v", got)
	}
}

// A node whose answer to a probe is lost, and which is heard on another connection, is not
// silent; one that hangs is, and so is one that new connections do not reach.
func TestAnAnswerThatIsLostIsNoSilence(t *testing.T) {
	asked, within := time.Now(), 2*time.Second
	for name, c := range map[string]struct {
		heard time.Time // on the feed
		want  time.Duration
	}{
		"there is no feed":    {time.Time{}, within},
		"not since":           {asked.Add(-time.Millisecond), within},
		"once, then it hangs": {asked.Add(50 * time.Millisecond), within + 50*time.Millisecond},
		"all the time":        {asked.Add(within - 1), 2*within - 1},
		"much later":          {asked.Add(time.Hour), 2 * within},
	} {
		if got := silentFrom(asked, c.heard, within).Sub(asked); got != c.want {
			t.Errorf("%s: silent after %s, not %s", name, got, c.want)
		}
	}
}
