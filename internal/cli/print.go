package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"

	"redlockctl/internal/safetext"
	"redlockctl/internal/view"
	"redlockctl/monitor"
)

var tones = [...]ansi.Style{
	view.Good: ansi.Style{}.ForegroundColor(ansi.Green),
	view.Info: ansi.Style{}.ForegroundColor(ansi.Cyan),
	view.Warn: ansi.Style{}.ForegroundColor(ansi.Yellow),
	view.Bad:  ansi.Style{}.ForegroundColor(ansi.Red),
	view.Dim:  ansi.Style{}.Faint(),
}

// paint is text in its colour, where there are colours.
func (a *commandLine) paint(text string, tone view.Tone) string {
	if !a.color() {
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

// plain is a cell of text from anywhere.
func plain(s string) view.Cell { return view.Cell{Text: safetext.Escape(s)} }

// printTable prints a table; without color it holds no escape code. Its rows are
// gone through twice, since there may be too many to keep.
func printTable(w io.Writer, t *view.Table, color bool) {
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

// printRow prints a row. Empty columns at its end leave no blanks behind.
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

// facts prints facts, each on a line; those without a text are left out.
func (a *commandLine) facts(w io.Writer, facts []view.Fact) {
	for _, f := range facts {
		if f.Text != "" {
			fmt.Fprintf(w, "  %-11s %s\n", f.Label, a.paint(a.clip(f.Text, 400), f.Tone))
		}
	}
}

// clip shortens text to a width in cells.
func (a *commandLine) clip(s string, width int) string { return view.Plain(a.ascii).Cut(s, width) }

// viewContext is what rows and facts are made of.
func (a *commandLine) viewContext(s *monitor.Snapshot) *view.Context {
	return &view.Context{Glyphs: view.Plain(a.ascii), Snap: s, Now: s.At, Began: justCame(s)}
}

// listing is how a person wants a list: which columns, and in which order.
type listing struct {
	columns []string
	sort    string
}

func (l *listing) add(cmd *cobra.Command) *cobra.Command {
	f := cmd.Flags()
	f.StringSliceVar(&l.columns, "columns", nil, "only these columns, in this order: name,state,…")
	f.StringVar(&l.sort, "sort", "", "sort by a column, or by COLUMN:desc from the other end")
	return outputs(cmd, append(outputsOf(cmd), "csv")...)
}

// sorted are rows in the order that is wanted; what is wrong with the listing is
// said before anything is printed.
func sorted[T any](as *listing, all []view.Column[T], rows []T) ([]T, error) {
	if _, err := view.Choose(all, as.columns); err != nil {
		return nil, usageError{fmt.Errorf("--columns: %w", err)}
	}
	if as.sort == "" {
		return rows, nil
	}
	compare, err := view.Sort(all, as.sort)
	if err != nil {
		return nil, usageError{fmt.Errorf("--sort: %w", err)}
	}
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, compare)
	return rows, nil
}

// printList prints rows as a table or as csv; doc makes the document of one.
func printList[T any](a *commandLine, as *listing, ctx *view.Context, columns []view.Column[T], rows []T, doc func(T) any) error {
	if len(as.columns) > 0 {
		var err error
		if columns, err = view.Choose(columns, as.columns); err != nil {
			return err
		}
	}
	if a.output == "csv" {
		return view.CSV(a.out, columns, rows, doc)
	}
	printTable(a.out, view.Tabulate(ctx, columns, rows, a.output == "wide"), a.color())
	return nil
}

// pointers are the addresses of all elements.
func pointers[T any](all []T) []*T {
	out := make([]*T, len(all))
	for i := range all {
		out[i] = &all[i]
	}
	return out
}

// document prints a document as --output asks for; false: a table is wanted.
func (a *commandLine) document(doc document) (printed bool, err error) {
	switch a.output {
	case "json":
		return true, printJSON(a.out, doc)
	case "jsonl":
		return true, printLine(a.out, doc)
	}
	return false, nil
}

// cut shortens text to a width, unless everything is wanted.
func (a *commandLine) cut(s string, width int) string {
	if a.output == "wide" {
		return s
	}
	return a.clip(s, width)
}

// justCame reports whether the look has only just begun: what was there before it began is
// not known to be new.
func justCame(s *monitor.Snapshot) bool {
	return s.Settled.IsZero() || s.At.Sub(s.Settled) < justCameTime
}

// justCameTime is longer than any look that is made once.
const justCameTime = 10 * time.Second
