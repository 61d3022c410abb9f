package tui

import (
	"os"
	"strings"
	"testing"

	"redlockctl/monitor/monitortest"
)

// testdata/commands.txt has all commands, including those that only some screens have. A
// test of cli, which this package does not import, compares them with the CLI's.
func TestCommandsAreListed(t *testing.T) {
	const path = "testdata/commands.txt"
	r := newRig(t, monitortest.Safe(monitortest.Epoch), 80, 24, severalClusters)
	var names strings.Builder
	for _, c := range r.m.commands() {
		names.WriteString(c.Name + "\n")
	}
	if *updateScreens {
		if err := os.WriteFile(path, []byte(names.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(path); err != nil || names.String() != string(want) {
		t.Errorf("the commands are not those of %s (go test ./tui -run TestCommandsAreListed -update): %v\n%s", path, err, names.String())
	}
}
