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
		copies  []redlock.NodeResult
		expired bool
		want    string
	}{
		"its own copies":           {[]redlock.NodeResult{held("own"), held("own"), held("own")}, false, ""},
		"another client":           {[]redlock.NodeResult{held("b"), held("b"), held("own")}, false, "another client holds it"},
		"two others":               {[]redlock.NodeResult{held("b"), held("c"), gone}, false, ""},
		"revoked":                  {[]redlock.NodeResult{grave, grave, down}, false, "an operator revoked it: others wait until its TTL expires (redlockctl audit show, history)"},
		"revoked on too few":       {[]redlock.NodeResult{grave, held("own"), down}, false, ""},
		"removed":                  {[]redlock.NodeResult{gone, gone, down}, false, "2 of 3 nodes have no copy: it was removed, or lost there"},
		"expired":                  {[]redlock.NodeResult{gone, gone, down}, true, "it expired"},
		"expired, then another":    {[]redlock.NodeResult{held("b"), held("b"), gone}, true, "another client holds it"},
		"too few nodes to tell it": {[]redlock.NodeResult{gone, down, down}, false, ""},
	} {
		if got := instead(c.copies, "own", c.expired); got != c.want {
			t.Errorf("%s: %q, and not %q", name, got, c.want)
		}
	}
}
