package resp

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"syscall"
)

// Budget is how much memory the replies of one server may take: one reply, and all
// replies between two requests, as in a pipeline. An item of a list costs [ItemCost]
// besides its text; a list is charged as soon as its length is known. The budget may be
// changed while connections are in use, and the new one applies from the next request
// on. Each connection has the whole budget.
type Budget struct{ reply, exchange atomic.Int64 }

// NewBudget returns a budget in bytes; with exchange 0, only each single reply is
// bounded.
func NewBudget(reply, exchange int) *Budget {
	b := &Budget{}
	b.Set(reply, exchange)
	return b
}

// Set changes the budget.
func (b *Budget) Set(reply, exchange int) {
	b.reply.Store(int64(reply))
	b.exchange.Store(int64(exchange))
}

// checkedConn is a connection whose peer may send only what a Redis server would, and
// no more than the budget allows. The client library trusts the lengths that it reads,
// allocates memory for them at once, and reads nested values by recursion: a dozen
// bytes of a hostile server could end this program. So every byte is checked before the
// library reads it, from the greeting on.
type checkedConn struct {
	net.Conn
	budget *Budget
	asked  atomic.Bool // a request was sent since the last read
	frames frames
	bad    error       // the violation; kept, since the client library reads again after an error
	heard  atomic.Bool // the peer has sent something
	cause  func(error) error
}

// ErrFull is returned when a server has as many clients as it accepts.
var ErrFull = errors.New("shut out: other clients fill the server's maxclients")

// noPlaces begins the line that a full server sends before it closes the connection.
// The client library would take it for the answer to its greeting, continue, and
// report only a reset connection.
var noPlaces = []byte("-ERR max number of clients")

// Check returns a connection that checks what it reads: [ErrFull], [ErrBad] and
// [ErrLong] are errors of its Read. explain names the cause of an error that came before
// the first byte.
func Check(c net.Conn, b *Budget, explain func(error) error) net.Conn {
	checked := &checkedConn{Conn: c, budget: b, cause: explain}
	checked.frames.allow(b)
	if raw, ok := c.(syscall.Conn); ok {
		// The client library checks whether an idle connection was closed.
		return &checkedSocket{checked, raw}
	}
	return checked
}

// checkedSocket is a checkedConn over a plain socket.
type checkedSocket struct {
	*checkedConn
	syscall.Conn
}

// NetConn is the connection underneath.
func (c *checkedConn) NetConn() net.Conn { return c.Conn }

func (c *checkedConn) Write(b []byte) (int, error) {
	c.asked.Store(true)
	n, err := c.Conn.Write(b)
	return n, c.explain(err)
}

// explain names the cause of a connection that ended before the first byte.
func (c *checkedConn) explain(err error) error {
	if c.heard.Load() {
		return err
	}
	return c.cause(err)
}

func (c *checkedConn) Read(b []byte) (int, error) {
	if c.bad != nil {
		return 0, c.bad
	}
	n, err := c.Conn.Read(b)
	if err = c.explain(err); !c.heard.Load() && bytes.HasPrefix(b[:n], noPlaces) {
		c.bad = ErrFull
		return 0, c.bad
	}
	if n > 0 {
		c.heard.Store(true)
	}
	if c.asked.Load() && c.asked.Swap(false) {
		c.frames.allow(c.budget)
	}
	if c.bad = c.frames.pass(b[:n]); c.bad != nil {
		_ = c.Conn.Close()
		return 0, c.bad
	}
	return n, err
}

const (
	mostNested = 8        // of lists in lists
	mostLine   = 64 << 10 // bytes of a line, usually an error
)

// frames follows a stream of replies (RESP2 and RESP3), byte by byte except in texts: a
// pure step machine that keeps at most one line.
type frames struct {
	skip int    // bytes of a text that are still to come
	line []byte // the beginning of an incomplete line
	open []int  // how many values each open list still lacks, outermost first

	reply    int64 // bytes that one reply may cost
	left     int64 // what is left of them
	exchange int64 // what is left until the next request; bounded: there is a limit
	bounded  bool
}

// allow begins an exchange.
func (f *frames) allow(b *Budget) {
	f.reply = b.reply.Load()
	f.exchange = b.exchange.Load()
	f.bounded = f.exchange > 0
	if len(f.open) == 0 && f.skip == 0 {
		f.left = f.reply
	}
}

// charge takes n bytes from what is left.
func (f *frames) charge(n int64) error {
	f.left -= n
	if f.bounded {
		f.exchange -= n
	}
	if f.left < 0 || f.bounded && f.exchange < 0 {
		return ErrLong
	}
	return nil
}

// pass checks the next bytes of the stream. Every error is an ErrBad.
func (f *frames) pass(b []byte) error {
	for len(b) > 0 {
		if f.skip > 0 {
			n := min(f.skip, len(b))
			f.skip -= n
			b = b[n:]
			continue
		}
		end := bytes.IndexByte(b, '\n')
		if end < 0 {
			end = len(b)
		}
		if len(f.line) == 0 && len(f.open) == 0 {
			f.left = f.reply
		}
		if n := len(f.line) + end; n > mostLine || int64(n) > f.left {
			return fmt.Errorf("%w: a line without end", ErrLong)
		}
		if end == len(b) {
			f.line = append(f.line, b...)
			return nil
		}
		line := b[:end]
		if len(f.line) > 0 {
			line = append(f.line, line...)
		}
		if err := f.readHead(line); err != nil {
			return err
		}
		f.line = f.line[:0]
		b = b[end+1:]
	}
	return nil
}

// readHead reads the line that begins a value.
func (f *frames) readHead(line []byte) error {
	kind, n, text, err := ParseHead(line)
	if err != nil {
		return err
	}
	if err := f.charge(int64(len(line)) + 1); err != nil {
		return err
	}
	each := int64(1)
	switch kind {
	case '+', '-', ':', ',', '#', '(', '_':
		f.whole()
		return nil
	case '$', '=', '!':
		each = 0
	case '%':
		each = 2
	}
	switch {
	case n > f.left: // whatever it is: each byte, and each item, costs one at least
		return fmt.Errorf("%w: a length of %.40q", ErrLong, text)
	case each == 0 && n >= 0:
		if err := f.charge(n + 2); err != nil {
			return err
		}
		f.skip = int(n) + 2
		f.whole()
	case n <= 0:
		f.whole()
	case len(f.open) == mostNested:
		return fmt.Errorf("%w: too deep", ErrBad)
	default:
		if err := f.charge(n * each * ItemCost); err != nil {
			return err
		}
		f.open = append(f.open, int(n*each))
	}
	return nil
}

// whole records that a value is complete; that may complete the lists around it.
func (f *frames) whole() {
	for k := len(f.open) - 1; k >= 0; k-- {
		if f.open[k]--; f.open[k] > 0 {
			return
		}
		f.open = f.open[:k]
	}
}
