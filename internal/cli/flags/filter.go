package flags

import (
	"redlockctl/internal/cli/exit"
	"redlockctl/internal/filter"
	"redlockctl/monitor"
)

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
