package labtest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo is a server that writes down the lines it gets, in the order of their
// arrival, and answers each with itself.
func echo(t *testing.T) (addr string, arrived <-chan string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	lines := make(chan string, 100_000)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for s := bufio.NewScanner(c); s.Scan(); {
					lines <- s.Text()
					fmt.Fprintln(c, s.Text())
				}
			}()
		}
	}()
	return l.Addr().String(), lines
}

// peer is a client behind a proxy.
type peer struct {
	net.Conn
	in *bufio.Reader
	t  *testing.T
}

func dialPeer(t *testing.T, p *Proxy) peer {
	t.Helper()
	c, err := net.Dial("tcp", p.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return peer{c, bufio.NewReader(c), t}
}

func (c peer) say(line string) {
	c.t.Helper()
	if _, err := fmt.Fprintln(c, line); err != nil {
		c.t.Fatal(err)
	}
}

func (c peer) hear(want string) {
	c.t.Helper()
	got, err := c.in.ReadString('\n')
	if err != nil || got != want+"\n" {
		c.t.Fatalf("heard %q, %v; want %q", got, err, want)
	}
}

// silent makes sure that nothing comes, as far as a short wait can tell.
func (c peer) silent() {
	c.t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(30 * time.Millisecond))
	defer c.SetReadDeadline(time.Time{})
	if b, err := c.in.ReadByte(); err == nil {
		c.t.Fatalf("heard %q", b)
	}
}

func expect(t *testing.T, arrived <-chan string, want string) {
	t.Helper()
	select {
	case got := <-arrived:
		if got != want {
			t.Fatalf("%q arrived, want %q", got, want)
		}
	case <-time.After(20 * time.Second):
		t.Fatalf("%q never arrived", want)
	}
}

func TestProxyPasses(t *testing.T) {
	addr, _ := echo(t)
	p := newProxy(t, "n1", addr)
	if n := p.Node(); n.Name() != "n1" || n.Addr() == addr {
		t.Errorf("%s at %s", n.Name(), n.Addr())
	}
	c := dialPeer(t, p)
	c.say("a")
	c.hear("a")
	// A client that has said all hears the rest.
	c.say("b")
	if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	c.hear("b")
	if _, err := c.in.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("after the end: %v", err)
	}
	if p.Conns() != 1 {
		t.Errorf("%d connections", p.Conns())
	}
}

func TestProxyDelayKeepsOrder(t *testing.T) {
	addr, _ := echo(t)
	p := newProxy(t, "n1", addr)
	c := dialPeer(t, p)
	start := time.Now()
	p.Delay(ToServer, 20*time.Millisecond, 20*time.Millisecond)
	p.Delay(ToClient, 10*time.Millisecond, 10*time.Millisecond)
	c.say("a")
	c.hear("a")
	if took := time.Since(start); took < 30*time.Millisecond {
		t.Errorf("back after %s", took)
	}
	p.Delay(ToServer, 0, 5*time.Millisecond)
	p.Delay(ToClient, 0, 5*time.Millisecond)
	const lines = 200
	for i := range lines {
		c.say(fmt.Sprint(i))
		if i%10 == 0 {
			time.Sleep(time.Millisecond)
		}
	}
	for i := range lines {
		c.hear(fmt.Sprint(i))
	}
}

func TestProxyHoldsBack(t *testing.T) {
	addr, arrived := echo(t)
	p := newProxy(t, "n1", addr)
	c := dialPeer(t, p)
	p.Hold(ToServer)
	c.say("a")
	c.silent()
	p.Resume()
	c.hear("a")
	expect(t, arrived, "a")
	p.Hold(ToClient)
	c.say("b")
	expect(t, arrived, "b")
	c.silent()
	p.Heal()
	c.hear("b")
}

// TestProxyIsBounded: a sender is stopped, and not taken in without end.
func TestProxyIsBounded(t *testing.T) {
	addr, _ := echo(t)
	p := newProxy(t, "n1", addr)
	c := dialPeer(t, p)
	p.Hold(ToServer)
	line := strings.Repeat("x", 1<<16-1)
	_ = c.SetWriteDeadline(time.Now().Add(500 * time.Millisecond))
	for sent := 0; ; sent += len(line) + 1 {
		if _, err := fmt.Fprintln(c, line); err != nil {
			break
		}
		if sent > 64<<20 {
			t.Fatalf("%d bytes were taken in", sent)
		}
	}
}

func TestProxyReorders(t *testing.T) {
	addr, arrived := echo(t)
	p := newProxy(t, "n1", addr)
	old := dialPeer(t, p)
	old.say("first")
	old.hear("first")
	expect(t, arrived, "first")
	release := p.Strand(ToServer)
	old.say("early")
	_ = old.Close() // what it sent is on its way all the same
	young := dialPeer(t, p)
	young.say("late")
	young.hear("late")
	expect(t, arrived, "late")
	release()
	release()
	expect(t, arrived, "early")
}

func TestProxyCuts(t *testing.T) {
	addr, arrived := echo(t)
	p := newProxy(t, "n1", addr)
	a, b := dialPeer(t, p), dialPeer(t, p)
	a.say("hello")
	a.hear("hello")
	expect(t, arrived, "hello")
	p.Cut(ToClient, 3)
	a.say("goodbye")
	expect(t, arrived, "goodbye")
	got, err := io.ReadAll(a.in)
	if !strings.HasPrefix("goo", string(got)) || !errors.Is(err, syscall.ECONNRESET) { // a reset may overtake bytes
		t.Errorf("heard %q, %v", got, err)
	}
	b.say("still here") // it does so once
	b.hear("still here")
	p.Drop()
	if _, err := b.in.ReadByte(); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("dropped: %v", err)
	}
}

func TestProxyHalfOpen(t *testing.T) {
	addr, arrived := echo(t)
	p := newProxy(t, "n1", addr)
	old := dialPeer(t, p)
	old.say("a")
	old.hear("a")
	expect(t, arrived, "a")
	p.Swallow(true)
	old.say("lost")
	fresh := dialPeer(t, p)
	fresh.say("lost too")
	old.silent()
	fresh.silent()
	p.Heal()
	old.say("lost for ever") // else replies would belong to other requests
	old.silent()
	c := dialPeer(t, p)
	c.say("b")
	c.hear("b")
	expect(t, arrived, "b")
}

func TestProxyWithoutServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	p := newProxy(t, "n1", addr)
	c, err := net.Dial("tcp", p.listener.Addr().String())
	if err != nil {
		return // the reset was faster
	}
	defer c.Close()
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("somebody is there")
	}
}
