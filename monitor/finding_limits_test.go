package monitor

import (
	"strings"
	"testing"
	"time"
)

// What to do about what is not seen follows from its cause: no right helps where the
// connection that tells of changes went silent.
func TestAdviceFollowsTheCause(t *testing.T) {
	now := time.Now()
	var plan feedPlan
	plan.failed(errMute, now)
	plan.failed(errMute, now.Add(time.Second))
	silent := plan.why
	plan.failed(errFlood, now)
	flooded := plan.why
	for name, c := range map[string]struct {
		limits []limit
		want   string
	}{
		"a right is missing":      {[]limit{{"TIME denied", adviceRights}, {"INFO denied", adviceRights}}, adviceRights},
		"changes went silent":     {[]limit{silent}, adviceSilence},
		"too many changes":        {[]limit{flooded}, adviceFlood},
		"a right, and long names": {[]limit{{"TIME denied", adviceRights}, {"1 key", adviceNames}}, adviceRights + " " + adviceNames},
	} {
		_, got := film(t, goodScene(), 5*time.Second, func(s *scene, _ time.Duration) { s.Nodes[0].limits = c.limits })
		if len(got) != 1 || got[0].Remedy != c.want || !strings.HasPrefix(got[0].Evidence.Raw(), c.limits[0].text) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
