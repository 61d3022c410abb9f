package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"redlockctl/internal/cli/exit"
	"redlockctl/internal/cli/flags"
	"redlockctl/internal/cli/printer"
	"redlockctl/internal/safetext"
	"redlockctl/internal/sim"
	"redlockctl/internal/sim/mutant"
	"redlockctl/internal/sim/schedule"
	"redlockctl/internal/sim/small"
	"redlockctl/internal/sim/trace"
	"redlockctl/internal/sim/world"
	"redlockctl/internal/view"
)

// errViolation is returned when the simulator found a violation.
var errViolation = errors.New("a property does not hold")

// schedules is a flag for numbers such as 200000, 200_000 or 1e6.
type schedules int64

func (s *schedules) String() string { return strconv.FormatInt(int64(*s), 10) }

func (s *schedules) Type() string { return "number" }

func (s *schedules) Set(v string) error {
	f, err := strconv.ParseFloat(strings.ReplaceAll(v, "_", ""), 64)
	if err != nil || f != math.Trunc(f) || f < 1 || f > 1e12 {
		return errors.New("it is a whole number from 1 to 1e12")
	}
	*s = schedules(f)
	return nil
}

// simulateOptions are the flags of simulate.
type simulateOptions struct {
	sim.Config
	schedules        schedules
	faults           string
	list, exhaustive bool
}

func (a *commandLine) simulateCommand() *cobra.Command {
	o := simulateOptions{schedules: 200_000}
	cmd := &cobra.Command{
		Use:   "simulate",
		Short: "Play crashes against the guard and the lock algorithm, in simulated time",
		Long: `Plays random schedules in simulated time against this program's own lock
algorithm and its own guard: masters that crash at the worst moment and come back
empty, guards that crash, clocks that are wrong, a network that delays and loses.
An independent witness looks for two clients that hold one lock, for copies left
behind, and for masters that rejoin too early. Nothing is contacted, and one seed is
one schedule, on every machine.

With the guard it finds nothing. To see that it can find something, remove the guard,
shorten its delay, or break a rule on purpose: --list-mutants lists the rules. A
violation is shortened to the few events that matter and printed with the command
that plays it again. The exit code is then 1.

--exhaustive plays all orders of events of a small model instead of random schedules:
three masters, two clients, two crashes, and variants with FLUSHALL, restarts of the
guard and early rejoin. It takes a minute or so.`,
		Example: "redlockctl simulate --schedules 200000\nredlockctl simulate --without-guard\nredlockctl simulate --delay 0.9\nredlockctl simulate --mutant token-reused\nredlockctl simulate --exhaustive",
		Args:    flags.NoArgs,
		RunE: a.run(func(ctx context.Context, _ []string) error {
			if o.list {
				return a.listMutants()
			}
			if o.exhaustive {
				return a.explore(ctx, o)
			}
			return a.simulate(ctx, o)
		}),
	}
	f := cmd.Flags()
	f.Var(&o.schedules, "schedules", "how many to play at most, e.g. 200000 or 1e6")
	f.Uint64Var(&o.Seed, "seed", 1, "of the first schedule; each further one has the next")
	f.BoolVar(&o.WithoutGuard, "without-guard", false, "no guard, and masters that start unfenced")
	f.Float64Var(&o.Delay, "delay", 1, "factor on D, the time for which a crashed master stays fenced")
	f.StringVar(&o.faults, "faults", "all", "what may go wrong: all, none, or of "+strings.Join(schedule.FaultNames(), ","))
	f.StringVar(&o.Mutant, "mutant", "", "break one rule on purpose")
	f.BoolVar(&o.list, "list-mutants", false, "list the rules that can be broken")
	f.BoolVar(&o.EarlyRejoin, "early-rejoin", false, "guards may let masters rejoin before D, where the others prove that no lock needs their votes")
	f.BoolVar(&o.exhaustive, "exhaustive", false, "visit all states of a small model instead")
	f.IntVar(&o.Workers, "workers", 0, "how many processors to use (0: all); changes nothing in what is found")
	var names []string
	for _, m := range mutant.All() {
		names = append(names, m.Name)
	}
	_ = cmd.RegisterFlagCompletionFunc("mutant", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (o simulateOptions) simConfig() (cfg sim.Config, err error) {
	cfg = o.Config
	cfg.Schedules = int64(o.schedules)
	cfg.Faults, err = schedule.ParseFaults(o.faults)
	switch {
	case err != nil:
		err = fmt.Errorf("--faults: %w", err)
	case !(o.Delay > 0 && o.Delay <= 10):
		err = fmt.Errorf("--delay %g is not in (0, 10]", o.Delay)
	case o.WithoutGuard && o.Delay != 1:
		err = errors.New("--delay is the guard's, and there is none with --without-guard")
	case o.WithoutGuard && o.Mutant != "":
		err = errors.New("--mutant and --without-guard: one at a time")
	case o.WithoutGuard && o.EarlyRejoin:
		err = errors.New("--early-rejoin is the guard's, and there is none with --without-guard")
	}
	return cfg, err
}

func (a *commandLine) simulate(ctx context.Context, o simulateOptions) error {
	cfg, err := o.simConfig()
	if err != nil {
		return exit.Usage(err)
	}
	if a.ErrTTY {
		began, told := time.Now(), time.Now()
		cfg.Progress = func(played int64) {
			if now := time.Now(); now.Sub(told) >= 200*time.Millisecond {
				told = now
				fmt.Fprintf(a.Err, "\r%d of %d schedules, %.0f a second ", played, cfg.Schedules, float64(played)/now.Sub(began).Seconds())
			}
		}
		// Spaces wipe the line on any terminal.
		defer fmt.Fprintf(a.Err, "\r%60s\r", "")
	}
	r, err := sim.Run(ctx, cfg)
	switch {
	case errors.Is(err, sim.ErrUnknownMutant):
		return exit.Usagef("%w; see redlockctl simulate --list-mutants", err)
	case err != nil:
		return err
	}
	if a.Output == "json" {
		err = a.JSON("simulation", simulateDoc(cfg, r))
	} else {
		writeSimulation(a.Out, cfg, r)
	}
	if err == nil && r.Violation != nil {
		err = exit.Silently(errViolation)
	}
	return err
}

// replay returns the command that plays a schedule again.
func replay(cfg sim.Config, seed uint64) string {
	b := fmt.Sprintf("redlockctl simulate --seed %d --schedules 1", seed)
	if cfg.WithoutGuard {
		b += " --without-guard"
	}
	if cfg.Delay != 1 {
		b += fmt.Sprintf(" --delay %g", cfg.Delay)
	}
	if cfg.Faults != schedule.AllFaults {
		b += " --faults " + cfg.Faults.String()
	}
	if cfg.Mutant != "" {
		b += " --mutant " + cfg.Mutant
	}
	if cfg.EarlyRejoin {
		b += " --early-rejoin"
	}
	return b
}

func writeSimulation(w io.Writer, cfg sim.Config, r sim.Report) {
	perSecond := float64(r.Schedules) / max(r.Elapsed.Seconds(), 1e-6)
	if v := r.Violation; v != nil {
		fmt.Fprintf(w, "VIOLATION in schedule %d, seed %d: %s\n%s\n\n", v.Played, v.Seed, v.Property, v.About)
		writeTrace(w, v.Trace)
		fmt.Fprintf(w, "\nc is a client, n a master, g a guard, !! the witness. This is the shortest form that was found,\nin %d tries. To play it again:\n\n    %s\n",
			v.Tries, replay(cfg, v.Seed))
		return
	}
	fmt.Fprintf(w, "%d schedules, no violation (%s, %.0f a second)\n", r.Schedules, r.Elapsed.Round(100*time.Millisecond), perSecond)
	fmt.Fprintf(w, "%d grants, %d extensions, %d crashes, %d votes forgotten, %d rejoins, %d crashes of guards\n",
		r.Grants, r.Extensions, r.Crashes, r.LostVotes, r.Rejoins, r.GuardCrashes)
	if cfg.EarlyRejoin {
		fmt.Fprintf(w, "%d rejoins were allowed before D\n", r.Early)
	}
	if r.Unheard > 0 {
		fmt.Fprintf(w, "%d rejoins were too early for the longest D of all guards: a guard with a shorter D did them, and could not\nsee the other guard\n", r.Unheard)
	}
	if r.Exposed > 0 {
		fmt.Fprintf(w, "In %d schedules a master served after a loss (no boot fence, FLUSHALL, an eviction, a clock step, a\nrejoin too early for a D that could not be seen) and voted again, and two clients held the lock. Only boot fences,\nno flushes, and one D for all guards prevent that.\n", r.Exposed)
	}
}

func writeTrace(w io.Writer, lines []trace.Line) {
	fmt.Fprintf(w, "%12s  %-3s  %s\n", "TIME", "WHO", "WHAT")
	for _, l := range lines {
		fmt.Fprintf(w, "%10.4f s  %-3s  %s\n", l.At.Seconds(), l.Who, l.Text)
	}
}

// simulateJSON is the document of simulate.
type simulateJSON struct {
	Seed      uint64         `json:"seed"`
	Limit     int64          `json:"limit"`
	Guard     bool           `json:"guard"`
	Delay     float64        `json:"delay"`
	Early     bool           `json:"early_rejoin,omitempty"`
	Faults    safetext.Text  `json:"faults"`
	Mutant    *safetext.Text `json:"mutant,omitempty"`
	ElapsedMs int64          `json:"elapsed_ms"`
	world.Stats
	Violation *violationJSON `json:"violation,omitempty"`
}

type violationJSON struct {
	*sim.Violation
	Replay string `json:"replay"`
}

func simulateDoc(cfg sim.Config, r sim.Report) simulateJSON {
	doc := simulateJSON{
		Seed: cfg.Seed, Limit: cfg.Schedules, Guard: !cfg.WithoutGuard, Delay: cfg.Delay, Early: cfg.EarlyRejoin,
		Faults: safetext.New(cfg.Faults.String()), Mutant: safetext.Optional(cfg.Mutant), ElapsedMs: r.Elapsed.Milliseconds(), Stats: r.Stats,
	}
	if v := r.Violation; v != nil {
		doc.Violation = &violationJSON{v, replay(cfg, v.Seed)}
	}
	return doc
}

// mutantsJSON is the document of simulate --list-mutants.
type mutantsJSON struct {
	Mutants []mutant.Mutant `json:"mutants"`
}

func (a *commandLine) listMutants() error {
	if a.Output == "json" {
		return a.JSON("mutants", mutantsJSON{mutant.All()})
	}
	t := view.NewTable("MUTANT", "BREAKS", "WHAT IT DOES WRONG")
	for _, m := range mutant.All() {
		t.Add(printer.Plain(m.Name), printer.Plain(m.Property.ID()), printer.Plain(m.What))
	}
	a.Table(t)
	return nil
}

// exploreJSON is the document of simulate --exhaustive.
type exploreJSON struct {
	Mutant    *safetext.Text `json:"mutant,omitempty"`
	Models    []modelJSON    `json:"models"`
	ElapsedMs int64          `json:"elapsed_ms"`
}

type modelJSON struct {
	Model     safetext.Text `json:"model"`
	States    int           `json:"states"`
	Steps     int           `json:"steps"`
	ElapsedMs int64         `json:"elapsed_ms"`
	Trace     []trace.Line  `json:"trace,omitempty"`
}

func (o simulateOptions) chosenModels() ([]small.Config, error) {
	switch {
	case o.WithoutGuard && o.Mutant != "":
		return nil, errors.New("--mutant and --without-guard: one at a time")
	case o.Delay != 1:
		return nil, errors.New("--delay does not go with --exhaustive; there is --mutant delay-0.9")
	case o.WithoutGuard:
		o.Mutant = "no-guard"
	}
	models, err := small.Chosen(o.Mutant, o.EarlyRejoin)
	if err != nil {
		return nil, fmt.Errorf("--exhaustive %w", err)
	}
	return models, nil
}

func (a *commandLine) explore(ctx context.Context, o simulateOptions) error {
	models, err := o.chosenModels()
	if err != nil {
		return exit.Usage(err)
	}
	began := time.Now()
	doc := exploreJSON{Mutant: safetext.Optional(models[0].Mutant)}
	var broken []trace.Line
	for _, m := range models {
		r, err := small.Explore(ctx, m)
		if err != nil {
			return err
		}
		doc.Models = append(doc.Models, modelJSON{safetext.New(m.String()), r.States, r.Steps, r.Elapsed.Milliseconds(), r.Trace})
		if r.Trace != nil {
			broken = r.Trace
		}
		if a.Output == "json" {
			continue
		}
		verdict := "no violation"
		if r.Trace != nil {
			verdict = "VIOLATION: two clients hold one lock"
		}
		fmt.Fprintf(a.Out, "3 masters, 2 clients, %s: %d states visited, %s (%s)\n", m, r.States, verdict, r.Elapsed.Round(100*time.Millisecond))
	}
	doc.ElapsedMs = time.Since(began).Milliseconds()
	switch {
	case a.Output == "json":
		err = a.JSON("exploration", doc)
	case broken != nil:
		writeTrace(a.Out, broken)
	}
	if err == nil && broken != nil {
		err = exit.Silently(errViolation)
	}
	return err
}
