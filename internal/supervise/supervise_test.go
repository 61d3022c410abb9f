package supervise_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"go.uber.org/goleak"

	"redlockctl/internal/lab"
	"redlockctl/internal/lab/labtest"
	"redlockctl/internal/supervise"
	"redlockctl/redlock"
)

// superviseEnv lets the test binary be a supervisor, that can be killed.
const superviseEnv = "REDLOCKCTL_TEST_SUPERVISE"

func TestMain(m *testing.M) {
	if text := os.Getenv(superviseEnv); text != "" {
		os.Exit(supervisor(text))
	}
	logging.Disable() // go-redis writes each failed dial to stderr
	goleak.VerifyTestMain(m)
}

// order is what of a supervise.Config reaches another process.
type order struct {
	Terms   supervise.Terms
	Dir     string
	Command []string
}

func supervisor(text string) int {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 99
	}
	cfg := supervise.Config{Terms: o.Terms, Dir: o.Dir, Command: o.Command}
	os.Unsetenv(superviseEnv)
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGUSR1)
	cfg.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	cfg.Notify = func(s string) { cfg.Log.Info("notify", "state", s) }
	code, err := supervise.Run(cfg, signals)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 98
	}
	return code
}

// program is a supervisor in a process of its own.
type program struct {
	t    *testing.T
	cmd  *exec.Cmd
	done chan struct{}

	mu  sync.Mutex
	out strings.Builder
}

func start(t *testing.T, cfg supervise.Config) *program {
	t.Helper()
	text, err := json.Marshal(order{cfg.Terms, cfg.Dir, cfg.Command})
	if err != nil {
		t.Fatal(err)
	}
	p := &program{t: t, cmd: exec.Command(os.Args[0]), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), superviseEnv+"="+string(text), "GORACE=atexit_sleep_ms=0")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Stdout, p.cmd.Stderr = w, w
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	go func() { _ = p.cmd.Wait(); close(p.done) }()
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer r.Close()
		for in := bufio.NewReader(r); ; {
			line, err := in.ReadString('\n')
			p.mu.Lock()
			p.out.WriteString(line)
			p.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.done
		// A server that outlived it, where it should not, holds the other end.
		_ = r.SetReadDeadline(time.Now().Add(time.Second))
		<-read
		if t.Failed() {
			t.Log(p.output())
		}
	})
	return p
}

func (p *program) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

func (p *program) says(text string) {
	p.t.Helper()
	await(p.t, text, func() bool { return strings.Contains(p.output(), text) })
}

func (p *program) signal(sig syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.t.Fatal(err)
	}
}

// ends waits for the end and checks the exit code; -1 is a signal's.
func (p *program) ends(code int) {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(20 * time.Second):
		p.t.Fatal("the supervisor does not end")
	}
	if got := p.cmd.ProcessState.ExitCode(); got != code {
		p.t.Errorf("exit code %d, not %d", got, code)
	}
}

func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

// redisConfig supervises a real redis-server on a free port.
func redisConfig(t *testing.T, delay time.Duration) (supervise.Config, *redis.Client) {
	t.Helper()
	bin := labtest.RedisServer(t)
	port, err := lab.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	node, err := redlock.NewNode("n1", &redis.Options{Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port))})
	if err != nil {
		t.Fatal(err)
	}
	c := node.Client(1000, time.Second) // so many failed dials, and no more, are tried at once
	t.Cleanup(func() {
		// Where a test has failed, the server may have outlived its supervisor.
		_ = c.ShutdownNoSave(context.Background()).Err()
		c.Close()
	})
	dir := t.TempDir()
	return supervise.Config{
		Terms: supervise.Terms{Node: "n1", Delay: delay},
		Dir:   filepath.Join(dir, "state"),
		Command: []string{bin, "--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
			"--dir", dir, "--logfile", filepath.Join(dir, "redis.log"), "--pidfile", filepath.Join(dir, "redis.pid")},
	}, c
}

// pid waits for the server and asks for its pid.
func pid(t *testing.T, c *redis.Client) int {
	t.Helper()
	id := 0
	await(t, "the server answers", func() bool {
		text, err := c.Info(context.Background(), "server").Result()
		if err != nil {
			return false
		}
		for line := range strings.Lines(text) {
			if v, ok := strings.CutPrefix(strings.TrimSpace(line), "process_id:"); ok {
				id, err = strconv.Atoi(v)
			}
		}
		return err == nil && id > 1
	})
	return id
}

func kill(t *testing.T, pid int) time.Time {
	t.Helper()
	at := time.Now()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	return at
}

const short = 400 * time.Millisecond

// notBefore fails if the server answers sooner than D after the kill.
func notBefore(t *testing.T, c *redis.Client, killed time.Time, delay time.Duration) int {
	t.Helper()
	id := pid(t, c)
	if took := time.Since(killed); took < delay {
		t.Errorf("the server is back %s after it was killed, before %s", took, delay)
	}
	return id
}

func TestRestartAfterDelay(t *testing.T) {
	cfg, c := redisConfig(t, short)
	cfg.New = true
	p := start(t, cfg)
	first := pid(t, c)
	p.says("READY=1")
	killed := kill(t, first)
	if second := notBefore(t, c, killed, short); second == first {
		t.Error("the same process")
	}
	p.says(`how="signal 9 (killed)"`)
	p.says("EXTEND_TIMEOUT_USEC=")

	// Another supervisor of the node is turned away.
	q := start(t, cfg)
	q.ends(98)
	q.says(supervise.ErrBusy.Error())

	// SIGUSR1 is the server's; SIGTERM ends both, with the server's code.
	p.signal(syscall.SIGTERM)
	p.ends(0)
	p.says(`how="exit code 0"`)
	p.says("STOPPING=1")

	// The next supervisor goes by the record: the rest of D, not the whole.
	cfg.Once, cfg.New = true, true // ignored: there is a record
	r := start(t, cfg)
	r.says("since the last process ended")
	kill(t, pid(t, c))
	r.ends(137)
}

// A supervisor that is killed takes the server with it, and the next one waits
// the whole of D, since nobody saw the end.
func TestSupervisorKilled(t *testing.T) {
	cfg, c := redisConfig(t, short)
	cfg.New = true
	p := start(t, cfg)
	first := pid(t, c)
	killed := kill(t, p.cmd.Process.Pid)
	p.ends(-1)
	await(t, "the server ends with its supervisor", func() bool { return syscall.Kill(first, 0) == syscall.ESRCH })
	q := start(t, cfg)
	notBefore(t, c, killed, short)
	q.says("the end of the last process was not seen")
}

// A server that puts itself into the background is not taken for dead: not by its
// supervisor, and not by the next one.
func TestServerOutlives(t *testing.T) {
	cfg, c := redisConfig(t, short)
	cfg.New = true
	cfg.Command = append(cfg.Command, "--daemonize", "yes")
	p := start(t, cfg)
	daemon := pid(t, c)
	p.says("something that it started still runs")
	p.signal(syscall.SIGTERM)
	p.ends(1)

	q := start(t, cfg)
	q.ends(98)
	q.says(supervise.ErrOutlived.Error())
	if got := pid(t, c); got != daemon {
		t.Errorf("process %d answers, not %d", got, daemon)
	}

	killed := kill(t, daemon)
	await(t, "the server ends", func() bool { return syscall.Kill(daemon, 0) == syscall.ESRCH })
	r := start(t, cfg)
	r.says("the end of the last process was not seen")
	kill(t, notBefore(t, c, killed, short))
}

// sh supervises a shell script.
func sh(t *testing.T, script string) supervise.Config {
	return supervise.Config{
		Terms:   supervise.Terms{Node: "n1", Delay: short, New: true, Once: true},
		Dir:     filepath.Join(t.TempDir(), "state"),
		Command: []string{"/bin/sh", "-c", script},
	}
}

func TestExitCode(t *testing.T) {
	start(t, sh(t, "exit 7")).ends(7)
}

func TestSignalsReachTheServer(t *testing.T) {
	p := start(t, sh(t, `trap 'echo got hup' HUP; trap 'echo got usr1' USR1; trap 'exit 5' TERM; echo ready; while :; do sleep 0.05; done`))
	p.says("ready")
	p.signal(syscall.SIGHUP)
	p.says("got hup")
	p.signal(syscall.SIGUSR1)
	p.says("got usr1")
	p.signal(syscall.SIGTERM)
	p.ends(5)
}

func TestStopWhileWaiting(t *testing.T) {
	cfg := sh(t, "echo started")
	cfg.New, cfg.Delay = false, time.Hour
	p := start(t, cfg)
	p.says("there is no record")
	p.signal(syscall.SIGTERM)
	p.ends(0)
	if strings.Contains(p.output(), "started\n") {
		t.Error("the server was started")
	}
}

// run is a supervisor in this process.
func run(t *testing.T, cfg supervise.Config) (int, error) {
	t.Helper()
	cfg.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	return supervise.Run(cfg, nil)
}

func TestNothingRan(t *testing.T) {
	cfg := sh(t, "")
	cfg.Command = []string{"/nonexistent/server"}
	if _, err := run(t, cfg); err == nil {
		t.Fatal("no error")
	}
	if _, err := os.Stat(filepath.Join(cfg.Dir, "n1.json")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a record of what never ran: %v", err)
	}
}

// Whatever is done to the record, the server does not start early.
func TestDamagedRecord(t *testing.T) {
	for name, damage := range map[string]func(b []byte) []byte{
		"empty":   func([]byte) []byte { return nil },
		"torn":    func(b []byte) []byte { return b[:len(b)/2] },
		"a digit": func(b []byte) []byte { return regexp.MustCompile(`\d,"exact"`).ReplaceAll(b, []byte(`,"exact"`)) },
		"no object": func([]byte) []byte {
			return []byte("null\n74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := sh(t, "exit 0")
			if _, err := run(t, cfg); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(cfg.Dir, "n1.json")
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 {
				t.Errorf("mode %v", info.Mode())
			}
			damaged := damage(b)
			if string(damaged) == string(b) {
				t.Fatal("not damaged")
			}
			if err := os.WriteFile(path, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			cfg.Delay = 150 * time.Millisecond
			began := time.Now()
			if _, err := run(t, cfg); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took < cfg.Delay {
				t.Errorf("started after %s", took)
			}
		})
	}
}

func TestStateDirectory(t *testing.T) {
	cfg := sh(t, "exit 0")
	if _, err := run(t, cfg); err != nil {
		t.Fatal(err)
	}
	if info, _ := os.Stat(cfg.Dir); info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v", info.Mode())
	}
	if err := os.Chmod(cfg.Dir, 0o770); err != nil {
		t.Fatal(err)
	}
	if _, err := run(t, cfg); !errors.Is(err, supervise.ErrState) {
		t.Errorf("others may write: %v", err)
	}
	cfg.Dir = filepath.Join("/dev/null", "x")
	if _, err := run(t, cfg); !errors.Is(err, supervise.ErrState) {
		t.Errorf("no directory: %v", err)
	}
	for _, name := range []string{"", "..", "a/b", "-x", ".x", "a b"} {
		cfg.Node = name
		if _, err := run(t, cfg); err == nil {
			t.Errorf("node %q was accepted", name)
		}
	}
}

// A record that cannot be written keeps the server from being started.
func TestRecordCannotBeWritten(t *testing.T) {
	cfg := sh(t, "echo started >&2; exit 0")
	// In the way even of root.
	if err := os.MkdirAll(filepath.Join(cfg.Dir, "n1.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	cfg.Delay = 10 * time.Millisecond
	if _, err := run(t, cfg); !errors.Is(err, supervise.ErrState) {
		t.Errorf("%v", err)
	}
}
