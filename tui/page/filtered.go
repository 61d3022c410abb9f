package page

import (
	"strings"
	"time"

	"redlockctl/internal/filter"
	"redlockctl/internal/view"
	"redlockctl/tui/input"
	"redlockctl/tui/styles"
)

// Filtered is a page whose rows are chosen by a filter.
type Filtered interface {
	FilterLine() *input.Line            // in which it is typed
	Filter(now time.Time)               // lists what it chooses as far as it is typed
	FilterSource() string               // what was typed when it was last applied
	FilterProblem() string              // what is wrong with it, safe to show
	Found() (n, of int, ok bool)        // ok: it is known by now
	FilterOffers(line string) []string  // what the line may become
	FilterLearn() (aside func() Values) // looks for values to offer; nil: they are known
}

// Values are the values of fields that a filter may ask for.
type Values struct {
	of   func(field string) []string
	made int // for which listing
}

// choice is a filter of rows that are few, and the line in which it is typed.
type choice[T any] struct {
	language *filter.Language[T]
	line     input.Line
	source   string // as it was applied
	filter   filter.Filter[T]
	at       time.Time // ages are counted to here
}

func newChoice[T any](l *filter.Language[T]) choice[T] {
	return choice[T]{language: l, line: input.New("")}
}

// apply takes what is typed.
func (c *choice[T]) apply(now time.Time) {
	c.source, c.at = strings.TrimSpace(c.line.String()), now
	c.filter = c.language.Parse(c.source)
}

// on reports whether something is typed.
func (c *choice[T]) on() bool { return c.source != "" }

// has reports whether a row is chosen.
func (c *choice[T]) has(row T) bool { return c.filter.Match(row, c.at) }

func (c *choice[T]) problem(st *styles.Styles) string { return problem(st, c.filter.Check(nil)) }

// problem is the first thing that is wrong with a filter, safe to show.
func problem(st *styles.Styles, err error) string {
	if err == nil {
		return ""
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	return st.Whole(strings.TrimPrefix(first, filter.Err.Error()+": "))
}

// title says in a title what is chosen, and how many.
func (c *choice[T]) title(st *styles.Styles, n int) string {
	paint := st.Info
	if c.problem(st) != "" {
		paint = st.Bad
	}
	return paint.Of("/"+st.Escape(c.source, 24)) + " " + view.Count(n)
}

// nothing says that no row is chosen, and what is wrong with the filter or may be, in lines of w cells.
func nothing(st *styles.Styles, what, hint string, w int) []string {
	lines := []string{styles.Blanks(styles.Lead) + st.Dim.Of("no "+what+" matches the filter: esc clears it")}
	if hint != "" {
		for _, l := range styles.Wrap(st.Whole(hint), w-2*styles.Lead, 0) {
			lines = append(lines, styles.Blanks(styles.Lead)+st.Warn.Of(l))
		}
	}
	return lines
}
