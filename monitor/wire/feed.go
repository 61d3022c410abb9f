package wire

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/monitor"
	"redlockctl/redlock"
	"redlockctl/server/resp"
)

// Feed is a connection over which a node reports changed keys (CLIENT TRACKING in
// broadcasting mode, RESP3). The client library connects, encrypts and authenticates;
// then this package reads the connection itself, since the library returns pushes only
// while it waits for a reply. Input is limited: keys that do not match are not even
// copied.
type Feed struct {
	*Session
	conn net.Conn
	in   *bufio.Reader

	mu   sync.Mutex
	sent time.Time // of the PING in flight; zero: none
	last time.Time // when the last answered PING was sent
}

// ErrNoFeed says why a node does not report changes, for people.
type ErrNoFeed struct {
	Why    string
	Denied bool // to this user
}

func (e ErrNoFeed) Error() string { return e.Why }

var ErrBadPush = errors.New("not a message of a Redis server")

const (
	LongestKey  = 64 << 10 // bytes; a longer name is not a lock's
	longestLine = 1 << 10  // of a header or an error
)

// OpenFeed connects to a node and subscribes to changes of keys with these prefixes. The
// error is an [ErrNoFeed] if the node answers but refuses.
func OpenFeed(ctx context.Context, node *redlock.Node, prefixes []string, patience *Patience) (*Feed, error) {
	s, err := Dial(ctx, node.Within(resp.NewBudget(feedReply, 0)), patience, func(opt *redis.Options) { opt.Protocol = 3 })
	if err != nil {
		return nil, err
	}
	f := &Feed{Session: s, conn: s.raw}
	if err := f.start(ctx, prefixes); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (f *Feed) start(ctx context.Context, prefixes []string) (err error) {
	defer resp.Contain(&err, "CLIENT TRACKING")
	ctx, cancel := context.WithTimeout(ctx, 3*f.Patience.Setup()) // to greet, HELLO, CLIENT TRACKING
	defer cancel()
	// Any reply is enough: it shows that the connection is set up.
	if err := f.Session.Conn.Ping(ctx).Err(); err != nil && (!IsAnswer(err) || isSetup(err)) {
		return err
	}
	// From here on, this package uses the connection. The library falls back to RESP2
	// silently, and then a server reports nothing.
	if err := f.conn.SetDeadline(time.Now().Add(2 * f.Patience.Setup())); err != nil {
		return err
	}
	args := []string{"CLIENT", "TRACKING", "ON", "BCAST"}
	for _, p := range prefixes {
		if p != "" {
			args = append(args, "PREFIX", p)
		}
	}
	f.in = bufio.NewReaderSize(f.conn, 32<<10)
	for _, c := range []struct {
		args []string
		kind byte
		lack string
	}{
		{[]string{"HELLO", "3"}, '%', "RESP3"},
		{args, '+', "CLIENT TRACKING"},
	} {
		if _, err := f.conn.Write(resp.AppendCommand(nil, c.args...)); err != nil {
			return err
		}
		switch kind, line, err := readAnswer(f.in); {
		case err != nil:
			return err
		case kind == '-':
			if err := resp.ServerError(line); StateOf(err) != monitor.NodeDenied {
				return err // it may be temporary
			}
			return noFeed(c.lack, line)
		case kind != c.kind:
			return noFeed(c.lack, "ERR unknown")
		}
	}
	return f.conn.SetDeadline(time.Time{})
}

// noFeed makes the error from the answer of a node that does not report changes.
func noFeed(lack, answer string) ErrNoFeed {
	switch {
	case strings.HasPrefix(answer, "NOPERM"):
		return ErrNoFeed{"its user may not use " + lack, true}
	case strings.HasPrefix(answer, "ERR unknown"), strings.HasPrefix(answer, "NOPROTO"):
		return ErrNoFeed{Why: "the server does not know " + lack}
	}
	return ErrNoFeed{Why: "the server refuses " + lack + ": " + answer}
}

// Close ends the connection, and a read that waits on it.
func (f *Feed) Close() {
	_ = f.conn.Close()
	f.Session.Close()
}

// Ping sends a PING, unless one is in flight. When it is answered, next returns the time
// up to which changes are known.
func (f *Feed) Ping(now time.Time) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.sent.IsZero() {
		return nil
	}
	f.sent = now
	if err := f.conn.SetWriteDeadline(now.Add(f.Patience.Answer())); err != nil {
		return err
	}
	_, err := f.conn.Write(resp.AppendCommand(nil, "PING"))
	return err
}

// Silent reports whether the answer to a PING is overdue.
func (f *Feed) Silent(now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.sent.IsZero() && now.Sub(f.sent) > f.Patience.Answer()
}

// Asked returns when the PING in flight was sent; zero: none is.
func (f *Feed) Asked() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sent
}

// ponged records the answer to a PING. All changes before until have been reported. A
// server sends its reports at the end of an event loop cycle, after the answers of that
// cycle, so an answer proves the changes before the previous PING.
func (f *Feed) ponged() (until time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	until = f.last
	f.last, f.sent = f.sent, time.Time{}
	return until
}

// push is one message of a feed.
type push struct {
	pong  bool // the answer to a PING
	all   bool // any key may have changed
	keys  []string
	other int // keys that do not match
	bytes int // of their names
}

// readPush waits for the next message. keep selects the keys.
func readPush(in *bufio.Reader, keep func([]byte) bool) (_ push, err error) {
	defer resp.Contain(&err, "a change")
	kind, n, line, err := readHead(in)
	if err != nil {
		return push{}, err
	}
	switch kind {
	case '+':
		return push{pong: true}, nil
	case '-':
		return push{}, fmt.Errorf("%w: it says %q", ErrBadPush, line)
	case '>':
	default:
		return push{}, fmt.Errorf("%w: it begins with %q", ErrBadPush, kind)
	}
	var p push
	if n < 1 {
		return p, fmt.Errorf("%w: a push of %d", ErrBadPush, n)
	}
	name, err := readShort(in)
	if err != nil {
		return p, err
	}
	if name != "invalidate" || n != 2 {
		for range n - 1 {
			if err := discard(in); err != nil {
				return p, err
			}
		}
		return p, nil
	}
	kind, n, _, err = readHead(in)
	switch {
	case err != nil:
		return p, err
	case kind == '_', kind == '*' && n < 0:
		p.all = true
		return p, nil
	case kind != '*':
		return p, fmt.Errorf("%w: keys that begin with %q", ErrBadPush, kind)
	}
	for range n {
		if err := p.readKey(in, keep); err != nil {
			return p, err
		}
	}
	return p, nil
}

// readKey reads the name of a key, and copies it only if it matches.
func (p *push) readKey(in *bufio.Reader, keep func([]byte) bool) error {
	kind, n, _, err := readHead(in)
	switch {
	case err != nil:
		return err
	case kind != '$' || n < 0:
		return fmt.Errorf("%w: a key that begins with %q", ErrBadPush, kind)
	case n > LongestKey:
		p.other++
		p.bytes += n
		return skip(in, n)
	}
	var key []byte
	if n+2 <= in.Size() {
		if key, err = in.Peek(n + 2); err != nil {
			return unexpected(err)
		}
	} else {
		key = make([]byte, n+2)
		if _, err := io.ReadFull(in, key); err != nil {
			return unexpected(err)
		}
	}
	if key[n] != '\r' || key[n+1] != '\n' {
		return fmt.Errorf("%w: a key longer than it says", ErrBadPush)
	}
	if keep(key[:n]) {
		p.keys = append(p.keys, string(key[:n]))
	} else {
		p.other++
		p.bytes += n
	}
	if n+2 <= in.Size() {
		_, err = in.Discard(n + 2)
	}
	return err
}

// readHead reads the first line of a value: its kind, and its number if it has one. A
// null has the number −1.
func readHead(in *bufio.Reader) (kind byte, n int, line string, err error) {
	b, err := in.ReadSlice('\n')
	if err != nil {
		if errors.Is(err, bufio.ErrBufferFull) {
			err = fmt.Errorf("%w: a line without end", ErrBadPush)
		}
		return 0, 0, "", err
	}
	kind, length, text, err := resp.ParseHead(b[:len(b)-1])
	switch {
	case err != nil:
		return 0, 0, "", fmt.Errorf("%w: %w", ErrBadPush, err)
	case len(b) > longestLine || length > 512<<20:
		return 0, 0, "", fmt.Errorf("%w: %.80q", ErrBadPush, b)
	}
	switch kind {
	case '+', '-', ':', ',', '#', '(', '_':
		line = string(text)
	}
	return kind, int(length), line, nil
}

// readShort reads a short string.
func readShort(in *bufio.Reader) (string, error) {
	kind, n, line, err := readHead(in)
	switch {
	case err != nil:
		return "", err
	case kind == '+':
		return line, nil
	case kind != '$' || n < 0 || n > longestLine:
		return "", fmt.Errorf("%w: a name that begins with %q", ErrBadPush, kind)
	}
	b := make([]byte, n+2)
	if _, err := io.ReadFull(in, b); err != nil {
		return "", unexpected(err)
	}
	return string(b[:n]), nil
}

// discard skips a value.
func discard(in *bufio.Reader) error {
	err := unexpected(resp.Skip(in))
	if errors.Is(err, resp.ErrBad) {
		err = fmt.Errorf("%w: %w", ErrBadPush, err)
	}
	return err
}

// skip skips n bytes and the end of the line.
func skip(in *bufio.Reader, n int) error { return unexpected(resp.SkipText(in, n)) }

// readAnswer reads any answer that is not a push.
func readAnswer(in *bufio.Reader) (kind byte, line string, err error) {
	for {
		b, err := in.Peek(1)
		if err != nil {
			return 0, "", err
		}
		switch kind := b[0]; kind {
		case '+', '-':
			_, _, line, err := readHead(in)
			return kind, line, err
		default:
			if err := discard(in); err != nil || kind != '>' {
				return kind, "", err
			}
		}
	}
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
