package cli

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"redlockctl/internal/lab/labtest"
	"redlockctl/redlock"
)

var kills = flag.Int("kills", 0, "how many redlockctl run TestKilledRun kills, for each kind of command (0: one, after its start)")

// TestKilledRun kills redlockctl run by SIGKILL while its command works, and counts what
// still runs of it when the next client has the lock. With -kills it does so at any
// moment, from the start of the program on.
func TestKilledRun(t *testing.T) {
	servers := labtest.Servers(t, 3)
	dir := t.TempDir()
	conf := "[cluster]\nmax_ttl = \"30s\"\n[redlock]\nnode_timeout = \"1s\"\n" + servers.NodesConfig()
	if err := os.WriteFile(filepath.Join(dir, "config.toml"), []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	client, err := redlock.New(servers.Nodes(), redlock.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	ttl := "1s"
	if *kills == 0 {
		ttl = "5s" // time for the reaper, on a busy machine
	}
	for name, script := range map[string]string{ // each with "sleep 300" for work
		"children":   "sleep 300; echo more",
		"pipeline":   "sleep 300 | cat | sleep 300",
		"background": "sleep 300 & (sleep 300 & sleep 300) & wait",
		"nohup":      "nohup sleep 300 & wait",
		"setsid":     "setsid sh -c 'sleep 300 & sleep 300' & wait",
		"daemon":     "(setsid sh -c 'sleep 300; echo more' &); sleep 300",
		"no mercy":   "trap '' TERM HUP INT; setsid sh -c 'trap \"\" TERM; sleep 300; echo more' & sleep 300; echo more",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			worked, survived, soonest, slowest := 0, 0, time.Hour, time.Duration(0)
			sleeps := strings.Count(script, "sleep 300")
			for n := range max(*kills, 1) {
				lock, mark := "job:"+name, fmt.Sprintf("KILLED_RUN=%d-%s-%d", os.Getpid(), name, n)
				cmd := exec.Command("redlockctl", "run", lock, "--ttl", ttl, "--wait", "20s", "--", "sh", "-c", script)
				cmd.Dir, cmd.Env = dir, append(os.Environ(), "XDG_STATE_HOME="+dir, mark)
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				if *kills == 0 {
					for deadline := time.Now().Add(20 * time.Second); len(withMark(mark, "sleep")) < sleeps; time.Sleep(5 * time.Millisecond) {
						if time.Now().After(deadline) {
							t.Fatal("the command does not work: ", withMark(mark, ""))
						}
					}
				} else {
					time.Sleep(time.Duration(rand.Int64N(int64(400 * time.Millisecond))))
				}
				if len(withMark(mark, "sleep")) > 0 {
					worked++
				}
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
				killed := time.Now()
				next, err := client.TryAcquire(t.Context(), lock, 5*time.Second)
				ended := time.Duration(0)
				for ; err != nil && time.Since(killed) < 20*time.Second; time.Sleep(5 * time.Millisecond) {
					if ended == 0 && len(withMark(mark, "")) == 0 {
						ended = time.Since(killed)
					}
					next, err = client.TryAcquire(t.Context(), lock, 5*time.Second)
				}
				if err != nil {
					t.Fatal(err)
				}
				took := time.Since(killed)
				if left := withMark(mark, ""); len(left) > 0 {
					survived++
					t.Errorf("kill %d: %d processes run beside the next holder: %v", n, len(left), left)
					for _, pid := range left {
						_ = syscall.Kill(pid, syscall.SIGKILL)
					}
				}
				soonest, slowest = min(soonest, took), max(slowest, ended)
				_, _ = next.Release(t.Context())
			}
			t.Logf("%d kills, %d while the command worked: %d left processes beside the next holder; nothing ran %s after the kill, the next had the lock after %s or more",
				max(*kills, 1), worked, survived, slowest.Round(time.Millisecond), soonest.Round(time.Millisecond))
		})
	}
}

// withMark are the processes of a name with a variable in their environment; "" for all.
func withMark(mark, name string) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		env, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(append([]byte{0}, env...), []byte("\x00"+mark+"\x00")) {
			continue
		}
		comm, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "comm"))
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil && (name == "" || string(comm) == name+"\n") {
			pids = append(pids, pid)
		}
	}
	return pids
}
