package lab_test

import (
	"errors"
	"net"
	"testing"

	"redlockctl/internal/lab"
	"redlockctl/internal/lab/labtest"
)

func TestServers(t *testing.T) {
	c, err := lab.StartServers(labtest.RedisServer(t), 2, lab.BootFence...)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if c.Up(0) || c.Up(1) {
			t.Error("a server outlived Close")
		}
		if err := c.Restart(0); !errors.Is(err, lab.ErrClosed) {
			t.Errorf("restart after close: %v", err)
		}
	}()
	first := client(t, c.Nodes()[0])
	if got := say(t, first, "SET", "job", "tok"); got != refused {
		t.Errorf("before Open: %s", got)
	}
	open(t, c)
	if got := say(t, first, "SET", "job", "tok"); got != `"OK"` {
		t.Errorf("after Open: %s", got)
	}
	before := info(t, first, "server")["run_id"]
	if err := c.Restart(0); err == nil {
		t.Error("a running master was restarted")
	}
	if err := c.Crash(0); err != nil {
		t.Fatal(err)
	}
	if c.Up(0) || !c.Up(1) {
		t.Error("Up is wrong after a crash")
	}
	if err := c.Restart(0); err != nil {
		t.Fatal(err)
	}
	again := client(t, c.Nodes()[0])
	if got := say(t, again, "SET", "job", "tok"); got != refused {
		t.Errorf("after a restart: %s", got)
	}
	if got := info(t, again, "server")["run_id"]; got == before {
		t.Error("the same run_id after a restart")
	}
	if err := lab.Unfence(t.Context(), c); !errors.Is(err, lab.ErrNotFirstIncarnation) {
		t.Errorf("Open after a restart: %v", err)
	}
	if got := say(t, again, "SET", "job", "tok"); got != refused {
		t.Errorf("Unfence served a second incarnation: %s", got)
	}
}

func TestServerNoticesItsEnd(t *testing.T) {
	s := labtest.Servers(t, 1)[0]
	if _, err := s.Do(t.Context(), "SHUTDOWN", "NOSAVE"); err == nil {
		t.Error("SHUTDOWN was answered")
	}
	await(t, "the server ends", func() bool { return !s.Up() })
	if err := s.Kill(); err != nil {
		t.Errorf("kill of a dead server: %v", err)
	}
	if err := s.Start(); err != nil {
		t.Errorf("start after the end: %v", err)
	}
	if err := s.Start(); err == nil {
		t.Error("started twice")
	}
}

// Another server on the port is not taken for ours.
func TestServerOnATakenPort(t *testing.T) {
	s := labtest.Servers(t, 1)[0]
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	other, err := net.Listen("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := s.Start(); !errors.Is(err, lab.ErrPortTaken) || s.Up() {
		t.Errorf("start on a taken port: %v", err)
	}
}
