package view

import (
	"cmp"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strings"
)

// Column is one column of a resource. The screen, the tables and csv of the CLI, --columns,
// --sort, the help and docs/columns.md use it.
type Column[T any] struct {
	Name string // the heading; the table escapes it
	// Group names columns that are chosen and dropped together; the others are chosen
	// by their names.
	Group string
	Help  string // what it means; `x` and [x](y) are markup for docs/columns.md
	Cell  func(*Context, T) Cell
	// Fields are the same values in the JSON document, and the columns of csv. A dot leads
	// into a field of a field, or to an element of a list.
	Fields []string
	// Compare orders rows by the column, or Key if a number gives the order; both nil: rows
	// cannot be sorted by it. Both look at the rows only.
	Compare func(a, b T) int
	Key     func(T) int64
	SortAs  string // rows are sorted as by the column of this word, which shows the same
	First   string // what comes first, in words; empty: the name says it
	Last    string // what comes first in the other direction; empty: "reversed"
	Right   bool   // right-aligned, as numbers are
	Wide    bool   // in a table of the CLI only with -o wide
	Folded  bool   // on the screen only if it is chosen, like columns without a Rank
	// Idle: the column is left out of a table that is not wide if all its cells are this or
	// empty.
	Idle string
	// InsteadOf is a group of columns: this one is in a table without room for the group.
	InsteadOf string
	Cut       int // greatest width, in cells, of a table that is not wide; 0: unlimited
	// Rank is the order in which columns get room on the screen; 0: only if chosen. Width is
	// the width there, in cells, Most the width if there is room.
	Rank, Width, Most int
	// Least is the smallest useful width if there is no room for Width; 0: the column is
	// shown whole or not at all.
	Least  int
	Good   int  // width that it gets before columns of little weight get room; if it is as wide as its rows, its first width
	Middle bool // a text that is too long is cut in its middle
	// Clauses: on the screen, a text that is too long loses its last clauses, each of which
	// begins with a comma.
	Clauses bool
	// Shorten shortens a text that is too long to about w cells; nil: its end is cut.
	Shorten func(g *Glyphs, s string, w int) string
}

// Word returns the word that chooses the column: "seen-for".
func (c *Column[T]) Word() string {
	if c.Group != "" {
		return c.Group
	}
	return strings.ReplaceAll(strings.ToLower(c.Name), " ", "-")
}

// Words returns the words that choose columns, each once.
func Words[T any](all []Column[T]) (words []string) {
	for i := range all {
		if w := all[i].Word(); !slices.Contains(words, w) {
			words = append(words, w)
		}
	}
	return words
}

// markupOfHelp is the markup in a help that is only for docs/columns.md.
var markupOfHelp = regexp.MustCompile("`|\\[([^]]*)\\]\\([^)]*\\)")

// Explain returns the names of the columns that the screen can show, and what they mean.
func Explain[T any](all []Column[T]) (lines [][2]string) {
	for i := range all {
		if c := &all[i]; c.Rank > 0 {
			name := c.Name
			if c.Group != "" {
				name = c.Group
			}
			lines = append(lines, [2]string{name, markupOfHelp.ReplaceAllString(c.Help, "$1")})
		}
	}
	return lines
}

// WordOf returns the word that said is, or abbreviates.
func WordOf(said string, words []string) (string, error) {
	var found []string
	for _, w := range words {
		if w == strings.ToLower(said) {
			return w, nil
		}
		if said != "" && strings.HasPrefix(w, strings.ToLower(said)) {
			found = append(found, w)
		}
	}
	if len(found) == 1 {
		return found[0], nil
	}
	return "", fmt.Errorf("no column %q (have: %s)", said, strings.Join(words, ", "))
}

// Choose returns the columns of these words, in their order. The word of a group chooses all of it, and the
// name of one of it, which is also its word to sort by, that one.
func Choose[T any](all []Column[T], said []string) (chosen []Column[T], err error) {
	words := Words(all)
	for _, s := range said {
		w, word := strings.ToLower(s), (*Column[T]).sortWord
		if slices.Contains(words, w) || !slices.ContainsFunc(all, func(c Column[T]) bool { return c.Group != "" && c.sortWord() == w }) {
			if w, err = WordOf(s, words); err != nil {
				return nil, err
			}
			word = (*Column[T]).Word
		}
		for _, c := range all {
			if word(&c) == w {
				c.Wide, c.Idle = false, ""
				chosen = append(chosen, c)
			}
		}
	}
	return chosen, nil
}

// sortWord is the word to sort by the column: for one of a group its own name.
func (c *Column[T]) sortWord() string {
	if c.Group != "" {
		return strings.ReplaceAll(strings.ToLower(c.Name), " ", "-")
	}
	return c.Word()
}

// Head describes a column without its rows.
type Head struct {
	Word   string // chooses it
	Sort   string // sorts by it; empty: not sortable
	First  string // what comes first, in words; empty: the name says it
	Last   string // what comes first in the other direction
	Folded bool   // on the screen only if it is chosen
	Own    bool   // sortable by itself, not as part of a group
}

func (c *Column[T]) sorts() bool { return c.Compare != nil || c.Key != nil }

// Heads returns the heads of columns.
func Heads[T any](all []Column[T]) []Head {
	heads := make([]Head, len(all))
	for i := range all {
		c := &all[i]
		heads[i] = Head{Word: c.Word(), First: c.First, Last: c.Last, Folded: c.Folded || c.Rank == 0, Own: c.sorts() && c.Group == ""}
		if c.sorts() || c.SortAs != "" {
			heads[i].Sort = c.sortWord()
		}
	}
	return heads
}

// SortWords returns the words that rows can be sorted by.
func SortWords[T any](all []Column[T]) (words []string) {
	for _, h := range Heads(all) {
		if h.Sort != "" {
			words = append(words, h.Sort)
		}
	}
	return words
}

// ParseSort parses COLUMN, by its word or an abbreviation, COLUMN:asc or COLUMN:desc.
func ParseSort(words []string, said string) (word string, reversed bool, err error) {
	name, way, _ := strings.Cut(said, ":")
	word, err = WordOf(name, words)
	if err == nil && way != "" && way != "asc" && way != "desc" {
		err = fmt.Errorf("%q: it is %s:asc or %s:desc", said, word, word)
	}
	return word, way == "desc", err
}

// Sort returns the order for COLUMN or COLUMN:desc. The sort is stable. If key is not nil,
// compare compares the rows' keys.
func Sort[T any](all []Column[T], said string) (compare func(a, b T) int, key func(T) int64, err error) {
	w, reversed, err := ParseSort(SortWords(all), said)
	if err != nil {
		return nil, nil, err
	}
	is := func(word string) *Column[T] {
		return &all[slices.IndexFunc(all, func(c Column[T]) bool { return c.sortWord() == word })]
	}
	by := is(w)
	if !by.sorts() {
		by = is(by.SortAs)
	}
	switch up := by.Compare; {
	case by.Key != nil && reversed:
		key = func(row T) int64 { return ^by.Key(row) }
	case by.Key != nil:
		key = by.Key
	case reversed:
		return func(a, b T) int { return up(b, a) }, nil, nil
	default:
		return up, nil, nil
	}
	return compareBy(key), key, nil
}

func compareBy[T any, K cmp.Ordered](key func(T) K) func(a, b T) int {
	return func(a, b T) int { return cmp.Compare(key(a), key(b)) }
}

// textOf returns a cell of untrusted text, or the glyph for none.
func textOf[T any](of func(T) string) func(*Context, T) Cell {
	return func(c *Context, row T) Cell { return c.orNone(c.Whole(of(row))) }
}

// countOf returns a cell of a number, or the glyph for none.
func countOf[T any](of func(T) int) func(*Context, T) Cell {
	return func(c *Context, row T) Cell {
		if of(row) == 0 {
			return c.orNone("")
		}
		return Cell{Text: Count(of(row))}
	}
}

// natural compares texts in which numbers count by their value: n2 before n10, 7.2 before 7.10.
func natural(a, b string) int {
	for a != "" && b != "" {
		na, nb := digits(a), digits(b)
		if na > 0 && nb > 0 {
			x, y := strings.TrimLeft(a[:na], "0"), strings.TrimLeft(b[:nb], "0")
			if n := cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y)); n != 0 {
				return n
			}
			a, b = a[na:], b[nb:]
			continue
		}
		if a[0] != b[0] {
			return cmp.Compare(a[0], b[0])
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b))
}

func digits(s string) int { return len(s) - len(strings.TrimLeft(s, "0123456789")) }

// byText compares rows by a text, and numbers in it by their value.
func byText[T any](key func(T) string) func(a, b T) int {
	return func(a, b T) int { return natural(key(a), key(b)) }
}

// Table is rows of cells under their columns, as the command line prints it.
type Table struct {
	Head  []string
	Right []bool // right-aligned columns
	rows  [][]Cell
	each  iter.Seq[[]Cell] // for very many rows: made again at each iteration
}

// NewTable returns an empty table.
func NewTable(head ...string) *Table { return &Table{Head: head} }

// Add adds a row.
func (t *Table) Add(cells ...Cell) { t.rows = append(t.rows, cells) }

// Rows iterates over the rows; each is valid until the next.
func (t *Table) Rows() iter.Seq[[]Cell] {
	if t.each != nil {
		return t.each
	}
	return slices.Values(t.rows)
}

// idle reports whether a table that is not wide leaves a column out.
func idle[T any](ctx *Context, col *Column[T], rows []T) bool {
	return col.Idle != "" && !slices.ContainsFunc(rows, func(r T) bool {
		text := col.Cell(ctx, r).Text
		return text != "" && text != ctx.None && text != col.Idle
	})
}

// FitTable returns the columns that fit into w cells of a table that is not wide, and the
// words of those without room. They get room by rank, as on the screen.
func FitTable[T any](ctx *Context, columns []Column[T], rows []T, w int) (fit []Column[T], dropped []string) {
	present := func() (out []Column[T]) {
		for _, c := range columns {
			if instead := c.InsteadOf != "" && slices.Contains(dropped, c.InsteadOf); instead || !c.Wide && !slices.Contains(dropped, c.Group) && !idle(ctx, &c, rows) {
				c.Wide, c.Idle = false, ""
				out = append(out, c)
			}
		}
		return out
	}
	try := func() {
		all := present()
		widths := Fit(measured(ctx, all, rows), w)
		fit = nil
		for i, c := range all {
			if widths[i] == 0 {
				if !slices.Contains(dropped, c.Word()) {
					dropped = append(dropped, c.Word())
				}
				continue
			}
			c.Cut = widths[i]
			fit = append(fit, c)
		}
	}
	try()
	if slices.ContainsFunc(columns, func(c Column[T]) bool { return c.InsteadOf != "" && slices.Contains(dropped, c.InsteadOf) }) {
		dropped = slices.DeleteFunc(dropped, func(word string) bool {
			return !slices.ContainsFunc(columns, func(c Column[T]) bool { return c.Group == word })
		})
		try()
	}
	return fit, dropped
}

// leastText is the least useful width of a long text in a table.
const leastText = 16

// measured returns columns as wide as their names and cells.
func measured[T any](ctx *Context, columns []Column[T], rows []T) []Column[T] {
	columns = slices.Clone(columns)
	for i := range columns {
		c := &columns[i]
		if c.Rank == 0 {
			c.Rank = 10 * lastOfWeight
		}
		c.Width, c.Most, c.Good, c.Least = Width(ctx.Name(c.Name)), 0, 0, 0
		for _, r := range rows {
			c.Width = max(c.Width, Width(c.Cell(ctx, r).Text))
		}
		if c.Cut > 0 {
			c.Width = min(c.Width, c.Cut)
		}
		if i > 0 && c.Group != "" && columns[i-1].Group == c.Group {
			c.Width += Gap - GapBefore(columns, i) // a table has whole gaps in a group too
		}
		if !c.Right && c.Width > leastText {
			c.Least = leastText
		}
	}
	return columns
}

// Tabulate makes the table of these rows; wide: with all columns, uncut.
func Tabulate[T any](ctx *Context, columns []Column[T], rows []T, wide bool) *Table {
	t := &Table{}
	var shown []*Column[T]
	for i := range columns {
		if col := &columns[i]; wide || !col.Wide && !idle(ctx, col, rows) {
			shown = append(shown, col)
			t.Head, t.Right = append(t.Head, ctx.Name(col.Name)), append(t.Right, col.Right)
		}
	}
	t.each = func(yield func([]Cell) bool) {
		cells := make([]Cell, len(shown))
		for _, r := range rows {
			for i, col := range shown {
				cells[i] = col.Cell(ctx, r)
				if most := col.Cut; most > 0 && !wide && col.Middle {
					cells[i].Text = ctx.Middle(cells[i].Text, most)
				} else if most > 0 && !wide {
					if col.Shorten != nil {
						cells[i].Text = col.Shorten(ctx.Glyphs, cells[i].Text, most)
					}
					cells[i].Text = ctx.Cut(cells[i].Text, most)
				}
			}
			if !yield(cells) {
				return
			}
		}
	}
	return t
}

// Line formats a row of an endless table: the widths of the columns are fixed.
func Line[T any](ctx *Context, columns []Column[T], row T) string {
	var b strings.Builder
	for i := range columns {
		text := columns[i].Cell(ctx, row).Text
		b.WriteString(text)
		if i < len(columns)-1 {
			b.WriteString(strings.Repeat(" ", max(0, columns[i].Width-Width(text))+Gap))
		}
	}
	return b.String()
}

// OnScreen returns the columns of these words, in their own order. A column without a rank
// comes before unimportant columns if it was chosen explicitly, otherwise last.
func OnScreen[T any](all []Column[T], words []string, asked bool) (chosen []Column[T]) {
	for _, c := range all {
		if !slices.Contains(words, c.Word()) {
			continue
		}
		if c.Rank == 0 {
			c.Rank, c.Width = 10*lastOfWeight, max(c.Width, Width(c.Name))
			if c.Most = max(c.Most, c.Width); asked {
				c.Rank, c.Most = lastOfWeight, max(c.Most, min(cmp.Or(c.Cut, 24), 40))
			}
		}
		chosen = append(chosen, c)
	}
	return chosen
}

// Gap is the number of spaces between two columns.
const Gap = 2

// lastOfWeight is the rank of the last column that gets room before others get wider.
const lastOfWeight = 8

// Fit returns the widths of columns on a screen of w cells; 0: no room. Columns get room
// by rank, those of a group together; growColumns distributes the rest.
func Fit[T any](columns []Column[T], w int) []int {
	widths := make([]int, len(columns))
	order := make([]int, 0, len(columns))
	for i := range columns {
		if columns[i].Rank > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return columns[a].Rank - columns[b].Rank })
	room := w + Gap
	good := false
	for len(order) > 0 {
		if !good && columns[order[0]].Rank > lastOfWeight {
			good = true
			room = growColumns(widths, room, func(i int) int { return columns[i].Good })
		}
		n, need := 0, 0
		for n < len(order) && (n == 0 || columns[order[n]].Group != "" && columns[order[n]].Group == columns[order[0]].Group) {
			need += columns[order[n]].Width + GapBefore(columns, order[n])
			n++
		}
		if c := &columns[order[0]]; n == 1 && need > room && c.Least > 0 && room >= c.Least+Gap {
			widths[order[0]], room = room-Gap, 0
		}
		if need <= room {
			for _, i := range order[:n] {
				widths[i] = columns[i].Width
			}
			room -= need
		}
		order = order[n:]
	}
	growColumns(widths, room, func(i int) int { return columns[i].Most })
	return widths
}

// growColumns widens columns, the narrowest first, each up to its greatest width, and
// returns the room that is left.
func growColumns(widths []int, room int, most func(int) int) int {
	for ; room > 0; room-- {
		least := -1
		for i := range widths {
			if widths[i] > 0 && widths[i] < most(i) && (least < 0 || widths[i] < widths[least]) {
				least = i
			}
		}
		if least < 0 {
			break
		}
		widths[least]++
	}
	return room
}

// GapBefore returns the number of spaces before a column: fewer within a group.
func GapBefore[T any](columns []Column[T], i int) int {
	if i > 0 && columns[i].Group != "" && columns[i-1].Group == columns[i].Group {
		return 1
	}
	return Gap
}
