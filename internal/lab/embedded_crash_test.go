package lab_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/internal/lab"
)

func TestEmbeddedCrashAndRestart(t *testing.T) {
	c := embedded(t, 3)
	open(t, c)
	node := c.Nodes()[1]
	before := client(t, node)
	say(t, before, "SET", "job", "tok", "PX", 60000)
	say(t, before, "CONFIG", "SET", "maxmemory-policy", "volatile-lru")
	firstID := info(t, before, "server")["run_id"]

	raw, err := net.Dial("tcp", node.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	if _, err := raw.Write([]byte("*1\r\n$4\r\nPING\r\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := raw.Read(make([]byte, 16)); err != nil {
		t.Fatal(err)
	}

	if err := c.Crash(1); err != nil {
		t.Fatal(err)
	}
	_ = raw.SetReadDeadline(time.Now().Add(5 * time.Second))
	if _, err := raw.Read(make([]byte, 1)); err == nil || errors.Is(err, context.DeadlineExceeded) || isTimeout(err) {
		t.Errorf("a connection outlived the crash: %v", err)
	}
	if _, err := net.Dial("tcp", node.Addr()); err == nil {
		t.Error("the port of a crashed master accepts")
	}
	if c.Up(1) || !c.Up(0) || !c.Up(2) {
		t.Error("Up is wrong after a crash")
	}
	if err := c.Crash(1); err != nil {
		t.Errorf("a second crash: %v", err)
	}
	if err := c.Restart(0); err == nil {
		t.Error("a running master was restarted")
	}
	if err := c.Restart(1); err != nil {
		t.Fatal(err)
	}
	after := client(t, node)
	if got := say(t, after, "SET", "job", "other", "NX", "PX", 1000); got != "(error) NOREPLICAS Not enough good replicas to write." {
		t.Errorf("the first write after a restart: %s", got)
	}
	if got := say(t, after, "EXISTS", "job"); got != "0" {
		t.Error("data outlived the crash")
	}
	if got := info(t, after, "server")["run_id"]; got == firstID {
		t.Error("the run_id is the old one")
	}
	if got := say(t, after, "CONFIG", "GET", "maxmemory-policy"); !strings.Contains(got, "noeviction") {
		t.Errorf("a setting outlived the crash: %s", got)
	}
	if err := lab.Unfence(t.Context(), c); !errors.Is(err, lab.ErrNotFirstIncarnation) {
		t.Errorf("Open after a restart: %v", err)
	}
	if got := say(t, after, "SET", "job", "other", "NX", "PX", 1000); !strings.Contains(got, "NOREPLICAS") {
		t.Errorf("Unfence served a second incarnation: %s", got)
	}
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

// No write runs after the CONFIG SET that closes the node, also none that was on
// its way, and no script is cut in two by it.
func TestEmbeddedFenceIsAtomic(t *testing.T) {
	c := embedded(t, 1)
	open(t, c)
	guard := client(t, c.Nodes()[0])
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	const script = `for i = 1, 50 do redis.call('INCR', 'scripted') end`
	for i := range 8 {
		r := client(t, c.Nodes()[0])
		wg.Go(func() {
			for ctx.Err() == nil {
				if i < 7 {
					r.Incr(ctx, "n")
				} else {
					r.Eval(ctx, script, nil)
				}
			}
		})
	}
	for range 100 {
		// In one packet, so that the first read follows the fencing at once.
		p := guard.Pipeline()
		p.ConfigSet(ctx, "min-replicas-to-write", "2147483647")
		look := p.MGet(ctx, "n", "scripted")
		if _, err := p.Exec(ctx); err != nil {
			t.Fatal(err)
		}
		first := text(look.Val())
		if second := say(t, guard, "MGET", "n", "scripted"); first != second {
			t.Fatalf("written while closed: %s, then %s", first, second)
		}
		if n, _ := guard.Get(ctx, "scripted").Int(); n%50 != 0 {
			t.Fatalf("half a script ran: %d", n)
		}
		say(t, guard, "CONFIG", "SET", "min-replicas-to-write", "0")
		say(t, guard, "GET", "n")
	}
}

// Clients that wait in a command do not hold up others, nor a crash.
func TestEmbeddedCrashUnderWaitingClients(t *testing.T) {
	c := embedded(t, 1)
	open(t, c)
	ended := make(chan error, 1)
	waiting := client(t, c.Nodes()[0], func(o *redis.Options) { o.ReadTimeout = time.Minute })
	go func() { ended <- waiting.BLPop(context.WithoutCancel(t.Context()), 0, "queue").Err() }()
	sub := client(t, c.Nodes()[0]).Subscribe(t.Context(), "news")
	defer sub.Close()
	if _, err := sub.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	other := client(t, c.Nodes()[0])
	await(t, "the client waits", func() bool { return strings.Contains(say(t, other, "INFO", "commandstats"), "cmdstat_blpop") })
	if err := c.Crash(0); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err == nil || errors.Is(err, redis.Nil) {
			t.Errorf("the waiting client was answered: %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the waiting client goes on waiting")
	}
}

func TestEmbeddedClosed(t *testing.T) {
	c, err := lab.Embedded(2)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := c.Restart(0); !errors.Is(err, lab.ErrClosed) {
		t.Errorf("restart after close: %v", err)
	}
	if _, err := lab.Embedded(0); err == nil {
		t.Error("a cluster without masters")
	}
}

// However eager a client is, no write gets into an incarnation that has not been opened.
func TestEmbeddedStartsFenced(t *testing.T) {
	c := embedded(t, 1)
	addr := c.Nodes()[0].Addr()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	answered := make(chan string, 1)
	for range 4 {
		wg.Go(func() {
			for ctx.Err() == nil {
				conn, err := net.Dial("tcp", addr)
				if err != nil {
					continue
				}
				_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
				_, _ = io.WriteString(conn, "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n")
				if b := make([]byte, 64); err == nil {
					if n, err := conn.Read(b); err == nil {
						select {
						case answered <- string(b[:n]):
						case <-ctx.Done():
						}
					}
				}
				conn.Close()
			}
		})
	}
	defer wg.Wait()
	defer cancel()
	for range 20 {
		select {
		case got := <-answered:
			if got != "-NOREPLICAS Not enough good replicas to write.\r\n" {
				t.Fatalf("answered %q", got)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("no answer")
		}
		if err := c.Crash(0); err != nil {
			t.Fatal(err)
		}
		if err := c.Restart(0); err != nil {
			t.Fatal(err)
		}
	}
}
