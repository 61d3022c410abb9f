package cli

import (
	"strings"
	"testing"
	"time"

	"redlockctl/redlock"
)

// A node that was only not waited for is not reported like one that failed.
func TestAnUnansweredReleaseWasSent(t *testing.T) {
	now := time.Now()
	var out strings.Builder
	printGone(&out, "job", "released", []redlock.NodeResult{
		{Node: "n1", Status: redlock.StatusOK}, {Node: "n2", Status: redlock.StatusAbsent},
		{Node: "n3", Status: redlock.StatusUnanswered, MayLiveUntil: now.Add(9 * time.Second)},
		{Node: "n4", Status: redlock.StatusUnanswered}, {Node: "n5", Status: redlock.StatusDown, MayLiveUntil: now.Add(8 * time.Second)},
	}, nil, now)
	for _, want := range []string{
		"job: gone on n1 n2\n", "  n3 was sent the command, and had not answered yet: a copy may remain there for 9.0s",
		"  n4 was sent the command, and had not answered yet: a copy may remain there until its TTL expires", "  n5 is down: a copy may remain there for 8.0s",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
