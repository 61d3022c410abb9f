package tui

import (
	"testing"

	"redlockctl/monitor/monitortest"
)

// A hundred acquisitions do not wash a restart away.
func TestEventsOfWeightStay(t *testing.T) {
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 60, 15)
	r.sees("n2 started fenced")
	r.seesNot("job:019 acquired")
}
