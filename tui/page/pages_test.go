package page

import (
	"strings"
	"testing"

	"redlockctl/internal/view"
	"redlockctl/monitor/monitortest"
	"redlockctl/tui/styles"
)

// A page draws its input without the rest of the screen: at most as many lines as
// allowed, none wider than the screen, and its selection is what is under the cursor.
func TestEachPageStandsAlone(t *testing.T) {
	st := styles.New(styles.Look{Theme: styles.ThemeNone})
	text := func(int) []string { return []string{"a text"} }
	for kind := range NumTabs {
		s := &Screen{St: &st, W: 100, H: 30, Now: monitortest.Epoch, IsMine: func(string, string) bool { return false }, Kept: func(string, string) string { return "" }}
		set := New(s, monitortest.Epoch, text, text)
		set.Receive(monitortest.Degraded(monitortest.Epoch), nil, false, nil)
		p := set.At(Place{Kind: kind})
		if got := p.Place().Kind; got != kind {
			t.Fatalf("%s is the page of %s", got, kind)
		}
		for _, s.H = range []int{60, 15, 30} {
			lines := p.Lines(s.H - 3)
			if len(lines) > s.H-3 {
				t.Errorf("%s: %d lines on a screen of %d", kind, len(lines), s.H)
			}
			for _, l := range lines {
				if view.Width(l) > s.W {
					t.Errorf("%s: too wide: %q", kind, l)
				}
			}
		}
		key, node := p.Selected().About()
		if shown := strings.Join(p.Lines(27), "\n"); !strings.Contains(shown, key+node) {
			t.Errorf("%s does not show %q", kind, key+node)
		}
		p.Move(1)
		if next, other := p.Selected().About(); kind != Help && key == next && node == other {
			t.Errorf("%s: the cursor does not move from %q", kind, key+node)
		}
	}
}
