//go:build linux

package e2e

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// TestConsoleEnds ends the real program in a terminal at random times in its first five
// seconds, by each signal that ends a program and by closing its terminal. It must end,
// and restore the terminal. REDLOCKCTL_ENDS is the number of runs (default 20).
func TestConsoleEnds(t *testing.T) {
	rounds := 20
	if s := os.Getenv("REDLOCKCTL_ENDS"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		rounds = n
	}
	c := newCluster(t, build(t), "60s")
	var (
		wg      sync.WaitGroup
		mu      sync.Mutex
		longest time.Duration
		places  = make(chan struct{}, 8)
	)
	for i := range rounds {
		wg.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			took := endConsole(t, c, ending(i%int(numEndings)), rand.N(5*time.Second))
			mu.Lock()
			longest = max(longest, took)
			mu.Unlock()
		})
	}
	wg.Wait()
	t.Logf("%d consoles ended, the slowest after %v", rounds, longest.Round(time.Millisecond))
}

// ending is a way to end a console.
type ending int

const (
	bySIGTERM ending = iota
	bySIGHUP
	bySIGINT
	byClosedTerminal
	numEndings
)

func (e ending) String() string {
	return [...]string{"SIGTERM", "SIGHUP", "SIGINT", "closed terminal"}[e]
}

// endConsole starts a console and ends it after a while, and returns how long that took.
func endConsole(t *testing.T, c *cluster, how ending, after time.Duration) time.Duration {
	what := fmt.Sprintf("%s after %v", how, after.Round(time.Millisecond))
	screen, tty, err := pty.Open()
	if err != nil {
		t.Error(err)
		return 0
	}
	defer screen.Close()
	defer tty.Close()
	_ = pty.Setsize(screen, &pty.Winsize{Rows: 30, Cols: 100})
	before, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
	if err != nil {
		t.Error(err)
		return 0
	}
	cmd := exec.Command(c.bin)
	cmd.Env = append(append(os.Environ(), c.env()...), "XDG_STATE_HOME="+t.TempDir())
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Error(err)
		return 0
	}
	var written bytes.Buffer
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(&written, screen)
	}()
	time.Sleep(after) // the moment to test

	began := time.Now()
	if how == byClosedTerminal {
		tty.Close()
		screen.Close()
	} else {
		_ = cmd.Process.Signal([]syscall.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT}[how])
	}
	hung := time.AfterFunc(hangs, func() { _ = cmd.Process.Signal(syscall.SIGKILL) })
	_ = cmd.Wait()
	took := time.Since(began)
	if !hung.Stop() {
		t.Errorf("%s: the console hangs", what)
		return took
	}
	if how == byClosedTerminal {
		return took
	}
	now, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
	if err != nil {
		t.Errorf("%s: %v", what, err)
	} else if *now != *before {
		t.Errorf("%s: the modes of the terminal are not what they were", what)
	}
	tty.Close()
	<-read
	last := func(s string) int { return bytes.LastIndex(written.Bytes(), []byte(s)) }
	for on, off := range map[string]string{
		"\x1b[?1049h": "\x1b[?1049l", // the alternate screen
		"\x1b[?25l":   "\x1b[?25h",   // a hidden cursor
		"\x1b[?2004h": "\x1b[?2004l", // bracketed paste
	} {
		if last(on) > last(off) {
			t.Errorf("%s: %q is not undone", what, on)
		}
	}
	return took
}

// seen is the output of a program on its terminal.
type seen struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (s *seen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.Write(b)
}

// from returns the output after the first n bytes.
func (s *seen) from(n int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.String()[n:]
}

// TestConsoleGoesOn stops the real program from outside and resumes it after another
// program has used its terminal: it redraws its whole screen, and reads single keys
// again.
func TestConsoleGoesOn(t *testing.T) {
	c := newCluster(t, build(t), "60s")
	screen, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer screen.Close()
	defer tty.Close()
	_ = pty.Setsize(screen, &pty.Winsize{Rows: 30, Cols: 100})
	modes := func() *unix.Termios {
		now, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
		if err != nil {
			t.Fatal(err)
		}
		return now
	}
	shell := modes()
	cmd := exec.Command(c.bin)
	cmd.Env = append(os.Environ(), c.env()...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	var written seen
	go func() { _, _ = io.Copy(&written, screen) }()
	until := func(what string, ok func() bool) {
		t.Helper()
		for end := time.Now().Add(hangs); !ok(); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("never: %s; written is %q", what, written.from(0))
			}
		}
	}
	drawn := func(from int) bool {
		all := written.from(from)
		return strings.Contains(all, "\x1b[?1049h") && strings.Contains(all, "overview") && strings.Contains(all, "quit")
	}
	raw := func() bool { return modes().Lflag&unix.ICANON == 0 }
	until("the first screen", func() bool { return drawn(0) && raw() })

	_ = cmd.Process.Signal(syscall.SIGSTOP)
	var status unix.WaitStatus
	if _, err := unix.Wait4(cmd.Process.Pid, &status, unix.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("it does not stop: %v, %v", status, err)
	}
	if err := unix.IoctlSetTermios(int(tty.Fd()), unix.TCSETS, shell); err != nil {
		t.Fatal(err)
	}
	before := len(written.from(0))
	_ = cmd.Process.Signal(syscall.SIGCONT)
	until("all of the screen again", func() bool { return drawn(before) })
	until("raw mode again", raw)
	_, _ = screen.WriteString("q")
	if err := cmd.Wait(); err != nil {
		t.Errorf("q ended it with %v", err)
	}
	if *modes() != *shell {
		t.Error("the modes of the terminal are not what they were")
	}
}
