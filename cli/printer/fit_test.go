package printer

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/monitor/monitortest"
)

// A table on a terminal fits it, whatever the number of nodes, and says what it leaves out;
// elsewhere, with -o wide and with chosen columns it is whole.
func TestTablesFitTheTerminal(t *testing.T) {
	for _, n := range []int{5, 9, 21, 50} {
		s := monitortest.Many(monitortest.Epoch, n)
		locks := slices.Collect(s.Locks.All())
		for _, width := range []int{60, 80, 120} {
			of := map[string]func(p *Printer, chosen ...string) error{
				"nodes": func(p *Printer, chosen ...string) error {
					return List(p, chosen, p.ViewContext(s), view.NodeColumns(), view.Rows(s.Nodes), func(*monitor.Node) any { return nil })
				},
				"locks": func(p *Printer, chosen ...string) error {
					return List(p, chosen, p.ViewContext(s), view.LockColumns(s.Nodes), locks, func(*monitor.Lock) any { return nil })
				},
			}
			for name, list := range of {
				t.Run(fmt.Sprintf("%s of %d in %d", name, n, width), func(t *testing.T) {
					print := func(width int, output string, chosen ...string) string {
						var w strings.Builder
						p := &Printer{Out: &w, Getenv: func(string) string { return "" }, Output: output, Width: width}
						if err := list(p, chosen...); err != nil {
							t.Fatal(err)
						}
						return w.String()
					}
					fitted := print(width, "table")
					lines := strings.Split(strings.TrimSpace(fitted), "\n")
					for i, l := range lines {
						if last := i == len(lines)-1 && strings.HasPrefix(l, "no room for "); !last && view.Width(l) > width {
							t.Errorf("%d cells: %q", view.Width(l), l)
						}
					}
					if strings.Contains(fitted, "no room for nodes") && !strings.Contains(lines[0], "TTLS") {
						t.Errorf("the chart is not there instead of the nodes:\n%s", fitted)
					}
					whole := print(0, "table")
					if said := strings.Contains(fitted, "no room for "); said == (len(strings.Fields(strings.SplitN(whole, "\n", 2)[0])) == len(strings.Fields(lines[0]))) {
						t.Errorf("what has no room is not said, or the contrary:\n%s", fitted)
					}
					for what, other := range map[string]string{"elsewhere": whole, "wide": print(width, "wide"), "chosen": print(width, "table", "state")} {
						if strings.Contains(other, "no room for") {
							t.Errorf("%s:\n%s", what, other)
						}
					}
				})
			}
		}
	}
}
