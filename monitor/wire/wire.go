// Package wire talks to one server: it dials once, receives changes, and reads keys.
// Input from a server is limited.
package wire

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"redlockctl/monitor/table"
	"redlockctl/server/resp"
)

// wire speaks to a server over a connection that the client library has set up: it sends
// several commands in one write, and parses rows without a library value for each field.
// Input is limited: no announced size is allocated beyond that.
type wire struct {
	conn     net.Conn
	in       *bufio.Reader
	out      []byte
	texts    strings.Builder // the latest texts, many in one piece of memory
	patience *Patience
	end      time.Time // when the present reply must be complete
	arrival  arrival
	line     line
}

const (
	wirePiece = 16 << 10 // bytes of texts that share memory
	wireText  = 64 << 20 // bytes of the names of one page
	wireItems = 1 << 20  // of one list
)

func newWire(conn net.Conn, patience *Patience) *wire {
	w := &wire{conn: conn, patience: patience}
	w.in = bufio.NewReaderSize(w, 64<<10)
	return w
}

// replyMost limits how long a reply may take that goes on coming, in times of what one
// that is silent may.
const replyMost = 3

// Read reads from the connection. A reply that goes on coming is not overdue: a thin line
// takes its time.
func (w *wire) Read(b []byte) (int, error) {
	by := time.Now().Add(w.patience.Answer())
	if by.After(w.end) {
		by = w.end
	}
	if err := w.conn.SetReadDeadline(by); err != nil {
		return 0, err
	}
	n, err := w.conn.Read(b)
	w.arrival.came(n, time.Now())
	return n, err
}

// put queues a command.
func (w *wire) put(args ...string) {
	w.out = resp.AppendCommand(w.out, args...)
}

// send sends the queued commands.
func (w *wire) send(ctx context.Context) error {
	out := w.out
	w.out = w.out[:0]
	if cap(out) > 4*BatchBytes {
		w.out = nil
	}
	w.end = time.Now().Add(replyMost * w.patience.Answer())
	if bound, ok := ctx.Deadline(); ok && bound.Before(w.end) {
		w.end = bound
	}
	if err := w.conn.SetDeadline(w.end); err != nil {
		return err
	}
	w.line.saw(w.arrival)
	w.arrival = arrival{}
	_, err := w.conn.Write(out)
	return err
}

// value is a part of a reply: a number or a text, the head of a list, or an error.
type value struct {
	kind byte  // ':', '$', '*', '-', or '_' for null
	n    int64 // a number, a length
	text string
}

// long reports whether a text, of length n, was skipped because it was too long.
func (v value) long() bool { return v.kind == '$' && int64(len(v.text)) < v.n }

// next reads a value; the items of a list follow. Of a text longer than most bytes, it
// returns only the length.
func (w *wire) next(most int) (value, error) {
	for {
		kind, n, rest, err := resp.ReadHead(w.in)
		if err != nil {
			return value{}, unexpected(err)
		}
		switch kind {
		case '+':
			return value{kind: '$', n: int64(len(rest)), text: string(rest)}, nil
		case '-':
			return value{kind: '-', text: string(rest[:min(len(rest), longestLine)])}, nil
		case '_':
			return value{kind: '_'}, nil
		case ':':
			n, ok := resp.Number(rest)
			if !ok {
				return value{}, fmt.Errorf("%w: a number of %.40q", resp.ErrBad, rest)
			}
			return value{kind: ':', n: n}, nil
		case '$', '=': // a verbatim text keeps its format prefix
			switch {
			case n > 512<<20:
				return value{}, fmt.Errorf("%w: a length of %.40q", resp.ErrBad, rest)
			case n == -1:
				return value{kind: '_'}, nil
			case n > int64(most):
				return value{kind: '$', n: n}, skip(w.in, int(n))
			}
			text, err := w.bulk(int(n))
			return value{kind: '$', n: n, text: text}, err
		case '*', '~':
			switch {
			case n > wireItems:
				return value{}, fmt.Errorf("%w: a length of %.40q", resp.ErrBad, rest)
			case n == -1:
				return value{kind: '_'}, nil
			}
			return value{kind: '*', n: n}, nil
		case '>': // a push, between replies
			if n < 0 || n > 64 {
				return value{}, fmt.Errorf("%w: a push of %.40q", resp.ErrBad, rest)
			}
			for range n {
				if err := discard(w.in); err != nil {
					return value{}, err
				}
			}
		default:
			return value{}, fmt.Errorf("%w: it begins with %q", resp.ErrBad, kind)
		}
	}
}

// bulk reads a text of n bytes and the end of its line.
func (w *wire) bulk(n int) (string, error) {
	if n+2 <= w.in.Size() {
		b, err := w.in.Peek(n + 2)
		if err != nil {
			return "", unexpected(err)
		}
		if b[n] != '\r' || b[n+1] != '\n' {
			return "", fmt.Errorf("%w: a text longer than it says", resp.ErrBad)
		}
		text := w.text(b[:n])
		_, err = w.in.Discard(n + 2)
		return text, err
	}
	// The buffer grows with the data: the announced length is not trusted.
	b, err := io.ReadAll(io.LimitReader(w.in, int64(n+2)))
	switch {
	case err != nil:
		return "", err
	case len(b) < n+2:
		return "", io.ErrUnexpectedEOF
	case b[n] != '\r' || b[n+1] != '\n':
		return "", fmt.Errorf("%w: a text longer than it says", resp.ErrBad)
	}
	return string(b[:n]), nil
}

// text returns b as a string. It shares memory with others: most texts are known already
// and soon dropped. Clone one before keeping it.
func (w *wire) text(b []byte) string {
	if len(b) > wirePiece/8 {
		return string(b)
	}
	if w.texts.Cap()-w.texts.Len() < len(b) {
		w.texts = strings.Builder{}
		w.texts.Grow(wirePiece)
	}
	at := w.texts.Len()
	w.texts.Write(b)
	return w.texts.String()[at:]
}

// page reads a reply of SCAN.
func (w *wire) page() (p Page, err error) {
	v, err := w.next(longestLine)
	switch {
	case err != nil:
		return p, err
	case v.kind == '-':
		return p, resp.ServerError(v.text)
	case v.kind != '*' || v.n != 2:
		return p, fmt.Errorf("%w: no page of SCAN", resp.ErrBad)
	}
	cursor, err := w.next(longestLine)
	if err != nil {
		return p, err
	}
	if p.Next, err = strconv.ParseUint(cursor.text, 10, 64); err != nil {
		return p, fmt.Errorf("%w: a cursor of %.40q", resp.ErrBad, cursor.text)
	}
	list, err := w.next(longestLine)
	if err != nil {
		return p, err
	}
	if list.kind != '*' {
		return p, fmt.Errorf("%w: no keys in a page of SCAN", resp.ErrBad)
	}
	p.Keys = make([]string, 0, min(list.n, 4096))
	left := wireText
	for range list.n {
		v, err := w.next(LongestKey)
		switch {
		case err != nil:
			return p, err
		case v.kind != '$':
			return p, fmt.Errorf("%w: a key that is not a string", resp.ErrBad)
		case v.long():
			p.Long++
			continue
		}
		if left -= len(v.text); left < 0 {
			return p, fmt.Errorf("%w: a page of more than %d MiB", resp.ErrBad, wireText>>20)
		}
		p.Keys = append(p.Keys, v.text)
	}
	return p, nil
}

// Page is a reply of SCAN.
type Page struct {
	Keys []string
	Long int // keys with names too long for a lock
	Next uint64
}

// rows reads a reply of the script for these keys, and adds it to rows.
func (w *wire) rows(rows []table.Row, keys []string) ([]table.Row, error) {
	v, err := w.next(longestLine)
	switch {
	case err != nil:
		return nil, err
	case v.kind == '-':
		return nil, resp.ServerError(v.text)
	case v.kind != '*':
		return nil, fmt.Errorf("%w: no list of rows", resp.ErrBad)
	}
	left := v.n
	next := func(kinds string) (value, error) {
		if left == 0 {
			return value{}, errShape
		}
		left--
		v, err := w.next(table.FieldsLen + 4<<10)
		if err == nil && (v.long() || strings.IndexByte(kinds, v.kind) < 0) {
			err = errShape
		}
		return v, err
	}
	for _, key := range keys {
		v, err := next(":$")
		switch {
		case err != nil:
			return nil, err
		case v.kind == '$':
			pttl, err1 := next(":")
			length, err2 := next(":")
			names, err3 := next("$")
			if err := errors.Join(err1, err2, err3); err != nil {
				return nil, err
			}
			rows = append(rows, table.NewRow(key, v.text, pttl.n, length.n, names.text))
		case v.n == -2:
			rows = append(rows, table.NewRow(key, "none", -2, 0, ""))
		default:
			prefix, err := next("$")
			if err != nil {
				return nil, err
			}
			length := value{n: int64(len(prefix.text))}
			if length.n >= table.PrefixLen {
				if length, err = next(":"); err != nil {
					return nil, err
				}
			}
			rows = append(rows, table.NewRow(key, "string", v.n, length.n, prefix.text))
		}
	}
	if left > 0 {
		return nil, errShape
	}
	return rows, nil
}

const (
	BatchKeys  = 200     // keys per read
	BatchBytes = 1 << 20 // bytes of key names per read
)

// errShape is returned for rows that do not have the script's format.
var errShape = fmt.Errorf("%w: rows of another shape", resp.ErrBad)
