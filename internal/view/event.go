package view

import (
	"cmp"
	"strings"
	"time"

	"redlockctl/monitor"
	"redlockctl/server/safetext"
)

// EventDoc is an event.
type EventDoc struct {
	Kind  string         `json:"kind"`
	At    time.Time      `json:"at"`
	Seq   uint64         `json:"seq"`
	Level string         `json:"level"`
	Node  *safetext.Text `json:"node,omitempty"`
	Key   *safetext.Text `json:"key,omitempty"`
	Text  safetext.Text  `json:"text"`
	// Part: another event, such as the restart of a node, includes this one.
	Part bool `json:"part,omitempty"`
	// Of a restart, or a wipe of a node's data: how many locks lost a copy, how many of them
	// have a bare majority now, how many lost their majority and until when the last of these
	// is held, how many revoked ones have too few tombstones left, the names of the first of them, what came back from disk, and when a guard lets
	// the node rejoin.
	LostCopy     *int            `json:"locks_lost_copy,omitempty"`
	Bare         *int            `json:"locks_bare_majority,omitempty"`
	LostMajority *int            `json:"locks_lost_majority,omitempty"`
	HeldUntil    *time.Time      `json:"held_until,omitempty"`
	Unrevoked    int             `json:"locks_lost_revocation,omitempty"`
	Loaded       *loadedDoc      `json:"loaded_from_disk,omitempty"`
	Locks        []safetext.Text `json:"locks,omitempty"`
	Rejoins      *time.Time      `json:"rejoins,omitempty"`
}

// loadedDoc counts the copies that a node loaded from disk, by what is known about their
// tokens.
type loadedDoc struct {
	Held     int `json:"held"`
	LeftOver int `json:"left_over"`
	Unknown  int `json:"unknown"`
}

// DocOfEvent returns the document of an event.
func DocOfEvent(e *monitor.Event) EventDoc {
	doc := EventDoc{
		Kind: e.Kind, At: e.At, Seq: e.Seq, Level: e.Level.String(), Node: safetext.Optional(e.Node),
		Key: safetext.Optional(e.Key.Raw()), Text: e.Text, Part: e.Part,
	}
	if c := e.Cost; c != nil {
		doc.LostCopy, doc.Bare, doc.LostMajority, doc.Locks = &c.Lost, &c.Bare, &c.LostMajority, c.Locks
		doc.HeldUntil, doc.Unrevoked = jsonTime(c.HeldUntil), c.Unrevoked
		if c.Loaded != (monitor.Loaded{}) {
			doc.Loaded = new(loadedDoc(c.Loaded))
		}
		if !c.Rejoins.IsZero() {
			doc.Rejoins = &c.Rejoins
		}
	}
	return doc
}

// aboutInEvent is the width of a name before the sentence of an event.
const aboutInEvent = 24

// mostOfEvent is the greatest width of the sentence of an event on the screen.
const mostOfEvent = 400

// EventText returns the sentence of an event on the screen. With named it begins with the
// lock or node if the sentence does not name it.
func EventText(g *Glyphs, e *monitor.Event, named bool) Cell {
	said := e.Text.Raw()
	token := e.Token.Raw()
	if begins := safetext.Short(token); begins != "..." {
		if len(token) > wholeToken { // as [Context.Token] has it
			token = g.Middle(token, shortToken)
		}
		said = strings.Replace(said, begins, token, 1)
	}
	cell := Cell{Sign: g.Level(e.Level).Sign, Text: g.Sentence(said, mostOfEvent), Tone: g.Level(e.Level).Tone}
	if about := EventAbout(e); about != "" && named {
		cell.Text = g.Escape(about, aboutInEvent) + ": " + cell.Text
	}
	return cell
}

// EventAbout returns the lock or node of an event, unescaped, if the sentence does not
// name it; otherwise it is empty.
func EventAbout(e *monitor.Event) string {
	switch {
	case e.Kind == "operator": // an action names its target
		return ""
	case !e.Key.Empty() && !strings.HasPrefix(e.Text.Raw(), e.Key.Raw()+" "):
		return e.Key.Raw()
	case e.Node != "" && !strings.Contains(e.Text.Raw(), e.Node):
		return e.Node
	}
	return ""
}

// EventColumns are the columns of events. Events come one by one, so the widths are fixed.
func EventColumns() []Column[*monitor.Event] {
	return []Column[*monitor.Event]{{
		Name: "TIME", Help: "time, by this machine's clock", Compare: func(a, b *monitor.Event) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Seq, b.Seq)) }, First: "oldest first", Last: "newest first", Fields: []string{"at"}, Rank: 1, Width: 8,
		Cell: func(_ *Context, e *monitor.Event) Cell { return Cell{Text: Clock(e.At), Tone: Dim} },
	}, {
		Name: "LEVEL", Help: "info, notice or alarm", Compare: compareBy(func(e *monitor.Event) int { return -int(e.Level) }), First: "most severe first", Fields: []string{"level"}, Width: 6,
		Cell: func(c *Context, e *monitor.Event) Cell { return c.Level(e.Level) },
	}, {
		Name: "KIND", Help: "kind of event; `redlockctl watch --help` lists them", Compare: compareBy(func(e *monitor.Event) string { return e.Kind }), Fields: []string{"kind"}, Width: 14,
		Cell: func(_ *Context, e *monitor.Event) Cell { return Cell{Text: safetext.Escape(e.Kind)} },
	}, {
		Name: "ABOUT", Help: "the lock or node that it concerns", Compare: byText(func(e *monitor.Event) string { return e.Key.Raw() + e.Node }), Fields: []string{"node", "key"}, Width: 1, Most: 40,
		Cell: func(c *Context, e *monitor.Event) Cell {
			about := e.Key.Raw()
			if about == "" {
				about = e.Node
			}
			if about == "" {
				return c.orNone("")
			}
			return Cell{Text: c.Name(about)}
		},
	}, {
		Name: "TEXT", Help: "what happened, as a sentence; the screen puts the lock or node in front if ABOUT is not shown", Compare: byText(func(e *monitor.Event) string { return e.Text.Raw() }), Fields: []string{"text"}, Rank: 2, Width: 1, Most: mostOfEvent,
		Cell: func(c *Context, e *monitor.Event) Cell {
			if c.Short {
				return EventText(c.Glyphs, e, c.NoAbout)
			}
			return Cell{Text: c.Whole(e.Text.Raw())}
		},
	}}
}
