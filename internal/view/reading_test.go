package view

import (
	"strings"
	"testing"

	"redlockctl/monitor"
)

// If there is too little room, the names of nodes are dropped first, then the bar.
func TestReadingFits(t *testing.T) {
	s := &monitor.Snapshot{Nodes: make([]monitor.Node, 5)}
	all := monitor.Reading{Nodes: []string{"n1", "n2", "n3", "n4", "n5"}, Read: 250_000, Of: 500_000}
	one := monitor.Reading{Nodes: []string{"n2"}, Read: 25_000, Of: 100_000}
	unknown := monitor.Reading{Nodes: []string{"n2", "n3", "n4"}}
	for _, c := range []struct {
		g    *Glyphs
		r    monitor.Reading
		w    int
		want string
	}{
		{&Unicode, all, 80, "reading 250,000 of ~500,000 keys on 5 nodes ██████░░░░░░"},
		{&ASCII, all, 56, "reading 250,000 of ~500,000 keys on 5 nodes ######......"},
		{&ASCII, all, 55, "reading 250,000 of ~500,000 keys ######......"},
		{&Unicode, all, 44, "reading 250,000 of ~500,000 keys"},
		{&Unicode, all, 20, "reading 250,000 of …"},
		{&ASCII, one, 80, "reading 25,000 of ~100,000 keys on n2 ###........."},
		{&ASCII, unknown, 80, "reading the keys on 3 nodes"},
	} {
		if got := ReadingLine(c.g, c.r, s, c.w); got != c.want {
			t.Errorf("%d: %q", c.w, got)
		}
	}
	if got := ReadingText(&ASCII, monitor.Reading{Nodes: []string{"n\x1b2"}}, s); strings.Contains(got, "\x1b") {
		t.Errorf("%q", got)
	}
}
