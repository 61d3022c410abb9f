package restartguard

import (
	"fmt"
)

// mustWait returns why a serving node that is seen for the first time waits for D; "": it may go on
// serving.
func (m *machine) mustWait(o *Observation) string {
	switch {
	case m.FirstContact == Fence:
		return "to be fenced"
	case m.Joins:
		return "the cluster was in use before this node came to it, and the votes of the node whose place it takes are not known here"
	case m.FirstContact == AdoptYoung:
		return ""
	case MayVoteFrom(Loss{Seen: m.now.Add(-o.Up)}, m.countingDelay(m.Policy.Delay)).After(m.now):
		return fmt.Sprintf("up for less than D, %s, so that it may have lost votes with its start", m.countingDelay(m.Policy.Delay))
	}
	return ""
}
