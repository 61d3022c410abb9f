//go:build linux

package tui

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"redlockctl/base/crash"
	"redlockctl/monitor/monitortest"
)

// Whatever panics in a console's process, the terminal is restored, and the text of the
// panic is on its normal screen.
func TestPanicGivesTheTerminalBack(t *testing.T) {
	for _, where := range []string{"goroutine", "update", "view", "command", "batch", "sequence"} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			screen, tty, err := pty.Open()
			if err != nil {
				t.Fatal(err)
			}
			defer screen.Close()
			defer tty.Close()
			_ = pty.Setsize(screen, &pty.Winsize{Rows: 30, Cols: 100})
			before, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(os.Args[0], "-test.run", "^TestConsoleThatPanics$")
			cmd.Env = append(os.Environ(), "PANICS="+where, "TERM=xterm-256color")
			cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var written bytes.Buffer
			read := make(chan struct{})
			go func() { defer close(read); _, _ = io.Copy(&written, screen) }()
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			select {
			case <-ended:
			case <-time.After(30 * time.Second):
				_ = cmd.Process.Kill()
				<-ended
				t.Error("it hangs")
			}
			after, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
			if err != nil {
				t.Fatal(err)
			}
			tty.Close()
			<-read
			if *after != *before {
				t.Errorf("the terminal is %+v, it was %+v", *after, *before)
			}
			if code := cmd.ProcessState.ExitCode(); code != 2 {
				t.Errorf("exit code %d", code)
			}
			out := written.String()
			_, there, _ := strings.Cut(out, "\x1b[?1049h")
			_, left, ok := strings.Cut(there, "\x1b[?1049l")
			if !ok || !strings.Contains(left, "panic: planted") || !strings.Contains(left, "goroutine ") || strings.Contains(left, "\x1b[?1049h") {
				t.Errorf("the text does not stand on the normal screen:\n%q", out)
			}
			if i := strings.LastIndex(out, "\x1b[?25"); i < 0 || !strings.HasPrefix(out[i:], "\x1b[?25h") {
				t.Errorf("the cursor is hidden:\n%q", out)
			}
		})
	}
}

// TestConsoleThatPanics is the process of such a console.
func TestConsoleThatPanics(t *testing.T) {
	where := os.Getenv("PANICS")
	if where == "" {
		t.Skip("it is run by another test")
	}
	var p *tea.Program
	drawn := func() { p.Send(plant{}) }
	if where == "goroutine" {
		drawn = func() { panicAsPlanted() }
	}
	// The real terminal, so that the test sees when the screen is shown.
	opt := Options{Cluster: Cluster{Source: newFakeSource(monitortest.Degraded(time.Now())), Guard: fakeGuardStatus(time.Now()), Actions: &fakeActions{}}}
	opt.Out = &drawnOn{File: os.Stdout, told: func() { crash.Go(drawn) }}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	m := newModel(ctx, opt, time.Now)
	p = tea.NewProgram(safeModel{&planted{m, where, false}}, programOptions(opt)...)
	t.Log(runProgram(p))
}

func panicAsPlanted() tea.Msg { panic("planted") }

// drawnOn is a terminal that reports when something was drawn on its alternate screen.
type drawnOn struct {
	*os.File
	once sync.Once
	told func()
}

func (d *drawnOn) Write(b []byte) (int, error) {
	n, err := d.File.Write(b)
	if bytes.Contains(b, []byte("job")) {
		d.once.Do(d.told)
	}
	return n, err
}

// plant makes a planted model panic.
type plant struct{}

// planted is a model with a panic.
type planted struct {
	tea.Model
	where string
	now   bool
}

func (p *planted) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	if _, ok := msg.(plant); ok {
		nothing := func() tea.Msg { return nil }
		switch p.where {
		case "update":
			panicAsPlanted()
		case "view":
			p.now = true
		case "command":
			return p, panicAsPlanted
		case "batch":
			return p, tea.Batch(nothing, panicAsPlanted)
		case "sequence":
			return p, tea.Sequence(nothing, tea.Batch(nothing, panicAsPlanted))
		}
	}
	_, cmd := p.Model.Update(msg)
	return p, cmd
}

func (p *planted) View() tea.View {
	if p.now {
		panicAsPlanted()
	}
	return p.Model.View()
}
