package boot

import (
	"strings"

	"redlockctl/server/safetext"
)

// NextData is what a server does with its data after its next start, by its command line and files.
type NextData struct {
	// Known: they could be read.
	Known bool
	// Weak is why the server then answers before a write is on disk, or does not load what is on
	// disk; empty: it does neither.
	Weak string
}

// dataSettings are the settings with which every write is on disk before it is answered, and the
// defaults.
var dataSettings = []struct{ name, want, unset string }{
	{"appendonly", "yes", "no"},
	{"appendfsync", "always", "everysec"},
	{"no-appendfsync-on-rewrite", "no", "no"},
}

// AssessData finds out what a server that is started with these texts does with its data.
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
