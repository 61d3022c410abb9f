package view

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"redlockctl/server/safetext/safetexttest"
)

// FuzzText: any text of a server fits its cell, takes the same cells on every terminal,
// and contains nothing that a terminal would obey.
func FuzzText(f *testing.F) {
	for i, s := range safetexttest.Hostile {
		f.Add(s, uint8(i), i%2 == 0)
	}
	f.Add("\x8d\U0001f3fd", uint8(5), false) // the escape of a byte, and the colour of a skin
	f.Fuzz(func(t *testing.T, raw string, w uint8, ascii bool) {
		if len(raw) > 256 {
			t.Skip("more of the same")
		}
		g := Unicode
		if ascii {
			g = ASCII
		}
		cell, sentence, whole := g.Escape(raw, int(w)), g.Sentence(raw, int(w)), g.Whole(raw)
		for _, s := range []string{cell, sentence, g.Middle(whole, int(w)), whole} {
			if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return unicode.In(r, unicode.C, unicode.Zl, unicode.Zp) || ascii && r > '~' }) {
				t.Fatalf("%q is shown as %q", raw, s)
			}
			if a, b := Width(s), ansi.StringWidthWc(s); a != b || a > int(w) && len(s) != len(whole) {
				t.Fatalf("%q in %d cells: %q takes %d or %d", raw, w, s, a, b)
			}
		}
	})
}
