package view

import (
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

// OneCell reports whether r is one of our glyphs: each takes one cell and joins with
// nothing.
func OneCell(r rune) bool {
	if r >= 0x2500 && r <= 0x259f { // rules and blocks
		return true
	}
	switch r {
	case '●', '◐', '○', '◌', '◔', '◕', '◆', '◇', '■', '▲', '▸', '◂', '✗', '…', '–', '−', '·', '±', '∞', '×', '≥':
		return true
	}
	return false
}

// Cut makes s at most w cells wide, with an ellipsis where something went.
func (g *Glyphs) Cut(s string, w int) string {
	if w <= 0 {
		return ""
	}
	tail := g.Ellipsis
	if Width(tail) >= w {
		tail = ""
	}
	return ansi.Truncate(s, w, tail)
}

// Clauses is s without its last clauses, as far as it is wider than w: "billing, alive, told"
// becomes "billing, alive".
func Clauses(s string, w int) string {
	for Width(s) > w {
		i := strings.LastIndex(s, ", ")
		if i < 0 {
			break
		}
		s = s[:i]
	}
	return s
}

// Middle makes a plain s at most w cells wide by leaving out its middle: names
// that begin alike tend to differ at their end.
func (g *Glyphs) Middle(s string, w int) string {
	s = ends(s, w)
	if Width(s) <= w {
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

// ends leaves out of a long s what cannot be seen in w cells: each character takes a
// cell or more once it is escaped, and up to four bytes.
func ends(s string, w int) string {
	most := utf8.UTFMax * (max(0, w) + 2)
	if len(s) <= 2*most {
		return s
	}
	head, tail := most, len(s)-most
	for ; head < most+utf8.UTFMax && !utf8.RuneStart(s[head]); head++ {
	}
	for ; tail > len(s)-most-utf8.UTFMax && !utf8.RuneStart(s[tail]); tail-- {
	}
	return s[:head] + s[tail:]
}

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

// Escape renders an untrusted string, such as an error of a server, in at most
// w cells.
func (g *Glyphs) Escape(raw string, w int) string {
	if w <= 0 {
		return ""
	}
	return g.Middle(g.Name(ends(raw, w)), w)
}

// Name renders an untrusted name. Blanks at its ends are spelt out, or two
// names could look the same.
func (g *Glyphs) Name(raw string) string {
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

// Sentence is escape for a text that is read from its beginning, such as an
// event: its end is cut instead of its middle.
func (g *Glyphs) Sentence(raw string, w int) string {
	if w <= 0 {
		return ""
	}
	if most := 4 * (w + 2); len(raw) > most {
		raw = raw[:most]
	}
	if g.ASCII {
		raw = onlyASCII.Replace(raw)
	}
	return g.Cut(g.settle(safetext.Escape(raw)), w)
}

// longestWhole is how many bytes of a text are rendered where it is shown in
// full: more than any honest one has, and no more than a frame may take for it.
const longestWhole = 4 << 10

// Whole renders untrusted text in full, but for the end of one that is longer
// than anybody reads.
func (g *Glyphs) Whole(raw string) string {
	if len(raw) > longestWhole {
		return g.settle(safetext.Escape(raw[:longestWhole])) + g.Ellipsis
	}
	return g.settle(safetext.Escape(raw))
}

// settle makes text that was escaped take the same cells on every terminal:
// clusters of several characters (flags, skin tones, Hangul in parts), about
// whose width terminals disagree, are spelt out. In ASCII mode so is everything
// beyond ASCII.
func (g *Glyphs) settle(s string) string {
	plain := true
	for i := 0; i < len(s) && plain; i++ {
		plain = s[i] < utf8.RuneSelf
	}
	if plain {
		return s
	}
	var b strings.Builder
	var state byte
	last := " " // whatever stands before it
	for len(s) > 0 {
		cluster, w, n, next := ansi.GraphemeWidth.DecodeSequenceInString(s, state, nil)
		state = next
		if n <= 0 { // cannot be: never loop on it
			break
		}
		one := utf8.RuneCountInString(cluster) == 1
		// Two clusters may take fewer cells together, as a letter and the colour of a skin.
		if !one || cluster[0] >= utf8.RuneSelf && (g.ASCII || w <= 0 || w != ansi.StringWidthWc(cluster) || ansi.StringWidth(last+cluster) != ansi.StringWidth(last)+ansi.StringWidth(cluster)) {
			q := strconv.QuoteToASCII(cluster)
			cluster = q[1 : len(q)-1]
		}
		b.WriteString(cluster)
		last = cluster
		s = s[n:]
	}
	return b.String()
}

// Bar draws share (0 to 1) of w cells as full.
func (g *Glyphs) Bar(share float64, w int) string {
	full := int(math.Round(math.Max(0, math.Min(1, share)) * float64(w)))
	return strings.Repeat(g.Full, full) + strings.Repeat(g.empty, w-full)
}

// Sparkline draws the latest w of the round trips, oldest first.
func (g *Glyphs) Sparkline(ds []time.Duration, w int) string {
	if len(ds) == 0 {
		return strings.Repeat(" ", max(0, w-Width(g.None))) + g.None
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
	b.WriteString(strings.Repeat(" ", w-len(ds)))
	for _, d := range ds {
		i := int(int64(d-low) * int64(len(g.spark)-1) / int64(span))
		b.WriteString(g.spark[i])
	}
	return b.String()
}

// Signed writes a number with its sign; what rounds to nothing has a plus.
func (g *Glyphs) Signed(f float64, decimals int) string {
	s := strconv.FormatFloat(math.Abs(f), 'f', decimals, 64)
	if f < 0 && strings.Trim(s, "0.") != "" {
		return g.Minus + s
	}
	return "+" + s
}

// SignedMS is how far a clock is off.
func (g *Glyphs) SignedMS(d time.Duration) string { return g.Signed(inMS(d), 1) + " ms" }
