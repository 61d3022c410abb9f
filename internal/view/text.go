package view

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"redlockctl/server/safetext"
)

// Width returns how many cells s takes; escape sequences take none. ASCII, colours and our
// own glyphs, most of a frame, are counted without segmenting grapheme clusters.
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

// OneCell reports whether r is one of our glyphs, which take one cell and never combine.
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

// Cut shortens s to at most w cells, with an ellipsis.
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

// Clauses drops the last clauses of s until it fits into w cells: "billing, alive, told"
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

// Middle shortens a plain s to at most w cells by cutting its middle: names with the same
// beginning often differ at the end.
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

// ends drops the middle of a long s that cannot be visible in w cells: an escaped
// character takes at least one cell, and at most four bytes.
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

// CutLeft keeps the last w cells of a plain s, one less if a wide character is on the cut.
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

// Name renders an untrusted name. Spaces at its ends are escaped: without that, two names
// could look the same.
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

// Sentence is Escape for a sentence, such as an event: it cuts the end, not the middle.
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

// longestWhole is how many bytes of a text are rendered in full: more than any honest
// text has, and few enough for a frame.
const longestWhole = 4 << 10

// Whole renders untrusted text in full, up to a length that nobody reads.
func (g *Glyphs) Whole(raw string) string {
	if len(raw) > longestWhole {
		return g.settle(safetext.Escape(raw[:longestWhole])) + g.Ellipsis
	}
	return g.settle(safetext.Escape(raw))
}

// settle makes escaped text take the same width on every terminal: it escapes clusters of
// several characters (flags, skin tones, Hangul in parts), because terminals disagree
// about their width. In ASCII mode it escapes everything beyond ASCII.
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
	last := " " // the text before it does not matter
	for len(s) > 0 {
		cluster, w, n, next := ansi.GraphemeWidth.DecodeSequenceInString(s, state, nil)
		state = next
		if n <= 0 { // impossible; do not loop for ever
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

// Bar draws a bar of w cells, of which share (0 to 1) are full.
func (g *Glyphs) Bar(share float64, w int) string {
	full := int(math.Round(math.Max(0, math.Min(1, share)) * float64(w)))
	return strings.Repeat(g.Full, full) + strings.Repeat(g.empty, w-full)
}

// Sparkline draws the latest w round trips, oldest first.
func (g *Glyphs) Sparkline(ds []time.Duration, w int) string {
	if len(ds) == 0 {
		return strings.Repeat(" ", max(0, w-Width(g.None))) + g.None
	}
	ds = ds[max(0, len(ds)-w):]
	low, high := ds[0], ds[0]
	for _, d := range ds {
		low, high = min(low, d), max(high, d)
	}
	// The scale spans at least a factor of two and a millisecond, so that noise looks flat.
	span := max(high-low, low, time.Millisecond)
	var b strings.Builder
	b.WriteString(strings.Repeat(" ", w-len(ds)))
	for _, d := range ds {
		i := int(int64(d-low) * int64(len(g.spark)-1) / int64(span))
		b.WriteString(g.spark[i])
	}
	return b.String()
}

// rttSteps are the least round trips of the bars of [Glyphs.RTTs] but the first.
var rttSteps = []time.Duration{
	time.Millisecond, 3 * time.Millisecond, 10 * time.Millisecond, 30 * time.Millisecond, 100 * time.Millisecond, 300 * time.Millisecond, time.Second,
}

// RTTs draws round trips on one scale for all nodes, so that they can be compared: each
// bar stands for about three times the one below.
func (g *Glyphs) RTTs(ds []time.Duration, w int) string {
	if len(ds) == 0 {
		return strings.Repeat(" ", max(0, w-Width(g.None))) + g.None
	}
	ds = ds[max(0, len(ds)-w):]
	var b strings.Builder
	b.WriteString(strings.Repeat(" ", w-len(ds)))
	for _, d := range ds {
		i := 0
		for i < len(rttSteps) && d >= rttSteps[i] {
			i++
		}
		b.WriteString(g.spark[i*(len(g.spark)-1)/len(rttSteps)])
	}
	return b.String()
}

// SlowRTT reports whether the last round trip to a node is above what is normal for it:
// twice the median, and at least two milliseconds more.
func SlowRTT(rtts []time.Duration) bool {
	if len(rtts) < 4 {
		return false
	}
	sorted := slices.Sorted(slices.Values(rtts))
	median, last := sorted[len(sorted)/2], rtts[len(rtts)-1]
	return last > 2*median && last-median >= 2*time.Millisecond
}

// Signed formats a number with its sign; zero has a plus.
func (g *Glyphs) Signed(f float64, decimals int) string {
	s := strconv.FormatFloat(math.Abs(f), 'f', decimals, 64)
	if f < 0 && strings.Trim(s, "0.") != "" {
		return g.Minus + s
	}
	return "+" + s
}

// SignedMS formats the offset of a clock.
func (g *Glyphs) SignedMS(d time.Duration) string { return g.Signed(inMS(d), 1) + " ms" }
