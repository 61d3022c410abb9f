package monitor

import (
	"strings"
	"testing"
	"time"
)

// What to do about what is not seen is what there is to do about each of it, said once.
func TestRemedyOfLimitedSight(t *testing.T) {
	for name, c := range map[string]struct {
		limits []limit
		want   string
	}{
		"a right is missing":      {[]limit{{"TIME denied", adviceRights}, {"INFO denied", adviceRights}}, adviceRights},
		"changes went silent":     {[]limit{{"no sign of life", "Find what holds it up."}}, "Find what holds it up."},
		"a right, and long names": {[]limit{{"TIME denied", adviceRights}, {"1 key", "Find who writes it."}}, adviceRights + " Find who writes it."},
	} {
		_, got := film(t, goodScene(), 5*time.Second, func(s *scene, _ time.Duration) { s.Nodes[0].limits = c.limits })
		if len(got) != 1 || got[0].Remedy != c.want || !strings.HasPrefix(got[0].Evidence.Raw(), c.limits[0].text) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
