package finding

import (
	"strings"
	"testing"
	"time"

	"redlockctl/monitor"
)

// The remedy for what cannot be seen lists the advice for each part once.
func TestRemedyOfLimitedSight(t *testing.T) {
	for name, c := range map[string]struct {
		limits []monitor.Limit
		want   string
	}{
		"a right is missing":      {[]monitor.Limit{{Text: "TIME denied", Do: monitor.AdviceRights}, {Text: "INFO denied", Do: monitor.AdviceRights}}, monitor.AdviceRights},
		"changes went silent":     {[]monitor.Limit{{Text: "no sign of life", Do: "Find what holds it up."}}, "Find what holds it up."},
		"a right, and long names": {[]monitor.Limit{{Text: "TIME denied", Do: monitor.AdviceRights}, {Text: "1 key", Do: "Find who writes it."}}, monitor.AdviceRights + " Find who writes it."},
	} {
		_, got := film(t, goodScene(), 5*time.Second, func(s *scene, _ time.Duration) { s.Nodes[0].Limits = c.limits })
		if len(got) != 1 || got[0].Remedy != c.want || !strings.HasPrefix(got[0].Evidence.Raw(), c.limits[0].Text) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
