package tui

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

// width is how many cells s takes; escape sequences take none. Most of a frame
// is ASCII, colours and our own glyphs, which are counted without a look at
// grapheme clusters.
func width(s string) int {
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
			if !oneCell(r) {
				return ansi.StringWidth(s)
			}
			n++
			i += size
		}
	}
	return n
}

// oneCell tells if r is one of our glyphs: each takes one cell and joins with
// nothing.
func oneCell(r rune) bool {
	if r >= 0x2500 && r <= 0x259f { // rules and blocks
		return true
	}
	switch r {
	case '●', '◐', '○', '◌', '◔', '◆', '◇', '■', '▲', '▸', '◂', '✗', '…', '–', '−', '·', '±', '∞', '×':
		return true
	}
	return false
}

// pad makes s exactly w cells wide, its text on the left.
func (g *glyphs) pad(s string, w int) string {
	n := width(s)
	if n > w {
		s = g.cut(s, w)
		n = width(s)
	}
	return s + blanks(w-n)
}

// padLeft makes s exactly w cells wide, its text on the right.
func (g *glyphs) padLeft(s string, w int) string {
	n := width(s)
	if n > w {
		s = g.cut(s, w)
		n = width(s)
	}
	return blanks(w-n) + s
}

// cut makes s at most w cells wide, with an ellipsis where something went.
func (g *glyphs) cut(s string, w int) string {
	if w <= 0 {
		return ""
	}
	tail := g.ellipsis
	if width(tail) >= w {
		tail = ""
	}
	return ansi.Truncate(s, w, tail)
}

// middle makes a plain s at most w cells wide by leaving out its middle: names
// that begin alike tend to differ at their end.
func (g *glyphs) middle(s string, w int) string {
	n := width(s)
	if n <= w {
		return s
	}
	e := width(g.ellipsis)
	if w < e+4 {
		return g.cut(s, w)
	}
	head := (w - e) * 2 / 3
	tail := w - e - head
	return ansi.Truncate(s, head, "") + g.ellipsis + cutLeft(s, tail)
}

// bare is s without its colours: for a row that is a block of one.
func bare(s string) string { return ansi.Strip(s) }

func blanks(n int) string {
	if n <= 0 {
		return ""
	}
	return strings.Repeat(" ", n)
}

// text renders untrusted text in at most w cells.
func (g *glyphs) text(t safetext.Text, w int) string { return g.escape(t.Raw(), w) }

// escape renders an untrusted string, such as an error of a server, in at most
// w cells.
func (g *glyphs) escape(raw string, w int) string {
	if w <= 0 {
		return ""
	}
	// Each character takes a cell or more once it is escaped, and up to four
	// bytes: what is beyond that at both ends cannot be seen.
	if most := 4 * (w + 2); len(raw) > 2*most {
		raw = raw[:most] + raw[len(raw)-most:]
	}
	return g.middle(g.name(raw), w)
}

// name renders an untrusted name. Blanks at its ends are spelt out, or two
// names could look the same.
func (g *glyphs) name(raw string) string {
	if raw == "" {
		return "(empty)"
	}
	if half := longestWhole / 2; len(raw) > longestWhole { // names that begin alike tend to differ at their end
		return g.name(raw[:half]) + g.ellipsis + g.name(raw[len(raw)-half:])
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

// sentence is escape for a text that is read from its beginning, such as an
// event: its end is cut instead of its middle.
func (g *glyphs) sentence(raw string, w int) string {
	if w <= 0 {
		return ""
	}
	if most := 4 * (w + 2); len(raw) > most {
		raw = raw[:most]
	}
	if g.ascii {
		raw = g.onlyASCII(raw)
	}
	return g.cut(g.settle(safetext.Escape(raw)), w)
}

// longestWhole is how many bytes of a text are rendered where it is shown in
// full: more than any honest one has, and no more than a frame may take for it.
const longestWhole = 4 << 10

// whole renders untrusted text in full, but for the end of one that is longer
// than anybody reads.
func (g *glyphs) whole(raw string) string {
	if len(raw) > longestWhole {
		return g.settle(safetext.Escape(raw[:longestWhole])) + g.ellipsis
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
		if one && (cluster[0] < utf8.RuneSelf || !g.ascii && w > 0 && w == ansi.StringWidthWc(cluster)) {
			b.WriteString(cluster)
		} else {
			q := strconv.QuoteToASCII(cluster)
			b.WriteString(q[1 : len(q)-1])
		}
		s = s[n:]
	}
	return b.String()
}

// wrap breaks a line into lines of at most w cells; the later ones begin with
// indent cells.
func wrap(s string, w, indent int) []string {
	if width(s) <= w {
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
			lines = append(lines, blanks(indent)+l)
		}
	}
	return lines
}

// bar draws share (0 to 1) of w cells as full.
func (g *glyphs) bar(share float64, w int) string {
	full := int(math.Round(math.Max(0, math.Min(1, share)) * float64(w)))
	return strings.Repeat(g.barFull, full) + strings.Repeat(g.barEmpty, w-full)
}

// sparkline draws the latest w of the round trips, oldest first.
func (g *glyphs) sparkline(ds []time.Duration, w int) string {
	if len(ds) == 0 {
		return g.padLeft(g.none, w)
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
	b.WriteString(blanks(w - len(ds)))
	for _, d := range ds {
		i := int(int64(d-low) * int64(len(g.spark)-1) / int64(span))
		b.WriteString(g.spark[i])
	}
	return b.String()
}

// remaining is a time until something ends, rounded down, in at most four
// cells: a lock never looks longer than it is.
func remaining(d time.Duration) string {
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

// age is a time since something, in at most six cells.
func age(d time.Duration) string {
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

// span is a time as a person says it, in tenths of a second below two minutes.
func span(d time.Duration) string {
	if d < 2*time.Minute {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// count writes n with a comma every three digits.
func count(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// milliseconds writes d in ms with one decimal, or in seconds where it is long.
func milliseconds(d time.Duration) string {
	if d.Abs() >= 10*time.Second {
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + "s"
	}
	return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', 1, 64) + "ms"
}

// signed writes a number with its sign.
func (g *glyphs) signed(f float64, decimals int) string {
	s := strconv.FormatFloat(math.Abs(f), 'f', decimals, 64)
	if f < 0 && strings.Trim(s, "0.") != "" {
		return g.minus + s
	}
	return "+" + s
}

func clock(t time.Time) string { return t.Format("15:04:05") }

// cutLeft keeps the last w cells of a plain s; one less where a wide character
// stands across the cut.
func cutLeft(s string, w int) string {
	n := width(s)
	for drop := n - w; drop > 0 && width(s) > max(0, w); drop++ {
		if drop >= n {
			return ""
		}
		if t := ansi.TruncateLeft(s, drop, ""); width(t) <= w {
			return t
		}
	}
	return s
}

// onlyASCII replaces the few characters of our own sentences that ASCII lacks.
func (g *glyphs) onlyASCII(s string) string {
	return strings.NewReplacer("…", "..", "×", "x", "–", "-", "−", "-", "→", "->", "·", "|", "±", "+-").Replace(s)
}

// our is a sentence of the program itself.
func (g *glyphs) our(s string) string {
	if g.ascii {
		return g.onlyASCII(s)
	}
	return s
}

// plural is n and its noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return count(n) + " " + noun + "s"
}
