package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"

	"redlockctl/base/race"
	"redlockctl/internal/lab/labtest"
)

// mostMemory is how many bytes of resident memory a command may use when a server is
// not a Redis server.
const mostMemory = 300 << 20

// hostileCommands are the commands that read, lock, run, guard and show.
var hostileCommands = []struct {
	args    string        // none: the console, with its guard
	ends    time.Duration // by SIGINT, once it has said the output; 0: by itself
	exits   []int
	output  string
	console bool // in a terminal
}{
	{"status", 0, []int{0, 7}, "n2 ", false},
	{"locks", 0, []int{0, 7}, "", false},
	{"doctor", 0, []int{0, 1, 2}, "", false},
	{"acquire JOB --ttl 2s", 0, []int{0}, "token", false},
	{"run JOB --wait 10s -- echo it ran", 0, []int{0}, "it ran", false},
	{"guard", 2 * time.Second, []int{0, 130}, "n2", false},
	{"watch", 2 * time.Second, []int{0, 130}, "", false},
	{"", 3 * time.Second, []int{0, 130}, "n2", true},
}

// Whatever one of three servers sends, the commands that read, lock, run, guard and
// show end as they would if it were down: in time, with the exit code of a cluster that
// has a quorum, in little memory, and with the other nodes seen and guarded.
func TestOneHostileServerHarmsNoCommand(t *testing.T) {
	servers := labtest.Servers(t, 3)
	var mu sync.Mutex
	rows := []string{}
	t.Cleanup(func() {
		slices.Sort(rows)
		t.Logf("MiB of each command: %d kinds of servers\n%s", len(rows), strings.Join(rows, "\n"))
	})
	// A third of the kinds of answers, another each day, and with the race detector some: the packages'
	// own tests have all of them, and REDLOCKCTL_HOSTILE=all does here.
	day := time.Now().YearDay()
	for i, m := range labtest.Mischiefs() {
		switch {
		case os.Getenv("REDLOCKCTL_HOSTILE") == "all":
		case m.To != "" && i%10 != 0, race.Enabled && i%6 != 2, !race.Enabled && i%3 != day%3:
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			bad := labtest.Misbehaving(t, "n3", servers[2].Addr(), m)
			dir := t.TempDir()
			text := "[cluster]\nmax_ttl = \"10s\"\n[redlock]\nnode_timeout = \"300ms\"\n[monitor]\ntimeout = \"2s\"\n[guard]\nfirst_contact = \"adopt-young\"\nstate_dir = \"" + filepath.Join(dir, "guard") + "\"\n"
			for k, addr := range []string{servers[0].Addr(), servers[1].Addr(), bad.Addr()} {
				text += fmt.Sprintf("[[nodes]]\nname = \"n%d\"\naddr = %q\n", k+1, addr)
			}
			if err := os.WriteFile(filepath.Join(dir, "config.toml"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			row := fmt.Sprintf("%-32s", m.Name)
			for _, c := range hostileCommands {
				args := strings.Fields(strings.Replace(c.args, "JOB", fmt.Sprintf("job:%d", i), 1))
				code, used, out, err := runHostile(t.Context(), dir, args, c.ends, c.output, c.console)
				if err != nil || !slices.Contains(c.exits, code) || !strings.Contains(out, c.output) {
					t.Errorf("%s: exit code %d, %v\n%s", c.args, code, err, out)
				}
				if used > mostMemory {
					t.Errorf("%s took %d MiB", c.args, used>>20)
				}
				row += fmt.Sprintf("  %s %d", append(args, "console")[0], used>>20)
			}
			mu.Lock()
			defer mu.Unlock()
			rows = append(rows, row)
		})
	}
}

// runHostile runs redlockctl with the configuration in dir, ends it by SIGINT after a time
// and when it has said what it should, unless the time is 0, and returns its exit code, the
// most memory that it had, and what it wrote.
func runHostile(ctx context.Context, dir string, args []string, ends time.Duration, says string, console bool) (code int, used int64, output string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 60*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "redlockctl", args...)
	cmd.Env = append(os.Environ(), "REDLOCKCTL_CONFIG="+filepath.Join(dir, "config.toml"), "HOME="+dir, "XDG_STATE_HOME="+dir, "TERM=xterm-256color", "GORACE=atexit_sleep_ms=0")
	var out lockedLog
	read := make(chan struct{})
	if console {
		// The toolkit's reader of the terminal is closed while it looks at its descriptor:
		// a race of its own at the end of the program, which is told and does not count.
		cmd.Env = append(cmd.Env, "GORACE=atexit_sleep_ms=0 exitcode=0")
		screen, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 30, Cols: 100})
		if err != nil {
			return 0, 0, "", err
		}
		defer screen.Close()
		go func() { defer close(read); _, _ = io.Copy(&out, screen) }()
	} else {
		close(read)
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			return 0, 0, "", err
		}
	}
	memory := mostResident(cmd.Process.Pid)
	if ends > 0 {
		go func() {
			for begun := time.Now(); time.Since(begun) < ends || !out.has(says) && ctx.Err() == nil; {
				time.Sleep(20 * time.Millisecond)
			}
			_ = cmd.Process.Signal(os.Interrupt)
		}()
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		return 0, 0, "", err
	}
	<-read // the terminal, to its end
	if strings.Count(out.String(), "WARNING: DATA RACE") > strings.Count(out.String(), "cancelreader.(*epollCancelReader).Close") {
		return 0, 0, out.String(), errors.New("a data race of our own")
	}
	return cmd.ProcessState.ExitCode(), <-memory, out.String(), nil
}

// mostResident returns the most resident memory that a process had, in bytes, once it
// has ended: what wait4 reports counts what this process had when it started the other.
func mostResident(pid int) <-chan int64 {
	most := make(chan int64, 1)
	go func() {
		for kib := int64(0); ; time.Sleep(10 * time.Millisecond) {
			status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
			_, text, ok := strings.Cut(string(status), "VmHWM:")
			if err != nil || !ok { // gone, or waiting to be
				most <- kib << 10
				return
			}
			_, _ = fmt.Sscan(text, &kib)
		}
	}()
	return most
}

// lockedLog is what a process has written so far.
type lockedLog struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *lockedLog) has(s string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Contains(l.b.Bytes(), []byte(s))
}
