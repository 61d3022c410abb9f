package flags

import (
	"slices"

	"github.com/spf13/cobra"

	"redlockctl/internal/cli/exit"
	"redlockctl/internal/view"
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
