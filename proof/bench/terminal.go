package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"
)

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
	t := &terminal{cmd: exec.Command(bin, args...), came: make(chan struct{}), begun: time.Now()}
	t.cmd.Env = env
	var err error
	if t.master, err = pty.StartWithSize(t.cmd, &pty.Winsize{Rows: rows, Cols: columns}); err != nil {
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

func (t *terminal) after(do func() error, most time.Duration, texts ...string) (time.Duration, bool) {
	t.mark()
	begun := time.Now()
	if err := do(); err != nil {
		return 0, false
	}
	ok := t.wait(most, texts)
	return time.Since(begun), ok
}

func (t *terminal) press(key []byte, most time.Duration, texts ...string) (time.Duration, bool) {
	return t.after(func() error { _, err := t.master.Write(key); return err }, most, texts...)
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
