package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"

	"redlockctl/internal/app"
	"redlockctl/internal/config"
	"redlockctl/internal/safetext"
	"redlockctl/monitor"
)

// doctorJSON is the document of doctor.
type doctorJSON struct {
	Schema string `json:"schema"`
	clusterJSON
	Result     string         `json:"result"` // clean, warnings, dangers
	ForMs      int64          `json:"looked_for_ms"`
	Counts     map[string]int `json:"counts"` // findings by severity
	ClockRates *spreadJSON    `json:"clock_rates,omitempty"`
	Findings   []findingJSON  `json:"findings"`
}

// spreadJSON compares the drift allowance with the clocks.
type spreadJSON struct {
	Fastest      safetext.Text `json:"fastest"`
	Slowest      safetext.Text `json:"slowest"`
	PPM          float64       `json:"ppm"`
	BoundPPM     float64       `json:"bound_ppm"`
	AllowancePPM float64       `json:"allowance_ppm"`
}

// findingJSON is one finding.
type findingJSON struct {
	ID          string         `json:"id"`
	Severity    string         `json:"severity"`
	Node        *safetext.Text `json:"node,omitempty"`
	Key         *safetext.Text `json:"key,omitempty"`
	KeyBase64   string         `json:"key_base64,omitempty"`
	Count       int            `json:"count,omitempty"`
	SinceMs     int64          `json:"since_ms"` // how long ago it was first seen
	Title       string         `json:"title"`
	Evidence    safetext.Text  `json:"evidence"`
	Consequence string         `json:"consequence"`
	Remedy      string         `json:"remedy"`
}

func findingDoc(f monitor.Finding, now time.Time) findingJSON {
	return findingJSON{
		ID: f.ID, Severity: f.Severity.String(), Node: optional(f.Node), Key: optional(f.Key.Raw()), KeyBase64: base64Of(f.Key.Raw()),
		Count: f.Count, SinceMs: ms(max(0, now.Sub(f.Since))),
		Title: f.Title, Evidence: f.Evidence, Consequence: f.Consequence, Remedy: f.Remedy,
	}
}

// The result of doctor in a word, by the gravest finding.
var doctorResults = [...]string{monitor.SeverityInfo: "clean", monitor.SeverityWarning: "warnings", monitor.SeverityDanger: "dangers"}

// leastDoctor is the least time in which a lock that is only passing is told
// from one that is stuck.
const leastDoctor = time.Second

func (a *commandLine) doctorCommand() *cobra.Command {
	var span, most time.Duration
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Which assumptions of Redlock do not hold on this cluster",
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
			if a.output == "json" {
				doc := doctorJSON{
					Schema: Schema, clusterJSON: clusterDoc(s), Result: doctorResults[gravest],
					ForMs: ms(s.At.Sub(began)), Counts: counts, Findings: []findingJSON{},
				}
				if r := monitor.RateSpread(s.Nodes); r.Fastest != r.Slowest {
					doc.ClockRates = &spreadJSON{text(r.Fastest), text(r.Slowest), r.PPM, r.Bound, cfg.Redlock.DriftFactor * 1e6}
				}
				for _, f := range s.Findings {
					doc.Findings = append(doc.Findings, findingDoc(f, s.At))
				}
				if err := printJSON(a.out, doc); err != nil {
					return err
				}
			} else {
				a.printDoctor(a.out, s, doctorResults[gravest], counts, cfg.Redlock.DriftFactor)
			}
			if gravest > monitor.SeverityInfo {
				return silent{serverExit(gravest)} // the severities are the exit codes
			}
			return nil
		}),
	}
	cmd.Flags().DurationVar(&most, "timeout", 0, "read the locks for so long at most; default: until all keys have been read")
	cmd.Flags().DurationVar(&span, "for", 5*time.Second, "how long to look; clocks are told the better the longer")
	return cmd
}

// examine watches the cluster for this long, and for as long as the first view
// takes beyond it, if that is not bounded.
func (a *commandLine) examine(ctx context.Context, cfg *config.Config, span, most time.Duration) (s *monitor.Snapshot, err error) {
	err = app.Watch(ctx, cfg, app.Aim{}, func(mon *monitor.Monitor) error {
		mon.Booted(bootSights(ctx, cfg))
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
func (a *commandLine) printDoctor(w io.Writer, s *monitor.Snapshot, result string, counts map[string]int, allowance float64) {
	paint := func(t tone, text string) string {
		if !a.color() {
			return text
		}
		return tones[t].Styled(text)
	}
	tonesOf := [...]tone{monitor.SeverityInfo: toneNone, monitor.SeverityWarning: toneWarn, monitor.SeverityDanger: toneBad}
	head := [...]tone{toneGood, toneWarn, toneBad}
	for i, word := range doctorResults {
		if word == result {
			result = paint(head[i], word)
			break
		}
	}
	fmt.Fprintf(w, "%s: cluster %s %s, %d of %d nodes serve, %s: %s, %s, %d info\n", result, safetext.Escape(s.Cluster.Name), a.verdict(s.Cluster.Verdict),
		s.Cluster.Serving, s.Cluster.N, plural(s.Counts.Total(), "lock", "locks"),
		plural(counts["danger"], "danger", "dangers"), plural(counts["warning"], "warning", "warnings"), counts["info"])
	if s.Cluster.Reason != "" {
		fmt.Fprintln(w, safetext.Escape(s.Cluster.Reason))
	}
	if r := monitor.RateSpread(s.Nodes); r.Fastest != r.Slowest {
		fmt.Fprintf(w, "clocks: %s runs %.1f %s %.1f ppm faster than %s; the drift allowance is %.0f ppm\n",
			safetext.Escape(r.Fastest), r.PPM, a.plusMinus(), r.Bound, safetext.Escape(r.Slowest), allowance*1e6)
	}
	for _, f := range s.Findings {
		title := f.Title
		if f.Node != "" {
			title = safetext.Escape(f.Node) + ": " + title
		}
		if f.Count > 1 {
			title += fmt.Sprintf(" (%d)", f.Count)
		}
		fmt.Fprintf(w, "\n%s  %s  %s\n", paint(tonesOf[f.Severity], strings.ToUpper(f.Severity.String())), title, paint(toneDim, "["+f.ID+"]"))
		for _, part := range []struct{ name, text string }{
			{"seen", a.clip(f.Evidence.String(), 400)}, {"matters", f.Consequence}, {"do", f.Remedy},
		} {
			for i, line := range strings.Split(ansi.Wordwrap(part.text, 78, ""), "\n") {
				name := part.name
				if i > 0 {
					name = ""
				}
				fmt.Fprintf(w, "  %-8s %s\n", name, line)
			}
		}
	}
}
