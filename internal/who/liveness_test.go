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
		"one extension was missed":                       {Signs{Conns: 5, Open: 5, Idle: s, Extends: 4, Extended: 11 * s, Usually: 7 * s}, ""},
		"two extensions were missed":                     {Signs{Conns: 5, Open: 5, Extends: 4, Extended: 18 * s, Usually: 7 * s}, Silent},
		"overdue, with open connections":                 {Signs{Conns: 5, Open: 2, Idle: 50 * s, Extends: 4, Extended: 60 * s, Usually: 7 * s}, Silent},
		"its last connection is closed":                  {Signs{Conns: 5, Extends: 4, Extended: 60 * s, Usually: 7 * s}, Gone},
		"closed a moment after an extension":             {Signs{Conns: 5, Extends: 4, Extended: s, Usually: 7 * s}, Gone},
		"overdue, and its connections are not known":     {Signs{Extends: 4, Extended: 60 * s, Usually: 7 * s}, Silent},
		"overdue, and its name has no connection":        {Signs{Absent: true, Extends: 4, Extended: 60 * s, Usually: 7 * s}, ""},
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

// What the monitor sees of extensions tells whether the holder of an earlier answer is
// alive now. Where it sees nothing, the answer soon says nothing of now.
func TestLivenessLater(t *testing.T) {
	const s = time.Second
	asked := time.Unix(1000, 0)
	open := []NodeConn{{}}
	extends := Answer{At: asked, Liveness: Alive, Extends: 4, Extended: s, Usually: 3 * s, Conns: open}
	silent, gone, slow, used := extends, extends, extends, Answer{At: asked, Liveness: Alive, Conns: open}
	silent.Liveness, silent.Extended = Silent, 8*s
	gone.Liveness, gone.Conns = Gone, []NodeConn{{Gone: 2 * s}, {Gone: 5 * s}}
	slow.Liveness, slow.Extended = "", 6*s
	unknown := Answer{At: asked, Method: Unknown}
	absent := Answer{At: asked, Method: Told, Named: true}
	unseen := func(time.Duration) *Watched { return nil }
	none := func(time.Duration) *Watched { return &Watched{} }
	at := func(when time.Duration) func(time.Duration) *Watched {
		return func(time.Duration) *Watched { return &Watched{Extended: asked.Add(when)} }
	}
	ago := func(d, usually time.Duration) func(time.Duration) *Watched {
		return func(now time.Duration) *Watched { return &Watched{asked.Add(now - d), usually} }
	}
	for name, c := range map[string]struct {
		answer Answer
		now    time.Duration // since it was asked
		seen   func(now time.Duration) *Watched
		want   Liveness
		since  time.Duration
	}{
		"it goes on":                                 {extends, 60 * s, ago(2*s, 0), Alive, 2 * s},
		"nothing yet":                                {extends, 2 * s, none, Alive, 3 * s},
		"one extension was missed":                   {extends, 5 * s, none, "", 6 * s},
		"two were missed":                            {extends, 7 * s, none, Silent, 8 * s},
		"it stopped later":                           {extends, 60 * s, ago(8*s, 0), Silent, 8 * s},
		"the monitor saw the last one too":           {extends, 60 * s, at(-s), Silent, 61 * s},
		"it was silent and comes back":               {silent, 60 * s, ago(s, 0), Alive, s},
		"it was silent":                              {silent, 3 * s, none, Silent, 11 * s},
		"it was slow and comes back":                 {slow, 60 * s, ago(s, 0), Alive, s},
		"gone":                                       {gone, 3 * s, none, Gone, 5 * s},
		"gone, and another one extends":              {gone, 3 * s, ago(s, 0), Alive, s},
		"nothing was known":                          {Answer{At: asked}, 3 * s, none, "", -1},
		"a connection was in use":                    {used, 3 * s, none, Alive, 3 * s},
		"a connection was in use, long ago":          {used, 11 * s, none, "", 11 * s},
		"it extends since, how often is not known":   {used, 60 * s, ago(4*s, 0), Alive, 4 * s},
		"it extended once since":                     {used, 60 * s, ago(11*s, 0), "", 11 * s},
		"it extends since":                           {used, 60 * s, ago(4*s, 3*s), Alive, 4 * s},
		"it extended, and missed two":                {used, 60 * s, ago(9*s, 3*s), Silent, 9 * s},
		"told, and the monitor knew of extensions":   {used, s, at(-2 * s), Alive, s},
		"not found, and it extends":                  {unknown, 60 * s, ago(4*s, 3*s), Alive, 4 * s},
		"not found, and it missed two":               {unknown, 60 * s, ago(9*s, 3*s), Silent, 9 * s},
		"without a connection, and it missed two":    {absent, 60 * s, ago(9*s, 3*s), "", 9 * s},
		"nobody watches":                             {extends, 3 * s, unseen, Alive, 3 * s},
		"nobody has watched for long":                {extends, 11 * s, unseen, "", 11 * s},
		"it was silent, nobody watches":              {silent, 0, unseen, Silent, 8 * s},
		"it was silent, nobody has watched for long": {silent, 3 * s, unseen, "", 3 * s},
		"gone, nobody watches":                       {gone, 60 * s, unseen, Gone, 62 * s},
	} {
		got, since := c.answer.AsOf(asked.Add(c.now), c.seen(c.now))
		if got.Liveness != c.want || since != c.since {
			t.Errorf("%s: %q %s", name, got.Liveness, since)
		}
	}
}
