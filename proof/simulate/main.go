// Simulate plays crashes against the guard and the lock algorithm in simulated time; --help says how.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/signal"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"redlockctl/proof/sim"
	"redlockctl/proof/sim/mutant"
	"redlockctl/proof/sim/schedule"
	"redlockctl/proof/sim/small"
	"redlockctl/proof/sim/trace"
)

const about = `Plays random schedules in simulated time against the program's own lock algorithm and
its own guard: masters that crash at the worst moment and come back empty, guards that
crash, clocks that are wrong, a network that delays and loses. An independent witness
looks for two clients that hold one lock, for copies left behind, and for masters that
rejoin too early. Nothing is contacted, and one seed is one schedule, on every machine.

With the guard it finds nothing. To see that it can find something, remove the guard,
shorten its delay, or break a rule on purpose. A violation is shortened to the few
events that matter and printed with the command that plays it again.

Exit code 0 if nothing was found, 1 if something was, 2 if the flags make no sense.

    scripts/simulate --schedules 200000
    scripts/simulate --without-guard
    scripts/simulate --delay 0.9
    scripts/simulate --mutant token-reused
    scripts/simulate --exhaustive

`

// schedules is a flag for numbers such as 200000, 200_000 or 1e6.
type schedules int64

func (s *schedules) String() string { return strconv.FormatInt(int64(*s), 10) }

func (s *schedules) Set(v string) error {
	f, err := strconv.ParseFloat(strings.ReplaceAll(v, "_", ""), 64)
	if err != nil || f != math.Trunc(f) || f < 1 || f > 1e12 {
		return errors.New("it is a whole number from 1 to 1e12")
	}
	*s = schedules(f)
	return nil
}

type options struct {
	sim.Config
	schedules        schedules
	faults           string
	list, exhaustive bool
}

// errViolation: something was found, and has been printed.
var errViolation = errors.New("a property does not hold")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	debug.SetGCPercent(800) // the heap is a few MB: collected less often, a schedule takes half the time
	switch err := run(ctx); {
	case err == nil:
	case errors.Is(err, errViolation):
		os.Exit(1)
	default:
		fmt.Fprintln(os.Stderr, "simulate:", err)
		os.Exit(2)
	}
}

func run(ctx context.Context) error {
	o := options{schedules: 200_000}
	f := flag.CommandLine
	f.Usage = func() { fmt.Fprint(f.Output(), about); f.PrintDefaults() }
	f.Var(&o.schedules, "schedules", "how many to play at most, as 200000 or 1e6")
	f.Uint64Var(&o.Seed, "seed", 1, "of the first schedule; each further one has the next")
	f.BoolVar(&o.WithoutGuard, "without-guard", false, "no guard, and masters that start unfenced")
	f.Float64Var(&o.Delay, "delay", 1, "factor on D, the time for which a crashed master stays fenced")
	f.StringVar(&o.faults, "faults", "all", "what may go wrong: all, none, or of "+strings.Join(schedule.FaultNames(), ","))
	f.StringVar(&o.Mutant, "mutant", "", "break one rule on purpose")
	f.BoolVar(&o.list, "list-mutants", false, "list the rules that can be broken")
	f.BoolVar(&o.EarlyRejoin, "early-rejoin", false, "guards may let masters rejoin before D, where the others prove that no lock needs their votes")
	f.BoolVar(&o.exhaustive, "exhaustive", false, "visit all states of a small model instead: three masters, two clients, two crashes; two minutes or so")
	f.IntVar(&o.Workers, "workers", 0, "how many processors to use (0: all); changes nothing in what is found")
	flag.Parse()
	switch {
	case flag.NArg() > 0:
		return fmt.Errorf("unexpected %q", flag.Args())
	case o.list:
		return listMutants()
	case o.exhaustive:
		return o.explore(ctx)
	}
	return o.simulate(ctx)
}

func (o options) config() (cfg sim.Config, err error) {
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

func (o options) simulate(ctx context.Context) error {
	cfg, err := o.config()
	if err != nil {
		return err
	}
	if info, err := os.Stderr.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
		began, shown := time.Now(), time.Now()
		cfg.Progress = func(played int64) {
			if now := time.Now(); now.Sub(shown) >= 200*time.Millisecond {
				shown = now
				fmt.Fprintf(os.Stderr, "\r%d of %d schedules, %.0f a second ", played, cfg.Schedules, float64(played)/now.Sub(began).Seconds())
			}
		}
		defer fmt.Fprintf(os.Stderr, "\r%60s\r", "") // spaces wipe the line on any terminal
	}
	r, err := sim.Run(ctx, cfg)
	switch {
	case errors.Is(err, sim.ErrUnknownMutant):
		return fmt.Errorf("%w; see --list-mutants", err)
	case err != nil:
		printReport(cfg, r)
		return err
	case r.Violation != nil:
		printViolation(cfg, r.Violation)
		return errViolation
	}
	printReport(cfg, r)
	return nil
}

// replay returns the command that plays a schedule again.
func replay(cfg sim.Config, seed uint64) string {
	b := fmt.Sprintf("scripts/simulate --seed %d --schedules 1", seed)
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

func printViolation(cfg sim.Config, v *sim.Violation) {
	fmt.Printf("VIOLATION in schedule %d, seed %d: %s\n%s\n\n", v.Played, v.Seed, v.Property, v.About)
	printTrace(v.Trace)
	fmt.Printf("\nc is a client, n a master, g a guard, !! the witness. This is the shortest form that was found,\nin %d tries. To play it again:\n\n    %s\n",
		v.Tries, replay(cfg, v.Seed))
}

func printReport(cfg sim.Config, r sim.Report) {
	perSecond := float64(r.Schedules) / max(r.Elapsed.Seconds(), 1e-6)
	fmt.Printf("%d schedules, no violation (%s, %.0f a second)\n", r.Schedules, r.Elapsed.Round(100*time.Millisecond), perSecond)
	fmt.Printf("%d grants, %d extensions, %d crashes, %d votes forgotten, %d rejoins, %d crashes of guards\n",
		r.Grants, r.Extensions, r.Crashes, r.LostVotes, r.Rejoins, r.GuardCrashes)
	if cfg.EarlyRejoin {
		fmt.Printf("%d rejoins were allowed before D\n", r.Early)
	}
	if r.Unheard > 0 {
		fmt.Printf("%d rejoins were too early for the longest D of all guards: a guard with a shorter D did them, and could not\nsee the other guard\n", r.Unheard)
	}
	if r.Exposed > 0 {
		fmt.Printf("In %d schedules a master served after a loss (no boot fence, FLUSHALL, an eviction, a clock step, a\nrejoin too early for a D that could not be seen) and voted again, and two clients held the lock. Only boot fences,\nno flushes, and one D for all guards prevent that.\n", r.Exposed)
	}
}

func printTrace(lines []trace.Line) {
	fmt.Printf("%12s  %-3s  %s\n", "TIME", "WHO", "WHAT")
	for _, l := range lines {
		fmt.Printf("%10.4f s  %-3s  %s\n", l.At.Seconds(), l.Who, l.Text)
	}
}

func listMutants() error {
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "MUTANT\tBREAKS\tWHAT IT DOES WRONG")
	for _, m := range mutant.All() {
		fmt.Fprintf(t, "%s\t%s\t%s\n", m.Name, m.Property.ID(), m.What)
	}
	return t.Flush()
}

func (o options) models() ([]small.Config, error) {
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

func (o options) explore(ctx context.Context) error {
	models, err := o.models()
	if err != nil {
		return err
	}
	var broken []trace.Line
	for _, m := range models {
		r, err := small.Explore(ctx, m)
		if err != nil {
			return err
		}
		verdict := "no violation"
		if r.Trace != nil {
			verdict, broken = "VIOLATION: two clients hold one lock", r.Trace
		}
		fmt.Printf("3 masters, 2 clients, %s: %d states visited, %s (%s)\n", m, r.States, verdict, r.Elapsed.Round(100*time.Millisecond))
	}
	if broken != nil {
		printTrace(broken)
		return errViolation
	}
	return nil
}
