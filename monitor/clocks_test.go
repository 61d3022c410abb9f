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
		"one ahead":                {[]time.Duration{0, 5, 0}, 0, []ClockApart{{"n2", 5 * time.Second}}},
		"one ahead, one behind":    {[]time.Duration{5, 0, 0, 0, -3}, 0, []ClockApart{{"n1", 5 * time.Second}, {"n5", -3 * time.Second}}},
		"it is ours":               {[]time.Duration{60, 60, 60}, 0, nil},
		"ours too":                 {[]time.Duration{60, 60, 65}, 0, []ClockApart{{"n3", 5 * time.Second}}},
		"one is not known":         {[]time.Duration{0, -99, 5}, 0, []ClockApart{{"n3", 5 * time.Second}}},
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
