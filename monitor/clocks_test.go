package monitor

import (
	"slices"
	"testing"
	"time"
)

// A clock that differs from most is reported. If all differ from ours, our own clock is
// wrong. A difference within the round trip proves nothing.
func TestClocksApart(t *testing.T) {
	for name, c := range map[string]struct {
		offsets []time.Duration // in seconds; −99: unknown
		bound   time.Duration
		want    []ClockApart
	}{
		"alike":                    {[]time.Duration{0, 0, 0}, 0, nil},
		"one ahead":                {[]time.Duration{0, 5, 0}, 0, []ClockApart{{Node: "n2", By: 5 * time.Second}}},
		"one ahead, one behind":    {[]time.Duration{5, 0, 0, 0, -3}, 0, []ClockApart{{Node: "n1", By: 5 * time.Second}, {Node: "n5", By: -3 * time.Second}}},
		"it is ours":               {[]time.Duration{60, 60, 60}, 0, nil},
		"ours too":                 {[]time.Duration{60, 60, 65}, 0, []ClockApart{{Node: "n3", By: 5 * time.Second}}},
		"one is not known":         {[]time.Duration{0, -99, 5}, 0, []ClockApart{{Node: "n3", By: 5 * time.Second}}},
		"within what is not known": {[]time.Duration{0, 5, 0}, 5 * time.Second, nil},
		"none":                     {nil, 0, nil},
	} {
		var nodes []Node
		for i, by := range c.offsets {
			n := Node{Name: "n" + string(rune('1'+i)), State: NodeServing}
			if by != -99 {
				n.Offset = Estimate{Valid: true, Offset: by * time.Second, Bound: c.bound}
			}
			nodes = append(nodes, n)
		}
		if got := ClocksApart(nodes); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, not %v", name, got, c.want)
		}
	}
}

// The step that is known says since when a clock differs: its own, or that of those that most agree with.
func TestTheStepBehindClocksApart(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	node := func(name string, offset, step time.Duration) Node {
		n := Node{Name: name, State: NodeServing, Offset: Estimate{Valid: true, Offset: offset * time.Second}}
		if step != 0 {
			n.Facts.StepAt, n.Facts.StepBy = at, step*time.Second
		}
		return n
	}
	for name, c := range map[string]struct {
		nodes []Node
		want  []ClockStep
	}{
		"its own":                 {[]Node{node("n1", 0, 0), node("n2", -20, -20), node("n3", 0, 0)}, []ClockStep{{"n2", -20 * time.Second, at}}},
		"nobody saw it":           {[]Node{node("n1", 0, 0), node("n2", -20, 0), node("n3", 0, 0)}, []ClockStep{{}}},
		"it explains too little":  {[]Node{node("n1", 0, 0), node("n2", -20, -5), node("n3", 0, 0)}, []ClockStep{{}}},
		"of one that is off, too": {[]Node{node("n1", 0, 0), node("n2", 20, 0), node("n3", -20, -20), node("n4", 0, 0), node("n5", 0, 0)}, []ClockStep{{}, {"n3", -20 * time.Second, at}}},
		"that of the others":      {[]Node{node("n1", 20, 20), node("n2", 0, 0), node("n3", 20, 20), node("n4", 20, 20), node("n5", 20, 20)}, []ClockStep{{"n1", 20 * time.Second, at}}},
	} {
		var got []ClockStep
		for _, a := range ClocksApart(c.nodes) {
			got = append(got, a.Step)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %+v, not %+v", name, got, c.want)
		}
	}
}
