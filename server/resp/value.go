package resp

import (
	"bufio"
	"fmt"
	"io"
)

// Value is a complete reply.
type Value struct {
	Kind  byte    // '+', '$', ':', '-', '*', '%' of RESP3, or '_' for null
	Text  string  // of '+', '$' and '-'
	N     int64   // of ':'
	Items []Value // of '*'; of '%': keys and values alternate
}

// Bounds of a [Value]: no reply to a lock command is longer.
const (
	MostBytes = 64 << 10 // of the whole value
	MostItems = 64       // of one list
	mostDepth = 4
)

// ReadValue reads a value. It fails if the value is longer or deeper than any reply to a
// lock command, so that something that is not a Redis server cannot fill the memory.
func ReadValue(in *bufio.Reader) (Value, error) {
	left := MostBytes
	return ReadItem(in, 0, &left)
}

// ReadItem reads a value that is nested in depth others. *left is how many bytes may
// still be read; it is reduced.
func ReadItem(in *bufio.Reader, depth int, left *int) (Value, error) {
	kind, n, text, err := ReadHead(in)
	if err != nil {
		return Value{}, err
	}
	switch kind {
	case '+':
		if string(text) == "OK" { // without an allocation
			return Value{Kind: '+', Text: "OK"}, nil
		}
		return Value{Kind: '+', Text: string(text)}, nil
	case '-':
		return Value{Kind: '-', Text: string(text)}, nil
	case ':':
		n, ok := Number(text)
		if !ok {
			return Value{}, fmt.Errorf("%w: integer %.40q", ErrBad, text)
		}
		return Value{Kind: ':', N: n}, nil
	case '$', '*', '%':
		switch {
		case kind == '$' && n > MostBytes, kind != '$' && (n > MostItems || depth == mostDepth):
			return Value{}, fmt.Errorf("%w: length %.40q", ErrBad, text)
		case n == -1:
			return Value{Kind: '_'}, nil
		case kind == '$':
			return readText(in, int(n), left)
		}
		return readList(in, kind, int(n), depth, left)
	}
	return Value{}, fmt.Errorf("%w: it begins with %q", ErrBad, kind)
}

func readText(in *bufio.Reader, n int, left *int) (Value, error) {
	if *left -= n; *left < 0 {
		return Value{}, ErrLong
	}
	b := make([]byte, n+2)
	if _, err := io.ReadFull(in, b); err != nil {
		return Value{}, err
	}
	if b[n] != '\r' || b[n+1] != '\n' {
		return Value{}, fmt.Errorf("%w: a string longer than it says", ErrBad)
	}
	return Value{Kind: '$', Text: string(b[:n])}, nil
}

func readList(in *bufio.Reader, kind byte, n, depth int, left *int) (Value, error) {
	if kind == '%' {
		n *= 2
	}
	if *left -= n * ItemCost; *left < 0 {
		return Value{}, ErrLong
	}
	items := make([]Value, n)
	for i := range items {
		var err error
		if items[i], err = ReadItem(in, depth+1, left); err != nil {
			return Value{}, err
		}
	}
	return Value{Kind: kind, Items: items}, nil
}

// mostSkipped is the greatest length of a skipped value, in bytes or items: servers
// accept no longer strings.
const mostSkipped = 512 << 20

// Skip discards a value of any kind and length. It needs no memory besides the buffer
// of in.
func Skip(in *bufio.Reader) error { return skip(in, 0) }

func skip(in *bufio.Reader, depth int) error {
	kind, n, text, err := ReadHead(in)
	if err != nil {
		return err
	}
	if n > mostSkipped {
		return fmt.Errorf("%w: a length of %.40q", ErrLong, text)
	}
	switch kind {
	case '$', '=', '!':
		if n >= 0 {
			return SkipText(in, int(n))
		}
		return nil
	case '%':
		n *= 2
	case '*', '~', '>':
	default:
		return nil
	}
	if n > 0 && depth == mostDepth {
		return fmt.Errorf("%w: too deep", ErrBad)
	}
	for range n {
		if err := skip(in, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// SkipText discards a string of n bytes whose head was read, and its line end.
func SkipText(in *bufio.Reader, n int) error {
	for n += len("\r\n"); n > 0; {
		k, err := in.Discard(min(n, 1<<20))
		if err != nil {
			return err
		}
		n -= k
	}
	return nil
}
