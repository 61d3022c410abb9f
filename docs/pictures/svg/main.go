// Command svg draws a screen as a picture: it reads what `tmux capture-pane -e -p`
// prints and writes an SVG of it in a window's frame. Of several screens, given as files,
// it makes a film. scripts/pictures makes the pictures of the documentation with it.
//
//	tmux capture-pane -e -p | go run ./docs/pictures/svg "the title" >picture.svg
//	go run ./docs/pictures/svg -every 0.5 "the title" screen1 screen2 … >film.svg
package main

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"html"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

func main() {
	every := flag.Float64("every", 1, "seconds for which each screen of a film is shown")
	flag.BoolVar(&light, "light", false, "a terminal with a light background")
	flag.Parse()
	if err := run(flag.Arg(0), *every, flag.Args()[min(1, flag.NArg()):]); err != nil {
		fmt.Fprintln(os.Stderr, "svg:", err)
		os.Exit(1)
	}
}

func run(title string, every float64, files []string) error {
	if len(files) == 0 {
		s, err := read(os.Stdin)
		if err != nil {
			return err
		}
		return draw(os.Stdout, title, every, s)
	}
	var film []screen
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		s, err := read(bytes.NewReader(text))
		if err != nil {
			return err
		}
		film = append(film, s)
	}
	return draw(os.Stdout, title, every, film...)
}

// Sizes in the picture's units. A cell is as wide as a letter of the usual
// monospaced fonts, 0.602 of their size.
const (
	fontSize = 14.0
	cellW    = 8.43
	cellH    = 18.0
	margin   = 16.0
	barH     = 34.0 // the window's title
	baseline = 13.5
)

// paint has the colours of a terminal that the screen does not choose.
type paint struct {
	paper, frame, ink, bold, reversed string
	ansi                              [16]string
}

var onDark = paint{paper: "#10151c", frame: "#1b222c", ink: "#c6d0db", bold: "#f0f4f8", reversed: "#a9b8c8", ansi: [16]string{
	"#39424e", "#f47067", "#7ccf7c", "#e6b450", "#6cb6ff", "#dcbdfb", "#56d4dd", "#c6d0db",
	"#6b7683", "#ff938a", "#9be59b", "#ffd479", "#96d0ff", "#eedcff", "#8ae8ef", "#f0f4f8",
}}

var onLight = paint{paper: "#fdfdfb", frame: "#e4e6e8", ink: "#24292f", bold: "#000000", reversed: "#24292f", ansi: [16]string{
	"#000000", "#c91b00", "#00a33f", "#a08500", "#0225c7", "#b0009b", "#00918f", "#bfbfbf",
	"#686868", "#e0210f", "#00b847", "#b89b00", "#3b56ff", "#d316ba", "#00a5a3", "#d8d8d8",
}}

var light bool

// colors returns those of the terminal that is drawn.
func colors() *paint {
	if light {
		return &onLight
	}
	return &onDark
}

// pen is how a cell is written.
type pen struct {
	fg, bg               string // "": the terminal's own
	bold, faint, reverse bool
	line                 bool // underlined
}

// cell is one character at its column.
type cell struct {
	pen
	text string
	col  int
}

// screen is what a terminal shows.
type screen struct {
	rows [][]cell
	cols int
}

func read(r io.Reader) (s screen, err error) {
	in := bufio.NewScanner(r)
	var p pen
	for in.Scan() {
		row, end := parse(in.Text(), &p)
		s.rows, s.cols = append(s.rows, row), max(s.cols, end)
	}
	for len(s.rows) > 0 && len(s.rows[len(s.rows)-1]) == 0 {
		s.rows = s.rows[:len(s.rows)-1]
	}
	return s, in.Err()
}

// draw writes screens as a picture, or as a film in which each is shown for some seconds.
func draw(w io.Writer, title string, every float64, film ...screen) error {
	lines, cols := 0, 0
	for _, s := range film {
		lines, cols = max(lines, len(s.rows)), max(cols, s.cols)
	}
	width, height := float64(cols)*cellW+2*margin, barH+float64(lines)*cellH+margin+6
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" role="img" `+
		`font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace" font-size="%.0f" fill="%s">`+"\n",
		width, height, width, height, fontSize, colors().ink)
	fmt.Fprintf(out, "<title>%s</title>\n", html.EscapeString(title))
	fmt.Fprintf(out, `<rect x="0.5" y="0.5" width="%.0f" height="%.0f" rx="9" fill="%s" stroke="#313b48"/>`+"\n", width-1, height-1, colors().paper)
	fmt.Fprintf(out, `<path d="M1 %.0fV10a9 9 0 0 1 9-9H%.0fa9 9 0 0 1 9 9V%.0fz" fill="%s"/>`+"\n", barH-6, width-10, barH-6, colors().frame)
	for i, dot := range []string{"#ed6a5e", "#f5bf4f", "#61c554"} {
		fmt.Fprintf(out, `<circle cx="%d" cy="14.5" r="5.5" fill="%s"/>`+"\n", 20+i*19, dot)
	}
	fmt.Fprintf(out, `<text x="%.1f" y="19" text-anchor="middle" font-size="12.5" fill="#8b97a5">%s</text>`+"\n", width/2, html.EscapeString(title))
	for i := range lines {
		drawLine(out, i, every, film)
	}
	fmt.Fprintln(out, "</svg>")
	return out.Flush()
}

// drawLine draws line i of all screens. Each version of the line is drawn once, with the times at which
// it is visible.
func drawLine(w io.Writer, i int, every float64, film []screen) {
	var looks []string
	shown := map[string][]bool{}
	for k, s := range film {
		var b strings.Builder
		if i < len(s.rows) {
			drawRow(&b, s.rows[i], barH+float64(i)*cellH)
		}
		look := b.String()
		if shown[look] == nil {
			looks, shown[look] = append(looks, look), make([]bool, len(film))
		}
		shown[look][k] = true
	}
	for _, look := range looks {
		switch {
		case look == "":
		case len(looks) == 1:
			fmt.Fprint(w, look)
		default:
			fmt.Fprintf(w, "<g%s>%s%s</g>\n", visibility(shown[look][0]), blink(shown[look], every), look)
		}
	}
}

func visibility(is bool) string { return fmt.Sprintf(` visibility="%s"`, word(is)) }

func word(visible bool) string {
	if visible {
		return "visible"
	}
	return "hidden"
}

// blink shows a part of a film at the screens to which it belongs, again and again.
func blink(shown []bool, every float64) string {
	var values, times []string
	for k, is := range shown {
		if k == 0 || is != shown[k-1] {
			values, times = append(values, word(is)), append(times, strconv.FormatFloat(float64(k)/float64(len(shown)), 'f', 4, 64))
		}
	}
	return fmt.Sprintf(`<animate attributeName="visibility" calcMode="discrete" dur="%.1fs" repeatCount="indefinite" values="%s" keyTimes="%s"/>`+"\n",
		every*float64(len(shown)), strings.Join(values, ";"), strings.Join(times, ";"))
}

// parse returns the cells of a line, without blanks that have no background, and the
// column after the last.
func parse(line string, p *pen) (row []cell, col int) {
	for len(line) > 0 {
		if rest, ok := strings.CutPrefix(line, "\x1b["); ok {
			end := strings.IndexFunc(rest, func(r rune) bool { return r >= '@' && r <= '~' })
			if end < 0 {
				return row, col
			}
			if rest[end] == 'm' {
				p.set(strings.Split(rest[:end], ";"))
			}
			line = rest[end+1:]
			continue
		}
		cluster, n := ansi.FirstGraphemeCluster(line, ansi.GraphemeWidth)
		if cluster == "" {
			break
		}
		line = line[len(cluster):]
		if n == 0 {
			continue
		}
		if cluster != " " || p.background() != "" || p.line {
			row = append(row, cell{*p, cluster, col})
		}
		col += n
	}
	return row, col
}

// set obeys the numbers of one SGR sequence.
func (p *pen) set(codes []string) {
	for i := 0; i < len(codes); i++ {
		n, _ := strconv.Atoi(codes[i])
		switch {
		case n == 38:
			p.fg, i = long(codes, i)
		case n == 48:
			p.bg, i = long(codes, i)
		case n == 0:
			*p = pen{}
		case n == 1:
			p.bold = true
		case n == 2:
			p.faint = true
		case n == 4:
			p.line = true
		case n == 7:
			p.reverse = true
		case n == 24:
			p.line = false
		case n == 22:
			p.bold, p.faint = false, false
		case n == 27:
			p.reverse = false
		case n >= 30 && n <= 37:
			p.fg = colors().ansi[n-30]
		case n == 39:
			p.fg = ""
		case n >= 40 && n <= 47:
			p.bg = colors().ansi[n-40]
		case n == 49:
			p.bg = ""
		case n >= 90 && n <= 97:
			p.fg = colors().ansi[n-82]
		case n >= 100 && n <= 107:
			p.bg = colors().ansi[n-92]
		}
	}
}

// long reads a colour of 256 (38;5;N) or of all (38;2;R;G;B) that begins at i, and returns where it
// ends.
func long(codes []string, i int) (string, int) {
	n := func(k int) int {
		v, _ := strconv.Atoi(codes[k])
		return min(max(v, 0), 255)
	}
	switch {
	case i+4 < len(codes) && codes[i+1] == "2":
		return fmt.Sprintf("#%02x%02x%02x", n(i+2), n(i+3), n(i+4)), i + 4
	case i+2 >= len(codes) || codes[i+1] != "5":
		return "", i
	}
	switch v := n(i + 2); {
	case v < 16:
		return colors().ansi[v], i + 2
	case v < 232: // a cube of six steps
		step := func(k int) int {
			if k == 0 {
				return 0
			}
			return 55 + 40*k
		}
		return fmt.Sprintf("#%02x%02x%02x", step((v-16)/36), step((v-16)/6%6), step((v-16)%6)), i + 2
	default:
		grey := 8 + 10*(v-232)
		return fmt.Sprintf("#%02x%02x%02x", grey, grey, grey), i + 2
	}
}

// color is what the cell is written in.
func (p pen) color() string {
	if p.reverse {
		if p.bg != "" {
			return p.bg
		}
		return colors().paper
	}
	if p.fg != "" {
		return p.fg
	}
	if p.bold {
		return colors().bold
	}
	return colors().ink
}

// background returns the colour of the cell; "" is the default.
func (p pen) background() string {
	if !p.reverse {
		return p.bg
	}
	if p.fg != "" {
		return p.fg
	}
	return colors().reversed
}

// drawRow draws runs of cells of one look: their background, then their text.
func drawRow(w io.Writer, row []cell, y float64) {
	for i := 0; i < len(row); {
		j := i + 1
		for j < len(row) && row[j].pen == row[i].pen && row[j].col == row[j-1].col+ansi.StringWidth(row[j-1].text) {
			j++
		}
		last := row[j-1]
		if bg := row[i].background(); bg != "" {
			width := float64(last.col+ansi.StringWidth(last.text)-row[i].col) * cellW
			fmt.Fprintf(w, `<rect x="%.2f" y="%.1f" width="%.2f" height="%.1f" fill="%s"/>`+"\n", at(row[i].col), y, width, cellH, bg)
		}
		if row[i].line {
			width := float64(last.col+ansi.StringWidth(last.text)-row[i].col) * cellW
			fmt.Fprintf(w, `<rect x="%.2f" y="%.1f" width="%.2f" height="1" fill="%s"/>`+"\n", at(row[i].col), y+cellH-1.5, width, row[i].color())
		}
		drawRun(w, row[i:j], y)
		i = j
	}
}

func at(col int) float64 { return margin + float64(col)*cellW }

// drawRun draws letters as text. Blocks and rules are shapes, and signs stand in
// the middle of their cell: fonts do not agree on how wide they are.
func drawRun(w io.Writer, run []cell, y float64) {
	p := run[0].pen
	look := fmt.Sprintf(` fill="%s"`, p.color())
	if p.faint {
		look += ` opacity="0.6"`
	}
	weight := ""
	if p.bold {
		weight = ` font-weight="700"`
	}
	for i := 0; i < len(run); {
		c := run[i]
		if shape := block(c.text, at(c.col), y); shape != "" {
			j := i + 1
			for j < len(run) && run[j].text == c.text && wide(c.text) {
				j++
			}
			fmt.Fprintf(w, shape+"\n", float64(j-i)*cellW, look)
			i = j
			continue
		}
		if c.text[0] >= 0x80 {
			x := at(c.col) + float64(ansi.StringWidth(c.text))*cellW/2
			fmt.Fprintf(w, `<text x="%.2f" y="%.1f" text-anchor="middle"%s%s>%s</text>`+"\n", x, y+baseline, look, weight, html.EscapeString(c.text))
			i++
			continue
		}
		j := i
		var b strings.Builder
		for j < len(run) && run[j].text[0] < 0x80 {
			b.WriteString(run[j].text)
			j++
		}
		if text := b.String(); strings.TrimSpace(text) != "" {
			fmt.Fprintf(w, `<text x="%.2f" y="%.1f" textLength="%.2f" xml:space="preserve"%s%s>%s</text>`+"\n",
				at(c.col), y+baseline, float64(len(text))*cellW, look, weight, html.EscapeString(text))
		}
		i = j
	}
}

// wide reports whether equal neighbours are one shape.
func wide(s string) bool { return s == "█" || s == "░" || s == "▒" || s == "─" }

// block is a block or rule as a shape, with its width and look left open.
func block(s string, x, y float64) string {
	box := func(top, height float64, more string) string {
		return fmt.Sprintf(`<rect x="%.2f" y="%.2f" height="%.2f" width="%%.2f"%%s%s/>`, x, top, height, more)
	}
	const gap = 3 // between bars of two rows
	const full = cellH - 2*gap
	switch s {
	case "█":
		return box(y+gap, full, "")
	case "▒":
		return box(y+gap, full, ` fill-opacity="0.45"`)
	case "░":
		return box(y+gap, full, ` fill-opacity="0.22"`)
	case "─":
		return box(y+cellH/2-0.5, 1, "")
	}
	if i := strings.Index("▁▂▃▄▅▆▇", s); i >= 0 && len(s) == len("▁") {
		height := full * float64(i/len("▁")+1) / 8
		return box(y+gap+full-height, height, "")
	}
	return ""
}
