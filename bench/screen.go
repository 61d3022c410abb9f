package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"redlockctl/internal/lab"
)

// screenBench measures the console as a person has it: the real program, on a
// terminal of 120×40, on five real servers.
type screenBench struct {
	quick  bool
	server string
	locks  int
}

func screen(args []string) {
	fs := flag.NewFlagSet("screen", flag.ExitOnError)
	quick := fs.Bool("quick", false, "a tenth of the locks, short rounds")
	locks := fs.Int("locks", 0, "locks on each server; default 100000")
	server := fs.String("redis-server", "redis-server", "path of redis-server")
	_ = fs.Parse(args)
	b := screenBench{*quick, *server, *locks}
	if b.locks == 0 {
		b.locks = 100_000
		if b.quick {
			b.locks = 10_000
		}
	}
	if err := b.run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func (b screenBench) run() error {
	dir, err := os.MkdirTemp("", "redlockctl-screen-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	bin := filepath.Join(dir, "redlockctl")
	if out, err := exec.Command("go", "build", "-C", "..", "-o", bin, ".").CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	servers, stop, err := start(b.server, 5)
	if err != nil {
		return err
	}
	defer stop()
	var conf strings.Builder
	conf.WriteString("[cluster]\nname = \"bench\"\nmax_ttl = \"3h\"\n")
	for i, s := range servers {
		fmt.Fprintf(&conf, "[[nodes]]\nname = \"n%d\"\naddr = %q\n", i+1, s.Addr())
	}
	config := filepath.Join(dir, "config.toml")
	if err := os.WriteFile(config, []byte(conf.String()), 0o600); err != nil {
		return err
	}
	open := func() (*terminal, error) {
		return newTerminal(bin, []string{"--no-guard", "--config", config}, []string{"TERM=xterm-256color", "LANG=C.UTF-8", "HOME=" + dir, "XDG_STATE_HOME=" + dir, "PATH=" + os.Getenv("PATH")})
	}
	say := func(what, limit, format string, args ...any) {
		fmt.Printf("%-44s %-16s %s\n", what, limit, fmt.Sprintf(format, args...))
	}

	// The start, on servers that hold next to nothing.
	starts := func(what, limit string) error {
		var all []time.Duration
		for range 5 {
			t, err := open()
			if err != nil {
				return err
			}
			d, ok := t.until(10*time.Second, "one more loss", "any 3 losses")
			t.close()
			if !ok {
				return fmt.Errorf("%s: no useful screen in ten seconds:\n%s", what, t.tail())
			}
			all = append(all, d)
		}
		say(what, limit, "median %s, worst %s", percentile(all, 50).Round(time.Millisecond), percentile(all, 100).Round(time.Millisecond))
		return nil
	}
	if err := starts("start → first useful screen, five healthy", "≤ 300 ms"); err != nil {
		return err
	}
	for _, s := range servers[3:] {
		if err := s.Kill(); err != nil {
			return err
		}
	}
	if err := starts("the same with two of them dead", "≤ 1 s"); err != nil {
		return err
	}
	for _, s := range servers[3:] {
		if err := s.Start(); err != nil {
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
	t, err := open()
	if err != nil {
		return err
	}
	defer t.close()
	title := strconv.Itoa(b.locks)
	if b.locks >= 1000 {
		title = title[:len(title)-3] + "," + title[len(title)-3:]
	}
	if d, ok := t.until(2*time.Minute, title+" held"); ok {
		say("start → all "+title+" locks", "", "%s", d.Round(10*time.Millisecond))
	} else {
		return fmt.Errorf("not all locks are shown:\n%s", t.tail())
	}

	rest := 20 * time.Second
	if b.quick {
		rest = 8 * time.Second
	}
	time.Sleep(3 * time.Second)
	ticks, n := t.cpu(), t.bytes()
	time.Sleep(rest)
	say("CPU at rest", "≤ 3 % of a core", "%.1f %%", 100*(t.cpu()-ticks).Seconds()/rest.Seconds())
	say("bytes to the terminal at rest", "≤ 2 kB/s", "%.0f B/s", float64(t.bytes()-n)/rest.Seconds())

	ctx, cancel := context.WithCancel(context.Background())
	var writers sync.WaitGroup
	defer writers.Wait()
	defer cancel()
	writers.Go(func() { churn(ctx, servers, b.locks) })
	keys := 300
	if b.quick {
		keys = 60
	}
	// A cursor that moves is a row drawn in reverse.
	var presses []time.Duration
	for i := range keys {
		time.Sleep(30*time.Millisecond + time.Duration(rand.IntN(70))*time.Millisecond)
		d, ok := t.press([]byte{"jjkG"[i%4]}, 2*time.Second, "7m")
		if !ok {
			return fmt.Errorf("no frame after a key:\n%s", t.tail())
		}
		presses = append(presses, d)
		if i%4 == 3 {
			if _, ok := t.press([]byte("g"), 2*time.Second, "7m"); !ok {
				return fmt.Errorf("no frame after a key:\n%s", t.tail())
			}
		}
	}
	say("key → bytes of the frame, 1,000 changes/s", "p99 ≤ 33 ms", "p50 %s, p99 %s, worst %s",
		percentile(presses, 50).Round(100*time.Microsecond), percentile(presses, 99).Round(100*time.Microsecond), percentile(presses, 100).Round(100*time.Microsecond))

	// A lock that never ends stands above all others; the letters of each differ
	// from those of the one before, so that its name is drawn as a whole.
	var seen []time.Duration
	for i := range keys / 3 {
		name := "lock:" + strings.Repeat(string(rune('a'+i%20)), 12)
		d, ok := t.after(func() error {
			for _, s := range servers[:3] {
				if _, err := s.Do(context.Background(), "SET", name, "probe"); err != nil {
					return err
				}
			}
			return nil
		}, 5*time.Second, name[5:])
		for _, s := range servers[:3] {
			if _, err := s.Do(context.Background(), "DEL", name); err != nil {
				return err
			}
		}
		if !ok {
			return fmt.Errorf("%s was never shown:\n%s", name, t.tail())
		}
		seen = append(seen, d)
		time.Sleep(400 * time.Millisecond)
	}
	say("change on a master → on the screen", "p99 ≤ 150 ms", "p50 %s, p99 %s, worst %s",
		percentile(seen, 50).Round(time.Millisecond), percentile(seen, 99).Round(time.Millisecond), percentile(seen, 100).Round(time.Millisecond))
	return nil
}

// churn changes a thousand locks a second: each gets a new token on all servers.
func churn(ctx context.Context, servers []*lab.Server, locks int) {
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
		for range 20 {
			args = append(args, fmt.Sprintf("lock:%08d", 1+rand.IntN(locks)))
		}
		args = append(args, fmt.Sprintf("token-of-round-%08d", n))
		var wg sync.WaitGroup
		for _, s := range servers {
			wg.Go(func() { _, _ = s.Do(ctx, args...) })
		}
		wg.Wait()
	}
}

// terminal is the program on a terminal of its own, and all that it writes.
type terminal struct {
	cmd    *exec.Cmd
	master *os.File
	begun  time.Time

	mu   sync.Mutex
	n    int
	last []byte        // what came since mark
	all  []byte        // the end of it all, to show what went wrong
	came chan struct{} // closed when more comes
}

const columns, rows = 120, 40

func newTerminal(bin string, args, env []string) (*terminal, error) {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return nil, err
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		return nil, err
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: columns}); err != nil {
		return nil, err
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	defer tty.Close()
	t := &terminal{cmd: exec.Command(bin, args...), master: master, came: make(chan struct{}), begun: time.Now()}
	t.cmd.Env = env
	t.cmd.Stdin, t.cmd.Stdout, t.cmd.Stderr = tty, tty, tty
	t.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := t.cmd.Start(); err != nil {
		return nil, err
	}
	go t.read()
	return t, nil
}

func (t *terminal) read() {
	buf := make([]byte, 64<<10)
	for {
		n, err := t.master.Read(buf)
		if err != nil {
			return
		}
		t.mu.Lock()
		t.n += n
		t.last = append(t.last, buf[:n]...)
		t.all = append(t.all, buf[:n]...)
		if len(t.all) > 64<<10 {
			t.all = append([]byte(nil), t.all[len(t.all)-(16<<10):]...)
		}
		close(t.came)
		t.came = make(chan struct{})
		t.mu.Unlock()
	}
}

// wait waits until one of the texts was written since the mark.
func (t *terminal) wait(most time.Duration, texts []string) bool {
	end := time.After(most)
	for {
		t.mu.Lock()
		came := t.came
		for _, text := range texts {
			if bytes.Contains(t.last, []byte(text)) {
				t.mu.Unlock()
				return true
			}
		}
		t.mu.Unlock()
		select {
		case <-came:
		case <-end:
			return false
		}
	}
}

func (t *terminal) mark() {
	t.mu.Lock()
	t.last = t.last[:0]
	t.mu.Unlock()
}

// until is the time from the start to one of the texts.
func (t *terminal) until(most time.Duration, texts ...string) (time.Duration, bool) {
	ok := t.wait(most, texts)
	return time.Since(t.begun), ok
}

func (t *terminal) after(do func() error, most time.Duration, text string) (time.Duration, bool) {
	t.mark()
	begun := time.Now()
	if err := do(); err != nil {
		return 0, false
	}
	ok := t.wait(most, []string{text})
	return time.Since(begun), ok
}

func (t *terminal) press(key []byte, most time.Duration, text string) (time.Duration, bool) {
	return t.after(func() error { _, err := t.master.Write(key); return err }, most, text)
}

func (t *terminal) bytes() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.n
}

// cpu is the processor time of the program so far.
func (t *terminal) cpu() time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", t.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond // clock ticks of Linux
}

// tail is the end of what was written, with its escape codes made visible.
func (t *terminal) tail() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strconv.Quote(string(t.all[max(0, len(t.all)-2000):]))
}

func (t *terminal) close() {
	_ = t.cmd.Process.Signal(syscall.SIGTERM)
	done := make(chan struct{})
	go func() { _ = t.cmd.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(5 * time.Second):
		_ = t.cmd.Process.Kill()
		<-done
	}
	_ = t.master.Close()
}
