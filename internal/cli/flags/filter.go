package flags

import (
	"errors"

	"redlockctl/internal/cli/exit"
	"redlockctl/monitor"
)

// ErrOpenQuote is returned for a filter that ends in a quote.
var ErrOpenQuote = errors.New("filter: a double quote is not closed")

// Filter reads a filter that is typed to its end: a double quote that is not closed is
// a mistake. Without nodes their names are not checked.
func Filter(text string, nodes []monitor.Node) (monitor.Filter, error) {
	f := monitor.ParseFilter(text)
	if f.Unclosed() {
		return f, exit.Usage(ErrOpenQuote)
	}
	if err := f.Check(nodes); err != nil {
		return f, exit.Usage(err)
	}
	return f, nil
}
