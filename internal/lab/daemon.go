package lab

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/base/sleep"
	"redlockctl/internal/lab/embedded"
	"redlockctl/redlock"
	"redlockctl/server/minreplicas"
	"redlockctl/server/serverinfo"
)

// daemon is one server of [Up]: a directory, a port, and perhaps a process.
type daemon struct {
	name string
	dir  string
	port int
	pid  int // of the process that was found or started; 0: none
}

func (d *daemon) addr() string { return loopback(d.port) }

func (d *daemon) conf() string { return filepath.Join(d.dir, "redis.conf") }

func (d *daemon) fence() string { return filepath.Join(d.dir, "fence.conf") }

func (d *daemon) pidfile() string { return filepath.Join(d.dir, "redis.pid") }

func (d *daemon) log() string { return filepath.Join(d.dir, "redis.log") }

// header is the first line of the lab's redis.conf; Down recognizes the file by it.
const header = "# A master of redlockctl's lab."

// write writes the two configuration files.
func (d *daemon) write() error {
	fence := strings.Join([]string{
		"# The boot fence: this server starts fenced and refuses writes, until a guard removes the fence with",
		"# CONFIG SET min-replicas-to-write 0. It is a file of its own, included at the end,",
		"# because the last setting wins and CONFIG REWRITE changes redis.conf only.",
		minreplicas.FenceLines[0],
		minreplicas.FenceLines[1],
		"",
	}, "\n")
	conf := strings.Join([]string{
		header + " It forgets everything when it ends, and starts fenced.",
		"bind 127.0.0.1",
		"port " + strconv.Itoa(d.port),
		"daemonize yes",
		"dir " + confQuote(d.dir),
		"pidfile " + confQuote(d.pidfile()),
		"logfile " + confQuote(d.log()),
		`save ""`,
		"appendonly no",
		"maxmemory-policy noeviction",
		"# CONFIG REWRITE changes a line where it stands, and adds one at the end if there is",
		"# none: these two are here so that it finds them before the include.",
		minreplicas.FenceLines[0],
		minreplicas.FenceLines[1],
		"include " + confQuote(d.fence()),
		"",
	}, "\n")
	if err := os.MkdirAll(d.dir, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(d.fence(), []byte(fence), 0o600); err != nil {
		return err
	}
	return os.WriteFile(d.conf(), []byte(conf), 0o600)
}

// readPort takes the port from the redis.conf of the directory. It fails with
// fs.ErrNotExist if Up has not made the directory.
func (d *daemon) readPort() error {
	f, err := os.Open(d.conf())
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	if !lines.Scan() || !strings.HasPrefix(lines.Text(), header) {
		return fs.ErrNotExist
	}
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), "port "); ok {
			d.port, err = strconv.Atoi(strings.TrimSpace(value))
			return err
		}
	}
	return errors.Join(fs.ErrNotExist, lines.Err())
}

// look finds the running process of this server, and fails if something else uses its
// port.
func (d *daemon) look(ctx context.Context) error {
	was := daemon{dir: d.dir}
	if err := was.readPort(); err == nil && was.port != d.port {
		return fmt.Errorf("%w: %s in %s has port %d, not %d; lab down ends it", ErrOtherLab, d.name, d.dir, was.port, d.port)
	}
	c, pid, who, err := d.ask(ctx)
	if err == nil {
		_ = c.Close()
		d.pid = pid
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	l, err := net.Listen("tcp", d.addr())
	if err != nil {
		if who == "" {
			who = "something else"
		}
		return fmt.Errorf("%s: %w: %s has %s (%w)", d.name, ErrPortTaken, who, d.addr(), err)
	}
	return l.Close()
}

// errNotOurs is returned when no server, or another server, answers at the port.
var errNotOurs = errors.New("not a server of this lab")

// ask identifies the server at the port. If it is the server of this directory, it
// returns its pid and the connection on which the server said so. Otherwise who
// describes it in a word.
func (d *daemon) ask(ctx context.Context) (c *redis.Client, pid int, who string, err error) {
	// Dialled here: a go-redis client that cannot dial writes to stderr and keeps
	// trying.
	conn, err := (&net.Dialer{Timeout: daemonAnswers}).DialContext(ctx, "tcp", d.addr())
	if err != nil {
		return nil, 0, "", fmt.Errorf("%w: %w", errNotOurs, err)
	}
	dialer := func(context.Context, string, string) (net.Conn, error) { return conn, nil }
	node, err := redlock.NewNode(d.name, &redis.Options{Addr: d.addr(), Dialer: dialer})
	if err != nil {
		_ = conn.Close()
		return nil, 0, "", err
	}
	c = redlock.ConnectOnce(node, daemonAnswers)
	text, err := c.Info(ctx, "server").Result()
	if err != nil {
		_ = c.Close()
		_ = conn.Close() // if it was never passed on
		return nil, 0, "", fmt.Errorf("%w: %w", errNotOurs, err)
	}
	pid, _ = strconv.Atoi(serverinfo.Field(text, "process_id"))
	if pid <= 1 || !sameFile(serverinfo.Field(text, "config_file"), d.conf()) {
		_ = c.Close()
		return nil, 0, fmt.Sprintf("a redis-server with pid %d", pid), errNotOurs
	}
	return c, pid, "", nil
}

func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// start runs the server and returns when it answers, fenced.
func (d *daemon) start(ctx context.Context, path string) error {
	if err := d.write(); err != nil {
		return err
	}
	logged := logEnd(d.log())
	// The server leaves our session and process group by itself.
	cmd := exec.CommandContext(ctx, path, d.conf())
	cmd.Dir = d.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
	}
	ctx, cancel := context.WithTimeoutCause(ctx, daemonStarts, errors.New("it does not answer"))
	defer cancel()
	for {
		c, pid, _, err := d.ask(ctx)
		if err == nil {
			d.pid = pid
			defer c.Close()
			return d.checkFenced(ctx, c)
		}
		if err := sleep.For(ctx, daemonPoll); err != nil {
			return fmt.Errorf("%w; its log ends: %s", err, lastLog(d.log(), logged))
		}
	}
}

// checkFenced checks that the server started fenced.
func (d *daemon) checkFenced(ctx context.Context, c *redis.Client) error {
	set, err := c.ConfigGet(ctx, "min-replicas-*").Result()
	if err != nil {
		return err
	}
	if set[embedded.ParamFence] != strconv.Itoa(minreplicas.FenceUp) || set[embedded.ParamLag] != strconv.Itoa(minreplicas.FenceLag) {
		return fmt.Errorf("it started unfenced: %s %q, %s %q", embedded.ParamFence, set[embedded.ParamFence], embedded.ParamLag, set[embedded.ParamLag])
	}
	return nil
}

// removeFence removes the fence of the process that start has started, and of no later
// one.
func (d *daemon) removeFence(ctx context.Context) error {
	c, pid, _, err := d.ask(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if pid != d.pid {
		return fmt.Errorf("%w: process %d has followed on %d", ErrNotFirstIncarnation, pid, d.pid)
	}
	return c.ConfigSet(ctx, embedded.ParamFence, "0").Err()
}

// stop ends the server and reports whether it was running.
func (d *daemon) stop(ctx context.Context) (bool, error) {
	c, pid, _, err := d.ask(ctx)
	if err != nil {
		return d.stopDeaf(ctx)
	}
	defer c.Close()
	proc, err := os.FindProcess(pid)
	if err != nil {
		return false, err
	}
	defer proc.Release()
	// An answer on the same connection proves that the server has run the whole time:
	// so proc is this process and not a later one with its number.
	if err := c.Ping(ctx).Err(); err != nil {
		return d.stopDeaf(ctx)
	}
	_ = c.Do(ctx, "SHUTDOWN", "NOSAVE").Err() // its answer is the end of the connection
	if gone(ctx, proc) {
		return true, nil
	}
	return killProcess(ctx, proc)
}

// stopDeaf ends a server that does not answer, if its pid file names a process that
// runs in its directory.
func (d *daemon) stopDeaf(ctx context.Context) (bool, error) {
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	b, err := os.ReadFile(d.pidfile())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || pid <= 1 {
		return false, fmt.Errorf("%s names no process", d.pidfile())
	}
	proc, err := os.FindProcess(pid)
	if err != nil {
		return false, nil // not running
	}
	defer proc.Release()
	if !alive(proc) {
		return false, nil
	}
	// proc stays this process: what /proc now says about the number is about it, or
	// about a process that is not ours.
	cwd, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
	switch {
	case err != nil && !alive(proc):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("process %d may be a server that does not answer: end it by hand if it is (%w)", pid, err)
	case !sameFile(cwd, d.dir):
		return false, nil // the number belongs to another process by now
	}
	return killProcess(ctx, proc)
}

// killProcess ends the process with SIGKILL, and reports whether it was alive.
func killProcess(ctx context.Context, proc *os.Process) (bool, error) {
	err := proc.Signal(syscall.SIGKILL)
	if errors.Is(err, os.ErrProcessDone) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if !gone(ctx, proc) {
		return false, fmt.Errorf("process %d does not end", proc.Pid)
	}
	return true, nil
}

// gone waits until the process has ended, and reports whether it has.
func gone(ctx context.Context, proc *os.Process) bool {
	ctx, cancel := context.WithTimeout(ctx, daemonEnds)
	defer cancel()
	for alive(proc) {
		if sleep.For(ctx, daemonPoll) != nil {
			return false
		}
	}
	return true
}

// alive reports whether the process runs. A zombie does not.
func alive(proc *os.Process) bool {
	if err := proc.Signal(syscall.Signal(0)); errors.Is(err, os.ErrProcessDone) {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", proc.Pid))
	if err != nil {
		return true
	}
	_, state, _ := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')')+1:]), " ")
	return !strings.HasPrefix(state, "Z")
}

// ErrOtherLab is returned by [Up] when dir holds a lab with other ports.
var ErrOtherLab = errors.New("another lab is there")

// How long Up and Down wait for a server to answer, to start, and to end.
const (
	daemonAnswers = time.Second
	daemonStarts  = 10 * time.Second
	daemonEnds    = 5 * time.Second
	daemonPoll    = 10 * time.Millisecond
)

// confQuote returns s as one word of a redis.conf.
func confQuote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&b, `\x%02x`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
