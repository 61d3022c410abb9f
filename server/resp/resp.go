// Package resp implements the Redis protocol (RESP2 and RESP3) for the connections that
// this program reads and writes itself: it encodes commands, and reads the first line of
// a value or a short value as a whole.
package resp

import (
	"bufio"
	"errors"
	"fmt"
	"strconv"
)

// ErrBad is returned when a server sends something that cannot be a reply to the request.
var ErrBad = errors.New("not a reply of a Redis server")

// ErrLong is returned when a server sends more than was asked for.
var ErrLong = fmt.Errorf("%w: longer than any answer to what was asked", ErrBad)

// ServerError is an error that a server sent: its text is untrusted.
type ServerError string

// Error is the text as the server sent it.
func (e ServerError) Error() string { return string(e) }

// RedisError marks it as a reply for go-redis.
func (ServerError) RedisError() {}

// ItemCost is the assumed memory of a list item, in bytes.
const ItemCost = 64

// ParseHead parses the first line of a value, up to its "\r". For strings, lists and maps
// n is the length in bytes, items or pairs; −1 means null. text is the line after the kind.
func ParseHead(line []byte) (kind byte, n int64, text []byte, err error) {
	if len(line) < 2 || line[len(line)-1] != '\r' {
		return 0, 0, nil, fmt.Errorf("%w: %.40q", ErrBad, line)
	}
	kind, text = line[0], line[1:len(line)-1]
	switch kind {
	case '+', '-', ':', ',', '#', '(', '_':
		return kind, 0, text, nil
	case '$', '=', '!', '*', '~', '>', '%':
		n, ok := Number(text)
		if !ok || n < -1 {
			return 0, 0, nil, fmt.Errorf("%w: a length of %.40q", ErrBad, text)
		}
		return kind, n, text, nil
	}
	// Attributes ('|') too: no server sends them unless asked, and the client library reads
	// a series of them recursively.
	return 0, 0, nil, fmt.Errorf("%w: it begins with %q", ErrBad, kind)
}

// ReadHead reads a line for [ParseHead]. text is valid until the next read.
func ReadHead(in *bufio.Reader) (kind byte, n int64, text []byte, err error) {
	line, err := in.ReadSlice('\n')
	if err != nil {
		if errors.Is(err, bufio.ErrBufferFull) {
			err = fmt.Errorf("%w: a line without end", ErrBad)
		}
		return 0, 0, nil, err
	}
	return ParseHead(line[:len(line)-1])
}

// Number parses a decimal number as strconv.ParseInt does, usually without an allocation.
func Number(text []byte) (n int64, ok bool) {
	digits := text
	if len(digits) > 0 && digits[0] == '-' {
		digits = digits[1:]
	}
	if len(digits) == 0 || len(digits) > 18 {
		return longNumber(text)
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return longNumber(text)
		}
		n = 10*n + int64(c-'0')
	}
	if len(digits) < len(text) {
		n = -n
	}
	return n, true
}

func longNumber(text []byte) (int64, bool) {
	n, err := strconv.ParseInt(string(text), 10, 64)
	return n, err == nil
}

// AppendCommand appends a command in the form that servers read.
func AppendCommand(b []byte, args ...string) []byte {
	b = AppendLen(b, len(args))
	for _, a := range args {
		b = AppendArg(b, a)
	}
	return b
}

// AppendLen appends the first line of a command; n calls of [AppendArg] must follow.
func AppendLen(b []byte, n int) []byte {
	b = append(b, '*')
	b = strconv.AppendInt(b, int64(n), 10)
	return append(b, "\r\n"...)
}

// AppendIntArg appends a number as an argument of a command.
func AppendIntArg(b []byte, n int64) []byte {
	var digits [20]byte
	text := strconv.AppendInt(digits[:0], n, 10)
	b = append(b, '$')
	b = strconv.AppendInt(b, int64(len(text)), 10)
	b = append(b, "\r\n"...)
	b = append(b, text...)
	return append(b, "\r\n"...)
}

// AppendArg appends an argument of a command.
func AppendArg(b []byte, arg string) []byte {
	b = append(b, '$')
	b = strconv.AppendInt(b, int64(len(arg)), 10)
	b = append(b, "\r\n"...)
	b = append(b, arg...)
	return append(b, "\r\n"...)
}
