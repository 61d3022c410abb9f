package labtest

import (
	"bytes"
	"context"
	"io"
	"net"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/redlock"
)

// Mischief is a way in which a server misbehaves.
type Mischief struct {
	Name string
	// To is the command in lower case that gets the answer; "": the first.
	To string
	// Answer is sent once, and Ever again and again after it until the peer
	// disconnects; empty: nothing.
	Answer, Ever string
}

// Mischiefs are all known ways to make a trusting client hang or run out of memory.
func Mischiefs() []Mischief {
	deep := strings.Repeat("*1\r\n", 1<<16)
	all := []Mischief{
		{"garbage", "", "HTTP/1.1 400 Bad Request\r\n\r\n", ""},
		{"binary", "", "\x00\xff\x16\x03\x01\r\n", ""},
		{"silence", "", "", ""},
		{"half a reply", "", "*4\r\n$4\r\nhal", ""},
		{"an endless line", "", "+", strings.Repeat("x", 1<<16)},
		{"an endless text", "", "$536870912\r\n", strings.Repeat("x", 1<<16)},
		{"endless attributes", "", "", strings.Repeat("|0\r\n", 1<<14)},
		{"endless pushes", "", "", strings.Repeat(">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n", 1<<10)},
		{"endless replies", "", "", strings.Repeat("+OK\r\n", 1<<13)},
	}
	for _, to := range []string{"hello", "client", "ping", "info", "time", "config", "get", "set", "eval", "evalsha", "evalsha_ro", "scan", "pubsub", "subscribe"} {
		all = append(all,
			Mischief{"a huge text to " + to, to, "$32000000000\r\nx", ""},
			Mischief{"a huge list to " + to, to, "*1000000000\r\n:1\r\n", ""},
			Mischief{"lists in lists to " + to, to, "", deep},
			Mischief{"an endless text to " + to, to, "$536870912\r\n", strings.Repeat("x", 1<<16)},
			Mischief{"an endless list to " + to, to, "*100000000\r\n", strings.Repeat(":1\r\n", 1<<14)},
			Mischief{"an endless map to " + to, to, "%100000000\r\n", strings.Repeat(":1\r\n", 1<<14)},
		)
	}
	return all
}

// Misbehaving returns a node that behaves like the server at target until it gets the
// command of the mischief; from then on it only misbehaves.
func Misbehaving(tb testing.TB, name, target string, m Mischief) *redlock.Node {
	tb.Helper()
	return fake(tb, name, func(client net.Conn) {
		if m.To == "" {
			m.say(client)
			return
		}
		before(client, target, func(server net.Conn) error {
			b := make([]byte, 64<<10)
			for {
				n, err := client.Read(b)
				if err != nil {
					return err
				}
				if bytes.Contains(bytes.ToLower(b[:n]), []byte("\r\n"+m.To+"\r\n")) {
					m.say(client)
					return nil
				}
				if _, err := server.Write(b[:n]); err != nil {
					return err
				}
			}
		})
	})
}

// fake returns a node whose connections are served by serve.
func fake(tb testing.TB, name string, serve func(client net.Conn)) *redlock.Node {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); serve(c) }()
		}
	}()
	node, err := redlock.NewNode(name, &redis.Options{Addr: l.Addr().String()})
	if err != nil {
		tb.Fatal(err)
	}
	return node
}

// before is a proxy for the server at target: it forwards the replies, and requests
// forwards what the client sends, until it returns.
func before(client net.Conn, target string, requests func(server net.Conn) error) {
	server, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _, _ = io.Copy(client, server) }()
	_ = requests(server)
	_ = server.Close()
	<-ended
}

func (m Mischief) say(client net.Conn) {
	_, err := io.WriteString(client, m.Answer)
	for m.Ever != "" && err == nil {
		_, err = io.WriteString(client, m.Ever)
	}
	_, _ = io.Copy(io.Discard, client)
}

// HeapPeak begins to measure the peak growth of the memory in use; the returned
// function returns it. Until the test ends, garbage is collected early: on a busy machine
// it would be most of what is measured.
func HeapPeak(tb testing.TB) (bytes func() uint64) {
	percent := debug.SetGCPercent(20)
	tb.Cleanup(func() { debug.SetGCPercent(percent) })
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	base, most := stats.HeapInuse, uint64(0)
	ctx, cancel := context.WithCancel(tb.Context())
	done := make(chan struct{})
	tb.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		for tick := time.NewTicker(20 * time.Millisecond); ctx.Err() == nil; <-tick.C {
			runtime.ReadMemStats(&stats)
			most = max(most, stats.HeapInuse)
		}
	}()
	return func() uint64 { cancel(); <-done; return max(most, base) - base }
}
