package embedded

import (
	"errors"
	"net"
	"sync"
	"time"
)

// conn is a connection of a client. As a real server does, it sends the replies to
// commands that arrived together in one piece: when nothing is left to read.
type conn struct {
	*net.TCPConn
	gone func(*conn) // called when it is closed

	mu      sync.Mutex
	reads   bool   // the read buffer is empty: a reply is sent at once
	replies []byte // not sent yet
}

func (c *conn) Read(b []byte) (int, error) {
	if err := c.send(); err != nil {
		return 0, err
	}
	n, err := c.TCPConn.Read(b)
	c.mu.Lock()
	c.reads = false
	c.mu.Unlock()
	return n, err
}

// send sends all replies, and sends later ones at once until the next commands arrive.
func (c *conn) send() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reads = true
	return c.flush()
}

func (c *conn) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.replies = append(c.replies, b...)
	if !c.reads && len(c.replies) < mostReplies {
		return len(b), nil
	}
	return len(b), c.flush()
}

const (
	mostReplies = 64 << 10 // bytes to keep
	deafAfter   = time.Second
)

// flush sends the replies. A client that reads none is disconnected: miniredis serves nobody while
// it writes.
func (c *conn) flush() error {
	if len(c.replies) == 0 {
		return nil
	}
	_ = c.SetWriteDeadline(time.Now().Add(deafAfter))
	_, err := c.TCPConn.Write(c.replies)
	c.replies = c.replies[:0]
	if err != nil {
		_ = c.TCPConn.Close()
	}
	return err
}

func (c *conn) Close() error {
	c.gone(c)
	return errors.Join(c.send(), c.TCPConn.Close())
}
