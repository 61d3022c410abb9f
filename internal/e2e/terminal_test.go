package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"redlockctl/internal/lab"
	"redlockctl/internal/lab/labtest"
)

// build returns the path of the program.
func build(t *testing.T) string {
	t.Helper()
	bin, err := labtest.Program(t.TempDir(), "../..")
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

// cluster has five real masters and a configuration for them.
type cluster struct {
	bin     string
	dir     string
	config  string
	servers []*lab.Server
	more    []string // environment
}

func newCluster(t *testing.T, bin, maxTTL string) *cluster {
	t.Helper()
	c := &cluster{bin: bin, dir: t.TempDir(), servers: labtest.Servers(t, 5)}
	c.config = filepath.Join(c.dir, "config.toml")
	ttl, err := time.ParseDuration(maxTTL)
	if err != nil {
		t.Fatal(err)
	}
	// A node must not count as down because the machine is busy.
	if err := os.WriteFile(c.config, fmt.Appendf(nil, "[cluster]\nname = \"e2e\"\nmax_ttl = %q\n[redlock]\nnode_timeout = %q\n[monitor]\ntimeout = \"1s\"\n[guard]\nfirst_contact = \"adopt-young\"\n%s", maxTTL, min(time.Second, ttl/10), lab.Servers(c.servers).NodesConfig()), 0o600); err != nil {
		t.Fatal(err)
	}
	return c
}

// env keeps the program away from the home of the user who runs the test.
func (c *cluster) env() []string {
	return append([]string{"REDLOCKCTL_CONFIG=" + c.config, "XDG_STATE_HOME=" + c.dir, "LANG=C.UTF-8", "TERM=xterm-256color"}, c.more...)
}

// run runs the program as another process would.
func (c *cluster) run(t *testing.T, args ...string) string {
	t.Helper()
	out, code := c.try(t, args...)
	if code != 0 {
		t.Fatalf("redlockctl %s: exit code %d\n%s", strings.Join(args, " "), code, out)
	}
	return out
}

// try is run for commands that may fail: it also returns the exit code.
func (c *cluster) try(t *testing.T, args ...string) (out string, code int) {
	t.Helper()
	cmd := exec.Command(c.bin, args...)
	cmd.Env = append(os.Environ(), c.env()...)
	b, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(b), cmd.ProcessState.ExitCode()
}

// do sends a command to the i-th master.
func (c *cluster) do(t *testing.T, i int, args ...any) (any, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	return c.servers[i].Do(ctx, args...)
}

// exists counts the masters that have the key.
func (c *cluster) exists(t *testing.T, key string) int {
	t.Helper()
	n := 0
	for i := range c.servers {
		v, err := c.do(t, i, "EXISTS", key)
		if err != nil {
			t.Fatal(err)
		}
		n += int(v.(int64))
	}
	return n
}

// terminal is a program in a tmux pane on a separate tmux server.
type terminal struct {
	t      *testing.T
	socket string
}

func (c *cluster) terminal(t *testing.T, width, height int, args ...string) *terminal {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		if os.Getenv("CI") != "" || os.Getenv("REDLOCKCTL_TEST_ALL") != "" {
			t.Fatal("no tmux: apt-get install tmux")
		}
		t.Skip("no tmux: apt-get install tmux")
	}
	term := &terminal{t, filepath.Join(t.TempDir(), "tmux")}
	// The shell continues after the program, so that its last output stays visible.
	line := strings.Join(append(append([]string{"env"}, c.env()...), append([]string{c.bin}, args...)...), " ") +
		`; echo "exit code $?"; exec sleep 600`
	term.tmux("-f", "/dev/null", "new-session", "-d", "-x", fmt.Sprint(width), "-y", fmt.Sprint(height), line)
	t.Cleanup(func() { _ = exec.Command("tmux", "-S", term.socket, "kill-server").Run() })
	return term
}

func (m *terminal) tmux(args ...string) string {
	m.t.Helper()
	cmd := exec.Command("tmux", append([]string{"-u", "-S", m.socket}, args...)...)
	cmd.Env = append(os.Environ(), "LANG=C.UTF-8")
	out, err := cmd.CombinedOutput()
	if err != nil {
		m.t.Fatalf("tmux %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// screen returns the visible text.
func (m *terminal) screen() string {
	m.t.Helper()
	return m.tmux("capture-pane", "-p")
}

// keys presses named keys (Enter, Tab, X …).
func (m *terminal) keys(keys ...string) {
	m.t.Helper()
	m.tmux(append([]string{"send-keys"}, keys...)...)
}

// text types text.
func (m *terminal) text(s string) {
	m.t.Helper()
	m.tmux("send-keys", "-l", s)
}

// confirm fills in a dialog that asks for a reason and a name, once it accepts input, and
// sends it.
func (m *terminal) confirm(title, reason, name string) {
	m.t.Helper()
	m.shows(title)
	m.settle()
	m.text(reason)
	m.keys("Tab")
	m.text(name)
	m.keys("Enter")
}

// settle waits until a dialog accepts input: it ignores earlier keys.
func (m *terminal) settle() { time.Sleep(500 * time.Millisecond) }

// hangs is how long a console may take to show or do what is expected before it counts as
// hung. It needs a second; a busy machine may need longer.
const hangs = 60 * time.Second

// until waits until ok returns true for the screen.
func (m *terminal) until(what string, ok func(screen string) bool) string {
	m.t.Helper()
	end := time.Now().Add(hangs)
	for {
		s := m.screen()
		if ok(s) {
			return s
		}
		if time.Now().After(end) {
			m.t.Fatalf("never saw %s; the screen is:\n%s", what, s)
		}
		time.Sleep(150 * time.Millisecond) // a screen costs a process
	}
}

// shows waits for a line that contains all of the words.
func (m *terminal) shows(words ...string) string {
	m.t.Helper()
	return m.until(fmt.Sprintf("a line with %q", words), func(s string) bool { return lineWith(s, words...) != "" })
}

// lineWith returns the first line that contains all of the words.
func lineWith(screen string, words ...string) string {
next:
	for line := range strings.Lines(screen) {
		for _, w := range words {
			if !strings.Contains(line, w) {
				continue next
			}
		}
		return line
	}
	return ""
}
