package boot

import (
	"strings"

	"redlockctl/server/safetext"
)

// NextData is what a server does with its data after its next start, as its command line and
// files say.
type NextData struct {
	// Known: they could be read.
	Known bool
	// Weak is why it then does not have every write on disk before it answers, or does not
	// load what it has; empty: it does.
	Weak string
}

// dataSettings are what must be said for every write to be on disk, with what holds where nothing is.
var dataSettings = []struct{ name, want, unset string }{
	{"appendonly", "yes", "no"},
	{"appendfsync", "always", "everysec"},
	{"no-appendfsync-on-rewrite", "no", "no"},
}

// AssessData says what becomes of the data of a server that is started with these texts.
func AssessData(t Text) NextData {
	lines, main, err := t.readAll()
	if err != nil || main == "" && !t.ArgsKnown {
		return NextData{}
	}
	for _, s := range dataSettings {
		value, place := s.unset, ""
		for _, d := range lines {
			if d.words[0] == s.name && len(d.words) == 2 {
				value, place = strings.ToLower(d.words[1]), d.place()
			}
		}
		switch {
		case value == s.want:
		case place == "":
			return NextData{Known: true, Weak: "neither its command line nor its files set " + s.name + " " + s.want}
		default:
			return NextData{Known: true, Weak: place + " says " + s.name + " " + safetext.Escape(value)}
		}
	}
	return NextData{Known: true}
}
