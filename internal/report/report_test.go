package report

import (
	"errors"
	"strings"
	"testing"
	"time"

	"redlockctl/internal/record"
)

// The state in a gap of the record is unknown: the state before it does not continue.
func TestGapsAreNotKnown(t *testing.T) {
	at := func(m int) time.Time { return time.UnixMilli(0).Add(time.Duration(m) * time.Minute) }
	in := record.Span{Since: at(0), Until: at(100)}
	states := notRecorded([]record.State{
		{Node: "n1", State: "serving", At: at(-5)}, {Node: "n1", State: "down", At: at(10)}, {Node: "n1", State: "serving", At: at(60)},
	}, []record.Span{{Since: at(20), Until: at(60)}, {Since: at(80), Until: at(100)}})
	rep := &Report{}
	rep.lanes(states, in)
	want := []Part{{State: "serving", Width: 10}, {State: "down", X: 10, Width: 10}, {State: unrecorded, X: 20, Width: 40}, {State: "serving", X: 60, Width: 20}, {State: unrecorded, X: 80, Width: 20}}
	if len(rep.Lanes) != 1 || len(rep.Lanes[0].Parts) != len(want) {
		t.Fatalf("%+v", rep.Lanes)
	}
	for i, p := range rep.Lanes[0].Parts {
		if w := want[i]; p.State != w.State || p.X != w.X || p.Width != w.Width {
			t.Errorf("part %d is %+v, want %+v", i, p, w)
		}
	}
	for _, a := range rep.Away {
		if a.State == "down" && a.Total != 10*time.Minute {
			t.Errorf("it was down for %s, in which it was seen", a.Total)
		}
	}
}

// A page names the locks that lost their majority, and says which grants it counts.
func TestLostLocksAreNamed(t *testing.T) {
	rep := &Report{Lost: []record.Event{{Lock: "job:1", Text: "lost its majority: held until 12:00:00"}}, LostLeft: 2}
	var text, page strings.Builder
	if err := errors.Join(rep.Text(&text), rep.HTML(&page)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"job:1: lost its majority: held until 12:00:00", "and 2 more locks", "Granted most often: grants that began", "grants that ended"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in %s", want, text.String())
		}
	}
	for _, want := range []string{"<td>job:1<td>lost its majority", "Grants that began", "Grants that ended"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("no %q in %s", want, page.String())
		}
	}
}
