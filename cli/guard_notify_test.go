package cli

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"redlockctl/internal/lab/labtest"
)

// TestGuardTellsSystemd listens where systemd would: READY once every node was
// met, WATCHDOG again and again, STOPPING at the end.
func TestGuardTellsSystemd(t *testing.T) {
	t.Parallel()
	s := labtest.Servers(t, 1)[0]
	dir, err := os.MkdirTemp("", "n") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "s")
	listen, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer listen.Close()
	file := filepath.Join(dir, "config.toml")
	text := fmt.Sprintf("[cluster]\nname = \"test\"\nmax_ttl = \"1s\"\n[guard]\nstate_dir = %q\n[[nodes]]\nname = \"n1\"\naddr = %q\n",
		filepath.Join(dir, "state"), s.Addr())
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("redlockctl", "guard", "--config", file)
	cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+socket, "WATCHDOG_USEC=300000", "WATCHDOG_PID=", "GORACE=atexit_sleep_ms=0")
	var log strings.Builder
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	defer func() {
		if !ended {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}()
	says := func(want string) {
		t.Helper()
		_ = listen.SetReadDeadline(time.Now().Add(30 * time.Second))
		for buf := make([]byte, 4<<10); ; {
			n, err := listen.Read(buf)
			if err != nil {
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
				ended = true
				t.Fatalf("no %s: %v\n%s", want, err, log.String())
			}
			if strings.HasPrefix(string(buf[:n]), want) {
				return
			}
		}
	}
	says("READY=1")
	for range 3 {
		says("WATCHDOG=1\nSTATUS=1 serving")
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	says("STOPPING=1")
	err, ended = cmd.Wait(), true
	if err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
}
