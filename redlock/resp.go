package redlock

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// The lock commands need a handful of RESP2 types, and their replies are short.
// Reading and writing them here, instead of through the client library, is what
// lets requests of many goroutines go out in one write, in order, and their
// replies come back without a goroutine or a pipeline object each.

// reply is one answer of a server.
type reply struct {
	kind  byte    // '+', '$', ':', '-', '*', '%' of RESP3, or '_' for nil
	text  string  // of '+', '$' and '-'
	n     int64   // of ':'
	items []reply // of '*', and of '%' keys and values in turn
}

// ErrBadReply is returned when what a server sends is no reply, or none to what
// was asked.
var ErrBadReply = errors.New("not a reply of a Redis server")

const (
	maxBulk  = 64 << 10 // no reply to a lock command is longer
	maxItems = 64
	maxDepth = 4
)

// readReply reads one reply. What is longer or deeper than any reply to a lock
// command is an error, so that a server that is none cannot fill the memory.
func readReply(r *bufio.Reader, depth int) (reply, error) {
	left := lockReply
	return readValue(r, depth, &left)
}

// readValue reads a reply, or what is in one, of which no more than left bytes
// are left.
func readValue(r *bufio.Reader, depth int, left *int) (reply, error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		if errors.Is(err, bufio.ErrBufferFull) {
			err = fmt.Errorf("%w: a line without end", ErrBadReply)
		}
		return reply{}, err
	}
	if len(line) < 3 || line[len(line)-2] != '\r' {
		return reply{}, fmt.Errorf("%w: %q", ErrBadReply, line)
	}
	kind, tail := line[0], line[1:len(line)-2]
	switch kind {
	case '+':
		if string(tail) == "OK" { // without an allocation
			return reply{kind: '+', text: "OK"}, nil
		}
		return reply{kind: '+', text: string(tail)}, nil
	case '-':
		return reply{kind: '-', text: string(tail)}, nil
	case ':':
		n, err := strconv.ParseInt(string(tail), 10, 64)
		if err != nil {
			return reply{}, fmt.Errorf("%w: integer %q", ErrBadReply, tail)
		}
		return reply{kind: ':', n: n}, nil
	case '$', '*', '%':
		n, err := strconv.Atoi(string(tail))
		switch {
		case err != nil || n < -1 || kind == '$' && n > maxBulk || kind != '$' && (n > maxItems || depth == maxDepth):
			return reply{}, fmt.Errorf("%w: length %q", ErrBadReply, tail)
		case n == -1:
			return reply{kind: '_'}, nil
		case kind == '$':
			if *left -= n; *left < 0 {
				return reply{}, ErrLongReply
			}
			return readBulk(r, n)
		}
		if kind == '%' {
			n *= 2
		}
		if *left -= n * ItemCost; *left < 0 {
			return reply{}, ErrLongReply
		}
		items := make([]reply, n)
		for i := range items {
			if items[i], err = readValue(r, depth+1, left); err != nil {
				return reply{}, err
			}
		}
		return reply{kind: kind, items: items}, nil
	}
	return reply{}, fmt.Errorf("%w: it begins with %q", ErrBadReply, kind)
}

func readBulk(r *bufio.Reader, n int) (reply, error) {
	b := make([]byte, n+2)
	if _, err := io.ReadFull(r, b); err != nil {
		return reply{}, err
	}
	if b[n] != '\r' || b[n+1] != '\n' {
		return reply{}, fmt.Errorf("%w: a string longer than it says", ErrBadReply)
	}
	return reply{kind: '$', text: string(b[:n])}, nil
}

// appendCommand appends a command as servers read it.
func appendCommand(b []byte, args ...string) []byte {
	b = append(b, '*')
	b = strconv.AppendInt(b, int64(len(args)), 10)
	for _, a := range args {
		b = append(b, "\r\n$"...)
		b = strconv.AppendInt(b, int64(len(a)), 10)
		b = append(b, "\r\n"...)
		b = append(b, a...)
	}
	return append(b, "\r\n"...)
}

// ErrLongReply is returned when a server sends more than was asked for, see
// [Budget]. It wraps the error for what is no reply at all.
var ErrLongReply = fmt.Errorf("%w: longer than any answer to what was asked", ErrBadReply)

// ItemCost is what an item of a list is reckoned at, in bytes.
const ItemCost = 64

// Budgets, in bytes.
const (
	// defaultReply is for clients that nobody has set a budget for.
	defaultReply = 1 << 20
	// lockReply is for the greeting of the lock core's connections.
	lockReply = 64 << 10
)

// ServerError is an error that a server sent: its text is untrusted.
type ServerError string

// Error is the text as the server sent it.
func (e ServerError) Error() string { return string(e) }

// RedisError marks it for the client library.
func (ServerError) RedisError() {}
