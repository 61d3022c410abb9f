package view

import (
	"fmt"
	"strings"
	"time"

	"redlockctl/monitor"
	"redlockctl/server/announce"
	"redlockctl/server/safetext"
)

// ClusterRow is one of several clusters, as last seen.
type ClusterRow struct {
	Name  string
	Snap  *monitor.Snapshot // nil: not available
	Err   string            // why not
	Delay time.Duration     // D by this configuration
}

// guards returns the guards that are seen. If known, there are no others.
func (r *ClusterRow) guards() (all []announce.Guard, known bool) {
	if r.Snap == nil {
		return nil, false
	}
	return r.Snap.Guards()
}

// delay returns the effective D: the greatest of the guards that are seen.
func (r *ClusterRow) delay() (d time.Duration) {
	all, _ := r.guards()
	for _, g := range all {
		d = max(d, g.Delay)
	}
	return d
}

// worst returns the most severe finding; nil if there is none.
func (r *ClusterRow) worst() *monitor.Finding {
	if r.Snap == nil || len(r.Snap.Findings) == 0 {
		return nil
	}
	return &r.Snap.Findings[0]
}

func (r *ClusterRow) verdict() monitor.Verdict {
	if r.Snap == nil {
		return monitor.VerdictUnknown
	}
	return r.Snap.Cluster.Verdict
}

// Quorum reports whether a quorum serves, as far as is known.
func (r *ClusterRow) Quorum() bool {
	return r.Snap != nil && r.Snap.Cluster.Serving >= r.Snap.Cluster.Quorum
}

func (r *ClusterRow) locks() int {
	if r.Snap == nil {
		return 0
	}
	return r.Snap.Locks.Len()
}

// serving returns how many more nodes serve than a quorum needs.
func (r *ClusterRow) serving() int {
	if r.Snap == nil {
		return -1 << 10
	}
	return r.Snap.Cluster.Serving - r.Snap.Cluster.Quorum
}

// ClusterRowDoc is one of several clusters.
type ClusterRowDoc struct {
	ClusterDoc
	Locks        int             `json:"locks"`
	Findings     int             `json:"findings"`
	WorstFinding *FindingDoc     `json:"worst_finding,omitempty"`
	Guards       []safetext.Text `json:"guards"` // host, or id if the host is unknown
	GuardsKnown  bool            `json:"guards_known"`
	DelayMs      *int64          `json:"delay_ms,omitempty"`  // the greatest D of the guards that are seen
	Configured   int64           `json:"configured_delay_ms"` // D by this configuration
	Error        *safetext.Text  `json:"error,omitempty"`
}

// DocOfClusterRow returns the document of one of several clusters.
func DocOfClusterRow(r *ClusterRow) ClusterRowDoc {
	doc := ClusterRowDoc{
		ClusterDoc: ClusterDoc{SightDoc: SightDoc{Cluster: safetext.New(r.Name)}, Verdict: r.verdict().String()},
		Locks:      r.locks(), Guards: []safetext.Text{}, Configured: r.Delay.Milliseconds(), Error: safetext.Optional(r.Err),
	}
	if r.Snap == nil {
		return doc
	}
	doc.ClusterDoc, doc.Findings = DocOfCluster(r.Snap), len(r.Snap.Findings)
	doc.Cluster = safetext.New(r.Name)
	if f := r.worst(); f != nil {
		doc.WorstFinding = new(DocOfFinding(*f, r.Snap.At))
	}
	all, known := r.guards()
	for _, g := range all {
		doc.Guards = append(doc.Guards, safetext.New(monitor.GuardName(g)))
	}
	doc.GuardsKnown = known
	if d := r.delay(); d > 0 {
		doc.DelayMs = new(d.Milliseconds())
	}
	return doc
}

// ClusterColumns are the columns of the configured clusters.
func ClusterColumns() []Column[*ClusterRow] {
	return []Column[*ClusterRow]{{
		Name: "CLUSTER", Help: "name in the configuration", Fields: []string{"cluster"}, Compare: compareBy(func(r *ClusterRow) string { return r.Name }),
		Cell: func(c *Context, r *ClusterRow) Cell { return Cell{Text: c.Name(r.Name), Tone: Strong} }, Rank: 1, Width: 7, Most: 24, Middle: true,
	}, {
		Name: "VERDICT", Help: "the [verdict](#the-verdict)", Fields: []string{"verdict"}, Compare: compareBy(func(r *ClusterRow) int { return -verdictUrgency(r.verdict()) }), First: "worst first",
		Cell: func(c *Context, r *ClusterRow) Cell {
			if r.Err != "" {
				return Cell{Sign: c.Off, Text: "unreadable", Tone: Bad}
			}
			return c.Verdict(r.verdict())
		}, Rank: 2, Width: 13,
	}, {
		Name: "SERVING", Help: "how many masters serve; `!`: fewer than a quorum", Fields: []string{"serving", "n", "quorum"}, Compare: compareBy((*ClusterRow).serving),
		Cell: clusterServing, Right: true, Rank: 3, Width: 7,
	}, {
		Name: "LOCKS", Help: "number of locks; `≥` until all keys have been read", Fields: []string{"locks"}, Compare: compareBy((*ClusterRow).locks), Right: true,
		Cell: func(c *Context, r *ClusterRow) Cell {
			switch {
			case r.Snap == nil || !r.Snap.Complete && r.locks() == 0:
				return c.orNone("")
			case !r.Snap.Complete:
				return Cell{Text: c.Our("≥") + Count(r.locks())}
			}
			return Cell{Text: Count(r.locks())}
		}, Rank: 4, Width: 6,
	}, {
		Name: "GUARD", Help: "hosts of the guards that watch it", Compare: compareBy(func(r *ClusterRow) int { all, _ := r.guards(); return len(all) }), Fields: []string{"guards", "guards_known"}, Cell: clusterGuards, Rank: 6, Width: 10, Most: 22, Cut: 40,
	}, {
		Name: "D", Help: "the greatest D of these guards; in brackets the D of this configuration, if no guard is seen", Fields: []string{"delay_ms"},
		Compare: compareBy((*ClusterRow).delay), Right: true,
		Cell: func(c *Context, r *ClusterRow) Cell {
			switch d := r.delay(); {
			case d > 0:
				return Cell{Text: Span(d)}
			case r.Delay > 0:
				return Cell{Text: "(" + Span(r.Delay) + ")", Tone: Dim}
			}
			return c.orNone("")
		}, Rank: 7, Width: 8,
	}, {
		Name: "WORST FINDING", Help: "most severe finding, and how many more there are", Fields: []string{"findings", "worst_finding.severity", "worst_finding.id"},
		Compare: compareBy(func(r *ClusterRow) int {
			if f := r.worst(); f != nil {
				return -int(f.Severity) - 1
			}
			return 0
		}), First: "worst first", Cell: worstFinding, Rank: 5, Width: 20, Most: 400, Cut: 80,
	}, {
		Name: "REASON", Help: "why the verdict is not safe", Compare: compareBy((*ClusterRow).reason), Fields: []string{"reason", "error"}, Wide: true,
		Cell: func(c *Context, r *ClusterRow) Cell {
			if r.Err != "" {
				return Cell{Text: c.Whole(r.Err), Tone: Bad}
			}
			if r.Snap == nil {
				return c.orNone("")
			}
			return c.orNone(c.Whole(r.Snap.Cluster.Reason))
		},
	}}
}

// verdictUrgency orders verdicts by urgency: not known comes before safe.
func verdictUrgency(v monitor.Verdict) int {
	if v == monitor.VerdictUnknown {
		return 2*int(monitor.VerdictSafe) + 1
	}
	return 2 * int(v)
}

func clusterServing(c *Context, r *ClusterRow) Cell {
	if r.Snap == nil {
		return c.orNone("")
	}
	k := &r.Snap.Cluster
	cell := Cell{Text: fmt.Sprintf("%d/%d", k.Serving, k.N)}
	switch {
	case k.Verdict == monitor.VerdictUnknown && k.Serving < k.N:
		cell.Tone = Dim
	case k.Serving < k.Quorum:
		cell.Text, cell.Tone = cell.Text+" !", Bad
	case k.Serving < k.N:
		cell.Tone = Warn
	}
	return cell
}

func clusterGuards(c *Context, r *ClusterRow) Cell {
	all, known := r.guards()
	switch {
	case len(all) > 0:
		var names []string
		for _, g := range all {
			names = append(names, strings.TrimPrefix(strings.TrimPrefix(guardName(g), "guard@"), "guard "))
		}
		return Cell{Text: c.Whole(strings.Join(names, ", "))}
	case known:
		return Cell{Text: "none", Tone: Warn}
	case r.Snap == nil || r.verdict() == monitor.VerdictUnknown:
		return c.orNone("")
	}
	return Cell{Text: "not known", Tone: Dim}
}

func worstFinding(c *Context, r *ClusterRow) Cell {
	if r.Err != "" {
		return Cell{Text: c.Whole(r.Err), Tone: Bad}
	}
	f := r.worst()
	if f == nil {
		return c.orNone("")
	}
	cell := c.Severity(f.Severity)
	cell.Text = FindingTitle(c, f)
	if n := len(r.Snap.Findings); n > 1 {
		cell.Text += fmt.Sprintf(" (+%d)", n-1)
	}
	return cell
}

func (r *ClusterRow) reason() string {
	if r.Snap == nil {
		return r.Err
	}
	return r.Snap.Cluster.Reason
}
