package view

import (
	"strconv"
	"strings"
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
	case '●', '◐', '○', '◌', '◔', '◆', '◇', '■', '▲', '▸', '◂', '✗', '…', '–', '−', '·', '±', '∞', '×', '≥':
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

// Middle makes a plain s at most w cells wide by leaving out its middle: names
// that begin alike tend to differ at their end.
func (g *Glyphs) Middle(s string, w int) string {
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
	// Each character takes a cell or more once it is escaped, and up to four
	// bytes: what is beyond that at both ends cannot be seen.
	if most := 4 * (w + 2); len(raw) > 2*most {
		raw = raw[:most] + raw[len(raw)-most:]
	}
	return g.Middle(g.Name(raw), w)
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
		if !one || cluster[0] >= utf8.RuneSelf && (g.ASCII || w <= 0 || w != ansi.StringWidthWc(cluster) || joins(last, cluster)) {
			q := strconv.QuoteToASCII(cluster)
			cluster = q[1 : len(q)-1]
		}
		b.WriteString(cluster)
		last = cluster
		s = s[n:]
	}
	return b.String()
}

// joins reports whether two clusters take fewer cells together, as a letter and the
// colour of a skin.
func joins(a, b string) bool {
	return ansi.StringWidth(a+b) != ansi.StringWidth(a)+ansi.StringWidth(b)
}
