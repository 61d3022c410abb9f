package observe_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// deafProxy hides from the clients of a server some of the changes that it reports.
type deafProxy struct {
	listener   net.Listener
	target     string
	noNull     bool // no null push
	notAll     bool // only every other push
	reconnects bool // a feed survives although its server closed the connection

	pushes atomic.Int64
}

func newDeafProxy(t *testing.T, target string) *deafProxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &deafProxy{listener: l, target: target}
	var work sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); work.Wait() })
	work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			work.Go(func() { p.serve(c) })
		}
	})
	return p
}

// serve relays what a client sends, and the part of the server's output that the client
// may see.
func (p *deafProxy) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	var mu sync.Mutex // protects server, said and gone
	gone := false     // the client hung up
	var said []byte   // all that the client sent before its first PING as a feed
	done := make(chan struct{})
	defer func() { mu.Lock(); _ = server.Close(); mu.Unlock(); _ = client.Close(); <-done }()
	isFeed := func() bool { return bytes.Contains(said, []byte("TRACKING")) }
	go func() {
		defer close(done)
		b := make([]byte, 64<<10)
		for {
			n, err := client.Read(b)
			if err != nil {
				mu.Lock()
				gone = true
				_ = server.Close()
				mu.Unlock()
				return
			}
			mu.Lock()
			if !isFeed() && len(said) < 1<<10 {
				said = append(said, b[:n]...)
			}
			_, _ = server.Write(b[:n])
			mu.Unlock()
		}
	}()
	for {
		if !p.relay(client, server) {
			return // the client hung up
		}
		mu.Lock()
		reconnect := p.reconnects && isFeed() && !gone
		if reconnect {
			_ = server.Close()
			time.Sleep(20 * time.Millisecond) // changes in this time are reported to nobody
			var next net.Conn
			if next, err = net.Dial("tcp", p.target); err == nil {
				server = next
				_, err = server.Write(said)
			}
			if err == nil {
				// Drop the answers to that as well.
				_ = server.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
				_, _ = io.Copy(io.Discard, server)
				_ = server.SetReadDeadline(time.Time{})
				_, err = server.Write([]byte("*1\r\n$4\r\nPING\r\n")) // one that was in flight
			}
		}
		mu.Unlock()
		if !reconnect || err != nil {
			return
		}
	}
}

// relay relays lines and whole pushes until the server hangs up; false: the client did.
func (p *deafProxy) relay(client, server net.Conn) bool {
	in := bufio.NewReaderSize(server, 64<<10)
	for {
		line, err := in.ReadSlice('\n')
		message := bytes.Clone(line)
		push := err == nil && line[0] == '>'
		for n := 3; push && err == nil && n > 0; n-- { // $10, invalidate, and its argument
			line, err = in.ReadSlice('\n')
			message = append(message, line...)
			if n == 1 && err == nil && line[0] == '*' {
				var keys int
				_, _ = fmt.Sscanf(string(line), "*%d", &keys)
				for range 2 * keys {
					line, _ = in.ReadSlice('\n')
					message = append(message, line...)
				}
			}
		}
		null := push && bytes.HasSuffix(message, []byte("_\r\n"))
		if !(push && p.pushes.Add(1)%2 == 0 && p.notAll) && !(null && p.noNull) {
			if _, err := client.Write(message); err != nil {
				return false
			}
		}
		if err != nil {
			return !errors.Is(err, bufio.ErrBufferFull)
		}
	}
}
