package view

import (
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"

	"redlockctl/server/safetext/safetexttest"
)

func TestWidthIsThatOfTheTerminal(t *testing.T) {
	for r := rune(1); r < 0x30000; r++ {
		if OneCell(r) && (ansi.StringWidth(string(r)) != 1 || ansi.StringWidthWc(string(r)) != 1) {
			t.Errorf("%U takes %d cells", r, ansi.StringWidth(string(r)))
		}
	}
	parts := append(safetexttest.Hostile, "●", "\x1b[1m", "\x1b[0m", "\x1b[1;31mred\x1b[m", "\x1b[3", "plain", "─▸…", "\ufe0f", "\u0301", "\u200d", "\x1b]0;t\x07", "é")
	rapid.Check(t, func(t *rapid.T) {
		s := strings.Join(rapid.SliceOf(rapid.SampledFrom(parts)).Draw(t, "parts"), "")
		if got, want := Width(s), ansi.StringWidth(s); got != want {
			t.Fatalf("%q: %d cells, not %d", s, got, want)
		}
	})
}

func TestEscapeFitsAndIsTheSameOnEveryTerminal(t *testing.T) {
	for _, g := range []Glyphs{Unicode, ASCII} {
		for _, name := range safetexttest.Hostile {
			for _, w := range []int{0, 1, 2, 3, 5, 8, 20, 200} {
				for _, s := range []string{g.Escape(name, w), g.Sentence(name, w)} {
					if a, b := ansi.StringWidth(s), ansi.StringWidthWc(s); a > w || a != b {
						t.Errorf("%q in %d cells: %q takes %d or %d", name, w, s, a, b)
					}
				}
			}
		}
	}
}

func TestNamesThatDifferLookDifferent(t *testing.T) {
	seen := map[string]string{}
	for _, name := range append(safetexttest.Hostile, "a", " a", "a ", `\x20a`, "flag", "e", "e\u0301", "é") {
		s := Unicode.Name(name)
		if other, ok := seen[s]; ok {
			t.Errorf("%q and %q both look like %q", name, other, s)
		}
		seen[s] = name
	}
}

func TestLongTextIsCutBeforeItIsRendered(t *testing.T) {
	huge := strings.Repeat("\x1b", 1<<26)
	start := time.Now()
	got := Unicode.Escape(huge, 40)
	// A generous limit: rendering 64 MB takes seconds.
	if Width(got) > 40 || time.Since(start) > time.Second {
		t.Errorf("%d cells in %s", Width(got), time.Since(start))
	}
}

// Even a text shown in full is cut after some length: a megabyte would be rendered with
// each frame. A name keeps its end, which people type to confirm.
func TestWholeTextHasAnEnd(t *testing.T) {
	huge := "head" + strings.Repeat("\u202e", 1<<18) + "tail"
	for _, g := range []*Glyphs{&Unicode, &ASCII} {
		if got := g.Whole(huge); len(got) > 8*longestWhole || !strings.HasPrefix(got, "head") || !strings.HasSuffix(got, g.Ellipsis) {
			t.Errorf("%d bytes, from %.20q to %q", len(got), got, got[len(got)-8:])
		}
		if got := g.Name(huge); len(got) > 8*longestWhole || !strings.HasPrefix(got, "head") || !strings.HasSuffix(got, "tail") {
			t.Errorf("%d bytes, from %.20q to %q", len(got), got, got[len(got)-8:])
		}
	}
}
