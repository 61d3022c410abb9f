package cli

import (
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"redlockctl/internal/safetext"
)

// tone is the urgency of a cell; it is shown as a colour where there are
// colours, and never says what the text does not.
type tone uint8

const (
	toneNone tone = iota
	toneGood
	toneWarn
	toneBad
	toneDim
)

var tones = [...]ansi.Style{
	toneNone: {},
	toneGood: ansi.Style{}.ForegroundColor(ansi.Green),
	toneWarn: ansi.Style{}.ForegroundColor(ansi.Yellow),
	toneBad:  ansi.Style{}.ForegroundColor(ansi.Red),
	toneDim:  ansi.Style{}.Faint(),
}

// cell is one field of a table, of text that is safe to print.
type cell struct {
	text string
	tone tone
}

// plain is a cell of text from anywhere.
func plain(s string) cell { return cell{text: safetext.Escape(s)} }

// table is rows in aligned columns, two spaces apart.
type table struct {
	head []string
	rows [][]cell
	// each are the rows where there may be very many: made to be measured, and again
	// to be written.
	each iter.Seq[[]cell]
}

func (t *table) add(cells ...cell) { t.rows = append(t.rows, cells) }

// write prints the table; without color it holds no escape code. Empty columns
// at the end of a row leave no blanks behind.
func (t *table) write(w io.Writer, color bool) {
	width := make([]int, len(t.head))
	for i, h := range t.head {
		width[i] = ansi.StringWidth(h)
	}
	each := t.each
	if each == nil {
		each = slices.Values(t.rows)
	}
	for row := range each {
		for i, c := range row {
			width[i] = max(width[i], ansi.StringWidth(c.text))
		}
	}
	head := make([]cell, len(t.head))
	for i, h := range t.head {
		head[i] = cell{h, toneDim}
	}
	writeRow(w, head, width, color)
	for row := range each {
		writeRow(w, row, width, color)
	}
}

func writeRow(w io.Writer, row []cell, width []int, color bool) {
	last := len(row)
	for last > 0 && row[last-1].text == "" {
		last--
	}
	var b strings.Builder
	for i, c := range row[:last] {
		text := c.text
		if color && c.tone != toneNone && text != "" {
			text = tones[c.tone].Styled(text)
		}
		b.WriteString(text)
		if i < last-1 {
			b.WriteString(strings.Repeat(" ", width[i]-ansi.StringWidth(c.text)+2))
		}
	}
	fmt.Fprintln(w, b.String())
}

// clip shortens text to a width in cells.
func (a *commandLine) clip(s string, width int) string {
	if a.ascii {
		return ansi.Truncate(s, width, "...")
	}
	return ansi.Truncate(s, width, "…")
}

// plusMinus is the sign between a value and its bound.
func (a *commandLine) plusMinus() string {
	if a.ascii {
		return "+/-"
	}
	return "±"
}

// span is a duration for people: two figures are enough to decide by.
func span(d time.Duration) string {
	switch {
	case d <= -time.Microsecond/2:
		return "-" + span(-d)
	case d < time.Microsecond/2:
		return "0ms"
	case d < time.Millisecond:
		d = d.Round(time.Microsecond)
		if d >= 100*time.Microsecond {
			d = d.Round(10 * time.Microsecond)
		}
		return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', -1, 64) + "ms"
	case d < time.Second:
		return fmt.Sprintf("%.1fms", float64(d)/float64(time.Millisecond))
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
}

// left is a remaining time in seconds with one decimal below a minute.
func left(d time.Duration) string {
	if d <= 0 {
		return "0.0s"
	}
	if d < time.Minute {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return span(d)
}

// plural is a count with its noun.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
