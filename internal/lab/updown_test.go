package lab_test

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/internal/lab"
	"redlockctl/internal/lab/labtest"
	"redlockctl/redlock"
)

const refused = "(error) NOREPLICAS Not enough good replicas to write."

// freePorts is the first of n loopback ports in a row that were free a moment
// ago.
func freePorts(t *testing.T, n int) int {
	t.Helper()
next:
	for range 100 {
		first, err := lab.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(first+i)))
			if err != nil {
				continue next
			}
			l.Close()
		}
		return first
	}
	t.Fatal("no free ports")
	return 0
}

// up is lab.Up in a directory whose name needs quoting, ended with the test.
func up(t *testing.T, dir string, n, port int) []lab.Started {
	t.Helper()
	started, err := lab.Up(t.Context(), dir, labtest.RedisServer(t), n, port)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { down(t, dir) })
	return started
}

func down(t *testing.T, dir string) []string {
	t.Helper()
	ended, err := lab.Down(context.Background(), dir)
	if err != nil {
		t.Error(err)
	}
	return ended
}

func labDir(t *testing.T) string { return filepath.Join(t.TempDir(), `it's a "lab"`, "x") }

// ask opens a connection to one of the servers, for one command.
func ask(t *testing.T, s lab.Started, args ...any) string {
	t.Helper()
	node, err := redlock.NewNode(s.Name, &redis.Options{Addr: s.Addr})
	if err != nil {
		t.Fatal(err)
	}
	c := redlock.Connect(node, 1, 5*time.Second)
	defer c.Close()
	return say(t, c, args...)
}

func accepts(s lab.Started) bool {
	c, err := net.Dial("tcp", s.Addr)
	if err == nil {
		c.Close()
	}
	return err == nil
}

// crash is kill -9, by the pid that the server itself tells.
func crash(t *testing.T, s lab.Started) {
	t.Helper()
	info := fields(strings.Trim(strings.ReplaceAll(ask(t, s, "INFO", "server"), `\r\n`, "\r\n"), `"`))
	pid, err := strconv.Atoi(info["process_id"])
	if err != nil || pid <= 1 {
		t.Fatalf("process_id %q", info["process_id"])
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	await(t, "the port refuses", func() bool { return !accepts(s) })
}

func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// byHand types the command that Up printed.
func byHand(t *testing.T, s lab.Started) {
	t.Helper()
	if out, err := exec.Command("sh", "-c", s.RestartCmd).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", s.RestartCmd, err, out)
	}
	await(t, s.Name+" accepts", func() bool { return accepts(s) })
}

func TestUpAndDown(t *testing.T) {
	dir, port := labDir(t), freePorts(t, 3)
	first := up(t, dir, 3, port)
	for i, s := range first {
		if want := "n" + strconv.Itoa(i+1); s.Name != want || s.Already || !s.Opened {
			t.Errorf("%+v", s)
		}
		if got := ask(t, s, "SET", "job", "tok", "NX", "PX", 60000); got != `"OK"` {
			t.Errorf("%s is not open: %s", s.Name, got)
		}
		if pgid, err := syscall.Getpgid(s.Pid); err != nil || pgid == syscall.Getpgrp() {
			t.Errorf("%s is in our process group (%v)", s.Name, err)
		}
	}

	again := up(t, dir, 3, port)
	for i, s := range again {
		if !s.Already || s.Opened || s.Pid != first[i].Pid || s.RestartCmd != first[i].RestartCmd {
			t.Errorf("a second Up: %+v, the first: %+v", s, first[i])
		}
	}
	if got := ask(t, first[0], "GET", "job"); got != `"tok"` {
		t.Errorf("a second Up touched the data: %s", got)
	}

	crash(t, first[1])
	third := up(t, dir, 3, port)
	if s := third[1]; s.Already || s.Opened || s.Pid == first[1].Pid {
		t.Errorf("a server that Up starts again: %+v", s)
	}
	if got := ask(t, first[1], "SET", "job", "other", "NX", "PX", 1000); got != refused {
		t.Errorf("Up opened a server that may have lost votes: %s", got)
	}
	if !third[0].Already || !third[2].Already {
		t.Errorf("Up started servers that ran: %+v", third)
	}

	more, err := lab.Up(t.Context(), dir, labtest.RedisServer(t), 3, port+10)
	if !errors.Is(err, lab.ErrOtherLab) {
		t.Errorf("other ports in the same directory: %+v, %v", more, err)
	}

	crash(t, first[2])
	if ended := down(t, dir); !slices.Equal(ended, []string{"n1", "n2"}) {
		t.Errorf("Down names %v", ended)
	}
	for _, s := range first {
		if accepts(s) {
			t.Errorf("%s runs after Down", s.Name)
		}
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Down left the directory: %v", err)
	}
	if ended := down(t, dir); len(ended) != 0 {
		t.Errorf("a second Down names %v", ended)
	}
	for _, s := range up(t, dir, 3, port) {
		if !s.Opened || ask(t, s, "SET", "job", "new", "NX", "PX", 60000) != `"OK"` {
			t.Errorf("a new cluster is not open: %+v", s)
		}
	}
}

// A directory without servers is as good as none: nothing can have lost a vote there.
func TestUpInADirectoryWithoutServers(t *testing.T) {
	dir := labDir(t)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	port := freePorts(t, 2)
	for _, s := range up(t, dir, 2, port) {
		if !s.Opened {
			t.Errorf("in an empty directory: %+v", s)
		}
	}
	mine := filepath.Join(dir, "mine")
	if err := os.WriteFile(mine, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := lab.Down(t.Context(), dir); err == nil {
		t.Error("Down says nothing of a file that is not its own")
	}
	for _, s := range up(t, dir, 2, port) {
		if !s.Opened {
			t.Errorf("in a directory that Down has left: %+v", s)
		}
	}
	if err := os.Remove(mine); err != nil {
		t.Fatal(err)
	}
}

// Whatever was set and rewritten before, a server that was killed and is started
// by hand starts fenced.
func TestRestartByHandStartsFenced(t *testing.T) {
	dir := labDir(t)
	server := up(t, dir, 1, freePorts(t, 1))[0]
	for _, before := range [][]any{
		nil,
		{},
		{"min-replicas-to-write", "0"},
		{"min-replicas-to-write", "1"},
		{"min-replicas-to-write", "2147483646"},
		{"min-replicas-max-lag", "0", "min-replicas-to-write", "0"},
		{"min-replicas-max-lag", "7", "min-replicas-to-write", "3"},
		{"maxmemory", "100mb", "save", "3600 1"},
	} {
		if before != nil {
			if len(before) > 0 {
				if got := ask(t, server, append([]any{"CONFIG", "SET"}, before...)...); got != `"OK"` {
					t.Fatal(got)
				}
			}
			// Twice: the second finds the file as the first has left it.
			for range 2 {
				if got := ask(t, server, "CONFIG", "REWRITE"); got != `"OK"` {
					t.Fatal(got)
				}
			}
		}
		crash(t, server)
		byHand(t, server)
		if got := ask(t, server, "SET", "job", "tok", "NX", "PX", 1000); got != refused {
			conf, _ := os.ReadFile(filepath.Join(dir, "n1", "redis.conf"))
			t.Errorf("after CONFIG SET %v, REWRITE and a crash, SET answers %s; redis.conf:\n%s", before, got, conf)
		}
		want := `{"min-replicas-max-lag": "10" "min-replicas-to-write": "2147483647"}`
		if got := ask(t, server, "CONFIG", "GET", "min-replicas-*"); got != want {
			t.Errorf("after CONFIG SET %v, REWRITE and a crash: %s", before, got)
		}
	}
	if ended := down(t, dir); !slices.Equal(ended, []string{"n1"}) {
		t.Errorf("Down of a server that was started by hand names %v", ended)
	}
}

func TestUpRefusesATakenPort(t *testing.T) {
	dir, port := labDir(t), freePorts(t, 3)
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port+2)))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() { // a listener that hangs up
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	_, err = lab.Up(t.Context(), dir, labtest.RedisServer(t), 3, port)
	if !errors.Is(err, lab.ErrPortTaken) || !strings.Contains(err.Error(), strconv.Itoa(port+2)) {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a refused Up left a directory: %v", err)
	}

	other := up(t, labDir(t), 1, port)
	_, err = lab.Up(t.Context(), dir, labtest.RedisServer(t), 1, port)
	if !errors.Is(err, lab.ErrPortTaken) || !strings.Contains(err.Error(), "pid "+strconv.Itoa(other[0].Pid)) {
		t.Errorf("the port of another lab: %v", err)
	}
}

func TestUpNeedsAServer(t *testing.T) {
	_, err := lab.Up(t.Context(), labDir(t), filepath.Join(t.TempDir(), "redis-server"), 1, 7001)
	if !errors.Is(err, lab.ErrNoServer) || !strings.Contains(err.Error(), "apt-get install redis-server") {
		t.Errorf("%v", err)
	}
	if _, err := lab.StartServers("no-such-redis-server", 1); !errors.Is(err, lab.ErrNoServer) {
		t.Errorf("%v", err)
	}
}

func TestUpRefusesWhatCannotWork(t *testing.T) {
	bin := labtest.RedisServer(t)
	for _, c := range []struct {
		dir     string
		n, port int
	}{
		{t.TempDir(), 0, 7001}, {t.TempDir(), 1, 0}, {t.TempDir(), 2, 65535}, {"", 1, 7001},
		{filepath.Join(t.TempDir(), "a*"), 1, 7001}, {filepath.Join(t.TempDir(), "a\nb"), 1, 7001},
	} {
		if _, err := lab.Up(t.Context(), c.dir, bin, c.n, c.port); err == nil {
			t.Errorf("%+v was accepted", c)
		}
	}
}

// A server that does not answer is ended too.
func TestDownEndsAHungServer(t *testing.T) {
	dir := labDir(t)
	server := up(t, dir, 1, freePorts(t, 1))[0]
	if err := syscall.Kill(server.Pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if ended := down(t, dir); !slices.Equal(ended, []string{"n1"}) {
		t.Errorf("ended %v", ended)
	}
	// Its port may be somebody else's by now.
	if accepts(server) && strings.Contains(ask(t, server, "INFO", "server"), "process_id:"+strconv.Itoa(server.Pid)) {
		t.Error("it runs on")
	}
}

// The pid of a dead server may belong to somebody else by now.
func TestDownLeavesOthersAlone(t *testing.T) {
	dir := labDir(t)
	server := up(t, dir, 1, freePorts(t, 1))[0]
	crash(t, server)
	bystander := exec.Command("sleep", "60")
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- bystander.Wait() }()
	defer func() { _ = bystander.Process.Kill(); <-ended }()
	pidfile := filepath.Join(dir, "n1", "redis.pid")
	if err := os.WriteFile(pidfile, []byte(strconv.Itoa(bystander.Process.Pid)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	mine := filepath.Join(dir, "mine")
	if err := os.MkdirAll(mine, 0o700); err != nil {
		t.Fatal(err)
	}
	stopped, err := lab.Down(t.Context(), dir)
	if len(stopped) != 0 {
		t.Errorf("ended %v", stopped)
	}
	if err == nil {
		t.Error("Down says nothing of files that are not its own")
	}
	if _, err := os.Stat(mine); err != nil {
		t.Errorf("Down removed what it had not made: %v", err)
	}
	select {
	case err := <-ended:
		t.Errorf("Down ended a bystander: %v", err)
		ended <- err
	default:
	}
	if err := os.Remove(mine); err != nil {
		t.Fatal(err)
	}
}
