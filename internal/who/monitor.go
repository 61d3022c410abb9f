package who

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/base/crash"
	"redlockctl/redlock"
	"redlockctl/server/resp"
	"redlockctl/server/safetext"
	"redlockctl/server/serverinfo"
)

// Limits of what reading the traffic may cost a node.
const (
	monitorFor = 10 * time.Second
	// MostOps is the largest number of commands per second on a node whose traffic is
	// read.
	MostOps       = 10_000
	monitorBehind = 1 << 20 // bytes waiting for us on the server
	monitorCheck  = 100 * time.Millisecond
	monitorLine   = 64 << 10 // bytes read of a line
)

var (
	// ErrBusy is returned for a node with more than [MostOps].
	ErrBusy = errors.New("too busy to read its traffic")
	// ErrBehind is returned when the traffic arrives faster than it is read.
	ErrBehind = errors.New("the traffic comes faster than it is read; ended")
)

// Monitor reads the traffic of one node (MONITOR) until a command contains the key and
// the token of the lock, for the lock's TTL but at most 10 s. It costs the server a third
// of its speed and shows all data of all clients; nothing else is kept. It ends as soon
// as the server must buffer 1 MiB for it. An answer with the method [Unknown] means that
// nothing was seen.
func Monitor(ctx context.Context, node *redlock.Node, key string, force bool, timeout time.Duration) (_ *Answer, err error) {
	defer resp.Contain(&err, node.Name())
	// A separate budget for lists of connections; lines of the traffic are cut here.
	node = node.Within(resp.NewBudget(listReply, 0))
	side := redlock.Connect(node, 1, timeout, func(o *redis.Options) { o.Protocol = 2 })
	defer side.Close()
	a := &Answer{At: time.Now(), Key: key, N: 1, Method: Unknown, MonitorOn: node.Name()}
	info, err := side.Info(ctx, "stats").Result()
	if err != nil {
		return nil, err
	}
	if n, _ := serverinfo.Number(info, "instantaneous_ops_per_sec"); n > MostOps && !force {
		return nil, fmt.Errorf("%w: %s does %d commands a second", ErrBusy, node.Name(), n)
	}
	ttl, err := side.PTTL(ctx, key).Result()
	if err != nil {
		return nil, err
	}
	token, err := side.GetRange(ctx, key, 0, valueRead-1).Result()
	if err != nil || token == "" {
		return a, err
	}
	a.Held, a.Token = 1, safetext.New(token)
	if a.Revoked = redlock.IsTombstone(token); a.Revoked {
		a.Tombstones = 1
		return a, nil
	}
	if ttl <= 0 || ttl > monitorFor {
		ttl = monitorFor
	}
	addr, err := readTraffic(ctx, node, side, timeout, ttl, fmt.Sprintf("[%d ", node.DB()), quoted(key), quoted(token))
	if err != nil || addr == "" {
		return a, err
	}
	list, err := side.ClientList(ctx).Result()
	if err != nil {
		return a, err
	}
	a.Method, a.Events = Seen, 1
	hit := Conn{Addr: safetext.New(addr)} // already closed
	for _, c := range ParseList(list) {
		if c.Addr.Raw() == addr {
			hit = c
		}
	}
	g := hit.group()
	a.Group, a.Liveness = &g, Alive
	a.Conns = []NodeConn{{Node: node.Name(), Conn: hit, Find: findProcess(addr)}}
	return a, nil
}

// readTraffic returns the address of the first client whose command has all of these
// words; empty if there was none in time. side ends the connection when its output buffer
// grows too large.
func readTraffic(ctx context.Context, node *redlock.Node, side *redis.Client, timeout, most time.Duration, words ...string) (string, error) {
	var raw net.Conn
	client := redlock.ConnectOnce(node, timeout, func(o *redis.Options) {
		o.Protocol = 2
		dial := o.Dialer
		if dial == nil {
			dial = redis.NewDialer(o)
		}
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := dial(ctx, network, addr)
			raw = c
			return c, err
		}
	})
	defer client.Close()
	id, err := client.ClientID(ctx).Result()
	if err != nil {
		return "", err
	}
	if err := raw.SetDeadline(time.Now().Add(most)); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	var behind atomic.Bool
	done := make(chan struct{})
	crash.Go(func() {
		defer close(done)
		watchOutput(ctx, side, id, &behind)
		_ = raw.Close()
	})
	defer func() { cancel(); <-done }()
	if _, err := raw.Write(resp.AppendCommand(nil, "MONITOR")); err != nil {
		return "", err
	}
	in := bufio.NewReaderSize(raw, monitorLine)
	for {
		line, err := in.ReadSlice('\n')
		if len(line) > 0 && line[0] == '-' {
			return "", resp.ServerError(string(bytes.TrimSpace(line[1:])))
		}
		if addr := clientOf(line, words); addr != "" {
			return addr, nil
		}
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = in.ReadSlice('\n')
		}
		var late net.Error
		switch {
		case err == nil:
		case ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded):
			return "", ctx.Err()
		case over(ctx) || errors.As(err, &late) && late.Timeout():
			return "", nil // whatever error the other connection gets at the end
		case behind.Load():
			return "", fmt.Errorf("%s: %w", node.Name(), ErrBehind)
		default:
			return "", err
		}
	}
}

// watchOutput ends the connection when too much output waits for it on the server, or the
// server does not say how much.
func watchOutput(ctx context.Context, side *redis.Client, id int64, behind *atomic.Bool) {
	tick := time.NewTicker(monitorCheck)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		list, err := side.Do(ctx, "CLIENT", "LIST", "ID", id).Text()
		if over(ctx) {
			return
		}
		conns := ParseList(list)
		if err == nil && len(conns) == 1 && conns[0].Output < monitorBehind {
			continue
		}
		behind.Store(true)
		_ = side.Do(ctx, "CLIENT", "KILL", "ID", id).Err()
		return
	}
}

// over reports whether the deadline has passed, which a connection can notice before the
// context does.
func over(ctx context.Context) bool {
	end, bounded := ctx.Deadline()
	return ctx.Err() != nil || bounded && !time.Now().Before(end)
}

// clientOf returns the address of the client in a line of MONITOR that has all of these
// words: +TIME [DB ADDR] "COMMAND" "ARGUMENT" …. Commands of a script have none.
func clientOf(line []byte, words []string) string {
	for _, w := range words {
		if !bytes.Contains(line, []byte(w)) {
			return ""
		}
	}
	_, rest, ok := bytes.Cut(line, []byte(words[0]))
	addr, _, ok2 := bytes.Cut(rest, []byte("]"))
	if bytes.HasPrefix(addr, []byte("[")) { // [DB [::1]:PORT]
		host, more, _ := bytes.Cut(rest, []byte("]:"))
		port, _, _ := bytes.Cut(more, []byte("]"))
		addr = append(append(bytes.Clone(host), "]:"...), port...)
	}
	if !ok || !ok2 || string(addr) == "lua" {
		return ""
	}
	return string(addr)
}

// quoted returns s as MONITOR shows it.
func quoted(s string) string {
	b := []byte{'"'}
	for i := range len(s) {
		switch c := s[i]; {
		case c == '\\' || c == '"':
			b = append(b, '\\', c)
		case c == '\n':
			b = append(b, `\n`...)
		case c == '\r':
			b = append(b, `\r`...)
		case c == '\t':
			b = append(b, `\t`...)
		case c == '\a':
			b = append(b, `\a`...)
		case c == '\b':
			b = append(b, `\b`...)
		case c < ' ' || c > '~':
			b = fmt.Appendf(b, `\x%02x`, c)
		default:
			b = append(b, c)
		}
	}
	return string(append(b, '"'))
}
