package view

import (
	"fmt"
	"strings"

	"redlockctl/monitor"
)

// ReadingText says how far reading is, with numbers and without a picture: "reading 43,000
// of ~500,000 keys on 5 nodes". Few of several nodes are named.
func ReadingText(g *Glyphs, r monitor.Reading, s *monitor.Snapshot) string {
	where := " on " + Plural(len(r.Nodes), "node")
	if len(r.Nodes) < len(s.Nodes) && len(r.Nodes) <= mostReading {
		names := make([]string, len(r.Nodes))
		for i, name := range r.Nodes {
			names[i] = g.Escape(name, 12)
		}
		where = " on " + strings.Join(names, ", ")
	}
	return readingKeys(r) + where
}

// mostReading is how many nodes that are being read are named.
const mostReading = 2

func readingKeys(r monitor.Reading) string {
	if r.Of == 0 {
		return "reading the keys"
	}
	return fmt.Sprintf("reading %s of ~%s keys", Count(int(r.Read)), Count(int(r.Of)))
}

// readingBar is how many cells the bar of a read has.
const readingBar = 12

// ReadingLine is the same with a bar, in w cells: where that is too much without the nodes,
// and then without the bar.
func ReadingLine(g *Glyphs, r monitor.Reading, s *monitor.Snapshot, w int) string {
	bar := ""
	if r.Of > 0 {
		bar = " " + g.Bar(r.Part(), readingBar)
	}
	for _, text := range []string{ReadingText(g, r, s) + bar, readingKeys(r) + bar} {
		if Width(text) <= w {
			return text
		}
	}
	return g.Cut(readingKeys(r), w)
}
