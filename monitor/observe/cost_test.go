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
	if strings.Contains(got, monitor.NoLoss) || !strings.HasPrefix(got, "2 copies expired while it did not answer, the last by ") || !strings.HasSuffix(got, ", and may have been lost before that") {
		t.Error(got)
	}
	if got := costText(monitor.RestartCost{Lost: 1, Expired: 1, ExpiredAt: now}, now); !strings.HasPrefix(got, "1 lock lost a copy; 1 copy expired while") {
		t.Error(got)
	}
	if got := costText(monitor.RestartCost{}, now); got != monitor.NoLoss {
		t.Error(got)
	}
}
