package who

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/internal/lab/labtest"
	"redlockctl/redlock"
)

// TestMonitorSparesTheNode: a busy node is refused, and a reading that makes the server
// buffer too much is ended on the server.
func TestMonitorSparesTheNode(t *testing.T) {
	server := labtest.Servers(t, 1)[0]
	c := redlock.Connect(server.Node(), 2, 5*time.Second)
	defer c.Close()
	busy := false
	for end := time.Now().Add(20 * time.Second); !busy && time.Now().Before(end); {
		_, err := c.Pipelined(t.Context(), func(p redis.Pipeliner) error {
			for range 4000 {
				p.Set(t.Context(), "job", "token", time.Minute)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		_, err = Monitor(t.Context(), server.Node(), "another", false, time.Second)
		busy = errors.Is(err, ErrBusy)
	}
	if !busy {
		t.Error("a node is never too busy")
	}

	deaf, err := net.Dial("tcp", server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer deaf.Close()
	if _, err := deaf.Write([]byte("MONITOR\r\n")); err != nil {
		t.Fatal(err)
	}
	var id int64
	for id == 0 {
		for _, conn := range ParseList(c.ClientList(t.Context()).Val()) {
			if conn.Addr.Raw() == deaf.LocalAddr().String() && conn.Cmd == "monitor" {
				id = conn.ID
			}
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var behind atomic.Bool
	done := make(chan struct{})
	go func() { defer close(done); watchOutput(ctx, c, id, &behind) }()
	large := strings.Repeat("x", 1<<20)
	for !behind.Load() && ctx.Err() == nil {
		c.Set(t.Context(), "large", large, time.Minute)
	}
	<-done
	if !behind.Load() || strings.Contains(c.ClientList(t.Context()).Val(), "cmd=monitor") {
		t.Error("the server goes on keeping the traffic")
	}
}

// TestTrafficIsMatched: quotes and brackets as servers write them.
func TestTrafficIsMatched(t *testing.T) {
	words := []string{"[0 ", quoted("job \"1\"\n"), quoted("to\\ken\x01")}
	for line, want := range map[string]string{
		`+1700000000.1 [0 10.0.0.1:51234] "evalsha" "ab" "1" "job \"1\"\n" "to\\ken\x01" "5000"`: "10.0.0.1:51234",
		`+1700000000.1 [0 [::1]:51234] "set" "job \"1\"\n" "to\\ken\x01"`:                        "[::1]:51234",
		`+1700000000.1 [0 lua] "get" "job \"1\"\n" "to\\ken\x01"`:                                "",
		`+1700000000.1 [1 10.0.0.1:51234] "set" "job \"1\"\n" "to\\ken\x01"`:                     "",
		`+1700000000.1 [0 10.0.0.1:51234] "set" "job \"1\"\n" "another"`:                         "",
	} {
		if got := clientOf([]byte(line), words); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}
