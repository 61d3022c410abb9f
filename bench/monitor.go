package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/internal/lab"
	"redlockctl/monitor"
	"redlockctl/redlock"
)

// monitorBench measures the monitor: how fast it sees, what it costs the masters
// and this machine. Where a figure is a ratio, both sides are measured in turns
// in the same run.
type monitorBench struct {
	quick  bool
	only   string
	server string
	locks  int // 0: by quick
	others int

	json, markdown string // files to write too
	profile        string // a file for a CPU profile, of all but the filling
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

func runMonitor(b monitorBench) error {
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
	if b.profile != "" {
		f, err := os.Create(b.profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
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
	version, _ := exec.Command(b.server, "--version").Output()
	load, _ := os.ReadFile("/proc/loadavg")
	about := []fact{
		{"date", time.Now().UTC().Format(time.DateOnly)},
		{"Go", runtime.Version()},
		{"CPUs", fmt.Sprint(runtime.NumCPU())},
		{"load at the end", strings.TrimSpace(string(load))},
		{"servers", strings.TrimSpace(string(version))},
		{"keys", fmt.Sprintf("%d locks on each of five servers, among %d keys", b.locks, b.locks+b.others)},
		{"took", time.Since(begun).Round(time.Second).String()},
	}
	failed = errors.Join(failed, mb.print(os.Stdout, about))
	if b.json != "" {
		failed = errors.Join(failed, mb.writeJSON(b.json, about))
	}
	if b.markdown != "" {
		failed = errors.Join(failed, mb.writeMarkdown(b.markdown, about))
	}
	return failed
}

func (b *monitorRun) print(to io.Writer, about []fact) error {
	for _, f := range about {
		fmt.Fprintf(to, "%s: %s\n", f.Name, f.Value)
	}
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nWHAT\tMEASURED\tTO REACH\t")
	for _, l := range b.lines {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", l.What, l.Measured, l.ToReach, l.verdict())
	}
	return w.Flush()
}

func (b *monitorRun) writeJSON(path string, about []fact) error {
	head := map[string]string{}
	for _, f := range about {
		head[f.Name] = f.Value
	}
	text, err := json.MarshalIndent(map[string]any{"about": head, "figures": b.lines}, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// writeMarkdown writes the table as a document of its own.
func (b *monitorRun) writeMarkdown(path string, about []fact) error {
	var text strings.Builder
	text.WriteString(`# What the monitor takes

Five real redis-servers on loopback, and the monitor in the program that measures.
Ratios are medians over rounds in which both sides took turns. Absolute times
are of one machine at one hour, on which the servers and the monitor share the CPUs.

`)
	for _, f := range about {
		fmt.Fprintf(&text, "- %s: `%s`\n", f.Name, f.Value)
	}
	text.WriteString("\n| | measured | to reach | |\n| --- | --- | --- | --- |\n")
	for _, l := range b.lines {
		fmt.Fprintf(&text, "| %s | %s | %s | %s |\n", l.What, l.Measured, l.ToReach, l.verdict())
	}
	return os.WriteFile(path, []byte(text.String()), 0o644)
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
func (b *monitorRun) options() monitor.Options {
	return monitor.Options{LockPatterns: []string{"lock:*"}}
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
func (b *monitorRun) watched(f func(ctx context.Context, m *monitor.Monitor) error) error {
	return b.watching(b.options(), f)
}

func (b *monitorRun) watching(opt monitor.Options, f func(ctx context.Context, m *monitor.Monitor) error) error {
	m, err := monitor.New(b.nodes, opt)
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
	return b.watched(func(ctx context.Context, m *monitor.Monitor) error {
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
	m, err := monitor.New([]*redlock.Node{s.Node()}, monitor.Options{})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); m.Run(ctx) }()
	defer func() { cancel(); <-done }()
	if err := m.Settled(ctx); err != nil {
		return err
	}
	time.Sleep(6 * time.Second)
	var took []float64
	offset := time.Duration(0)
	for range b.rounds(4, 8) {
		seen := m.Snapshot()
		offset += 20 * time.Millisecond
		begun := time.Now()
		if err := s.SetClock(offset, 1); err != nil {
			return err
		}
		last := uint64(0)
		if n := len(seen.Events); n > 0 {
			last = seen.Events[n-1].Seq
		}
		for version := seen.Version; ; {
			if time.Since(begun) > 5*time.Second {
				return errors.New("a step was not seen")
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
	b.line("a step of 20 ms seen", slices.Max(took) <= 300, "≤ 300 ms", "%.0f ms in the middle, %.0f at most of %d", median(took), slices.Max(took), len(took))
	return nil
}
