package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"redlockctl/internal/lab"
	"redlockctl/internal/lab/labtest"
)

// A guard whose first start finds the disk full, for its memory and for the audit
// log, says so and lets a fenced master in after D.
func TestGuardOnAFullDisk(t *testing.T) {
	t.Parallel()
	for name, files := range map[string]bool{"no room for files": false, "no room in files": true} {
		t.Run(name, func(t *testing.T) {
			disk, _ := labtest.FullDisk(t, files)
			s := labtest.Servers(t, 1, lab.BootFence...)[0]
			file := filepath.Join(t.TempDir(), "config.toml")
			text := fmt.Sprintf("[cluster]\nname = \"test\"\nmax_ttl = \"1s\"\n[guard]\nstate_dir = %q\n[audit]\npath = %q\n[[nodes]]\nname = \"n1\"\naddr = %q\n",
				filepath.Join(disk, "guard"), filepath.Join(disk, "audit.jsonl"), s.Addr())
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("redlockctl", "guard", "--config", file)
			cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
			var log lockedLog
			cmd.Stderr = &log
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			defer func() { _ = cmd.Process.Kill() }()
			await := func(what string, met func() bool) {
				t.Helper()
				for end := time.Now().Add(30 * time.Second); !met(); time.Sleep(20 * time.Millisecond) {
					select {
					case err := <-ended:
						t.Fatalf("the guard has ended: %v\n%s", err, log.String())
					default:
					}
					if time.Now().After(end) {
						t.Fatalf("no %s:\n%s", what, log.String())
					}
				}
			}
			await("word of the disk", func() bool { return log.has("the disk is full") })
			await("rejoin", func() bool { _, err := s.Do(t.Context(), "SET", "k", "v"); return err == nil })
			await("word of the memory", func() bool { return log.has("the guard's memory cannot be written") })
			await("word of the audit log", func() bool { return log.has("the audit log cannot be written") })
			_ = cmd.Process.Signal(syscall.SIGTERM)
			select {
			case err := <-ended:
				if err != nil {
					t.Errorf("%v\n%s", err, log.String())
				}
			case <-time.After(30 * time.Second):
				t.Error("the guard does not end")
			}
		})
	}
}
