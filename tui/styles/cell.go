package styles

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"redlockctl/internal/safetext"
)

// Width is how many cells s takes; escape sequences take none. Most of a frame
// is ASCII, colours and our own glyphs, which are counted without a look at
// grapheme clusters.
func Width(s string) int {
	n := 0
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case c >= ' ' && c < 0x7f:
			n++
			i++
		case c == 0x1b && i+1 < len(s) && s[i+1] == '[':
			i += 2
			for i < len(s) && (s[i] >= '0' && s[i] <= '9' || s[i] == ';') {
				i++
			}
			if i == len(s) || s[i] != 'm' {
				return ansi.StringWidth(s)
			}
			i++
		default:
			r, size := utf8.DecodeRuneInString(s[i:])
			if !OneCell(r) {
				return ansi.StringWidth(s)
			}
			n++
			i += size
		}
	}
	return n
}

// OneCell tells if r is one of our glyphs: each takes one cell and joins with
// nothing.
func OneCell(r rune) bool {
	if r >= 0x2500 && r <= 0x259f { // rules and blocks
		return true
	}
	switch r {
	case '●', '◐', '○', '◌', '◔', '◆', '◇', '■', '▲', '▸', '◂', '✗', '…', '–', '−', '·', '±', '∞', '×':
		return true
	}
	return false
}

// Pad makes s exactly w cells wide, its text on the left.
func (g *glyphs) Pad(s string, w int) string {
	n := Width(s)
	if n > w {
		s = g.Cut(s, w)
		n = Width(s)
	}
	return s + Blanks(w-n)
}

// PadLeft makes s exactly w cells wide, its text on the right.
func (g *glyphs) PadLeft(s string, w int) string {
	n := Width(s)
	if n > w {
		s = g.Cut(s, w)
		n = Width(s)
	}
	return Blanks(w-n) + s
}

// Cut makes s at most w cells wide, with an ellipsis where something went.
func (g *glyphs) Cut(s string, w int) string {
	if w <= 0 {
		return ""
	}
	tail := g.Ellipsis
	if Width(tail) >= w {
		tail = ""
	}
	return ansi.Truncate(s, w, tail)
}

// middle makes a plain s at most w cells wide by leaving out its middle: names
// that begin alike tend to differ at their end.
func (g *glyphs) middle(s string, w int) string {
	n := Width(s)
	if n <= w {
		return s
	}
	e := Width(g.Ellipsis)
	if w < e+4 {
		return g.Cut(s, w)
	}
	head := (w - e) * 2 / 3
	tail := w - e - head
	return ansi.Truncate(s, head, "") + g.Ellipsis + CutLeft(s, tail)
}

// Bare is s without its colours: for a row that is a block of one.
func Bare(s string) string { return ansi.Strip(s) }

// Blanks is n blank cells.
func Blanks(n int) string {
	if n <= 0 {
		return ""
	}
	return strings.Repeat(" ", n)
}

// Text renders untrusted text in at most w cells.
func (g *glyphs) Text(t safetext.Text, w int) string { return g.Escape(t.Raw(), w) }

// Escape renders an untrusted string, such as an error of a server, in at most
// w cells.
func (g *glyphs) Escape(raw string, w int) string {
	if w <= 0 {
		return ""
	}
	// Each character takes a cell or more once it is escaped, and up to four
	// bytes: what is beyond that at both ends cannot be seen.
	if most := 4 * (w + 2); len(raw) > 2*most {
		raw = raw[:most] + raw[len(raw)-most:]
	}
	return g.middle(g.Name(raw), w)
}

// Name renders an untrusted name. Blanks at its ends are spelt out, or two
// names could look the same.
func (g *glyphs) Name(raw string) string {
	if raw == "" {
		return "(empty)"
	}
	if half := longestWhole / 2; len(raw) > longestWhole { // names that begin alike tend to differ at their end
		return g.Name(raw[:half]) + g.Ellipsis + g.Name(raw[len(raw)-half:])
	}
	s := g.settle(safetext.Escape(raw))
	body := strings.TrimLeft(s, " ")
	lead := len(s) - len(body)
	body = strings.TrimRight(body, " ")
	trail := len(s) - lead - len(body)
	if lead+trail == 0 {
		return s
	}
	return strings.Repeat(`\x20`, lead) + body + strings.Repeat(`\x20`, trail)
}

// Token renders a token in at most w cells; its beginning and end tell it
// apart from others well enough for a person.
func (g *glyphs) Token(t safetext.Text, w int) string {
	if t.Empty() {
		return g.None
	}
	if len(t.Raw()) > w {
		w = min(w, 11)
	}
	return g.Text(t, w)
}

// Sentence is Escape for a text that is read from its beginning, such as an
// event: its end is cut instead of its middle.
func (g *glyphs) Sentence(raw string, w int) string {
	if w <= 0 {
		return ""
	}
	if most := 4 * (w + 2); len(raw) > most {
		raw = raw[:most]
	}
	if g.Ascii {
		raw = g.OnlyASCII(raw)
	}
	return g.Cut(g.settle(safetext.Escape(raw)), w)
}

// longestWhole is how many bytes of a text are rendered where it is shown in
// full: more than any honest one has, and no more than a frame may take for it.
const longestWhole = 4 << 10

// Whole renders untrusted text in full, but for the end of one that is longer
// than anybody reads.
func (g *glyphs) Whole(raw string) string {
	if len(raw) > longestWhole {
		return g.settle(safetext.Escape(raw[:longestWhole])) + g.Ellipsis
	}
	return g.settle(safetext.Escape(raw))
}

// settle makes text that was escaped take the same cells on every terminal:
// clusters of several characters (flags, skin tones, Hangul in parts), about
// whose width terminals disagree, are spelt out. In ASCII mode so is everything
// beyond ASCII.
func (g *glyphs) settle(s string) string {
	plain := true
	for i := 0; i < len(s) && plain; i++ {
		plain = s[i] < utf8.RuneSelf
	}
	if plain {
		return s
	}
	var b strings.Builder
	var state byte
	for len(s) > 0 {
		cluster, w, n, next := ansi.GraphemeWidth.DecodeSequenceInString(s, state, nil)
		state = next
		if n <= 0 { // cannot be: never loop on it
			break
		}
		one := utf8.RuneCountInString(cluster) == 1
		if one && (cluster[0] < utf8.RuneSelf || !g.Ascii && w > 0 && w == ansi.StringWidthWc(cluster)) {
			b.WriteString(cluster)
		} else {
			q := strconv.QuoteToASCII(cluster)
			b.WriteString(q[1 : len(q)-1])
		}
		s = s[n:]
	}
	return b.String()
}

// Wrap breaks a line into lines of at most w cells; the later ones begin with
// indent cells.
func Wrap(s string, w, indent int) []string {
	if Width(s) <= w {
		return []string{s}
	}
	if indent > w/2 {
		indent = 0
	}
	first, rest := s, ""
	lines := strings.Split(ansi.Wrap(s, w, ""), "\n")
	if len(lines) > 1 && indent > 0 {
		first = lines[0]
		rest = strings.TrimLeft(strings.Join(lines[1:], " "), " ")
		lines = []string{first}
		for _, l := range strings.Split(ansi.Wrap(rest, w-indent, ""), "\n") {
			lines = append(lines, Blanks(indent)+l)
		}
	}
	return lines
}

// Bar draws share (0 to 1) of w cells as full.
func (g *glyphs) Bar(share float64, w int) string {
	full := int(math.Round(math.Max(0, math.Min(1, share)) * float64(w)))
	return strings.Repeat(g.BarFull, full) + strings.Repeat(g.barEmpty, w-full)
}

// Sparkline draws the latest w of the round trips, oldest first.
func (g *glyphs) Sparkline(ds []time.Duration, w int) string {
	if len(ds) == 0 {
		return g.PadLeft(g.None, w)
	}
	ds = ds[max(0, len(ds)-w):]
	low, high := ds[0], ds[0]
	for _, d := range ds {
		low, high = min(low, d), max(high, d)
	}
	// A calm line is a low line: the scale never shows less than a doubling or a
	// millisecond, so that noise does not look like trouble.
	span := max(high-low, low, time.Millisecond)
	var b strings.Builder
	b.WriteString(Blanks(w - len(ds)))
	for _, d := range ds {
		i := int(int64(d-low) * int64(len(g.spark)-1) / int64(span))
		b.WriteString(g.spark[i])
	}
	return b.String()
}

// Remaining is a time until something ends, rounded down, in at most four
// cells: a lock never looks longer than it is.
func Remaining(d time.Duration) string {
	switch {
	case d <= 0:
		return "0s"
	case d < time.Second:
		return "<1s"
	case d < 100*time.Second:
		return strconv.Itoa(int(d/time.Second)) + "s"
	case d < 100*time.Minute:
		return strconv.Itoa(int(d/time.Minute)) + "m"
	case d < 48*time.Hour:
		return strconv.Itoa(int(d/time.Hour)) + "h"
	case d < 1000*24*time.Hour:
		return strconv.Itoa(int(d/(24*time.Hour))) + "d"
	default:
		return ">2y"
	}
}

// Age is a time since something, in at most six cells.
func Age(d time.Duration) string {
	d = max(d, 0)
	s, m, h := int(d/time.Second), int(d/time.Minute), int(d/time.Hour)
	switch {
	case m < 1:
		return fmt.Sprintf("%ds", s)
	case m < 10:
		return fmt.Sprintf("%dm%02ds", m, s%60)
	case h < 1:
		return fmt.Sprintf("%dm", m)
	case h < 24:
		return fmt.Sprintf("%dh%dm", h, m%60)
	case h < 100*24:
		return fmt.Sprintf("%dd%dh", h/24, h%24)
	default:
		return fmt.Sprintf("%dd", h/24)
	}
}

// Span is a time as a person says it, in tenths of a second below two minutes.
func Span(d time.Duration) string {
	if d < 2*time.Minute {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// Count writes n with a comma every three digits.
func Count(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Milliseconds writes d in ms with one decimal, or in seconds where it is long.
func Milliseconds(d time.Duration) string {
	if d.Abs() >= 10*time.Second {
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + "s"
	}
	return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', 1, 64) + "ms"
}

// Signed writes a number with its sign.
func (g *glyphs) Signed(f float64, decimals int) string {
	s := strconv.FormatFloat(math.Abs(f), 'f', decimals, 64)
	if f < 0 && strings.Trim(s, "0.") != "" {
		return g.minus + s
	}
	return "+" + s
}

// Clock is the time of day.
func Clock(t time.Time) string { return t.Format("15:04:05") }

// CutLeft keeps the last w cells of a plain s; one less where a wide character
// stands across the cut.
func CutLeft(s string, w int) string {
	n := Width(s)
	for drop := n - w; drop > 0 && Width(s) > max(0, w); drop++ {
		if drop >= n {
			return ""
		}
		if t := ansi.TruncateLeft(s, drop, ""); Width(t) <= w {
			return t
		}
	}
	return s
}

// OnlyASCII replaces the few characters of our own sentences that ASCII lacks.
func (g *glyphs) OnlyASCII(s string) string {
	return strings.NewReplacer("…", "..", "×", "x", "–", "-", "−", "-", "→", "->", "·", "|", "±", "+-").Replace(s)
}

// Our is a sentence of the program itself.
func (g *glyphs) Our(s string) string {
	if g.Ascii {
		return g.OnlyASCII(s)
	}
	return s
}

// Plural is n and its noun.
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Count(n) + " " + noun + "s"
}
