//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"redlockctl/base/child"
	"redlockctl/base/sleep"
	"redlockctl/internal/lab"
)

// stage is all that runs.
type stage struct {
	dir          string
	socket       string // of tmux
	env          []string
	servers      lab.Servers
	started      []*command
	console      int // its pid
	clients      *clients
	processes    []*process
	kills, stops int
	hung         bool // a program did not end
}

// command is one that was started here.
type command struct {
	name  string
	cmd   *exec.Cmd
	ended chan error
	log   string
}

// newStage starts it all. What it returns is closed also when there is an error.
func newStage(ctx context.Context, cfg config) (*stage, error) {
	dir, err := os.MkdirTemp("", "redlockctl-soak-")
	if err != nil {
		return nil, err
	}
	s := &stage{dir: dir, socket: filepath.Join(dir, "tmux")}
	if s.servers, err = lab.StartServers("redis-server", 5, lab.BootFence...); err != nil {
		return s, err
	}
	// The first incarnation of a new cluster has no votes to forget.
	if err := lab.Unfence(ctx, s.servers); err != nil {
		return s, err
	}
	file := filepath.Join(dir, "config.toml")
	if err := os.WriteFile(file, fmt.Appendf(nil, "[cluster]\nname = \"soak\"\nmax_ttl = %q\n[guard]\nfirst_contact = \"adopt-young\"\n%s", maxTTL, s.servers.NodesConfig()), 0o600); err != nil {
		return s, err
	}
	s.env = append(os.Environ(), "REDLOCKCTL_CONFIG="+file, "XDG_STATE_HOME="+dir, "LANG=C.UTF-8", "TERM=xterm-256color")
	addr := make([]string, 2)
	for i := range addr {
		port, err := lab.FreePort()
		if err != nil {
			return s, err
		}
		addr[i] = "127.0.0.1:" + strconv.Itoa(port)
	}
	guard, err := s.start("guard", cfg.program, "guard", "--listen", addr[0], "--watch-locks")
	if err != nil {
		return s, err
	}
	watch, err := s.start("watch", cfg.program, "watch", "-o", "jsonl")
	if err != nil {
		return s, err
	}
	// A tmux that is not a daemon ends with this process.
	if _, err := s.start("tmux", "tmux", "-u", "-S", s.socket, "-f", "/dev/null", "-D"); err != nil {
		return s, err
	}
	if err := until(ctx, "tmux to listen", func() error { _, err := os.Stat(s.socket); return err }); err != nil {
		return s, err
	}
	if _, err := s.tmux("new-session", "-d", "-x", "120", "-y", "40", "exec "+cfg.program+" --listen "+addr[1]+" 2>"+filepath.Join(dir, "console.log")); err != nil {
		return s, err
	}
	pid, err := s.tmux("list-panes", "-F", "#{pane_pid}")
	if err != nil {
		return s, err
	}
	if s.console, err = strconv.Atoi(strings.TrimSpace(pid)); err != nil {
		return s, err
	}
	s.clients = startClients(s.servers.Nodes(), cfg.clients)
	s.processes = []*process{
		{"guard", fmt.Sprint("/proc/", guard.cmd.Process.Pid), metricGoroutines(addr[0])},
		{"console", fmt.Sprint("/proc/", s.console), metricGoroutines(addr[1])},
		{"watch", fmt.Sprint("/proc/", watch.cmd.Process.Pid), nil},
		{"clients", "/proc/self", func() (float64, error) { return float64(runtime.NumGoroutine()), nil }},
	}
	s.processes[2].goroutines = s.processes[2].mostGoroutines
	return s, until(ctx, "all of them to be up", func() error {
		for _, p := range s.processes {
			if _, err := p.sample(); err != nil {
				return err
			}
		}
		return nil
	})
}

// start runs a program that ends with this one.
func (s *stage) start(name, program string, args ...string) (*command, error) {
	c := &command{name: name, cmd: exec.Command(program, args...), ended: make(chan error, 1), log: filepath.Join(s.dir, name+".log")}
	log, err := os.Create(c.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	c.cmd.Env, c.cmd.Stderr = s.env, log
	if _, err := child.Start(c.cmd, func() { c.ended <- c.cmd.Wait() }); err != nil {
		return nil, err
	}
	s.started = append(s.started, c)
	return c, nil
}

// stop ends a program by SIGTERM, as a person does, and tells how it ended.
func (s *stage) stop(c *command) error {
	_ = c.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-c.ended:
		c.ended <- err
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		return nil
	case <-time.After(patience):
		s.dump(c.cmd.Process.Pid)
		return fmt.Errorf("%s does not end by SIGTERM", c.name)
	}
}

func (s *stage) tmux(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "tmux", append([]string{"-u", "-S", s.socket}, args...)...)
	cmd.Env = s.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("tmux %s: %w\n%s", args[0], err, out)
	}
	return string(out), nil
}

func (s *stage) screen() string {
	out, err := s.tmux("capture-pane", "-p")
	if err != nil {
		return err.Error()
	}
	return out
}

// keys lead over the pages of the console, and into the details of a lock.
var keys = []string{"1", "2", "Down", "Enter", "Escape", "3", "4", "5", "2", "Down"}

// flap has one master after the other crash, come back with its fence, and hang,
// and somebody look at the console, until ctx ends; then all masters run.
func (s *stage) flap(ctx context.Context) error {
	pause := func(low, high time.Duration) { _ = sleep.For(ctx, low+rand.N(high-low)) }
	for round := 0; ctx.Err() == nil; round++ {
		n := s.servers[round/20%len(s.servers)]
		if round%2 == 0 {
			if err := n.Kill(); err != nil {
				return err
			}
			s.kills++
			pause(time.Second/2, 3*time.Second)
			if err := n.Start(); err != nil {
				return err
			}
		} else {
			if err := n.Pause(); err != nil {
				return err
			}
			s.stops++
			pause(time.Second/2, 3*time.Second)
			if err := n.Resume(); err != nil {
				return err
			}
		}
		if _, err := s.tmux("send-keys", keys[round%len(keys)]); err != nil {
			return err
		}
		pause(2*time.Second, 6*time.Second)
	}
	return nil
}

// atRest waits until the guard has let all masters in again.
func (s *stage) atRest(ctx context.Context) error {
	return until(ctx, "all masters to serve again", func() error {
		for _, n := range s.servers {
			if _, err := n.Do(ctx, "SET", "soak:probe", "1", "PX", "1000"); err != nil {
				return fmt.Errorf("%s: %w", n.Node().Name(), err)
			}
		}
		return nil
	})
}

// end ends the programs, each of which should end well.
func (s *stage) end() (failed []error) {
	if err := s.clients.end(); err != nil {
		failed = append(failed, err)
	}
	_ = syscall.Kill(s.console, syscall.SIGTERM)
	if err := until(context.Background(), "the console to end by SIGTERM", func() error {
		if err := syscall.Kill(s.console, 0); err == nil {
			return errors.New("it runs")
		}
		return nil
	}); err != nil {
		s.dump(s.console)
		failed = append(failed, err)
	}
	for _, c := range s.started {
		if c.name == "tmux" {
			continue
		}
		if err := s.stop(c); err != nil {
			failed = append(failed, err)
		}
	}
	return failed
}

// dump has a process that hangs write where its goroutines are, and end.
func (s *stage) dump(pid int) {
	s.hung = true
	_ = syscall.Kill(pid, syscall.SIGQUIT)
	time.Sleep(time.Second)
	_ = syscall.Kill(pid, syscall.SIGKILL)
}

// logs is the end of what the programs wrote; all of it where one hung.
func (s *stage) logs() string {
	var out strings.Builder
	for _, name := range []string{"guard", "watch", "console", "tmux"} {
		text, err := os.ReadFile(filepath.Join(s.dir, name+".log"))
		if err != nil {
			continue
		}
		lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
		if !s.hung {
			lines = lines[max(0, len(lines)-15):]
		}
		fmt.Fprintf(&out, "-- %s\n%s\n", name, bytes.Join(lines, []byte("\n")))
	}
	return out.String()
}

// close ends whatever is left.
func (s *stage) close() {
	if s.clients != nil {
		s.clients.stop()
	}
	for _, c := range s.started {
		_ = c.cmd.Process.Kill()
	}
	_ = s.servers.Close()
	_ = os.RemoveAll(s.dir)
}

// until waits for a condition.
func until(ctx context.Context, what string, met func() error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := met()
		if err == nil {
			return nil
		}
		if sleep.For(ctx, 50*time.Millisecond) != nil {
			return fmt.Errorf("waited for %s: %w", what, err)
		}
	}
}

type config struct {
	program string // redlockctl
	length  time.Duration
	warm    time.Duration // which is not judged
	clients int
}
