package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/internal/lab"
	"redlockctl/internal/serverinfo"
	"redlockctl/monitor"
)

// screenBench measures the console as a person has it: the real program, on a
// terminal of 120×40, on five real servers.
type screenBench struct {
	wanted
	program string // to measure; empty: one that is built
	locks   int
	lines   []screenLine
}

// screenParts are what can be run alone, in the order in which they run.
var screenParts = []string{"starts", "lists", "rest", "keys", "seen"}

func (b *screenBench) wants(part string) bool { return b.only == "" || b.only == part }

// screenLine is one line of the result. Value and Limit are in Unit; a limit of
// zero is none.
type screenLine struct {
	What  string  `json:"what"`
	Unit  string  `json:"unit"`
	Value float64 `json:"value"`
	Limit float64 `json:"limit,omitempty"`
	More  string  `json:"more,omitempty"` // what else was seen of it
}

func (l *screenLine) toReach() string {
	if l.Limit == 0 {
		return ""
	}
	return "≤ " + number(l.Limit) + " " + l.Unit
}

func (l *screenLine) reached() string {
	switch {
	case l.Limit == 0:
		return ""
	case l.Value <= l.Limit:
		return "reached"
	default:
		return "NOT REACHED"
	}
}

func screen(args []string) error {
	var b screenBench
	fs := b.flags("screen", "few short rounds: under two minutes")
	fs.IntVar(&b.locks, "locks", 100_000, "locks on each server")
	fs.StringVar(&b.only, "only", "", "one part: "+strings.Join(screenParts, ", "))
	fs.StringVar(&b.program, "program", "", "path of a redlockctl to measure, to compare two; default: one that is built from here")
	_ = fs.Parse(args)
	if b.only != "" && !slices.Contains(screenParts, b.only) {
		return fmt.Errorf("--only %q: it is one of %s", b.only, strings.Join(screenParts, ", "))
	}
	return b.run()
}

// line adds a line to the result, and prints it.
func (b *screenBench) line(what, unit string, value, limit float64, format string, args ...any) {
	l := screenLine{what, unit, value, limit, fmt.Sprintf(format, args...)}
	b.lines = append(b.lines, l)
	fmt.Printf("%-58s %-14s %-14s %-12s %s\n", what, l.toReach(), number(value)+" "+unit, l.reached(), l.More)
}

// times adds a line about times, of which the p-th percentile counts; 100 is the
// longest.
func (b *screenBench) times(what string, all []time.Duration, p int, limit time.Duration) {
	b.line(what, "ms", ms(percentile(all, p)), ms(limit), "p%d of %d; median %s, longest %s ms", p, len(all), number(ms(percentile(all, 50))), number(ms(percentile(all, 100))))
}

// usefulScreen is what the first line says once every node was looked at, or given
// up: a verdict.
func usefulScreen() (words []string) {
	for v := monitor.VerdictSafe; v <= monitor.VerdictUnavailable; v++ {
		words = append(words, strings.ToUpper(v.String()))
	}
	return words
}

// secondsRows are rows of the table of locks at 120×40: all that have a place.
const secondsRows = 35

func (b *screenBench) run() error {
	dir, err := os.MkdirTemp("", "redlockctl-screen-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	bin := b.program
	if bin == "" {
		bin = filepath.Join(dir, "console")
		if out, err := exec.Command("go", "build", "-C", "..", "-o", bin, ".").CombinedOutput(); err != nil {
			return fmt.Errorf("go build: %w\n%s", err, out)
		}
	}
	servers, stop, err := start(b.server, 5)
	if err != nil {
		return err
	}
	defer stop()
	config := filepath.Join(dir, "config.toml")
	if err := os.WriteFile(config, []byte("[cluster]\nname = \"bench\"\nmax_ttl = \"3h\"\n"+lab.NodesConfig(servers...)), 0o600); err != nil {
		return err
	}
	open := func() (*terminal, error) {
		return newTerminal(bin, []string{"--no-guard", "--config", config}, []string{"TERM=xterm-256color", "LANG=C.UTF-8", "HOME=" + dir, "XDG_STATE_HOME=" + dir, "PATH=" + os.Getenv("PATH")})
	}
	about := about(b.server, fact{"locks", grouped(b.locks) + " on each of five servers"}, fact{"terminal", fmt.Sprintf("%d×%d", columns, rows)})
	printFacts(os.Stdout, about)
	fmt.Println()
	err = b.parts(open, servers)
	return errors.Join(err, writeJSON(b.json, about, b.lines), writeMarkdown(b.markdown, func(w io.Writer) { b.document(w, about) }))
}

// parts runs what is wanted.
func (b *screenBench) parts(open func() (*terminal, error), servers []*lab.Server) error {
	if b.wants("starts") {
		if err := b.starts(open, servers); err != nil {
			return err
		}
	}
	fill := monitorRun{monitorBench: monitorBench{locks: b.locks}}
	for _, s := range servers {
		fill.nodes = append(fill.nodes, s.Node())
	}
	if err := fill.fill(); err != nil {
		return err
	}
	if b.wants("lists") {
		if err := errors.Join(b.lists(open, servers, true), b.lists(open, servers, false)); err != nil {
			return err
		}
	}
	if b.only == "starts" || b.only == "lists" {
		return nil
	}
	t, err := open()
	if err != nil {
		return err
	}
	defer t.close()
	if _, ok := t.until(listMost, grouped(b.locks)+" held"); !ok {
		return fmt.Errorf("not all locks are shown:\n%s", t.tail())
	}
	if b.wants("rest") {
		if err := b.rest(t, servers); err != nil {
			return err
		}
	}
	if b.wants("keys") {
		if err := b.keys(t, "no changes"); err != nil {
			return err
		}
		for _, rate := range []int{1000, 2000} {
			if err := b.churning(servers, rate, func() error { return b.keys(t, grouped(rate)+" changes/s") }); err != nil {
				return err
			}
		}
	}
	if b.wants("seen") {
		return b.churning(servers, 1000, func() error { return b.seen(t, servers) })
	}
	return nil
}

// churning runs f while so many locks change in a second.
func (b *screenBench) churning(servers []*lab.Server, rate int, f func() error) error {
	ctx, cancel := context.WithCancel(context.Background())
	var writers sync.WaitGroup
	defer writers.Wait()
	defer cancel()
	var changes atomic.Int64
	begun := time.Now()
	writers.Go(func() { churn(ctx, servers, b.locks, rate, &changes) })
	if err := f(); err != nil {
		return err
	}
	b.line("changes meanwhile", "/s", float64(changes.Load())/time.Since(begun).Seconds(), 0, "of %d that are wanted, each on five servers", rate)
	return nil
}

// bareScan is how long it takes to read all keys of the servers, all at the same time,
// with token and TTL of each, and to do nothing with them.
func bareScan(servers []*lab.Server) (time.Duration, error) {
	const script = `local p = redis.call('SCAN', ARGV[1], 'COUNT', 250)
local out = {p[1]}
for _, k in ipairs(p[2]) do
  out[#out + 1], out[#out + 2], out[#out + 3] = k, redis.call('GET', k), redis.call('PTTL', k)
end
return out`
	begun := time.Now()
	failed := make([]error, len(servers))
	var all sync.WaitGroup
	for i, s := range servers {
		all.Go(func() {
			client := redis.NewClient(&redis.Options{Addr: s.Addr(), PoolSize: 1})
			defer client.Close()
			for cursor := "0"; ; {
				page, err := client.Eval(context.Background(), script, nil, cursor).Slice()
				if err != nil {
					failed[i] = err
					return
				}
				if cursor, _ = page[0].(string); cursor == "0" {
					return
				}
			}
		})
	}
	all.Wait()
	return time.Since(begun), errors.Join(failed...)
}

// quiet waits until the servers count none of our commands as their clients' any more:
// the console reads a node that has clients at work with pauses.
func quiet(servers []*lab.Server) error {
	for _, s := range servers {
		for {
			info, err := s.Do(context.Background(), "INFO", "stats")
			if err != nil {
				return err
			}
			if ops, ok := serverinfo.Number(fmt.Sprint(info), "instantaneous_ops_per_sec"); ok && ops < 50 {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	return nil
}

// starts measures how long the program takes to a first screen that is of use,
// on servers that hold next to nothing.
func (b *screenBench) starts(open func() (*terminal, error), servers []*lab.Server) error {
	rounds := 15
	if b.quick {
		rounds = 5
	}
	measure := func(what string, limit time.Duration) error {
		var all []time.Duration
		for range rounds {
			t, err := open()
			if err != nil {
				return err
			}
			d, ok := t.until(10*time.Second, usefulScreen()...)
			t.close()
			if !ok {
				return fmt.Errorf("%s: no useful screen in ten seconds:\n%s", what, t.tail())
			}
			all = append(all, d)
		}
		b.times(what, all, 100, limit)
		return nil
	}
	each := func(do func(*lab.Server) error) error {
		return errors.Join(do(servers[3]), do(servers[4]))
	}
	if err := measure("start → first useful screen, five healthy masters", 300*time.Millisecond); err != nil {
		return err
	}
	if err := each((*lab.Server).Kill); err != nil {
		return err
	}
	if err := measure("the same, two of them dead: nobody listens", time.Second); err != nil {
		return err
	}
	if err := each(func(s *lab.Server) error { return s.Start() }); err != nil {
		return err
	}
	if err := each((*lab.Server).Pause); err != nil {
		return err
	}
	err := measure("the same, two of them dead: nobody answers", time.Second)
	return errors.Join(err, each((*lab.Server).Resume))
}

// rest measures the program while nothing happens but that seconds pass: all
// rows in sight show whole seconds, in a column for each node.
func (b *screenBench) rest(t *terminal, servers []*lab.Server) error {
	length := 30 * time.Second
	if b.quick {
		length = 12 * time.Second
	}
	expire := func(ttl time.Duration) error {
		const script = `for i = 1, ARGV[2] do redis.call('PEXPIRE', string.format('lock:%08d', i), ARGV[1]) end return 1`
		var failed error
		for _, s := range servers {
			_, err := s.Do(context.Background(), "EVAL", script, 0, ttl.Milliseconds(), 2*secondsRows)
			failed = errors.Join(failed, err)
		}
		return failed
	}
	if err := expire(98 * time.Second); err != nil {
		return err
	}
	// The page of locks; what a row says of a lock that ends in a minute and a half.
	if _, ok := t.press([]byte("2"), 5*time.Second, "9", "8"); !ok {
		return fmt.Errorf("no page of locks:\n%s", t.tail())
	}
	time.Sleep(4 * time.Second)
	ticks, n, begun := t.cpu(), t.bytes(), time.Now()
	time.Sleep(length)
	passed := time.Since(begun).Seconds()
	b.line("CPU, "+grouped(b.locks)+" locks at rest", "% of a core", 100*(t.cpu()-ticks).Seconds()/passed, 3, "over %.0f s", passed)
	b.line(fmt.Sprintf("bytes to the terminal, seconds tick on %d rows", secondsRows), "B/s", float64(t.bytes()-n)/passed, 2000, "")
	if err := expire(2 * time.Hour); err != nil {
		return err
	}
	time.Sleep(time.Second)
	if _, ok := t.press([]byte("1"), 5*time.Second, "1 overview"); !ok {
		return fmt.Errorf("no overview:\n%s", t.tail())
	}
	return nil
}

// kind is a kind of key, and what is drawn by nothing else: the row under the cursor where it
// moved, a letter of a filter that no name has, and a notice of the new order.
type kind struct {
	what  string
	press []string // in turn
	see   []string // "": it is not measured
	share int      // of the presses, one in so many
}

// moved is what a move of the cursor draws: the pointer, or where the rows move below it and it
// stays, another row in the colours of the cursor.
const moved = "▸"

// seen are the texts one of which shows what a key did.
func seen(see string) []string {
	if see == moved {
		return []string{moved, "\x1b[7m"}
	}
	return []string{see}
}

// keys measures the time from a key to the bytes that draw what it does, beside what else
// happens.
func (b *screenBench) keys(t *terminal, beside string) error {
	n := 400
	if b.quick {
		n = 150
	}
	for _, k := range []kind{
		{"move", []string{"j", "j", "k"}, []string{moved, moved, moved}, 1},
		{"page, ends", []string{"\x1b[6~", "\x1b[6~", "\x1b[5~", "G", "g"}, []string{moved, moved, moved, moved, moved}, 1},
		{"filter", []string{"/", "Z", "Q", "X", "\x1b", "\x1b"}, []string{"", "Z", "Q", "X", "", ""}, 2},
		{"sort", []string{"s", "j"}, []string{"sorted", ""}, 4},
	} {
		var all []time.Duration
		for i := range n / k.share {
			time.Sleep(30*time.Millisecond + time.Duration(rand.IntN(70))*time.Millisecond)
			key, see := k.press[i%len(k.press)], k.see[i%len(k.press)]
			if see == "" {
				if _, err := t.master.Write([]byte(key)); err != nil {
					return err
				}
				time.Sleep(100 * time.Millisecond)
				continue
			}
			d, ok := t.press([]byte(key), 5*time.Second, seen(see)...)
			if !ok {
				return fmt.Errorf("no frame after %q:\n%s", key, t.tail())
			}
			all = append(all, d)
		}
		if k.what == "sort" { // as it was
			_, _ = t.master.Write([]byte(":sort state\r"))
		}
		_, _ = t.master.Write([]byte("\x1b"))
		time.Sleep(time.Second)
		b.times("key → frame, "+k.what+", "+grouped(b.locks)+" locks, "+beside, all, 99, 33*time.Millisecond)
	}
	return nil
}

// seen measures the time from a write on the masters to the name on the screen:
// a lock that never ends stands above all others. It counts from before the first
// write, and a quorum of them has to be seen. A name has no letter twice in a
// row, and none where the one before had it, so that it is drawn as a whole.
func (b *screenBench) seen(t *terminal, servers []*lab.Server) error {
	n := 120
	if b.quick {
		n = 40
	}
	var all []time.Duration
	for i := range n {
		var name strings.Builder
		for j := range 12 {
			name.WriteByte(byte('a' + (5*i+3*j)%26))
		}
		on := func(args ...any) error {
			errs := make([]error, 3)
			var wg sync.WaitGroup
			for k, s := range servers[:3] {
				wg.Go(func() { _, errs[k] = s.Do(context.Background(), args...) })
			}
			wg.Wait()
			return errors.Join(errs...)
		}
		d, ok := t.after(func() error { return on("SET", "lock:"+name.String(), "probe") }, 5*time.Second, name.String())
		if err := on("DEL", "lock:"+name.String()); err != nil {
			return err
		}
		if !ok {
			return fmt.Errorf("%s was never shown:\n%s", name.String(), t.tail())
		}
		all = append(all, d)
		time.Sleep(300*time.Millisecond + time.Duration(rand.IntN(200))*time.Millisecond)
	}
	b.times("change on a master → on the screen, the same", all, 99, 150*time.Millisecond)
	return nil
}

// document writes the result as a document of its own.
func (b *screenBench) document(w io.Writer, about []fact) {
	fmt.Fprint(w, "# The screen\n\nThe real program on a terminal of its own, on five real redis-servers on loopback. A start is counted from the\nfork to the bytes of the first screen that names the verdict.\n")
	markdownFacts(w, about)
	fmt.Fprint(w, "\n| | to reach | measured | | |\n| --- | ---: | ---: | --- | --- |\n")
	for _, l := range b.lines {
		fmt.Fprintf(w, "| %s | %s | %s %s | %s | %s |\n", l.What, l.toReach(), number(l.Value), l.Unit, l.reached(), l.More)
	}
}

// churn changes so many locks a second: each gets a new token on all servers.
func churn(ctx context.Context, servers []*lab.Server, locks, rate int, changes *atomic.Int64) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		const script = `for i = 1, #ARGV - 1 do redis.call('SET', ARGV[i], ARGV[#ARGV], 'PX', 7200000) end`
		args := []any{"EVAL", script, 0}
		for range rate / 50 {
			args = append(args, fmt.Sprintf("lock:%08d", 1+rand.IntN(locks)))
		}
		args = append(args, fmt.Sprintf("token-of-round-%08d", n))
		var wg sync.WaitGroup
		for _, s := range servers {
			wg.Go(func() { _, _ = s.Do(ctx, args...) })
		}
		wg.Wait()
		changes.Add(int64(rate / 50))
	}
}
