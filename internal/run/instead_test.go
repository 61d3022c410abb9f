package run

import (
	"testing"

	"redlockctl/redlock"
)

func TestWhatIsThereInsteadOfALockThatWasLost(t *testing.T) {
	held := func(token string) redlock.NodeResult {
		return redlock.NodeResult{Status: redlock.StatusHeld, Token: token}
	}
	down, gone, grave := redlock.NodeResult{Status: redlock.StatusDown}, redlock.NodeResult{Status: redlock.StatusAbsent}, held("redlockctl:revoked:x")
	for name, c := range map[string]struct {
		copies []redlock.NodeResult
		want   string
	}{
		"its own copies":           {[]redlock.NodeResult{held("own"), held("own"), held("own")}, ""},
		"another client":           {[]redlock.NodeResult{held("b"), held("b"), held("own")}, "another client holds it"},
		"two others":               {[]redlock.NodeResult{held("b"), held("c"), gone}, ""},
		"revoked":                  {[]redlock.NodeResult{grave, grave, down}, "an operator revoked it: others wait until its TTL expires (redlockctl audit show, history)"},
		"revoked on too few":       {[]redlock.NodeResult{grave, held("own"), down}, ""},
		"removed":                  {[]redlock.NodeResult{gone, gone, down}, "2 of 3 nodes have no copy: it was removed, or lost there"},
		"too few nodes to tell it": {[]redlock.NodeResult{gone, down, down}, ""},
	} {
		if got := instead(c.copies, "own"); got != c.want {
			t.Errorf("%s: %q, and not %q", name, got, c.want)
		}
	}
}
