package observe

import (
	"strings"
	"testing"
	"time"

	"redlockctl/monitor"
)

// Of copies that expired while their node was down, its restart does not say that none was lost.
func TestTheCostOfACrashThatOutlastsItsLocks(t *testing.T) {
	now := time.Now()
	got := costText(monitor.RestartCost{Expired: 2, ExpiredAt: now.Add(-time.Second)}, now)
	if strings.Contains(got, "no lock lost a copy") || !strings.Contains(got, "the TTL of 2 copies ran out, at ") {
		t.Error(got)
	}
	if got := costText(monitor.RestartCost{}, now); got != "no lock lost a copy" {
		t.Error(got)
	}
}
