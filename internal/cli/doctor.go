package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"redlockctl/internal/app"
	"redlockctl/internal/config"
	"redlockctl/internal/safetext"
	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/monitor/observe"
)

// doctorJSON is the document of doctor.
type doctorJSON struct {
	view.ClusterDoc
	Result     string            `json:"result"` // clean, warnings, dangers
	ForMs      int64             `json:"looked_for_ms"`
	Counts     map[string]int    `json:"counts"` // findings by severity
	ClockRates *spreadJSON       `json:"clock_rates,omitempty"`
	Findings   []view.FindingDoc `json:"findings"`
}

// spreadJSON compares the drift allowance with the clocks.
type spreadJSON struct {
	Fastest      safetext.Text `json:"fastest"`
	Slowest      safetext.Text `json:"slowest"`
	PPM          float64       `json:"ppm"`
	BoundPPM     float64       `json:"bound_ppm"`
	AllowancePPM float64       `json:"allowance_ppm"`
}

// The result of doctor in a word, by the gravest finding. With --columns it is a table with a row for each finding.
var doctorResults = [...]string{monitor.SeverityInfo: "clean", monitor.SeverityWarning: "warnings", monitor.SeverityDanger: "dangers"}

// leastDoctor is the least time in which a lock that is only passing is told
// from one that is stuck.
const leastDoctor = time.Second

func (a *commandLine) doctorCommand() *cobra.Command {
	var span, most time.Duration
	var as listing
	cmd := as.add(&cobra.Command{
		Use:   "doctor",
		Short: "Redlock assumptions that do not hold on this cluster",
		Long: `Looks at every master for a few seconds and prints what is wrong, the gravest
first: what was seen, why it matters, what to do. Nothing is changed. Clocks are
compared too, the better the longer it looks. docs/findings.md explains each
finding.

Exit code 0 when there is nothing but advice (info), 1 with warnings, 2 with
dangers: two clients may hold one lock, or nothing can be locked. A cluster that
is not protected against restarts has a warning at least. Wrong usage
and a bad configuration have exit code 2 as well, and any other failure 1: then
nothing is on standard output, and the reason is on standard error. Once it has
looked, the first word of the output, and "result" in the JSON document, is
clean, warnings or dangers.`,
		Example: "redlockctl doctor\nredlockctl doctor --for 1m -o json",
		Args:    noArgs,
		RunE: a.run(func(ctx context.Context, _ []string) error {
			if span < leastDoctor {
				return usageError{fmt.Errorf("--for %s is less than %s", span, leastDoctor)}
			}
			cfg, err := a.load()
			if err != nil {
				return err
			}
			began := time.Now()
			s, err := a.examine(ctx, cfg, span, most)
			if err != nil {
				return err
			}
			gravest := monitor.SeverityInfo
			counts := map[string]int{}
			for _, f := range s.Findings {
				gravest = max(gravest, f.Severity)
				counts[f.Severity.String()]++
			}
			found, err := sorted(&as, view.FindingColumns(), pointers(s.Findings))
			switch {
			case err != nil:
				return err
			case a.output == "csv" || len(as.columns) > 0 && a.output == "table":
				if err := printList(a, &as, a.viewContext(s), view.FindingColumns(), found, func(f *monitor.Finding) any { return view.DocOfFinding(*f, s.At) }); err != nil {
					return err
				}
			case a.output == "json":
				doc := doctorJSON{
					ClusterDoc: view.DocOfCluster(s), Result: doctorResults[gravest],
					ForMs: s.At.Sub(began).Milliseconds(), Counts: counts, Findings: view.DocsOfFindings(found, s.At),
				}
				if r := monitor.RateSpread(s.Nodes); r.Fastest != r.Slowest {
					doc.ClockRates = &spreadJSON{safetext.New(r.Fastest), safetext.New(r.Slowest), r.PPM, r.Bound, cfg.Redlock.DriftFactor * 1e6}
				}
				if err := printJSON(a.out, document{"doctor", doc}); err != nil {
					return err
				}
			default:
				a.printDoctor(a.out, s, found, doctorResults[gravest], counts, cfg.Redlock.DriftFactor)
			}
			if gravest > monitor.SeverityInfo {
				return silent{serverExit(gravest)} // the severities are the exit codes
			}
			return nil
		}),
	})
	cmd.Flags().DurationVar(&most, "timeout", 0, "read the locks for so long at most; default: until all keys have been read")
	cmd.Flags().DurationVar(&span, "for", 5*time.Second, "how long to look; a longer run gives better clock estimates")
	return cmd
}

// examine watches the cluster for this long, and for as long as the first view
// takes beyond it, if that is not bounded.
func (a *commandLine) examine(ctx context.Context, cfg *config.Config, span, most time.Duration) (s *monitor.Snapshot, err error) {
	err = app.Watch(ctx, cfg, app.Aim{}, func(mon *observe.Monitor) error {
		mon.Booted(app.BootSights(ctx, cfg))
		t := time.NewTimer(span)
		defer t.Stop()
		if _, err := a.decided(ctx, mon, app.Aim{Most: most}); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.C:
		}
		s = mon.Snapshot()
		return nil
	})
	return s, err
}

// printDoctor prints the findings for people.
func (a *commandLine) printDoctor(w io.Writer, s *monitor.Snapshot, found []*monitor.Finding, result string, counts map[string]int, allowance float64) {
	head := [...]view.Tone{view.Good, view.Warn, view.Bad}
	for i, word := range doctorResults {
		if word == result {
			result = a.paint(word, head[i])
			break
		}
	}
	fmt.Fprintf(w, "%s: cluster %s %s, %d of %d nodes serve, %s: %s, %s, %d info\n", result, safetext.Escape(s.Cluster.Name), a.verdict(s.Cluster.Verdict),
		s.Cluster.Serving, s.Cluster.N, view.Plural(s.Counts.Total(), "lock"),
		view.Plural(counts["danger"], "danger"), view.Plural(counts["warning"], "warning"), counts["info"])
	if s.Cluster.Reason != "" {
		fmt.Fprintln(w, safetext.Escape(s.Cluster.Reason))
	}
	if r := monitor.RateSpread(s.Nodes); r.Fastest != r.Slowest {
		fmt.Fprintf(w, "clocks: %s runs %.1f %s %.1f ppm faster than %s; the drift allowance is %.0f ppm\n",
			safetext.Escape(r.Fastest), r.PPM, view.Plain(a.ascii).PM, r.Bound, safetext.Escape(r.Slowest), allowance*1e6)
	}
	a.printFindings(w, s, found)
}
