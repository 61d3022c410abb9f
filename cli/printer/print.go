// Package printer writes the output of commands: documents and tables to standard output
// in the format of --output, notes and errors to standard error. Escape codes are written
// to terminals only.
package printer

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/server/safetext"
)

// Printer has the standard streams and the output format of a command.
type Printer struct {
	In                    io.Reader
	Out, Err              io.Writer
	InTTY, OutTTY, ErrTTY bool
	Getenv                func(string) string

	Output         string // table, wide, json, jsonl, csv, or another word that a command knows
	NoColor, ASCII bool
	Width          int // of the terminal to which standard output goes; 0: unknown
}

// Color reports whether standard output may be coloured: where it is a terminal that can, or
// CLICOLOR_FORCE says so.
func (p *Printer) Color() bool {
	if p.NoColor || p.Getenv("NO_COLOR") != "" {
		return false
	}
	if force := p.Getenv("CLICOLOR_FORCE"); force != "" && force != "0" {
		return true
	}
	return p.OutTTY && p.Getenv("TERM") != "dumb"
}

// Note writes a line for a person to standard error.
func (p *Printer) Note(format string, args ...any) {
	fmt.Fprintf(p.Err, "redlockctl: "+format+"\n", args...)
}

var tones = [...]ansi.Style{
	view.Good: ansi.Style{}.ForegroundColor(ansi.Green),
	view.Info: ansi.Style{}.ForegroundColor(ansi.Cyan),
	view.Warn: ansi.Style{}.ForegroundColor(ansi.Yellow),
	view.Bad:  ansi.Style{}.ForegroundColor(ansi.Red),
	view.Dim:  ansi.Style{}.Faint(),
}

// Paint returns text in the colour of a tone, or unchanged without colours.
func (p *Printer) Paint(text string, tone view.Tone) string {
	if !p.Color() {
		return text
	}
	return painted(text, tone)
}

func painted(text string, tone view.Tone) string {
	if tone == view.None || tone == view.Strong || text == "" {
		return text
	}
	return tones[tone].Styled(text)
}

// Plain returns a cell with untrusted text.
func Plain(s string) view.Cell { return view.Cell{Text: safetext.Escape(s)} }

// Names prints names, one a line.
func (p *Printer) Names(names ...string) {
	for _, name := range names {
		fmt.Fprintln(p.Out, safetext.Escape(name))
	}
}

// Table prints a table to standard output.
func (p *Printer) Table(t *view.Table) { Table(p.Out, t, p.Color()) }

// Table prints a table; without color it has no escape codes. It iterates twice over the
// rows, because there may be too many to keep.
func Table(w io.Writer, t *view.Table, color bool) {
	width := make([]int, len(t.Head))
	head := make([]view.Cell, len(t.Head))
	for i, h := range t.Head {
		head[i], width[i] = view.Cell{Text: h, Tone: view.Dim}, view.Width(h)
	}
	for row := range t.Rows() {
		for i, c := range row {
			width[i] = max(width[i], view.Width(c.Text))
		}
	}
	printRow(w, t, head, width, color)
	for row := range t.Rows() {
		printRow(w, t, row, width, color)
	}
}

// printRow prints a row without trailing spaces.
func printRow(w io.Writer, t *view.Table, row []view.Cell, width []int, color bool) {
	last := len(row)
	for last > 0 && row[last-1].Text == "" {
		last--
	}
	var b strings.Builder
	for i, c := range row[:last] {
		blanks := strings.Repeat(" ", width[i]-view.Width(c.Text))
		text := c.Text
		if color {
			text = painted(text, c.Tone)
		}
		switch {
		case i < len(t.Right) && t.Right[i]:
			text = blanks + text
		case i < last-1:
			text += blanks
		}
		b.WriteString(text)
		if i < last-1 {
			b.WriteString(strings.Repeat(" ", view.Gap))
		}
	}
	fmt.Fprintln(w, b.String())
}

// Facts prints a line per fact and skips facts without text.
func (p *Printer) Facts(facts []view.Fact) {
	for _, f := range facts {
		if f.Text != "" {
			fmt.Fprintf(p.Out, "  %-11s %s\n", f.Label, p.Paint(p.Clip(f.Text, 400), f.Tone))
		}
	}
}

// Glyphs returns the symbols to print.
func (p *Printer) Glyphs() *view.Glyphs { return view.Plain(p.ASCII) }

// Clip shortens text to a width in cells.
func (p *Printer) Clip(s string, width int) string { return p.Glyphs().Cut(s, width) }

// ViewContext returns the context for making rows and facts.
func (p *Printer) ViewContext(s *monitor.Snapshot) *view.Context {
	began := s.Settled.IsZero() || s.At.Sub(s.Settled) < justCameTime
	return &view.Context{Glyphs: p.Glyphs(), Snap: s, Now: s.At, Began: began}
}

// List prints rows as a table or as csv, with the chosen columns, or all; doc makes the
// document of a row. A table on a terminal has the columns that fit.
func List[T any](p *Printer, chosen []string, ctx *view.Context, columns []view.Column[T], rows []T, doc func(T) any) error {
	if len(chosen) > 0 {
		var err error
		if columns, err = view.Choose(columns, chosen); err != nil {
			return err
		}
	}
	if p.Output == "csv" {
		return view.CSV(p.Out, columns, rows, doc)
	}
	var dropped []string
	if p.Output == "table" && p.Width > 0 && len(chosen) == 0 {
		columns, dropped = view.FitTable(ctx, columns, rows, p.Width)
	}
	p.Table(view.Tabulate(ctx, columns, rows, p.Output == "wide"))
	if len(dropped) > 0 {
		fmt.Fprintln(p.Out, p.Paint("no room for "+strings.Join(dropped, ", ")+": -o wide", view.Dim))
	}
	return nil
}

// justCameTime is longer than a command looks at a cluster.
const justCameTime = 10 * time.Second
