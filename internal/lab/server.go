package lab

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/base/child"
	"redlockctl/redlock"
	"redlockctl/server/minreplicas"
)

// Server is a real redis-server process on a loopback port, without persistence. It can
// be killed, stopped, continued and started again; it is ended by its own pid, and ends
// with this process.
type Server struct {
	bin  string
	name string
	addr string
	dir  string
	args []string

	mu     sync.Mutex
	cmd    *exec.Cmd
	done   <-chan struct{} // closed when cmd has been waited for
	starts int             // how often it was started
	closed bool            // it is not started again
	env    []string        // additional environment of the process
	clock  *clockSetting   // nil: the clock of the machine
}

// asksForDebug reports whether a server refuses DEBUG without an option: since 7.0.
func asksForDebug(bin string) bool {
	debugMu.Lock()
	defer debugMu.Unlock()
	asks, known := debug[bin]
	if !known {
		version, _ := exec.Command(bin, "--version").Output()
		asks = !strings.Contains(string(version), "v=6.")
		debug[bin] = asks
	}
	return asks
}

var (
	debugMu sync.Mutex
	debug   = map[string]bool{}
)

// BootFence are the arguments with which a server starts fenced.
var BootFence = minreplicas.FenceArgs

// ErrPortTaken is returned when something else listens on the port of a server.
var ErrPortTaken = errors.New("port is taken")

// portTries is how many ports are tried if other processes take a free one first.
const portTries = 10

// FreePort returns a free loopback port. On Linux no other caller gets it until this
// process ends: another process must not take the port of a crashed server before that
// one restarts. The port is below the range that the kernel uses for outgoing
// connections: otherwise a client that dials the port of a crashed server could get
// that port for itself, connect to itself, and keep the server from restarting.
func FreePort() (port int, err error) {
	const low, high = 15000, 32000
	for range 100 {
		port = low + rand.IntN(high-low)
		if err = reserve(port); err == nil {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port: %w", err)
}

// StartServer starts a server named name on a free port, with its files in a folder of
// that name in dir; args go to redis-server. It tries another port if this one was taken
// meanwhile.
func StartServer(bin, name, dir string, args ...string) (*Server, error) {
	dir = filepath.Join(dir, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		port, err := FreePort()
		if err != nil {
			return nil, err
		}
		s := &Server{bin: bin, name: name, dir: dir, args: args, addr: loopback(port)}
		if err = s.Start(); err == nil || try == portTries || !errors.Is(err, ErrPortTaken) {
			return s, err
		}
	}
}

// Node is the server as a master of the cluster.
func (s *Server) Node() *redlock.Node {
	n, err := redlock.NewNode(s.name, &redis.Options{Addr: s.addr})
	if err != nil {
		panic(err) // the name and address are ours
	}
	return n
}

// Addr is host:port.
func (s *Server) Addr() string { return s.addr }

// Start runs the process and returns as soon as it accepts connections. The arguments
// apply to this incarnation only. It fails with [ErrPortTaken] if another process
// listens there.
func (s *Server) Start(args ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return fmt.Errorf("start %s: %w", s.name, ErrClosed)
	case s.running():
		return fmt.Errorf("%s runs already", s.name)
	}
	s.starts++ // before it starts, so that nobody takes the new incarnation for the first
	_, port, _ := net.SplitHostPort(s.addr)
	pidfile := filepath.Join(s.dir, "redis.pid")
	base := []string{"--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--pidfile", pidfile,
		"--dir", s.dir, "--logfile", s.log()}
	if asksForDebug(s.bin) {
		base = append(base, "--enable-debug-command", "yes")
	}
	cmd := exec.Command(s.bin, append(append(base, s.args...), args...)...)
	if len(s.env) > 0 {
		cmd.Env = append(cmd.Environ(), s.env...)
	}
	logged := logEnd(s.log())
	done, err := child.Start(cmd, func() { _ = cmd.Wait() })
	if err != nil {
		return fmt.Errorf("start %s: %w", s.name, err)
	}
	s.cmd, s.done = cmd, done
	pid := strconv.Itoa(cmd.Process.Pid)
	deadline := time.Now().Add(10 * time.Second)
	for {
		// The server writes its pid when it listens. Without it, another server could
		// be accepting the connections.
		if b, err := os.ReadFile(pidfile); err == nil && strings.TrimSpace(string(b)) == pid {
			if c, err := net.DialTimeout("tcp", s.addr, 100*time.Millisecond); err == nil {
				return c.Close()
			}
		}
		select {
		case <-done:
			s.cmd = nil
			last := lastLog(s.log(), logged)
			if strings.Contains(last, "Address already in use") {
				return fmt.Errorf("start %s on %s: %w: %s", s.name, s.addr, ErrPortTaken, last)
			}
			return fmt.Errorf("%s ended at once: %s", s.name, last)
		case <-time.After(time.Millisecond):
		}
		if time.Now().After(deadline) {
			err := fmt.Errorf("%s does not listen on %s", s.name, s.addr)
			return errors.Join(err, s.kill())
		}
	}
}

func (s *Server) log() string { return filepath.Join(s.dir, "redis.log") }

// LastLog returns the end of its log.
func (s *Server) LastLog() string { return lastLog(s.log(), 0) }

// logEnd returns the length of a log: the next incarnation logs after it.
func logEnd(path string) int64 {
	if st, err := os.Stat(path); err == nil {
		return st.Size()
	}
	return 0
}

// lastLog returns the end of a log without its first skip bytes.
func lastLog(path string, skip int64) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(b[min(skip, int64(len(b))):])), "\n")
	return strings.Join(lines[max(0, len(lines)-3):], " / ")
}

// running reports whether the process was started and has not ended.
func (s *Server) running() bool {
	if s.cmd == nil {
		return false
	}
	select {
	case <-s.done:
		s.cmd = nil
		return false
	default:
		return true
	}
}

// Up reports whether the process runs.
func (s *Server) Up() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running()
}

// Pid returns the pid of the process; 0 if it does not run.
func (s *Server) Pid() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running() {
		return 0
	}
	return s.cmd.Process.Pid
}

// Kill ends the process with SIGKILL and waits for it.
func (s *Server) Kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kill()
}

func (s *Server) kill() error {
	if !s.running() {
		return nil
	}
	err := s.cmd.Process.Signal(syscall.SIGKILL)
	<-s.done
	s.cmd = nil
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

func (s *Server) signal(sig syscall.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running() {
		return fmt.Errorf("%s does not run", s.name)
	}
	return s.cmd.Process.Signal(sig)
}

// Do sends one command on a new connection, for tests and the lab.
func (s *Server) Do(ctx context.Context, args ...any) (any, error) {
	c := redlock.Connect(s.Node(), 1, 5*time.Second)
	defer c.Close()
	return c.Do(ctx, args...).Result()
}

// clockSetting is the layout of the file that a server with its own clock reads; the C
// source has the same layout.
type clockSetting struct {
	version  atomic.Uint64 // odd while it is being written
	anchorNs int64         // real time at which the rate began to count
	offsetNs int64
	ratePPB  int64
}

// Pause stops the process (SIGSTOP): it stays connected and does not answer.
func (s *Server) Pause() error { return s.signal(syscall.SIGSTOP) }

// Resume continues a paused process.
func (s *Server) Resume() error { return s.signal(syscall.SIGCONT) }
