package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/internal/lab"
	"redlockctl/monitor"
	"redlockctl/monitor/observe"
	"redlockctl/redlock"
)

// monitorBench measures the monitor: how fast it sees, what it costs the masters
// and this machine. Where a figure is a ratio, both sides are measured in turns
// in the same run.
type monitorBench struct {
	wanted
	locks  int // 0: by quick
	others int
}

type monitorPart struct {
	name string
	run  func(*monitorRun) error
}

// monitorParts are what can be run alone, in the order in which they run.
func monitorParts() []monitorPart {
	return []monitorPart{
		{"view", (*monitorRun).view}, {"oneshot", (*monitorRun).oneshot}, {"memory", (*monitorRun).memory}, {"rest", (*monitorRun).rest},
		{"changes", (*monitorRun).changes}, {"cost", (*monitorRun).cost}, {"price", (*monitorRun).price}, {"clock", (*monitorRun).clock},
		{"step", (*monitorRun).step}, {"burst", (*monitorRun).burst}, {"million", (*monitorRun).million},
	}
}

// monitorPartNames is the list for people.
func monitorPartNames() string {
	var names []string
	for _, p := range monitorParts() {
		names = append(names, p.name)
	}
	return strings.Join(names, ", ")
}

// The time after which no further part begins. A part takes two minutes at most.
const (
	monitorMost      = 8 * time.Minute
	monitorMostQuick = 100 * time.Second
)

func runMonitor(args []string) error {
	var b monitorBench
	fs := b.flags("monitor", "a fifth of the locks, few short rounds")
	b.partFlags(fs, "one part: "+monitorPartNames(), "write a CPU profile of all but the filling to this file")
	fs.IntVar(&b.locks, "locks", 0, "locks on each server; default 100000")
	fs.IntVar(&b.others, "others", 0, "other keys on each server, with --locks")
	_ = fs.Parse(args)
	if addrs := os.Getenv(clientAddrs); b.only == clientPart && addrs != "" {
		return runClients(strings.Split(addrs, ","))
	}
	if b.only != "" && !slices.ContainsFunc(monitorParts(), func(p monitorPart) bool { return p.name == b.only }) {
		return fmt.Errorf("--only %q: it is one of %s", b.only, monitorPartNames())
	}
	if b.locks == 0 {
		b.locks, b.others = 100_000, 1_000_000
		if b.quick {
			b.locks, b.others = 20_000, 200_000
		}
	}
	begun, most := time.Now(), monitorMost
	if b.quick {
		most = monitorMostQuick
	}
	servers, stop, err := start(b.server, 5)
	if err != nil {
		return err
	}
	defer stop()
	mb := &monitorRun{monitorBench: b, servers: servers}
	for _, s := range servers {
		mb.nodes = append(mb.nodes, s.Node())
	}
	fmt.Fprintf(os.Stderr, "filling five servers: %d locks among %d keys each\n", b.locks, b.locks+b.others)
	if err := mb.fill(); err != nil {
		return err
	}
	ended, err := b.startProfile()
	if err != nil {
		return err
	}
	defer ended()
	var failed error
	for _, part := range monitorParts() {
		if b.only != "" && b.only != part.name {
			continue
		}
		if spent := time.Since(begun); spent > most && b.only == "" {
			mb.line(part.name, false, "", "not measured: %s were spent on the others", spent.Round(time.Second))
			continue
		}
		fmt.Fprintf(os.Stderr, "%s (%s)\n", part.name, time.Since(begun).Round(time.Second))
		if err := part.run(mb); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", part.name, err))
		}
	}
	about := about(b.server,
		fact{"keys", fmt.Sprintf("%d locks on each of five servers, among %d keys", b.locks, b.locks+b.others)},
		fact{"took", time.Since(begun).Round(time.Second).String()})
	return errors.Join(failed, mb.print(os.Stdout, about), writeJSON(b.json, about, mb.lines),
		writeMarkdown(b.markdown, func(w io.Writer) { mb.document(w, about) }))
}

func (b *monitorRun) print(to io.Writer, about []fact) error {
	printFacts(to, about)
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nWHAT\tMEASURED\tTO REACH\t")
	for _, l := range b.lines {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", l.What, l.Measured, l.ToReach, l.verdict())
	}
	return w.Flush()
}

// document writes the table as a document of its own.
func (b *monitorRun) document(w io.Writer, about []fact) {
	fmt.Fprint(w, `# What the monitor takes

Five real redis-servers on loopback, and the monitor in the program that measures.
Ratios are medians over rounds in which both sides took turns. Absolute times
are of one machine at one hour, on which the servers and the monitor share the CPUs.
`)
	markdownFacts(w, about)
	fmt.Fprint(w, "\n| | measured | to reach | |\n| --- | --- | --- | --- |\n")
	for _, l := range b.lines {
		fmt.Fprintf(w, "| %s | %s | %s | %s |\n", l.What, l.Measured, l.ToReach, l.verdict())
	}
}

type monitorRun struct {
	monitorBench
	servers []*lab.Server
	nodes   []*redlock.Node
	lines   []benchLine
}

type benchLine struct {
	What     string `json:"what"`
	Measured string `json:"measured"`
	ToReach  string `json:"to_reach"`
	Reached  bool   `json:"reached"`
}

func (l benchLine) verdict() string {
	switch {
	case l.ToReach == "":
		return "" // not measured
	case l.Reached:
		return "reached"
	}
	return "NOT REACHED"
}

func (b *monitorRun) line(what string, ok bool, want, format string, args ...any) {
	b.lines = append(b.lines, benchLine{what, fmt.Sprintf(format, args...), want, ok})
}

// options are those of a cluster whose locks have a name of their own.
func (b *monitorRun) options() observe.Options {
	return observe.Options{LockPatterns: []string{"lock:*"}}
}

// patient are the same as the console has them.
func (b *monitorRun) patient() observe.Options {
	opt := b.options()
	opt.Patient = true
	return opt
}

func (b *monitorRun) each(f func(i int, c *redis.Client) error) error {
	errs := make([]error, len(b.nodes))
	var wg sync.WaitGroup
	for i, n := range b.nodes {
		wg.Go(func() {
			c := n.Client(1, time.Minute)
			defer c.Close()
			errs[i] = f(i, c)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (b *monitorRun) fill() error {
	return errors.Join(b.fillWith("app", b.others), b.fillWith("lock", b.locks))
}

// fillWith sets n keys with this beginning on each server.
func (b *monitorRun) fillWith(name string, n int) error {
	const script = `local name = ARGV[3]
for i = ARGV[1], ARGV[2] do
  if name == 'app' then redis.call('SET', string.format('app:%08d', i), 'x')
  else redis.call('SET', string.format('%s:%08d', name, i), string.format('token%019d', i), 'PX', 7200000) end
end`
	ctx := context.Background()
	return b.each(func(_ int, c *redis.Client) error {
		for from := 1; from <= n; from += 50_000 {
			if err := c.Eval(ctx, script, nil, from, min(n, from+49_999), name).Err(); err != nil && !errors.Is(err, redis.Nil) {
				return err
			}
		}
		return nil
	})
}

// watched runs f beside a monitor.
func (b *monitorRun) watched(f func(ctx context.Context, m *observe.Monitor) error) error {
	return b.watching(b.options(), f)
}

func (b *monitorRun) watching(opt observe.Options, f func(ctx context.Context, m *observe.Monitor) error) error {
	m, err := observe.New(b.nodes, opt)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); m.Run(ctx) }()
	defer func() { cancel(); <-done }()
	return f(ctx, m)
}

func (b *monitorRun) rounds(few, many int) int {
	if b.quick {
		return few
	}
	return many
}

// clock measures drift under load: all clocks are one, so the truth is 0.
func (b *monitorRun) clock() error {
	span := 60 * time.Second
	if b.quick {
		span = 20 * time.Second
	}
	return b.watched(func(ctx context.Context, m *observe.Monitor) error {
		if err := m.Settled(ctx); err != nil {
			return err
		}
		if _, err := b.setNX(span); err != nil {
			return err
		}
		sum, n := 0.0, 0
		for _, node := range m.Snapshot().Nodes {
			if node.Drift.Valid {
				sum += node.Drift.PPM * node.Drift.PPM
				n++
			}
		}
		rms := math.Sqrt(sum / float64(n))
		steps := 0
		for _, e := range m.Snapshot().Events {
			if strings.Contains(e.Kind, "clock") {
				steps++
			}
		}
		b.line("drift under load, rms", n == len(b.nodes) && rms <= 1, "≤ 1 ppm after 60 s", "%.2f ppm after %s", rms, span)
		b.line("false steps of clocks", steps == 0, "none in an hour", "%d in %s", steps, span)
		return nil
	})
}

// step is how soon a step of 20 ms is seen, of a server with a clock of its own.
func (b *monitorRun) step() error {
	dir, err := os.MkdirTemp("", "redlockctl-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	shim, err := lab.BuildClockShim(dir)
	if err != nil {
		return err
	}
	s, err := lab.NewServer(b.server, "clock", dir, 0)
	if err != nil {
		return err
	}
	if err := s.UseClock(shim); err != nil {
		return err
	}
	if err := s.Start(); err != nil {
		return err
	}
	defer func() { _ = s.Kill() }()
	alone := &monitorRun{nodes: []*redlock.Node{s.Node()}}
	return alone.watching(observe.Options{}, func(ctx context.Context, m *observe.Monitor) error {
		took, err := b.steps(ctx, m, s)
		if err != nil {
			return err
		}
		b.line("a step of 20 ms seen", slices.Max(took) <= 300, "≤ 300 ms", "%.0f ms in the middle, %.0f at most of %d", median(took), slices.Max(took), len(took))
		return nil
	})
}

// steps moves the clock of a server, and takes the time, in ms, until each step is seen.
func (b *monitorRun) steps(ctx context.Context, m *observe.Monitor, s *lab.Server) (took []float64, err error) {
	if err := m.Settled(ctx); err != nil {
		return nil, err
	}
	time.Sleep(6 * time.Second)
	offset := time.Duration(0)
	for range b.rounds(4, 8) {
		seen := m.Snapshot()
		offset += 20 * time.Millisecond
		begun := time.Now()
		if err := s.SetClock(offset, 1); err != nil {
			return nil, err
		}
		last := uint64(0)
		if n := len(seen.Events); n > 0 {
			last = seen.Events[n-1].Seq
		}
		for version := seen.Version; ; {
			if time.Since(begun) > 5*time.Second {
				return nil, errors.New("a step was not seen")
			}
			<-m.Changed(version)
			version = m.Snapshot().Version
			events, _ := m.EventsSince(last)
			if slices.ContainsFunc(events, func(e monitor.Event) bool { return e.Kind == "clock step" }) {
				break
			}
		}
		took = append(took, float64(time.Since(begun).Milliseconds()))
		time.Sleep(2500 * time.Millisecond)
	}
	return took, nil
}
