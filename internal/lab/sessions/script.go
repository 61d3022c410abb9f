// Package sessions has servers that send a fixed text, for tests of clients.
package sessions

import (
	"context"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Greeting is the answer to HELLO of a server with RESP3.
const Greeting = "%3\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n7.0.1\r\n$5\r\nproto\r\n:3\r\n"

// Sessions are texts of things that are not Redis servers, from the first byte on.
var Sessions = []string{
	"-ERR unknown command 'HELLO'\r\n+PONG\r\n$-1\r\n", "$32000000000\r\n", Greeting + "$32000000000\r\n", "*1000000000\r\n",
	Greeting + "*1000000000\r\n", Greeting + strings.Repeat("*1\r\n", 40), Greeting + "+PONG\r\n" + strings.Repeat("*1\r\n", 40), strings.Repeat("|0\r\n", 100),
}

// Scripted returns the options for a server that sends text on each connection,
// whatever it is asked, and then closes it.
func Scripted(text string) *redis.Options {
	return &redis.Options{Addr: "scripted", Dialer: func(context.Context, string, string) (net.Conn, error) {
		return &script{*strings.NewReader(text)}, nil
	}}
}

// script is the client's end of such a connection. It needs no goroutine and never
// blocks.
type script struct{ strings.Reader }

func (*script) Write(b []byte) (int, error)      { return len(b), nil }
func (*script) Close() error                     { return nil }
func (*script) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (*script) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (*script) SetDeadline(time.Time) error      { return nil }
func (*script) SetReadDeadline(time.Time) error  { return nil }
func (*script) SetWriteDeadline(time.Time) error { return nil }
