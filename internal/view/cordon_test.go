package view

import (
	"strings"
	"testing"

	"redlockctl/monitor"
	"redlockctl/monitor/monitortest"
)

// TestACordonNamesTheLocksThatNeedTheNode, and no others; if some locks are not read, it says so.
func TestACordonNamesTheLocksThatNeedTheNode(t *testing.T) {
	lock := func(key, copies string) monitor.Lock {
		return monitortest.LockOf(monitortest.Epoch, key, monitor.LockBareMajority, monitortest.TokenB, copies)
	}
	for name, x := range map[string]struct {
		make func(s *monitor.Snapshot)
		risk string
	}{
		"no lock needs it": {func(s *monitor.Snapshot) {
			monitortest.Put(s, lock("b:1", "- - 900 900 900"), lock("b:2", "900 900 900 900 -"))
		}, ""},
		"one does": {func(s *monitor.Snapshot) { monitortest.Put(s, lock("b:1", "900 900 900 - -")) }, "1 lock needs it: b:1. Once"},
		"many do": {func(s *monitor.Snapshot) {
			monitortest.Put(s, lock("b:1", "900 900 900 - -"), lock("b:2", "900 - 900 - 900"), lock("b:3", "900 - - 900 900"), lock("b:4", "900 - 900 900 -"), lock("b:5", "900 900 900 - -"))
		}, "5 locks need it: b:1, b:2, b:3 and 2 more. Once"},
		"two more are drained": {func(s *monitor.Snapshot) {
			monitortest.Put(s, lock("b:1", "900 900 900 900 900"))
			s.Nodes[3].State, s.Nodes[4].State = monitor.NodeCordoned, monitor.NodeCordoned
			s.Cluster.Serving = 3
		}, "then 2 of 5 nodes serve"},
		"one more is drained": {func(s *monitor.Snapshot) {
			monitortest.Put(s, lock("b:1", "900 - 900 900 900"))
			s.Nodes[4].State = monitor.NodeCordoned
			s.Cluster.Serving = 4
		}, "1 lock needs it: b:1. Once"},
		"it is fenced anyway": {func(s *monitor.Snapshot) {
			monitortest.Put(s, lock("b:1", "900 900 900 900 -"))
			s.Nodes[0].State = monitor.NodeFenced
			s.Cluster.Serving = 4
		}, ""},
		"not all is read": {func(s *monitor.Snapshot) { s.Complete = false }, "not all locks are read"},
	} {
		t.Run(name, func(t *testing.T) {
			s := monitortest.Safe(monitortest.Epoch)
			s.Locks, s.Complete = monitor.NewLocks(), true
			x.make(s)
			risks := ""
			for _, f := range CordonFacts(s, s.Nodes[0].Name) {
				if f.Label == "Risk" {
					risks += f.Text
				}
			}
			if !strings.HasPrefix(risks, x.risk) || x.risk == "" && risks != "" {
				t.Errorf("%q", risks)
			}
		})
	}
}
