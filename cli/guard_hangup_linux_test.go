package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"redlockctl/internal/lab/labtest"
)

// A guard that was started in a terminal ends with it, but not under nohup. SIGHUP reloads its
// configuration while the terminal is there.
func TestGuardEndsWithItsTerminal(t *testing.T) {
	t.Parallel()
	s := labtest.Servers(t, 1)[0]
	for name, script := range map[string]string{"in a terminal": "", "under nohup": "trap '' HUP; "} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file := filepath.Join(dir, "config.toml")
			text := fmt.Sprintf("[cluster]\nname = \"test\"\nmax_ttl = \"1s\"\n[guard]\nstate_dir = %q\n[audit]\npath = %q\n[[nodes]]\nname = \"n1\"\naddr = %q\n",
				filepath.Join(dir, "guard"), filepath.Join(dir, "audit.jsonl"), s.Addr())
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			screen, tty, err := pty.Open()
			if err != nil {
				t.Fatal(err)
			}
			defer screen.Close()
			defer tty.Close()
			var log lockedLog
			cmd := exec.Command("sh", "-c", script+`exec redlockctl guard --config "$1"`, "sh", file)
			cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", "XDG_STATE_HOME="+dir)
			cmd.Stdin, cmd.Stderr = tty, &log
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			defer func() { _ = cmd.Process.Kill() }()
			await := func(text string) {
				t.Helper()
				for end := time.Now().Add(30 * time.Second); !log.has(text); time.Sleep(20 * time.Millisecond) {
					select {
					case err := <-ended:
						t.Fatalf("the guard has ended: %v\n%s", err, log.String())
					default:
					}
					if time.Now().After(end) {
						t.Fatalf("no %q:\n%s", text, log.String())
					}
				}
			}
			await("guard started")
			if script == "" {
				_ = cmd.Process.Signal(syscall.SIGHUP)
				await("configuration reloaded")
			}
			tty.Close()
			screen.Close()
			if script != "" {
				await("configuration reloaded") // as before
				_ = cmd.Process.Signal(syscall.SIGTERM)
			}
			select {
			case err := <-ended:
				if err != nil || script == "" && !log.has("its terminal is gone") {
					t.Errorf("%v\n%s", err, log.String())
				}
			case <-time.After(10 * time.Second):
				t.Errorf("the guard does not end\n%s", log.String())
			}
		})
	}
}
