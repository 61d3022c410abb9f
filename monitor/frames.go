package monitor

import (
	"errors"
	"fmt"
	"net"
	"strconv"
)

// framedConn is a connection whose peer may only send what a Redis server would.
// The client library believes the lengths that it reads and makes room for
// them at once, and reads what is nested by recursion: a server that is none could
// end this program with a dozen bytes. So they are looked at on their way.
type framedConn struct {
	net.Conn
	frames frames
}

func (c *framedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if bad := c.frames.pass(b[:n]); bad != nil {
		_ = c.Conn.Close()
		return 0, bad
	}
	return n, err
}

// errBadReply is returned when what comes is no reply of a server, or one that
// nobody asked for.
var errBadReply = errors.New("not a reply of a Redis server")

// What the monitor asks for brings no more than this: a page of keys, a batch
// of rows, a section of INFO.
const (
	mostBulk  = 64 << 20 // bytes of one text: a key may have such a name
	mostItems = 1 << 20  // of one list
	mostDepth = 8
	mostLine  = 64 << 10 // bytes of a line, an error mostly
)

// frames follows a stream of replies (RESP2 and RESP3), byte by byte but for
// the texts: a pure step machine that keeps no more than a line.
type frames struct {
	skip int    // bytes of a text that are still to come
	line []byte // the beginning of a line that was not whole
	open []int  // how many values each list, from the outermost on, still lacks
}

// pass looks at the next bytes of the stream. Any error is an errBadReply.
func (f *frames) pass(b []byte) error {
	for len(b) > 0 {
		if f.skip > 0 {
			n := min(f.skip, len(b))
			f.skip -= n
			b = b[n:]
			continue
		}
		end := 0
		for end < len(b) && b[end] != '\n' {
			end++
		}
		if len(f.line)+end > mostLine {
			return fmt.Errorf("%w: a line without end", errBadReply)
		}
		if end == len(b) {
			f.line = append(f.line, b...)
			return nil
		}
		line := b[:end]
		if len(f.line) > 0 {
			line = append(f.line, line...)
		}
		if err := f.head(line); err != nil {
			return err
		}
		f.line = f.line[:0]
		b = b[end+1:]
	}
	return nil
}

// head takes in the line that begins a value.
func (f *frames) head(line []byte) error {
	if len(line) < 2 || line[len(line)-1] != '\r' {
		return fmt.Errorf("%w: %.40q", errBadReply, line)
	}
	kind, most, each := line[0], mostItems, 1
	switch kind {
	case '+', '-', ':', ',', '#', '(', '_':
		f.whole()
		return nil
	case '$', '=', '!':
		most, each = mostBulk, 0
	case '%', '|':
		each = 2
	case '*', '~', '>':
	default:
		return fmt.Errorf("%w: it begins with %q", errBadReply, kind)
	}
	n, err := strconv.Atoi(string(line[1 : len(line)-1]))
	switch {
	case err != nil || n < -1 || n > most:
		return fmt.Errorf("%w: a length of %.40q", errBadReply, line[1:len(line)-1])
	case each == 0 && n >= 0:
		f.skip = n + 2
		f.whole()
	case n <= 0:
		f.whole()
	case len(f.open) == mostDepth:
		return fmt.Errorf("%w: too deep", errBadReply)
	default:
		f.open = append(f.open, n*each)
	}
	return nil
}

// whole says that a value is there, or as good as there: so may be the lists
// that it was the last of.
func (f *frames) whole() {
	for k := len(f.open) - 1; k >= 0; k-- {
		if f.open[k]--; f.open[k] > 0 {
			return
		}
		f.open = f.open[:k]
	}
}
