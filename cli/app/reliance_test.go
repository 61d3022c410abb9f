package app

import (
	"testing"
	"time"

	"redlockctl/monitor"
	"redlockctl/server/announce"
)

// A session decides about a guard once the announcements on every node that answers have been
// read, and runs none if guards cannot be seen.
func TestRelianceOnOtherGuards(t *testing.T) {
	guard := announce.Guard{ID: "A", Delay: time.Minute}
	unknown := monitor.Node{State: monitor.NodeUnknown}
	down := monitor.Node{State: monitor.NodeDown}
	unread := monitor.Node{State: monitor.NodeServing}
	none := monitor.Node{State: monitor.NodeServing, GuardsKnown: true}
	denied := monitor.Node{State: monitor.NodeFenced, GuardsDenied: true}
	seen := monitor.Node{State: monitor.NodeFenced, GuardsKnown: true, Guards: []announce.Guard{guard}}
	for name, c := range map[string]struct {
		nodes []monitor.Node
		want  reliance
	}{
		"no look yet":             {[]monitor.Node{none, unknown, none}, undecided},
		"one not asked for it":    {[]monitor.Node{none, unread, none}, undecided},
		"seen, and one not asked": {[]monitor.Node{seen, unread}, undecided},
		"nobody answers":          {[]monitor.Node{down, down}, undecided},
		"nobody watches":          {[]monitor.Node{none, none, down}, runsOwn},
		"one watches":             {[]monitor.Node{seen, seen, seen}, reliesOn},
		"one watches one node":    {[]monitor.Node{none, seen, down}, reliesOn},
		"one is seen, one hidden": {[]monitor.Node{denied, seen}, reliesOn},
		"hidden":                  {[]monitor.Node{denied, denied}, cannotTell},
		"hidden on one":           {[]monitor.Node{none, denied}, cannotTell},
	} {
		if got, _ := relianceOf(&monitor.Snapshot{Nodes: c.nodes}); got != c.want {
			t.Errorf("%s: %d; want %d", name, got, c.want)
		}
	}
}
