package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"syscall"
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

const bareScript = `local out = {}
for i = 1, #KEYS do
  out[4*i-3] = redis.call('TYPE', KEYS[i])['ok']
  out[4*i-2] = redis.call('PTTL', KEYS[i])
  out[4*i-1] = redis.call('STRLEN', KEYS[i])
  out[4*i] = redis.call('GETRANGE', KEYS[i], 0, 127)
end
return out`

// bare scans all servers and reads what it finds, and does nothing with it.
func (b *monitorRun) bare() (time.Duration, error) {
	begun := time.Now()
	ctx := context.Background()
	err := b.each(func(_ int, c *redis.Client) error {
		sha, err := c.ScriptLoad(ctx, bareScript).Result()
		if err != nil {
			return err
		}
		var cursor uint64
		var batch []string
		for {
			keys, next, err := c.Scan(ctx, cursor, "lock:*", 250).Result()
			if err != nil {
				return err
			}
			batch = append(batch, keys...)
			for len(batch) >= 200 || next == 0 && len(batch) > 0 {
				n := min(200, len(batch))
				if _, err := c.EvalShaRO(ctx, sha, batch[:n]).Slice(); err != nil {
					return err
				}
				batch = batch[:copy(batch, batch[n:])]
			}
			if cursor = next; cursor == 0 {
				return nil
			}
		}
	})
	return time.Since(begun), err
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

func (b *monitorRun) view() error {
	var ratios, firsts, wholes, bares []float64
	for range b.rounds(3, 5) {
		bare, err := b.bare()
		if err != nil {
			return err
		}
		runtime.GC()
		begun := time.Now()
		var first, whole time.Duration
		err = b.watched(func(ctx context.Context, m *monitor.Monitor) error {
			settled := make(chan error, 1)
			go func() { err := m.Settled(ctx); whole = time.Since(begun); settled <- err }()
			for {
				s := m.Snapshot()
				full := 0
				for l := range s.Locks.All() {
					if l.Held == len(b.nodes) && l.State == monitor.LockHeld {
						full++
					}
					if full == 40 {
						break
					}
				}
				if first == 0 && full == 40 {
					first = time.Since(begun)
				}
				select {
				case err := <-settled:
					if n := m.Snapshot().Locks.Len(); n != b.locks {
						return fmt.Errorf("%d locks, not %d", n, b.locks)
					}
					return err
				case <-m.Changed(s.Version):
				}
			}
		})
		if err != nil {
			return err
		}
		again, err := b.bare()
		if err != nil {
			return err
		}
		ratios = append(ratios, whole.Seconds()/((bare+again).Seconds()/2))
		firsts, wholes, bares = append(firsts, float64(first.Milliseconds())), append(wholes, whole.Seconds()), append(bares, bare.Seconds(), again.Seconds())
	}
	r := median(ratios)
	b.line("first full view, to a bare SCAN and read", r <= 1.3, "≤ 1.3", "%.2f (%.2f s to %.2f s)", r, median(wholes), median(bares))
	f := median(firsts)
	b.line("first screen: 40 locks with all copies", f <= 300, "≤ 300 ms", "%.0f ms", f)
	return nil
}

// oneshot is what a command takes that looks once: all keys of all nodes, and an end.
func (b *monitorRun) oneshot() error {
	var ratios, looks, bares []float64
	for range b.rounds(3, 5) {
		bare, err := b.bare()
		if err != nil {
			return err
		}
		runtime.GC()
		begun := time.Now()
		err = b.watched(func(ctx context.Context, m *monitor.Monitor) error {
			if err := m.Assessed(ctx); err != nil {
				return err
			}
			if s := m.Snapshot(); !s.Complete || s.Locks.Len() != b.locks {
				return fmt.Errorf("%d locks, not %d: %v", s.Locks.Len(), b.locks, s.Unread())
			}
			return nil
		})
		if err != nil {
			return err
		}
		look := time.Since(begun).Seconds()
		again, err := b.bare()
		if err != nil {
			return err
		}
		ratios = append(ratios, look/((bare+again).Seconds()/2))
		looks, bares = append(looks, look), append(bares, bare.Seconds(), again.Seconds())
	}
	r := median(ratios)
	b.line("a command that looks once, to a bare SCAN and read", r <= 1.5, "≤ 1.5", "%.2f (%.2f s to %.2f s)", r, median(looks), median(bares))
	return nil
}

// memory is what all of them take.
func (b *monitorRun) memory() error {
	limit := 200.0
	if b.locks > 200_000 {
		limit = 1200
	} else if b.locks < 100_000 {
		limit = 200 * float64(b.locks) / 100_000
	}
	return b.weigh(b.options(), b.locks, limit)
}

// million is the same with a million locks.
func (b *monitorRun) million() error {
	const n = 1_000_000
	if b.quick {
		return nil
	}
	if err := b.fillWith("million", n); err != nil {
		return err
	}
	return b.weigh(monitor.Options{LockPatterns: []string{"million:*"}}, n, 1200)
}

// weigh measures the memory of a monitor of n locks.
func (b *monitorRun) weigh(opt monitor.Options, n int, limit float64) error {
	heap := func() float64 {
		debug.FreeOSMemory()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc) / (1 << 20)
	}
	before, rssBefore := heap(), rss()
	return b.watching(opt, func(ctx context.Context, m *monitor.Monitor) error {
		begun := time.Now()
		if err := m.Settled(ctx); err != nil {
			return err
		}
		took, peak := time.Since(begun), rss()-rssBefore
		if got := m.Snapshot().Locks.Len(); got != n {
			return fmt.Errorf("%d locks, not %d", got, n)
		}
		time.Sleep(2 * time.Second)
		live := heap() - before
		b.line(fmt.Sprintf("memory, %d locks", n), peak <= limit, fmt.Sprintf("≤ %.0f MB", limit),
			"%.0f MB resident at the end of the first view (after %.1f s), %.0f MB live (%.0f bytes a lock)", peak, took.Seconds(), live, live*(1<<20)/float64(n))
		return nil
	})
}

// rest is how much CPU is used while nothing changes.
func (b *monitorRun) rest() error {
	return b.watched(func(ctx context.Context, m *monitor.Monitor) error {
		if err := m.Settled(ctx); err != nil {
			return err
		}
		time.Sleep(2 * time.Second)
		rest := 30 * time.Second
		if b.quick {
			rest = 12 * time.Second
		}
		from, begun := cpu(), time.Now()
		time.Sleep(rest)
		share := 100 * (cpu() - from).Seconds() / time.Since(begun).Seconds()
		b.line("CPU at rest", share <= 3, "≤ 3 % of a core", "%.1f %% over %s, reconciliations of all nodes included", share, rest)
		return nil
	})
}

func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// rss is the resident memory of this process in MiB.
func rss() float64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return math.NaN()
	}
	var size, resident float64
	_, _ = fmt.Sscan(string(text), &size, &resident)
	return resident * float64(os.Getpagesize()) / (1 << 20)
}

// changes changes locks at a steady rate and waits for each change to be in a
// snapshot; then the last snapshot has to equal what the servers say.
func (b *monitorRun) changes() error {
	const rate = 1000
	total := 60 * rate
	if b.quick {
		total = 10 * rate
	}
	return b.watched(func(ctx context.Context, m *monitor.Monitor) error {
		if err := m.Settled(ctx); err != nil {
			return err
		}
		type change struct {
			node  int
			token string
			at    time.Time
		}
		var mu sync.Mutex
		pending := map[string]change{}
		var took []float64
		overtaken := 0
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() {
			version := m.Snapshot().Version
			for {
				select {
				case <-ctx.Done():
					return
				case <-m.Changed(version):
				}
				s := m.Snapshot()
				now := time.Now()
				keys, ok := m.ChangedSince(version)
				version = s.Version
				mu.Lock()
				if !ok {
					keys = slices.Collect(maps.Keys(pending))
				}
				for _, k := range keys {
					c, waits := pending[k]
					if l := s.Locks.Get(k); waits && l != nil && l.Copies.At(c.node).Token.Raw() == c.token {
						took = append(took, float64(now.Sub(c.at).Microseconds())/1000)
						delete(pending, k)
					}
				}
				mu.Unlock()
			}
		})
		clients := make([]*redis.Client, len(b.nodes))
		for i, n := range b.nodes {
			clients[i] = n.Client(4, 5*time.Second)
			defer clients[i].Close()
		}
		begun := time.Now()
		for n := range total {
			if wait := time.Until(begun.Add(time.Duration(n) * time.Second / rate)); wait > 0 {
				time.Sleep(wait)
			}
			i := n % len(clients)
			key, token := fmt.Sprintf("lock:%08d", 1+(n*7919)%b.locks), fmt.Sprintf("change%018d", n)
			mu.Lock()
			if _, waits := pending[key]; waits {
				overtaken++
			}
			pending[key] = change{i, token, time.Now()}
			mu.Unlock()
			if err := clients[i].Set(ctx, key, token, 2*time.Hour).Err(); err != nil {
				return err
			}
		}
		spent := time.Since(begun)
		deadline := time.Now().Add(10 * time.Second)
		left := func() int { mu.Lock(); defer mu.Unlock(); return len(pending) }
		for left() > 0 && time.Now().Before(deadline) {
			time.Sleep(10 * time.Millisecond)
		}
		lost := left()
		cancel()
		wg.Wait()
		slices.Sort(took)
		p50, p99 := took[len(took)/2], took[len(took)*99/100]
		b.line("change to snapshot, p50", p50 <= 10, "≤ 10 ms", "%.1f ms at %.0f changes/s", p50, float64(total)/spent.Seconds())
		b.line("change to snapshot, p99", p99 <= 40, "≤ 40 ms", "%.1f ms", p99)
		different, err := b.compare(m)
		if err != nil {
			return err
		}
		b.line("changes lost", lost == 0 && different == 0, "none", "%d of %d not seen (%d overtaken by the next), %d copies differ at the end", lost, total, overtaken, different)
		return nil
	})
}

// compare counts the copies that differ from what the servers say.
func (b *monitorRun) compare(m *monitor.Monitor) (int, error) {
	s := m.Snapshot()
	different := make([]int, len(b.nodes))
	err := b.each(func(i int, c *redis.Client) error {
		var keys []string
		flush := func() error {
			if len(keys) == 0 {
				return nil
			}
			values, err := c.MGet(context.Background(), keys...).Result()
			if err != nil {
				return err
			}
			for k, key := range keys {
				if l := s.Locks.Get(key); values[k] != any(l.Copies.At(i).Token.Raw()) {
					different[i]++
				}
			}
			keys = keys[:0]
			return nil
		}
		for l := range s.Locks.All() {
			if keys = append(keys, l.Key.Raw()); len(keys) == 1000 {
				if err := flush(); err != nil {
					return err
				}
			}
		}
		return flush()
	})
	sum := 0
	for _, d := range different {
		sum += d
	}
	return sum, err
}

// cost is what those who lock feel: the p99 of SET NX at a steady rate.
func (b *monitorRun) cost() error {
	slice := 4 * time.Second
	if b.quick {
		slice = 1500 * time.Millisecond
	}
	var steady, scanning []float64
	for range b.rounds(3, 7) {
		alone, err := b.setNX(slice)
		if err != nil {
			return err
		}
		var first, watching float64
		opt := b.options()
		opt.Patient = true // as the console is
		err = b.watching(opt, func(ctx context.Context, m *monitor.Monitor) error {
			var err error
			first, err = b.setNXUntil(func() bool { return m.Snapshot().Cluster.Serving == len(m.Snapshot().Nodes) && settled(m) }, time.Minute)
			if err != nil {
				return err
			}
			if err := m.Settled(ctx); err != nil {
				return err
			}
			time.Sleep(500 * time.Millisecond)
			watching, err = b.setNX(slice)
			return err
		})
		if err != nil {
			return err
		}
		again, err := b.setNX(slice)
		if err != nil {
			return err
		}
		base := (alone + again) / 2
		steady, scanning = append(steady, watching/base), append(scanning, first/base)
	}
	b.line("SET NX p99 while watching, to not watching", median(steady) <= 1.25, "≤ 1.25", "%.2f (%s)", median(steady), list(steady))
	b.line("SET NX p99 during the first scan, to not watching", median(scanning) <= 3, "≤ 3", "%.2f (%s)", median(scanning), list(scanning))
	return nil
}

// price is what the servers pay: their CPU while locks are taken and released at a
// steady rate, watched to not watched.
func (b *monitorRun) price() error {
	slice := 6 * time.Second
	if b.quick {
		slice = 3 * time.Second
	}
	spend := func() (float64, error) {
		from, err := b.serverCPU()
		if err != nil {
			return 0, err
		}
		if _, err := b.setNX(slice); err != nil {
			return 0, err
		}
		to, err := b.serverCPU()
		return (to - from) / slice.Seconds(), err
	}
	var ratios, alones []float64
	for range b.rounds(3, 5) {
		alone, err := spend()
		if err != nil {
			return err
		}
		var watched float64
		opt := b.options()
		opt.Patient = true // as the console is
		err = b.watching(opt, func(ctx context.Context, m *monitor.Monitor) (err error) {
			if err := m.Settled(ctx); err != nil {
				return err
			}
			time.Sleep(500 * time.Millisecond)
			watched, err = spend()
			return err
		})
		if err != nil {
			return err
		}
		again, err := spend()
		if err != nil {
			return err
		}
		ratios, alones = append(ratios, 2*watched/(alone+again)), append(alones, alone, again)
	}
	r := median(ratios)
	b.line("CPU of the servers for each lock change, watched to not watched", r <= 1.6, "≤ 1.6", "%.2f (%s); %.1f %% of a core not watched", r, list(ratios), 100*median(alones))
	return nil
}

// serverCPU is the CPU time that all servers have used, in seconds.
func (b *monitorRun) serverCPU() (float64, error) {
	used := make([]float64, len(b.nodes))
	err := b.each(func(i int, c *redis.Client) error {
		text, err := c.Info(context.Background(), "cpu").Result()
		for line := range strings.Lines(text) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			if name == "used_cpu_user" || name == "used_cpu_sys" {
				var v float64
				_, _ = fmt.Sscan(value, &v)
				used[i] += v
			}
		}
		return err
	})
	sum := 0.0
	for _, v := range used {
		sum += v
	}
	return sum, err
}

func settled(m *monitor.Monitor) bool {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return m.Settled(ctx) == nil
}

func list(v []float64) string {
	var out []string
	for _, x := range v {
		out = append(out, fmt.Sprintf("%.2f", x))
	}
	return strings.Join(out, " ")
}

func (b *monitorRun) setNX(d time.Duration) (float64, error) {
	end := time.Now().Add(d)
	return b.setNXUntil(func() bool { return time.Now().After(end) }, 2*d)
}

// setNXUntil takes and releases locks on all servers, 200 times a second each,
// and returns the p99 of SET NX in milliseconds. It does so in a process of its
// own, as clients are: what they wait for is the server, not the monitor's
// goroutines.
func (b *monitorRun) setNXUntil(done func() bool, most time.Duration) (float64, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	var addrs []string
	for _, n := range b.nodes {
		addrs = append(addrs, n.Addr())
	}
	cmd := exec.Command(self, "monitor", "--only", clientPart)
	cmd.Env = append(os.Environ(), clientAddrs+"="+strings.Join(addrs, ","))
	cmd.Stderr = os.Stderr
	stop, err := cmd.StdinPipe()
	if err != nil {
		return 0, err
	}
	var out strings.Builder
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	for end := time.Now().Add(most); !done() && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
	_ = stop.Close()
	if err := cmd.Wait(); err != nil {
		return 0, err
	}
	var p99 float64
	_, err = fmt.Sscan(out.String(), &p99)
	return p99, err
}

// The process of the clients: what it is started with.
const (
	clientPart  = "client"
	clientAddrs = "REDLOCKCTL_BENCH_ADDRS"
)

// runClients takes and releases locks until standard input ends, and prints the
// p99 of SET NX in milliseconds.
func runClients(addrs []string) error {
	stop := make(chan struct{})
	go func() { _, _ = io.Copy(io.Discard, os.Stdin); close(stop) }()
	var mu sync.Mutex
	var took []float64
	errs := make([]error, len(addrs))
	var work sync.WaitGroup
	for i, addr := range addrs {
		work.Go(func() {
			c := redis.NewClient(&redis.Options{Addr: addr, PoolSize: 1})
			defer c.Close()
			ctx := context.Background()
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				key := fmt.Sprintf("lock:new:%d:%d", i, n)
				begun := time.Now()
				if errs[i] = c.SetNX(ctx, key, "token", time.Minute).Err(); errs[i] != nil {
					return
				}
				d := time.Since(begun)
				mu.Lock()
				took = append(took, d.Seconds()*1000)
				mu.Unlock()
				if errs[i] = c.Del(ctx, key).Err(); errs[i] != nil {
					return
				}
				time.Sleep(time.Until(begun.Add(5 * time.Millisecond)))
			}
		})
	}
	work.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if len(took) == 0 {
		return errors.New("no SET NX at all")
	}
	slices.Sort(took)
	fmt.Println(took[len(took)*99/100])
	return nil
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

// burst makes a million changes as fast as the servers take them; then the last
// snapshot has to equal what the servers say.
func (b *monitorRun) burst() error {
	total := 1_000_000
	if b.quick {
		total /= 10
	}
	return b.watched(func(ctx context.Context, m *monitor.Monitor) error {
		if err := m.Settled(ctx); err != nil {
			return err
		}
		begun := time.Now()
		err := b.each(func(i int, c *redis.Client) error {
			for n := 0; n < total/len(b.nodes); n += 100 {
				_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
					for k := range 100 {
						p.Set(ctx, fmt.Sprintf("lock:%08d", 1+((n+k)*7919+i)%b.locks), fmt.Sprintf("burst%d%018d", i, n+k), 2*time.Hour)
					}
					return nil
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		spent := time.Since(begun)
		// Until nothing changes any more; to compare takes much longer than that.
		last, deadline := time.Now(), time.Now().Add(time.Minute)
		for version := m.Snapshot().Version; time.Since(last) < time.Second && time.Now().Before(deadline); {
			time.Sleep(50 * time.Millisecond)
			s := m.Snapshot()
			if keys, ok := m.ChangedSince(version); !ok || len(keys) > 0 {
				last = time.Now()
			}
			version = s.Version
		}
		different, err := b.compare(m)
		if err != nil {
			return err
		}
		b.line(fmt.Sprintf("changes lost of %d in a burst", total), different == 0, "none",
			"%d copies differ at the end; all was seen %s after the last change, at %.0f changes/s", different, (last.Sub(begun) - spent).Round(10*time.Millisecond), float64(total)/spent.Seconds())
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
