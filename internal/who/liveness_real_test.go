package who_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/internal/lab"
	"redlockctl/internal/lab/labtest"
	"redlockctl/internal/who"
	"redlockctl/redlock"
)

// TestSilentAndGone: the holder is named while it extends. Asked again after it stopped,
// it is silent; after its connections closed, gone; and a client that has acquired the
// lock since is not mistaken for it.
func TestSilentAndGone(t *testing.T) {
	servers := labtest.Servers(t, 3)
	nodes := labtest.Nodes(servers)
	var works atomic.Bool
	works.Store(true)
	var pools []*redis.Client
	for _, s := range servers {
		c := redis.NewClient(&redis.Options{Addr: s.Addr(), ClientName: "billing", PoolSize: 1})
		defer c.Close()
		c.Set(t.Context(), "job", "token", time.Minute)
		pools = append(pools, c)
	}
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	wg.Go(func() {
		for ctx.Err() == nil {
			for _, c := range pools {
				if works.Load() {
					c.Eval(ctx, extendScript, []string{"job"}, "token", 60000)
				}
			}
			select {
			case <-ctx.Done():
			case <-time.After(700 * time.Millisecond):
			}
		}
	})
	opt := who.Options{Key: "job", For: 30 * time.Second, Timeout: 2 * time.Second}
	ask := func(want who.Liveness) {
		t.Helper()
		got, err := who.Observe(ctx, nodes, opt)
		if err != nil {
			t.Fatal(err)
		}
		if got.Method != who.Inferred || got.Group == nil || got.Group.Name != "billing" || got.Liveness != want {
			t.Fatalf("want %s: %+v", want, got)
		}
		opt.Known = got
	}
	ask(who.Alive)
	ask(who.Alive)
	works.Store(false)
	for _, s := range servers {
		awaitNone(t, s, "is used by the holder", func(c who.Conn) bool { return c.Name.Raw() == "billing" && c.Idle < 3 })
	}
	ask(who.Silent)
	for _, c := range pools {
		_ = c.Close()
	}
	ask(who.Gone)
	if open, closed := opt.Known.Nodes(); len(open) != 0 || len(closed) != 3 {
		t.Error(open, closed)
	}
	// The same for an orphaned copy that it left behind, without waiting for a majority.
	for _, s := range servers[1:] {
		c := redlock.Connect(s.Node(), 1, time.Second)
		c.Del(ctx, "job")
		_ = c.Close()
	}
	begun := time.Now()
	if ask(who.Gone); opt.Known.Held != 1 || time.Since(begun) >= opt.For {
		t.Errorf("after %s: %+v", time.Since(begun), opt.Known)
	}
	for _, s := range servers {
		c := redlock.Connect(s.Node(), 1, time.Second)
		c.Set(ctx, "job", "another", time.Minute)
		_ = c.Close()
	}
	opt.For = 2 * time.Second
	if got, err := who.Observe(ctx, nodes, opt); err != nil || got.Method != who.Unknown || got.Liveness != "" {
		t.Errorf("of another token: %+v, %v", got, err)
	}
}

// awaitNone waits until a server has no connection of this kind.
func awaitNone(t *testing.T, server *lab.Server, kind string, is func(who.Conn) bool) {
	t.Helper()
	c := redlock.Connect(server.Node(), 1, 5*time.Second)
	defer c.Close()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		list, err := c.ClientList(t.Context()).Result()
		switch {
		case err != nil:
			t.Fatal(err)
		case !slices.ContainsFunc(who.ParseList(list), is):
			return
		case time.Now().After(end):
			t.Fatalf("a connection %s still", kind)
		}
	}
}

// TestTooManyConnections: a node with more than 2,000 is not listed, unless forced.
func TestTooManyConnections(t *testing.T) {
	server := labtest.Servers(t, 1)[0]
	var conns []net.Conn
	defer func() {
		for _, c := range conns {
			_ = c.Close()
		}
	}()
	for range who.MostConns + 1 {
		c, err := net.Dial("tcp", server.Addr())
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
	}
	admin := redlock.Connect(server.Node(), 1, 5*time.Second)
	defer admin.Close()
	admin.Set(t.Context(), "job", "token", time.Minute)
	for end := time.Now().Add(20 * time.Second); len(who.ParseList(admin.ClientList(t.Context()).Val())) <= who.MostConns; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not all of them are connected")
		}
	}
	admin.ConfigResetStat(t.Context())
	opt := who.Options{Key: "job", For: 2 * time.Second, Timeout: 5 * time.Second}
	if _, err := who.Observe(t.Context(), []*redlock.Node{server.Node()}, opt); !errors.Is(err, who.ErrTooMany) {
		t.Errorf("%v", err)
	}
	if stats := admin.Info(t.Context(), "commandstats").Val(); strings.Contains(stats, "cmdstat_client|list") {
		t.Errorf("it was asked all the same:\n%s", stats)
	}
	opt.Force = true
	if got, err := who.Observe(t.Context(), []*redlock.Node{server.Node()}, opt); err != nil || got.Held != 1 {
		t.Errorf("forced: %+v, %v", got, err)
	}
}

// busy makes clients send ops commands per second until ctx ends, in pipelines.
func busy(ctx context.Context, t *testing.T, addr string, ops int, wg *sync.WaitGroup) {
	const clients, pause = 4, 10 * time.Millisecond
	each := ops / clients / int(time.Second/pause)
	for range clients {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		var text []byte
		for i := range each {
			text = fmt.Appendf(text, "*3\r\n$3\r\nSET\r\n$8\r\nbusy:%03d\r\n$40\r\n%040d\r\n", i%1000, i)
		}
		wg.Go(func() { _, _ = io.Copy(io.Discard, c) })
		wg.Go(func() {
			defer c.Close()
			tick := time.NewTicker(pause)
			defer tick.Stop()
			for ctx.Err() == nil {
				if _, err := c.Write(text); err != nil {
					return
				}
				<-tick.C
			}
		})
	}
}

// TestTrafficOfABusyNode: at 20,000 commands per second the traffic is not read unless
// forced; then reading ends at the first hit, or with the lock's TTL, and leaves nothing
// behind.
func TestTrafficOfABusyNode(t *testing.T) {
	server := labtest.Servers(t, 1)[0]
	admin := redlock.Connect(server.Node(), 2, 5*time.Second)
	defer admin.Close()
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	busy(ctx, t, server.Addr(), 20_000, &wg)
	admin.Set(ctx, "held", "token", time.Minute)
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		if _, err := who.Monitor(ctx, server.Node(), "nothing is there", false, 5*time.Second); errors.Is(err, who.ErrBusy) {
			break
		}
		if time.Now().After(end) {
			t.Skip("this machine does not do 10,000 commands a second now")
		}
	}
	holder := redis.NewClient(&redis.Options{Addr: server.Addr(), ClientName: "billing"})
	defer holder.Close()
	wg.Go(func() {
		for ctx.Err() == nil {
			holder.Eval(ctx, extendScript, []string{"held"}, "token", 60000)
			time.Sleep(500 * time.Millisecond)
		}
	})
	got, err := who.Monitor(ctx, server.Node(), "held", true, 5*time.Second)
	if errors.Is(err, who.ErrBehind) {
		t.Log("ended as promised: it could not keep up")
	} else if err != nil || got.Method != who.Seen || got.Group.Name != "billing" {
		t.Errorf("%+v, %v", got, err)
	}
	admin.Set(ctx, "quiet", "nobody's", 1500*time.Millisecond)
	begun := time.Now()
	got, err = who.Monitor(ctx, server.Node(), "quiet", true, 5*time.Second)
	if took := time.Since(begun); took > 8*time.Second || err == nil && got.Method != who.Unknown || err != nil && !errors.Is(err, who.ErrBehind) {
		t.Errorf("after %s: %+v, %v", took, got, err)
	}
	awaitNone(t, server, "reads the traffic", func(c who.Conn) bool { return c.Cmd == "monitor" })
}

// late is a context that does not notice its deadline.
type late struct {
	context.Context
	end time.Time
}

func (l late) Deadline() (time.Time, bool) { return l.end, true }

// TestTrafficEndsInTime: the goroutine that watches the reading may see the end before
// the context does. That is no error.
func TestTrafficEndsInTime(t *testing.T) {
	server := labtest.Servers(t, 1)[0]
	admin := redlock.Connect(server.Node(), 1, 5*time.Second)
	defer admin.Close()
	admin.Set(t.Context(), "quiet", "nobody's", time.Minute)
	ctx := late{t.Context(), time.Now().Add(time.Second)}
	if got, err := who.Monitor(ctx, server.Node(), "quiet", true, 5*time.Second); err != nil || got.Method != who.Unknown {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestTrafficReadTooSlowly: if reading does not keep up with 20,000 commands per second,
// it is ended on the server, long before the lock's TTL.
func TestTrafficReadTooSlowly(t *testing.T) {
	server := labtest.Servers(t, 1)[0]
	admin := redlock.Connect(server.Node(), 2, 5*time.Second)
	defer admin.Close()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	busy(ctx, t, server.Addr(), 20_000, &wg)
	admin.Set(ctx, "quiet", "nobody's", time.Minute)
	slow, err := redlock.NewNode("slow", &redis.Options{Addr: server.Addr(), Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		return &slowReader{Conn: conn}, err
	}})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := who.Monitor(ctx, slow, "quiet", true, 5*time.Second); !errors.Is(err, who.ErrBehind) {
		t.Errorf("%+v, %v", got, err)
	}
	if left := admin.ClientList(ctx).Val(); strings.Contains(left, "cmd=monitor") {
		t.Errorf("it goes on:\n%s", left)
	}
}

// slowReader is a connection that is read slowly after MONITOR: 100 KiB per second.
type slowReader struct {
	net.Conn
	slow atomic.Bool
}

func (c *slowReader) Write(b []byte) (int, error) {
	if strings.Contains(string(b), "MONITOR") {
		c.slow.Store(true)
		_ = c.Conn.(*net.TCPConn).SetReadBuffer(1 << 16)
	}
	return c.Conn.Write(b)
}

func (c *slowReader) Read(b []byte) (int, error) {
	if c.slow.Load() {
		time.Sleep(10 * time.Millisecond)
		b = b[:min(len(b), 1024)]
	}
	return c.Conn.Read(b)
}
