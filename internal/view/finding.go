package view

import (
	"strings"

	"redlockctl/monitor"
)

// FindingTitle returns a finding in a line, with its node, its lock or its count.
func FindingTitle(c *Context, f *monitor.Finding) string {
	text := c.Whole(f.Title)
	if f.Node != "" {
		text = c.Name(f.Node) + ": " + text
	}
	if !f.Key.Empty() && f.Count <= 1 {
		text = c.Escape(f.Key.Raw(), 40) + ": " + text
	}
	if f.Count > 1 {
		text += " (" + Plural(f.Count, "lock") + ")"
	}
	return text
}

// FindingFacts returns what was seen, why it matters and what to do.
func FindingFacts(c *Context, f *monitor.Finding) []Fact {
	facts := []Fact{{Label: "Seen", Text: c.Whole(f.Evidence.Raw())}}
	if !f.Key.Empty() {
		facts = append(facts, Fact{Label: "First lock", Text: c.Name(f.Key.Raw())})
	}
	return append(facts, Fact{Label: "Means", Text: c.Whole(f.Consequence)}, Fact{Label: "What to do", Text: c.Whole(f.Remedy)})
}

// FindingColumns are the columns of findings.
func FindingColumns() []Column[*monitor.Finding] {
	return []Column[*monitor.Finding]{{
		Name: "SEVERITY", Help: "info, warning or danger", Fields: []string{"severity"}, Compare: compareBy(func(f *monitor.Finding) int { return -int(f.Severity) }), First: "most severe first",
		Cell: func(c *Context, f *monitor.Finding) Cell { return c.Severity(f.Severity) }, Rank: 1, Width: 10,
	}, {
		Name: "ID", Help: "stable identifier: [findings.md](findings.md)", Fields: []string{"id"}, Compare: compareBy(func(f *monitor.Finding) string { return f.ID }),
		Cell: func(c *Context, f *monitor.Finding) Cell { return Cell{Text: f.ID} },
	}, {
		Name: "NODE", Help: "the node, if it concerns one", Fields: []string{"node"}, Compare: compareBy(func(f *monitor.Finding) string { return f.Node }),
		Cell: func(c *Context, f *monitor.Finding) Cell {
			if f.Node == "" {
				return c.orNone("")
			}
			return Cell{Text: c.Name(f.Node)}
		},
	}, {
		Name: "FINDING", Help: "what is found, in a few words", Compare: compareBy(func(f *monitor.Finding) string { return f.Title }), Fields: []string{"title", "evidence"}, Rank: 2, Width: 20, Most: 400,
		Cell: func(c *Context, f *monitor.Finding) Cell { return Cell{Text: FindingTitle(c, f)} },
	}, {
		Name: "LOCKS", Help: "how many locks are affected", Fields: []string{"count", "key"}, Compare: compareBy(func(f *monitor.Finding) int { return f.Count }), Right: true,
		Cell: countOf(func(f *monitor.Finding) int { return f.Count }),
	}, {
		Name: "FOR", Help: "how long it has been seen", Fields: []string{"since_ms"}, Compare: func(a, b *monitor.Finding) int { return b.Since.Compare(a.Since) },
		Cell: func(c *Context, f *monitor.Finding) Cell {
			if f.Since.IsZero() {
				return Cell{}
			}
			return Cell{Text: c.age(f.Since)}
		}, Right: true, Rank: 3, Width: 6,
	}}
}

// FindingsText counts the findings of a snapshot of this severity and graver ones; empty: there are none.
func FindingsText(s *monitor.Snapshot, least monitor.Severity) string {
	counts := map[monitor.Severity]int{}
	for i := range s.Findings {
		counts[s.Findings[i].Severity]++
	}
	var parts []string
	for _, severity := range []monitor.Severity{monitor.SeverityDanger, monitor.SeverityWarning, monitor.SeverityInfo} {
		one, many := severity.String(), severity.String()+"s"
		if severity == monitor.SeverityInfo {
			many = one
		}
		if n := counts[severity]; n > 0 && severity >= least {
			parts = append(parts, Plural(n, one, many))
		}
	}
	return strings.Join(parts, ", ")
}
