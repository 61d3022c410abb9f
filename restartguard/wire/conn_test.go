package wire

import (
	"errors"
	"net"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/redlock"
	"redlockctl/server/fences"
)

func TestConnsNamed(t *testing.T) {
	list := "id=3 addr=127.0.0.1:1 name=redlockctl:guard:A age=1 user=name=redlockctl:guard:A\n" +
		"id=4 addr=127.0.0.1:2 name=redlockctl:guard:AB age=1\nid=5 addr=127.0.0.1:3 name=redlockctl:guard:A\n" +
		"id=6 addr=127.0.0.1:4 name=redlockctl:guard age=1\nid=7 addr=127.0.0.1:5 name= age=1\n\nid=x name=redlockctl:guard:A\n"
	own := func(name string) bool { return name == "redlockctl:guard:A" }
	if got := connsNamed(list, own, 5); !slices.Equal(got, []int64{3}) {
		t.Fatal(got)
	}
	if got := connsNamed(list, isGuardName, 5); !slices.Equal(got, []int64{3, 4, 6}) {
		t.Fatal(got)
	}
}

// TestGuardConnectionsEndByReset: what is not delivered yet is dropped, not sent
// for minutes after its sender has gone.
func TestGuardConnectionsEndByReset(t *testing.T) {
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listen.Close()
	ended := make(chan error, 1)
	go func() {
		c, err := listen.Accept()
		if err != nil {
			ended <- err
			return
		}
		defer c.Close()
		for buf := make([]byte, 1<<10); err == nil; {
			_, err = c.Read(buf)
		}
		ended <- err
	}()
	node, err := redlock.NewNode("n", &redis.Options{Addr: listen.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	l := Dial(node, fences.Method{}, 50*time.Millisecond)
	_, _ = l.Look(t.Context())
	l.Close()
	if err := <-ended; !isReset(err) {
		t.Fatal(err)
	}
}

func isReset(err error) bool { return errors.Is(err, syscall.ECONNRESET) }
