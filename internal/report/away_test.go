package report

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// Each cordon and each fence counts once, whoever recorded it, and so does each other state.
func TestHowOftenANodeWasAway(t *testing.T) {
	for name, c := range map[string]struct {
		states   string // each with its seconds
		restarts []int
		want     string
	}{
		"a hand-over and a gap":              {"serving 9 cordoned 9 not-recorded 9 cordoned 9 serving 9", nil, "cordoned 1 in 18, not recorded 1 in 9"},
		"a restart while cordoned":           {"cordoned 9 down 2 fenced 1 cordoned 9 serving 9", []int{11}, "cordoned 1 in 19, down 1 in 2"},
		"a quick one":                        {"cordoned 9 fenced 1 cordoned 9", []int{9}, "cordoned 1 in 19"},
		"one that nobody recorded":           {"cordoned 9 not-recorded 9 fenced 4 cordoned 9", nil, "cordoned 1 in 22, not recorded 1 in 9"},
		"an uncordon":                        {"cordoned 9 fenced 1 serving 9", nil, "cordoned 1 in 10"},
		"an uncordon that has to wait":       {"cordoned 9 fenced 20 serving 9", nil, "cordoned 1 in 9, fenced 1 in 20"},
		"uncordoned and cordoned again":      {"cordoned 9 fenced 1 cordoned 9", nil, "cordoned 2 in 18, fenced 1 in 1"},
		"twice":                              {"cordoned 9 serving 9 cordoned 9", nil, "cordoned 2 in 18"},
		"a fence over a gap":                 {"down 1 fenced 9 not-recorded 9 fenced 9 serving 9", []int{1}, "down 1 in 1, fenced 1 in 18, not recorded 1 in 9"},
		"a fence that is not seen meanwhile": {"down 1 fenced 9 slow 9 fenced 9 serving 9", []int{1}, "down 1 in 1, fenced 1 in 18, slow 1 in 9"},
		"a crash while fenced":               {"down 1 fenced 9 down 9 fenced 9 serving 9", []int{1, 19}, "down 2 in 10, fenced 2 in 18"},
		"two fences":                         {"fenced 9 serving 9 fenced 9", nil, "fenced 2 in 18"},
		"a verdict":                          {"degraded 9 not-recorded 1 unknown 1 degraded 9 safe 9 degraded 1", nil, "degraded 2 in 19, not recorded 1 in 1, unknown 1 in 1"},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Unix(1_800_000_000, 0)
			at := start
			var parts []Part
			words := strings.Fields(c.states)
			for i := 0; i < len(words); i += 2 {
				var seconds int
				_, _ = fmt.Sscan(words[i+1], &seconds)
				to := at.Add(time.Duration(seconds) * time.Second)
				parts = append(parts, Part{State: strings.ReplaceAll(words[i], "-", " "), From: at, To: to})
				at = to
			}
			var restarts []time.Time
			for _, s := range c.restarts {
				restarts = append(restarts, start.Add(time.Duration(s)*time.Second))
			}
			var got []string
			for _, a := range awayOf("n1", parts, restarts) {
				got = append(got, fmt.Sprintf("%s %d in %g", a.State, a.Times, a.Total.Seconds()))
			}
			if slices.Sort(got); strings.Join(got, ", ") != c.want {
				t.Errorf("%s, want %s", strings.Join(got, ", "), c.want)
			}
		})
	}
}

// A state that lasted less than a second is not said to have lasted 0s.
func TestAShortTotal(t *testing.T) {
	rep := &Report{Lanes: []Lane{{Name: "cluster"}}, Away: []Away{{Name: "cluster", State: "degraded", Times: 2, Total: 300 * time.Millisecond}}}
	var text, page strings.Builder
	if err := errors.Join(rep.Text(&text), rep.HTML(&page)); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "less than 1s in all, 2 times") || !strings.Contains(page.String(), "less than 1s") {
		t.Error(text.String(), page.String())
	}
}
