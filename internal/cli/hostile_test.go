package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"redlockctl/internal/lab/labtest"
)

// mostMemory is what a command may take beside a server that is none, in bytes of
// resident memory.
const mostMemory = 300 << 20

// Whatever one of three servers sends, the commands that read, lock, run and guard
// end as they would if it were down: in time, with the exit code of a cluster that
// has a quorum, in little memory, and with the other nodes seen and guarded.
func TestOneHostileServerHarmsNoCommand(t *testing.T) {
	servers := labtest.Servers(t, 3)
	for i, m := range labtest.Mischiefs() {
		if m.To != "" && i%5 != 0 {
			continue // each kind of question with some kinds of answers; the packages' own tests have all
		}
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			bad := labtest.Misbehaving(t, "n3", servers[2].Addr(), m)
			dir := t.TempDir()
			text := "[cluster]\nmax_ttl = \"10s\"\n[guard]\nstate_dir = \"" + filepath.Join(dir, "guard") + "\"\n"
			for k, addr := range []string{servers[0].Addr(), servers[1].Addr(), bad.Addr()} {
				text += fmt.Sprintf("[[nodes]]\nname = \"n%d\"\naddr = %q\n", k+1, addr)
			}
			file := filepath.Join(dir, "config.toml")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			job := fmt.Sprintf("job:%d", i)
			for _, c := range []struct {
				args   string
				ends   time.Duration // by SIGINT; 0: by itself
				exits  []int
				output string
			}{
				{"status", 0, []int{0, 7}, "n2 "},
				{"locks", 0, []int{0, 7}, ""},
				{"doctor", 0, []int{0, 1, 2}, ""},
				{"acquire " + job + " --ttl 1s", 0, []int{0}, "token"},
				{"run " + job + " --wait 10s -- echo it ran", 0, []int{0}, "it ran"},
				{"guard", 2 * time.Second, []int{0, 130}, "n2"},
				{"watch", 2 * time.Second, []int{0, 130}, ""},
			} {
				ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
				cmd := exec.CommandContext(ctx, "redlockctl", strings.Fields(c.args)...)
				cmd.Env = append(os.Environ(), "REDLOCKCTL_CONFIG="+file, "HOME="+dir, "XDG_STATE_HOME="+dir, "GORACE=atexit_sleep_ms=0")
				var out strings.Builder
				cmd.Stdout, cmd.Stderr = &out, &out
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				if c.ends > 0 {
					time.AfterFunc(c.ends, func() { _ = cmd.Process.Signal(os.Interrupt) })
				}
				err := cmd.Wait()
				cancel()
				var exit *exec.ExitError
				if err != nil && !errors.As(err, &exit) {
					t.Fatal(err)
				}
				code, as := cmd.ProcessState.ExitCode(), false
				for _, e := range c.exits {
					as = as || e == code
				}
				if !as || !strings.Contains(out.String(), c.output) {
					t.Errorf("%s: exit code %d\n%s", c.args, code, out.String())
				}
				if used, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok && used.Maxrss<<10 > mostMemory {
					t.Errorf("%s took %d MiB", c.args, used.Maxrss>>10)
				}
			}
		})
	}
}
