package flags

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"redlockctl/cli/exit"
	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/monitor/filter"
)

// Listing has the flags for the columns and the order of a list.
type Listing struct {
	Columns []string
	Sort    string
	// Quiet asks for names only, one a line.
	Quiet bool
}

// Add adds the flags to a command. heads are its columns, and then the columns that it
// has with an argument, if they differ.
func (l *Listing) Add(cmd *cobra.Command, heads ...[]view.Head) *cobra.Command {
	Columns(cmd, &l.Columns, heads...)
	cmd.Flags().StringVar(&l.Sort, "sort", "", "sort by a column, or by COLUMN:desc in the other direction")
	offer(cmd, "sort", heads, func(h view.Head) string { return h.Sort })
	return Outputs(cmd, append(OutputsOf(cmd), "csv")...)
}

// Names adds the flag --quiet to a command that calls [Listing.Add] too.
func (l *Listing) Names(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVarP(&l.Quiet, "quiet", "q", false, "names only, one a line")
	cmd.MarkFlagsMutuallyExclusive("quiet", "columns")
	return cmd
}

// Columns adds the flag --columns; for heads see [Listing.Add].
func Columns(cmd *cobra.Command, chosen *[]string, heads ...[]view.Head) {
	first := heads[0]
	cmd.Flags().StringSliceVar(chosen, "columns", nil, "only these columns, in this order: "+first[0].Word+","+first[1].Word+",…")
	offer(cmd, "columns", heads, func(h view.Head) string { return h.Word })
}

// offer lets a shell complete the names of columns after those already given.
func offer(cmd *cobra.Command, flag string, heads [][]view.Head, word func(view.Head) string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, func(_ *cobra.Command, args []string, begun string) (words []cobra.Completion, _ cobra.ShellCompDirective) {
		before := begun[:strings.LastIndexByte(begun, ',')+1]
		for _, h := range heads[min(len(args), len(heads)-1)] {
			if w := before + word(h); w != before && !slices.Contains(words, w) {
				words = append(words, w)
			}
		}
		return words, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	})
}

// Sorted returns the rows in the requested order, or what is wrong with the listing,
// before anything is printed.
func Sorted[T any](as *Listing, all []view.Column[T], rows []T) ([]T, error) {
	if _, err := view.Choose(all, as.Columns); err != nil {
		return nil, exit.Usagef("--columns: %w", err)
	}
	if as.Sort == "" {
		return rows, nil
	}
	compare, _, err := view.Sort(all, as.Sort)
	if err != nil {
		return nil, exit.Usagef("--sort: %w", err)
	}
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, compare)
	return rows, nil
}

// typed checks a complete filter, in which an unclosed quote is an error too.
func typed(f interface{ Unclosed() bool }, check func() error) error {
	if f.Unclosed() {
		return exit.Usagef("filter: a double quote is not closed")
	}
	if err := check(); err != nil {
		return exit.Usage(err)
	}
	return nil
}

// Filter parses a filter of locks. Without nodes their names are not checked.
func Filter(text string, nodes []monitor.Node) (monitor.Filter, error) {
	f := monitor.ParseFilter(text)
	return f, typed(f, func() error { return f.Check(nodes) })
}

// Terms parses a filter of another language; for there see [filter.Filter.Check].
func Terms[T any](of *filter.Language[T], text string, there func(field string) []string) (filter.Filter[T], error) {
	f := of.Parse(text)
	return f, typed(&f, func() error { return f.Check(there) })
}
