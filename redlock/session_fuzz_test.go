package redlock

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// scripted is a node whose server says what a string says, whatever it is asked,
// and then ends.
func scripted(tb testing.TB, text string) *Node {
	tb.Helper()
	n, err := NewNode("n1", &redis.Options{Addr: "scripted", Dialer: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, server) }()
		go func() { _, _ = io.WriteString(server, text); _ = server.Close() }()
		return client, nil
	}})
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

const greeting = "%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n7.0.1\r\n$5\r\nproto\r\n:3\r\n$2\r\nid\r\n:5\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n"

// FuzzSession: whatever a server says from the first byte of the greeting on, a
// lock client's session ends, with an answer or an error, and so does one that
// listens to changes.
func FuzzSession(f *testing.F) {
	f.Add(greeting + "+PONG\r\n+OK\r\n:1\r\n*2\r\n$1\r\n1\r\n$1\r\n2\r\n")
	f.Add("-ERR unknown command 'HELLO'\r\n+PONG\r\n$-1\r\n")
	f.Add(greeting + "+PONG\r\n+OK\r\n>2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n:12\r\n$3\r\nabc\r\n")
	f.Add("$32000000000\r\n")
	f.Add(greeting + "*1000000000\r\n")
	f.Add(greeting + "+PONG\r\n" + strings.Repeat("*1\r\n", 40))
	f.Add(strings.Repeat("|0\r\n", 100))
	f.Fuzz(func(t *testing.T, text string) {
		ctx := t.Context()
		link, err := redisWire{scripted(t, text), time.Second, time.Second}.open(ctx)
		if err == nil {
			calls := []*call{{op: opSet, key: "k", token: "t", ttl: time.Second}, {op: opInspect, key: "k"}}
			_ = link.send(calls)
			for _, c := range calls {
				if _, _, err := link.receive(func() *call { return c }); err != nil {
					break
				}
			}
			link.abort()
		}
		tap := newRedisTap(scripted(t, text), time.Second)
		if _, err := tap.open(ctx); err == nil {
			_ = tap.ask("k")
			for range 8 {
				if _, err := tap.hear(); err != nil {
					break
				}
			}
		}
		tap.end()
	})
}
