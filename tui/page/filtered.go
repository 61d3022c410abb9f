package page

import (
	"strings"
	"time"

	"redlockctl/internal/view"
	"redlockctl/monitor/filter"
	"redlockctl/tui/input"
	"redlockctl/tui/styles"
)

// Filtered is a page with a filter.
type Filtered interface {
	FilterLine() *input.Line            // the text field
	FilterOpen()                        // a filter is typed now: the present one applies while that is wrong
	Filter(now time.Time)               // applies the typed filter if it is right
	FilterSource() string               // of the filter that is applied
	FilterProblem() string              // what is wrong with the filter, safe to show
	Found() (n, of int, ok bool)        // number of hits; ok if it is known
	FilterOffers(line string) []string  // completions of the line
	FilterLearn() (aside func() Values) // collects values to offer; nil if they are known
}

// Values are the values of fields that a filter may name.
type Values struct {
	of   func(field string) []string
	made int // for which listing
}

// choice is a filter for few rows, and its text field.
type choice[T any] struct {
	language *filter.Language[T]
	line     input.Line
	wrong    error  // what is wrong with the typed filter; nil if it is applied
	kept     string // applied while the typed filter is wrong
	source   string // of the filter that is applied
	filter   filter.Filter[T]
	at       time.Time // ages are relative to it
}

func newChoice[T any](l *filter.Language[T]) choice[T] {
	return choice[T]{language: l, line: input.New("")}
}

// apply applies the typed filter.
func (c *choice[T]) apply(now time.Time) {
	c.source, c.at = strings.TrimSpace(c.line.String()), now
	c.filter = c.language.Parse(c.source)
	if c.wrong = c.filter.Check(nil); c.wrong != nil {
		c.source = c.kept
		c.filter = c.language.Parse(c.source)
	}
}

// on reports whether the filter is not empty.
func (c *choice[T]) on() bool { return c.source != "" }

// has reports whether a row matches.
func (c *choice[T]) has(row T) bool { return c.filter.Match(row, c.at) }

func (c *choice[T]) FilterOpen() { c.kept = c.source }

func (c *choice[T]) problem(st *styles.Styles) string { return problem(st, c.wrong) }

// problem returns the first error of a filter, safe to show.
func problem(st *styles.Styles, err error) string {
	if err == nil {
		return ""
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	return st.Whole(strings.TrimPrefix(first, filter.Err.Error()+": "))
}

// title returns the filter and the number of hits, for a title.
func (c *choice[T]) title(st *styles.Styles, n int) string {
	return st.Info.Of("/"+st.Escape(c.source, 24)) + " " + view.Count(n)
}

// nothing says in lines of w cells that no row matches, and what may be wrong with the
// filter.
func nothing(st *styles.Styles, what, hint string, w int) []string {
	lines := []string{styles.Blanks(styles.Lead) + st.Dim.Of("no "+what+" matches the filter: esc clears it")}
	if hint != "" {
		for _, l := range styles.Wrap(st.Whole(hint), w-2*styles.Lead, 0) {
			lines = append(lines, styles.Blanks(styles.Lead)+st.Warn.Of(l))
		}
	}
	return lines
}
