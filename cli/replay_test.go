package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"redlockctl/cli/printer"
	"redlockctl/internal/view"
	"redlockctl/monitor"
)

// Of a moment that nobody recorded nothing is counted: it says once that nothing is known.
func TestAMomentThatNobodyRecorded(t *testing.T) {
	s := &monitor.Snapshot{Cluster: monitor.Cluster{Name: "orders", N: 5, Quorum: 3, Reason: monitor.NothingRecorded}}
	for i := range 5 {
		s.Nodes = append(s.Nodes, monitor.Node{Name: fmt.Sprint("n", i+1), Keys: -1})
	}
	s.Recall(monitor.NothingRecorded)
	var out bytes.Buffer
	a := newCommandLine(&printer.Printer{Out: &out, Err: &out, Getenv: func(string) string { return "" }, Output: "table"})
	if err := a.printStatus(s, view.NewGuard("", nil)); err != nil {
		t.Fatal(err)
	}
	a.printLocks(s, nil)
	if got := out.String(); !strings.HasPrefix(got, "cluster orders: unknown: nothing was recorded then\n") || !strings.HasSuffix(got, "\nnothing was recorded then\n") ||
		strings.Contains(got, "of 5") || strings.Contains(got, "answers") {
		t.Error(got)
	}
}
