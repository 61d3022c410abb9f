package tui

import (
	"testing"

	"redlockctl/monitor/monitortest"
)

// CommandNames returns all commands, including those that only some screens have.
func CommandNames(t *testing.T) (names []string) {
	r := newRig(t, monitortest.Safe(monitortest.Epoch), 80, 24, severalClusters)
	for _, c := range r.m.commands() {
		names = append(names, c.Name)
	}
	return names
}
