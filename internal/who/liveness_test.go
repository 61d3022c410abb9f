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
		"overdue, and it works at other locks":           {Signs{Conns: 5, Open: 5, Idle: s, Extends: 4, Extended: 60 * s, Usually: 7 * s}, Alive},
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
