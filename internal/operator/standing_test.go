package operator

import (
	"strings"
	"testing"
	"time"

	"redlockctl/internal/safetext"
	"redlockctl/monitor"
)

// What a removal means follows from who relies on the lock, not from the copies that are left.
func TestThePlanOfALockThatLostItsMajority(t *testing.T) {
	now := time.Now()
	end := now.Add(24 * time.Second)
	holds := monitor.Copy{State: monitor.CopyPresent, Type: "string", Token: safetext.New("a"), Len: 1, Expires: end}
	lost := monitor.Copy{State: monitor.CopyLost, Type: "string", Token: safetext.New("a"), Len: 1, Expires: end}
	for name, c := range map[string]struct {
		state monitor.LockState
		node  monitor.NodeState // of n1, which lost its copy
		free  monitor.NodeState // of n4 and n5
		risk  map[Way]string
	}{
		"its node stays fenced":      {monitor.LockLostMajority, monitor.NodeFenced, monitor.NodeServing, map[Way]string{ForceRelease: "Until then nobody else can get in: wait", Revoke: "its holder relies on it until "}},
		"its node serves":            {monitor.LockLostMajority, monitor.NodeServing, monitor.NodeServing, map[Way]string{ForceRelease: "Another client can get in already", Revoke: "its holder relies on it until "}},
		"nobody knows of a majority": {monitor.LockMayBeHeld, monitor.NodeFenced, monitor.NodeServing, map[Way]string{ForceRelease: "it may be held until ", Revoke: "it may be held until "}},
		"nodes are silent beside it": {monitor.LockLostMajority, monitor.NodeFenced, monitor.NodeSlow, map[Way]string{ForceRelease: "its holder relies on it until ", Revoke: "its holder relies on it until "}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &monitor.Snapshot{At: now, Cluster: monitor.Cluster{N: 5, Quorum: 3}}
			for i, state := range []monitor.NodeState{c.node, monitor.NodeServing, monitor.NodeServing, c.free, c.free} {
				s.Nodes = append(s.Nodes, monitor.Node{Name: "n" + string(rune('1'+i)), State: state})
			}
			l := monitor.Lock{Key: safetext.New("job"), State: c.state, Holder: holds.Token, Held: 2, Lost: 1, Tokens: 1, Copies: monitor.PackCopies(lost, holds, holds, monitor.Copy{}, monitor.Copy{})}.Until(end)
			for way, want := range c.risk {
				p, err := PlanOf(way, s, &l, "job", now)
				if err != nil || !strings.Contains(p.Risk, want) || strings.Contains(p.Risk+p.Effect, "nobody holds") {
					t.Errorf("%v: %q, %q: %v", way, p.Effect, p.Risk, err)
				}
			}
		})
	}
}
