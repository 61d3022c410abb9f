package restartguard

import (
	"testing"
)

func TestLossBy(t *testing.T) {
	before := Incarnation{RunID: "a", Role: "master", Wipes: 3, Evicted: 2, Commands: 100, Former: "0000"}
	for name, c := range map[string]struct {
		change func(*Incarnation)
		want   lossKind
	}{
		"nothing":                             {func(*Incarnation) {}, noLoss},
		"more commands":                       {func(i *Incarnation) { i.Commands++ }, noLoss},
		"another process":                     {func(i *Incarnation) { *i = Incarnation{RunID: "b", Role: "slave"} }, lossRestart},
		"a replica":                           {func(i *Incarnation) { i.Role = "slave" }, lossRole},
		"a replica between two looks":         {func(i *Incarnation) { i.Former = "a1" }, lossReplaced},
		"a backlog that was let go":           {func(i *Incarnation) { i.Former = "" }, noLoss},
		"a flush":                             {func(i *Incarnation) { i.Wipes++ }, lossWipe},
		"an eviction":                         {func(i *Incarnation) { i.Evicted++ }, lossEviction},
		"counters that were reset":            {func(i *Incarnation) { i.Wipes, i.Evicted, i.Commands = 0, 0, 1 }, noLoss},
		"a flush behind a reset":              {func(i *Incarnation) { i.Wipes, i.Evicted, i.Commands = 1, 0, 1 }, lossWipe},
		"as many flushes as before the reset": {func(i *Incarnation) { i.Evicted, i.Commands = 0, 10 }, lossWipe},
	} {
		now := before
		c.change(&now)
		if got := before.lossBy(now); got != c.want {
			t.Errorf("%s: loss %d, want %d", name, got, c.want)
		}
	}
}
