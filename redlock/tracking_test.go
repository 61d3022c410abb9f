package redlock

import (
	"bufio"
	"context"
	"net"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/server/resp"
)

// TestTapReadsPushes: messages come between answers and in the midst of them.
func TestTapReadsPushes(t *testing.T) {
	conn := &redisTracking{in: bufio.NewReader(strings.NewReader("" +
		":-2\r\n$0\r\n\r\n" +
		">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\na\r\n" +
		">3\r\n+message\r\n+x\r\n:1\r\n" + // of another kind
		":1500\r\n" + ">2\r\n$10\r\ninvalidate\r\n_\r\n" + "$5\r\ntoken\r\n" +
		":-1\r\n-WRONGTYPE it is a hash\r\n" +
		"-NOPERM no\r\n-NOPERM no\r\n" +
		"+odd\r\n+odd\r\n"))}
	for i, want := range []message{
		{},
		{changed: true, keys: []string{"a"}},
		{there: true, token: "token", ttl: 1500 * time.Millisecond},
		{changed: true, all: true},
		{there: true, ttl: -1},
		{err: resp.ServerError("NOPERM no")},
		{err: resp.ErrBad},
	} {
		if got, err := conn.receive(); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("message %d: %+v, %v", i, got, err)
		}
	}
	if _, err := conn.receive(); err == nil {
		t.Error("there is no more")
	}
}

func TestTapRefusesBadPushes(t *testing.T) {
	for _, in := range []string{">x\r\n", ">0\r\n", ">1000000\r\n", ">2\r\n$10\r\ninvalidate\r\n*100000\r\n", ">1\r\n!1\r\n"} {
		conn := &redisTracking{in: bufio.NewReader(strings.NewReader(in))}
		if m, err := conn.receive(); err == nil {
			t.Errorf("%q: %+v", in, m)
		}
	}
}

// TestTapKnowsIfItWillBeTold: a server without RESP3 accepts the tracking but cannot
// report changes.
func TestTapKnowsIfItWillBeTold(t *testing.T) {
	const (
		hello  = "%3\r\n$6\r\nserver\r\n$5\r\nredis\r\n$5\r\nproto\r\n:3\r\n$7\r\nmodules\r\n*0\r\n"
		refuse = "-ERR unknown command\r\n"
	)
	for what, c := range map[string]struct {
		hello, tracking string
		want            bool
	}{
		"a server of today":  {hello, "+OK\r\n", true},
		"no RESP3":           {refuse, "+OK\r\n", false},
		"tracking is denied": {hello, "-NOPERM no\r\n", false},
		"neither":            {refuse, refuse, false},
	} {
		t.Run(what, func(t *testing.T) {
			node, err := NewNode("n", &redis.Options{Addr: "memory", Dialer: func(context.Context, string, string) (net.Conn, error) {
				ours, theirs := net.Pipe()
				go serve(theirs, map[string]string{"HELLO": c.hello, "CLIENT": c.tracking, "PING": "+PONG\r\n"})
				return ours, nil
			}})
			if err != nil {
				t.Fatal(err)
			}
			conn := newRedisTracking(node, 10*time.Second)
			defer conn.end()
			if got, err := conn.open(t.Context()); got != c.want || err != nil {
				t.Errorf("it will tell: %v, %v", got, err)
			}
		})
	}
}

// serve answers each command by its name.
func serve(conn net.Conn, replies map[string]string) {
	defer conn.Close()
	// The two ends of a pipe wait for each other, also when both write.
	out := make(chan string, 100)
	defer close(out)
	go func() {
		for r := range out {
			if _, err := conn.Write([]byte(r)); err != nil {
				return
			}
		}
	}()
	in := bufio.NewReader(conn)
	for {
		command, err := resp.ReadValue(in)
		if err != nil || len(command.Items) == 0 {
			return
		}
		out <- replies[strings.ToUpper(command.Items[0].Text)]
	}
}
