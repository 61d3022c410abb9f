package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"redlockctl/cli/app"
	"redlockctl/cli/exit"
	"redlockctl/cli/flags"
	"redlockctl/cli/printer"
	"redlockctl/internal/config"
	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/monitor/words"
	"redlockctl/server/safetext"
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

// doctorResults maps [monitor.Snapshot.Gravest] to the result of doctor.
var doctorResults = [...]string{monitor.SeverityInfo: "clean", monitor.SeverityWarning: "warnings", monitor.SeverityDanger: "dangers"}

// leastDoctor is the least time that is needed to distinguish a stuck lock from a short
// one.
const leastDoctor = time.Second

func (a *commandLine) doctorCommand() *cobra.Command {
	var span, most time.Duration
	var as flags.Listing
	cmd := as.Add(&cobra.Command{
		Use:   "doctor",
		Short: "Redlock assumptions that do not hold on this cluster",
		Long: `Looks at every master for a few seconds and prints what is wrong, the most severe
first: what was seen, why it matters, what to do. Nothing is changed. Clocks are
compared too; a longer run gives better estimates. docs/findings.md explains each
finding.

Exit code 0 when the cluster is safe and there is nothing but advice (info), 1 with
warnings, or when the verdict is degraded, unprotected or unknown, 2 with dangers: two
clients may hold one lock, or nothing can be locked. Wrong usage
and a bad configuration have exit code 2 as well, and any other failure 1: then
nothing is on standard output, and the reason is on standard error. Once it has
looked, the first word of the output, and "result" in the JSON document, is
clean, warnings or dangers.`,
		Example: "redlockctl doctor\nredlockctl doctor --for 1m -o json",
		Args:    flags.NoArgs,
		RunE: a.run(func(ctx context.Context, _ []string) error {
			if span < leastDoctor {
				return exit.Usagef("--for %s is less than %s", span, leastDoctor)
			}
			cfg, err := a.load()
			if err != nil {
				return err
			}
			began := time.Now()
			s, err := app.Examine(ctx, cfg, span, app.Aim{Findings: true, Most: most, Reading: a.Reading})
			if err != nil {
				return err
			}
			gravest, counts := s.Gravest(), map[string]int{}
			for _, f := range s.Findings {
				counts[f.Severity.String()]++
			}
			found, err := flags.Sorted(&as, view.FindingColumns(), view.Rows(s.Findings))
			app.TellLosses(cfg, s, found)
			switch {
			case err != nil:
				return err
			case a.Output == "csv" || len(as.Columns) > 0 && a.Output == "table":
				if err := printer.List(a.Printer, as.Columns, a.ViewContext(s), view.FindingColumns(), found, func(f *monitor.Finding) any { return view.DocOfFinding(*f, s.At) }); err != nil {
					return err
				}
			case a.Output == "json":
				doc := doctorJSON{
					ClusterDoc: view.DocOfCluster(s), Result: doctorResults[gravest],
					ForMs: s.At.Sub(began).Milliseconds(), Counts: counts, Findings: view.DocsOfFindings(found, s.At),
				}
				if r := monitor.RateSpread(s.Nodes); r.Fastest != r.Slowest {
					doc.ClockRates = &spreadJSON{safetext.New(r.Fastest), safetext.New(r.Slowest), r.PPM, r.Bound, cfg.Redlock.DriftFactor * 1e6}
				}
				if err := a.JSON("doctor", doc); err != nil {
					return err
				}
			default:
				a.printDoctor(s, found, gravest, cfg)
			}
			if gravest > monitor.SeverityInfo {
				return exit.Silently(exit.Status(gravest)) // the severities are the exit codes
			}
			return nil
		}),
	}, view.Heads(view.FindingColumns()))
	cmd.Flags().DurationVar(&most, "timeout", 0, "stop reading locks after this time; default: until all keys have been read")
	cmd.Flags().DurationVar(&span, "for", 5*time.Second, "how long to look, at least; a longer run gives better clock estimates")
	return cmd
}

func (a *commandLine) printDoctor(s *monitor.Snapshot, found []*monitor.Finding, gravest monitor.Severity, cfg *config.Config) {
	verdict := view.Unicode.Verdict(s.Cluster.Verdict)
	tones := [...]view.Tone{view.Good, view.Warn, view.Bad}
	fmt.Fprintf(a.Out, "%s: cluster %s %s, %d of %d nodes serve, %s; findings: %s\n", a.Paint(doctorResults[gravest], tones[gravest]), safetext.Escape(s.Cluster.Name), a.Paint(verdict.Text, verdict.Tone),
		s.Cluster.Serving, s.Cluster.N, view.Plural(s.Counts.Total(), "lock"),
		cmp.Or(view.FindingsText(s, monitor.SeverityInfo), "none"))
	ctx := a.ViewContext(s)
	ctx.Guard = app.GuardsOf(cfg, s).Doc(nil).Guard(s) // until when nodes are fenced
	for _, h := range view.Headlines(ctx) {
		if text := h.Text(); text != "" {
			fmt.Fprintf(a.Out, "%s: %s\n", a.Paint(h.Verdict.Text, h.Verdict.Tone), text)
		}
	}
	if r := monitor.RateSpread(s.Nodes); r.Fastest != r.Slowest {
		fmt.Fprintf(a.Out, "clocks: %s runs %.1f %s %.1f ppm faster than %s; the drift allowance is %.0f ppm\n",
			safetext.Escape(r.Fastest), r.PPM, a.Glyphs().PM, r.Bound, safetext.Escape(r.Slowest), cfg.Redlock.DriftFactor*1e6)
	}
	var unknown []string
	for _, c := range monitor.ClocksApart(s.Nodes) {
		apart := safetext.Escape(c.Node) + " " + words.Signed(c.By.Round(100*time.Millisecond))
		if c.Step.Node == "" {
			unknown = append(unknown, apart)
			continue
		}
		fmt.Fprintf(a.Out, "clocks: %s off most others, since %s was stepped by %s, %s\n", apart, safetext.Escape(c.Step.Node), words.Signed(c.Step.By), words.At(c.Step.At, s.At))
	}
	if unknown != nil {
		fmt.Fprintf(a.Out, "clocks: %s off most others, and a look cannot tell since when: old is harmless; new means that clocks were stepped, these or the others: redlockctl history --filter clock\n", strings.Join(unknown, ", "))
	}
	a.printFindings(s, found)
}
