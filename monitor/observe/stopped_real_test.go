package observe_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/internal/lab/labtest"
	"redlockctl/monitor"
	"redlockctl/monitor/observe"
	"redlockctl/redlock"
)

// watchedAddrs makes the test binary run a monitor of these addresses and print its
// events.
const watchedAddrs = "REDLOCKCTL_TEST_WATCHED"

func watchAlone(addrs []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var nodes []*redlock.Node
	for i, addr := range addrs {
		n, err := redlock.NewNode(fmt.Sprint("n", i+1), &redis.Options{Addr: addr})
		if err != nil {
			return err
		}
		nodes = append(nodes, n)
	}
	m, err := observe.New(nodes, observe.Options{ScanEvery: time.Hour, Meant: []string{"same-host", "no-guard", "boot-fence-unverified"}})
	if err != nil {
		return err
	}
	go m.Run(ctx)
	if err := m.Decided(ctx); err != nil {
		return err
	}
	fmt.Println("decided")
	pause := monitor.Pause{}
	for seq, version := uint64(0), uint64(0); ctx.Err() == nil; {
		s := m.Snapshot()
		version = s.Version
		if s.Pause != pause && !s.Pause.Until.IsZero() {
			pause = s.Pause
			fmt.Printf("paused\t\t%s\n", pause.Until.Sub(pause.Since))
		}
		events, missed := m.EventsSince(seq)
		if missed > 0 {
			return fmt.Errorf("%d events missed", missed)
		}
		for _, e := range events {
			seq = e.Seq
			fmt.Printf("%s\t%s\t%s\n", e.Kind, e.Key.Raw(), e.Text.Raw())
		}
		select {
		case <-m.Changed(version):
		case <-ctx.Done():
		}
	}
	return nil
}

// A monitor that was stopped reports, for a lock that was extended all the time, only the
// extensions.
func TestAStoppedMonitorSaysNothingBeforeItHasReadWhatItMissed(t *testing.T) {
	for name, c := range map[string]struct{ ttl, stop time.Duration }{
		"for long":                              {2 * time.Second, 4 * time.Second},
		"for less than a discontinuity is told": {time.Second, 1300 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for try := 1; !stopAMonitor(t, c.ttl, c.stop); try++ {
				if try == 5 {
					t.Fatal("this machine is too slow to keep a lock extended")
				}
			}
		})
	}
}

// stopAMonitor stops a monitor while a lock is extended; false: the lock was lost
// meanwhile.
func stopAMonitor(t *testing.T, ttl, stop time.Duration) (kept bool) {
	servers := labtest.Servers(t, 3)
	var addrs []string
	for _, srv := range servers {
		addrs = append(addrs, srv.Addr())
		do(t, srv, "set", "job:1", "token", "px", ttl.Milliseconds())
	}
	var lost atomic.Bool
	ctx, cancel := context.WithCancel(t.Context())
	extended := make(chan struct{})
	go func() {
		defer close(extended)
		for ctx.Err() == nil {
			for _, srv := range servers {
				if v, err := srv.Do(ctx, "pexpire", "job:1", ttl.Milliseconds()); ctx.Err() == nil && (err != nil || v != int64(1)) {
					lost.Store(true)
				}
			}
			time.Sleep(ttl / 20)
		}
	}()
	defer func() { cancel(); <-extended }()

	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), watchedAddrs+"="+strings.Join(addrs, ","))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	lines := make(chan string, 1000)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			lines <- s.Text()
		}
	}()
	// read collects output until a line has this prefix.
	read := func(begin string) (all []string) {
		deadline := time.After(60 * time.Second)
		for {
			select {
			case line, ok := <-lines:
				if !ok {
					t.Fatalf("the monitor ended; before %q it said:\n%s", begin, strings.Join(all, "\n"))
				}
				if all = append(all, line); strings.HasPrefix(line, begin) {
					return all
				}
			case <-deadline:
				t.Fatalf("no %q:\n%s", begin, strings.Join(all, "\n"))
			}
		}
	}
	read("decided")
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	time.Sleep(stop)
	if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	// Two events that appear only after it has read again: another lock, and the release
	// of this one.
	time.Sleep(2 * ttl)
	for _, srv := range servers {
		do(t, srv, "set", "job:2", "other", "px", 60000)
	}
	said := read("acquired\tjob:2")
	cancel()
	<-extended
	for _, srv := range servers {
		do(t, srv, "del", "job:1")
	}
	said = append(said, read("released\tjob:1")...)
	if lost.Load() {
		return false
	}
	paused := time.Duration(0) // as the monitor reports it
	for _, line := range said {
		kind, rest, _ := strings.Cut(line, "\t")
		switch {
		case kind == "paused":
			if d, err := time.ParseDuration(strings.TrimSpace(rest)); err == nil {
				paused += d
			}
		case kind == "extended" || kind == "own clock", strings.Contains(line, "job:2"), strings.HasPrefix(line, "released\tjob:1"):
		case strings.HasPrefix(kind, "finding") && (strings.Contains(rest, "console-stopped") || strings.Contains(rest, "this process was stopped")):
		default:
			t.Errorf("%s: %s", kind, rest)
		}
	}
	if long := stop > 3*time.Second; long && paused < stop-500*time.Millisecond {
		t.Errorf("stopped for %s; it says that it did not watch for %s", stop, paused)
	}
	return true
}
