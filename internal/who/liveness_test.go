package who

import (
	"testing"
	"time"
)

func TestAssessLiveness(t *testing.T) {
	const s = time.Second
	for name, c := range map[string]struct {
		signs Signs
		want  Liveness
	}{
		"it extends as usual":                            {Signs{Conns: 5, Open: 5, Idle: 9 * s, Extends: 4, Extended: 8 * s, Usually: 7 * s}, Alive},
		"its connections are not known, it extends":      {Signs{Extends: 4, Extended: 8 * s, Usually: 7 * s}, Alive},
		"overdue, and its connections are in use":        {Signs{Conns: 5, Open: 5, Idle: s, Extends: 4, Extended: 60 * s, Usually: 7 * s}, Silent},
		"one extension was missed":                       {Signs{Conns: 5, Open: 5, Extends: 4, Extended: 11 * s, Usually: 7 * s}, Silent},
		"overdue, with open connections":                 {Signs{Conns: 5, Open: 2, Idle: 50 * s, Extends: 4, Extended: 60 * s, Usually: 7 * s}, Silent},
		"its last connection is closed":                  {Signs{Conns: 5, Extends: 4, Extended: 60 * s, Usually: 7 * s}, Gone},
		"closed a moment after an extension":             {Signs{Conns: 5, Extends: 4, Extended: s, Usually: 7 * s}, Gone},
		"overdue, and its connections are not known":     {Signs{Extends: 4, Extended: 60 * s, Usually: 7 * s}, ""},
		"it never extends, and its connections are idle": {Signs{Conns: 5, Open: 5, Idle: 60 * s}, ""},
		"one extension has no interval":                  {Signs{Extends: 1, Extended: 60 * s}, ""},
		"nothing is known":                               {Signs{}, ""},
	} {
		if got := AssessLiveness(c.signs); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestNodesOfConnections(t *testing.T) {
	a := Answer{Conns: []NodeConn{{Node: "n1"}, {Node: "n1", Gone: time.Second}, {Node: "n2", Gone: 9 * time.Second}, {Node: "n2", Gone: 3 * time.Second}}}
	open, closed := a.Nodes()
	if len(open) != 1 || open[0] != "n1" || len(closed) != 1 || closed["n2"] != 3*time.Second {
		t.Error(open, closed)
	}
}

// What the monitor sees of the end of the majority tells whether a holder of an earlier
// answer is alive now.
func TestLivenessAt(t *testing.T) {
	const s = time.Second
	asked := time.Unix(1000, 0)
	extends := Answer{At: asked, Liveness: Alive, Extended: s, Usually: 3 * s, TTL: 10 * s}
	silent, gone, unknown, other := extends, extends, extends, extends
	silent.Liveness, silent.Extended = Silent, 6*s
	gone.Liveness, gone.Conns = Gone, []NodeConn{{Gone: 2 * s}, {Gone: 5 * s}}
	unknown.Liveness = ""
	other.TTL = 0
	for name, c := range map[string]struct {
		answer Answer
		now    time.Duration // since it was asked
		end    time.Duration // of the majority
		want   Liveness
		since  time.Duration
	}{
		"it goes on":                          {extends, 60 * s, 68 * s, Alive, 2 * s},
		"it goes on, and the end is not seen": {extends, 2 * s, 9 * s, Alive, 3 * s},
		"it stopped when it was asked":        {extends, 5 * s, 9 * s, Silent, 6 * s},
		"it stopped later":                    {extends, 60 * s, 63 * s, Silent, 7 * s},
		"it was silent and comes back":        {silent, 60 * s, 69 * s, Alive, s},
		"it was silent":                       {silent, 3 * s, 4 * s, Silent, 9 * s},
		"gone":                                {gone, 3 * s, 9 * s, Gone, 5 * s},
		"gone, and another one extends":       {gone, 3 * s, 12 * s, Alive, s},
		"nothing was known":                   {unknown, 3 * s, 9 * s, "", 0},
		"it sets different TTLs":              {other, 60 * s, 99 * s, Alive, 60 * s},
	} {
		got, since := c.answer.LivenessAt(asked.Add(c.now), asked.Add(c.end))
		if got != c.want || since != c.since {
			t.Errorf("%s: %q %s", name, got, since)
		}
	}
}
