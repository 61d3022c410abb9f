package view

import (
	"fmt"
	"strings"

	"redlockctl/monitor"
)

// ReadingText returns the progress of a read in words: "reading 43,000 of ~500,000 keys on
// 5 nodes". At most a few nodes are named.
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

// mostReading is how many nodes are named.
const mostReading = 2

func readingKeys(r monitor.Reading) string {
	if r.Of == 0 {
		return "reading the keys"
	}
	return fmt.Sprintf("reading %s of ~%s keys", Count(int(r.Read)), Count(int(r.Of)))
}

// readingBar is the width of the bar.
const readingBar = 12

// ReadingLine returns [ReadingText] with a bar in w cells. If that does not fit, the nodes
// are left out, and then the bar.
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
