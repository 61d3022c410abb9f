package tui

import (
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"
)

func TestWidthIsThatOfTheTerminal(t *testing.T) {
	for r := rune(1); r < 0x30000; r++ {
		if oneCell(r) && (ansi.StringWidth(string(r)) != 1 || ansi.StringWidthWc(string(r)) != 1) {
			t.Errorf("%U takes %d cells", r, ansi.StringWidth(string(r)))
		}
	}
	parts := append(hostileNames, "●", "\x1b[1m", "\x1b[0m", "\x1b[1;31mred\x1b[m", "\x1b[3", "plain", "─▸…", "\ufe0f", "\u0301", "\u200d", "\x1b]0;t\x07", "é")
	rapid.Check(t, func(t *rapid.T) {
		s := strings.Join(rapid.SliceOf(rapid.SampledFrom(parts)).Draw(t, "parts"), "")
		if got, want := width(s), ansi.StringWidth(s); got != want {
			t.Fatalf("%q: %d cells, not %d", s, got, want)
		}
	})
}

func TestEscapeFitsAndIsTheSameOnEveryTerminal(t *testing.T) {
	for _, g := range []glyphs{unicodeGlyphs, asciiGlyphs} {
		for _, name := range hostileNames {
			for _, w := range []int{0, 1, 2, 3, 5, 8, 20, 200} {
				for _, s := range []string{g.escape(name, w), g.sentence(name, w), g.pad(g.escape(name, w), w)} {
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
	for _, name := range append(hostileNames, "a", " a", "a ", `\x20a`, "flag", "e", "e\u0301", "é") {
		s := unicodeGlyphs.name(name)
		if other, ok := seen[s]; ok {
			t.Errorf("%q and %q both look like %q", name, other, s)
		}
		seen[s] = name
	}
}

func TestLongTextIsCutBeforeItIsRendered(t *testing.T) {
	huge := strings.Repeat("\x1b", 1<<26)
	start := time.Now()
	got := unicodeGlyphs.escape(huge, 40)
	// A generous bound: rendering 64 MB takes seconds.
	if width(got) > 40 || time.Since(start) > time.Second {
		t.Errorf("%d cells in %s", width(got), time.Since(start))
	}
}

// Also where a text is shown in full, a megabyte of it is not: it would be
// rendered with each frame. A name keeps its end, which is typed to confirm.
func TestWholeTextHasAnEnd(t *testing.T) {
	huge := "head" + strings.Repeat("\u202e", 1<<18) + "tail"
	for _, g := range []*glyphs{&unicodeGlyphs, &asciiGlyphs} {
		if got := g.whole(huge); len(got) > 8*longestWhole || !strings.HasPrefix(got, "head") || !strings.HasSuffix(got, g.ellipsis) {
			t.Errorf("%d bytes, from %.20q to %q", len(got), got, got[len(got)-8:])
		}
		if got := g.name(huge); len(got) > 8*longestWhole || !strings.HasPrefix(got, "head") || !strings.HasSuffix(got, "tail") {
			t.Errorf("%d bytes, from %.20q to %q", len(got), got, got[len(got)-8:])
		}
	}
}

func TestTimes(t *testing.T) {
	for _, c := range []struct {
		d         time.Duration
		left, age string
	}{
		{-time.Second, "0s", "0s"},
		{0, "0s", "0s"},
		{999 * time.Millisecond, "<1s", "0s"},
		{9999 * time.Millisecond, "9s", "9s"},
		{99 * time.Second, "99s", "1m39s"},
		{100 * time.Second, "1m", "1m40s"},
		{90 * time.Minute, "90m", "1h30m"},
		{47 * time.Hour, "47h", "1d23h"},
		{1000 * time.Hour, "41d", "41d16h"},
		{90000 * time.Hour, ">2y", "3750d"},
	} {
		if got := remaining(c.d); got != c.left || len(got) > 4 {
			t.Errorf("remaining(%s) = %q", c.d, got)
		}
		if got := age(c.d); got != c.age || len(got) > 6 {
			t.Errorf("age(%s) = %q", c.d, got)
		}
	}
	if got := count(-1234567); got != "-1,234,567" {
		t.Error(got)
	}
	if got := count(-123); got != "-123" {
		t.Error(got)
	}
}

func TestSparkline(t *testing.T) {
	ms := time.Millisecond
	if got := unicodeGlyphs.sparkline([]time.Duration{ms, ms, 8 * ms, ms}, 6); got != "  ▁▁█▁" {
		t.Errorf("%q", got)
	}
	if got := asciiGlyphs.sparkline([]time.Duration{ms, 2 * ms}, 1); got != "_" {
		t.Errorf("%q", got)
	}
	if got := unicodeGlyphs.sparkline(nil, 4); width(got) != 4 {
		t.Errorf("%q", got)
	}
	if got := unicodeGlyphs.sparkline([]time.Duration{300000, 401000, 299000}, 3); got != "▁▁▁" {
		t.Errorf("noise looks like trouble: %q", got)
	}
}

func TestLineEdit(t *testing.T) {
	st := newStyles(false, ThemeNone)
	e := newLineEdit("ab")
	e.insert("c\x1b\n宽")
	if e.String() != "abc宽" {
		t.Errorf("%q", e.String())
	}
	e.move(-2)
	e.insert("X")
	e.backspace()
	e.del()
	if e.String() != "ab宽" || e.pos != 2 {
		t.Errorf("%q at %d", e.String(), e.pos)
	}
	e = newLineEdit("one two  ")
	e.killWord()
	if e.String() != "one " {
		t.Errorf("%q", e.String())
	}
	e.killStart()
	if e.String() != "" {
		t.Errorf("%q", e.String())
	}
	e.insert(strings.Repeat("x\u202e宽", 5000))
	if len(e.runes) != longestLine {
		t.Errorf("%d runes", len(e.runes))
	}
	for pos := range []int{0, 5, longestLine} {
		e.pos = pos
		for w := range 30 {
			if s := e.view(&st, w); width(s) > max(w, 0) && w >= 8 {
				t.Errorf("%d cells of %d: %q", width(s), w, s)
			} else if strings.ContainsRune(s, '\u202e') {
				t.Error("a pasted bidi control is drawn raw")
			}
		}
	}
}
