package view

import (
	"testing"

	"redlockctl/monitor"
	"redlockctl/server/announce"
)

func TestLeftToDo(t *testing.T) {
	const end = `. The run book of "redlockctl init" has the commands`
	guarded := []announce.Guard{{ID: "g"}}
	for name, c := range map[string]struct {
		nodes []monitor.Node
		want  string
	}{
		"nothing was done": {[]monitor.Node{
			{Name: "n1", State: monitor.NodeServing, GuardsKnown: true}, {Name: "n2", State: monitor.NodeServing, GuardsKnown: true},
		}, "left to do: run a guard for all masters; make all masters start fenced" + end},
		"one was left out": {[]monitor.Node{
			{Name: "n1", State: monitor.NodeServing, Guards: guarded, StartsFenced: true}, {Name: "n2", State: monitor.NodeServing, GuardsKnown: true, StartsFenced: true},
		}, "left to do: run a guard for n2" + end},
		"no start was seen": {[]monitor.Node{
			{Name: "n1", State: monitor.NodeServing, Guards: guarded}, {Name: "n2", State: monitor.NodeServing},
		}, "left to do: allow this user to see guards on n2; see n1 start fenced, in a restart or by init --check" + end},
		"all is done": {[]monitor.Node{
			{Name: "n1", State: monitor.NodeServing, Guards: guarded, StartsFenced: true}, {Name: "n2", State: monitor.NodeServing, Persistent: true}, {Name: "n3", State: monitor.NodeDown},
		}, ""},
	} {
		if got := LeftToDoOf(&monitor.Snapshot{Nodes: c.nodes}).Text(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
