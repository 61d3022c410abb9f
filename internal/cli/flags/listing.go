package flags

import (
	"slices"

	"github.com/spf13/cobra"

	"redlockctl/internal/cli/exit"
	"redlockctl/internal/filter"
	"redlockctl/internal/view"
	"redlockctl/monitor"
)

// Listing is how a person wants a list: which columns, and in which order.
type Listing struct {
	Columns []string
	Sort    string
}

// Add adds the flags to a command.
func (l *Listing) Add(cmd *cobra.Command) *cobra.Command {
	f := cmd.Flags()
	f.StringSliceVar(&l.Columns, "columns", nil, "only these columns, in this order: name,state,…")
	f.StringVar(&l.Sort, "sort", "", "sort by a column, or by COLUMN:desc in the other direction")
	return Outputs(cmd, append(OutputsOf(cmd), "csv")...)
}

// Sorted are rows in the order that is wanted; what is wrong with the listing is
// said before anything is printed.
func Sorted[T any](as *Listing, all []view.Column[T], rows []T) ([]T, error) {
	if _, err := view.Choose(all, as.Columns); err != nil {
		return nil, exit.Usagef("--columns: %w", err)
	}
	if as.Sort == "" {
		return rows, nil
	}
	compare, err := view.Sort(all, as.Sort)
	if err != nil {
		return nil, exit.Usagef("--sort: %w", err)
	}
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, compare)
	return rows, nil
}

// typed is what is wrong with a filter that is typed to its end: there a double quote that
// is not closed is a mistake too.
func typed(f interface{ Unclosed() bool }, check func() error) error {
	if f.Unclosed() {
		return exit.Usagef("filter: a double quote is not closed")
	}
	if err := check(); err != nil {
		return exit.Usage(err)
	}
	return nil
}

// Filter reads a filter of locks. Without nodes their names are not checked.
func Filter(text string, nodes []monitor.Node) (monitor.Filter, error) {
	f := monitor.ParseFilter(text)
	return f, typed(f, func() error { return f.Check(nodes) })
}

// Terms reads a filter of something else; there is as of [filter.Filter.Check].
func Terms[T any](of *filter.Language[T], text string, there func(field string) []string) (filter.Filter[T], error) {
	f := of.Parse(text)
	return f, typed(&f, func() error { return f.Check(there) })
}
