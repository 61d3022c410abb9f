package embedded

import (
	"errors"
	"net"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"

	"redlockctl/base/crash"
)

// Start starts an instance at host:port, fenced; [Instance.End] ends it.
func Start(addr string, clock *Clock) (*Instance, error) {
	in := &Instance{
		redis:    miniredis.NewMiniRedis(),
		clock:    clock,
		own:      ownCommands,
		accepted: make(chan struct{}),
		conns:    map[*conn]struct{}{},
		peers:    map[*server.Peer]*peer{},
	}
	// Dialling in memory starts a miniredis without a listener: the hook, and with it
	// the fence, must be in place before the first connection.
	pipe, err := in.redis.Dial()
	if err != nil {
		return nil, err
	}
	in.srv = in.redis.Server()
	in.srv.SetPreHook(in.hook)
	_ = pipe.Close()
	in.redis.SetTime(clock.At(time.Now()))
	in.redis.ClockTTL(true)

	l, err := net.Listen("tcp", addr)
	if err != nil {
		in.redis.Close()
		return nil, err
	}
	in.listener = l.(*net.TCPListener)
	port := in.listener.Addr().(*net.TCPAddr).Port
	in.config = bootSettings(port)
	in.stats = newStats(clock.At(time.Now()), port)
	crash.Go(in.accept)
	return in, nil
}

func (in *Instance) accept() {
	defer close(in.accepted)
	for {
		tcp, err := in.listener.AcceptTCP()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // out of file descriptors, or the client has disconnected
			time.Sleep(5 * time.Millisecond)
			continue
		}
		c := &conn{TCPConn: tcp, gone: in.unlist}
		in.connMu.Lock()
		in.conns[c] = struct{}{}
		in.connMu.Unlock()
		in.srv.ServeConn(c)
	}
}

// unlist forgets a connection that is closed.
func (in *Instance) unlist(c *conn) {
	in.connMu.Lock()
	defer in.connMu.Unlock()
	delete(in.conns, c)
}
