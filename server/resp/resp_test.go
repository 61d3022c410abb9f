package resp

import (
	"bufio"
	"errors"
	"io"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

func TestReadValue(t *testing.T) {
	for in, want := range map[string]Value{
		"+OK\r\n":                       {Kind: '+', Text: "OK"},
		"+QUEUED\r\n":                   {Kind: '+', Text: "QUEUED"},
		"-NOREPLICAS Not enough\r\n":    {Kind: '-', Text: "NOREPLICAS Not enough"},
		":-2\r\n":                       {Kind: ':', N: -2},
		"$-1\r\n":                       {Kind: '_'},
		"*-1\r\n":                       {Kind: '_'},
		"$0\r\n\r\n":                    {Kind: '$'},
		"$4\r\na\r\nb\r\n":              {Kind: '$', Text: "a\r\nb"},
		"*2\r\n:1\r\n*1\r\n$1\r\nx\r\n": {Kind: '*', Items: []Value{{Kind: ':', N: 1}, {Kind: '*', Items: []Value{{Kind: '$', Text: "x"}}}}},
	} {
		got, err := ReadValue(bufio.NewReader(strings.NewReader(in)))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, %v", in, got, err)
		}
	}
}

// Anything that cannot be a reply, or is longer than any reply to a lock command, is
// refused before it is read: something that is not a Redis server must not fill the memory.
func TestReadValueRefuses(t *testing.T) {
	for _, in := range []string{
		"HTTP/1.1 400 Bad Request\r\n", "+OK\n", ":x\r\n", "$9999999999\r\n", "$70000\r\n", "*65\r\n", "$-2\r\n",
		"$1\r\nxyz", strings.Repeat("*1\r\n", 6), "+" + strings.Repeat("x", 8192),
		"*2\r\n" + strings.Repeat("$40000\r\n"+strings.Repeat("x", 40000)+"\r\n", 2),
		"*64\r\n" + strings.Repeat("*64\r\n"+strings.Repeat(":1\r\n", 64), 64),
	} {
		_, err := ReadValue(bufio.NewReader(strings.NewReader(in)))
		if !errors.Is(err, ErrBad) {
			t.Errorf("%.20q: %v", in, err)
		}
	}
	for _, in := range []string{"", "+OK", "$3\r\nab", "*2\r\n:1\r\n"} {
		if _, err := ReadValue(bufio.NewReader(strings.NewReader(in))); !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("cut off after %q: %v", in, err)
		}
	}
}

// Skip reads exactly one value, of any kind.
func TestSkip(t *testing.T) {
	for _, in := range []string{
		"+OK\r\n", "-ERR no\r\n", ":1\r\n", "_\r\n", "#t\r\n", ",1.5\r\n", "(123\r\n", "$-1\r\n", "*-1\r\n", "$0\r\n\r\n", "=0\r\n\r\n", "!5\r\nERR x\r\n",
		"=7\r\ntxt:a\r\n\r\n", "*0\r\n", "~1\r\n:1\r\n", ">2\r\n+a\r\n*1\r\n:1\r\n", "%2\r\n+a\r\n:1\r\n+b\r\n*0\r\n", "$100000\r\n" + strings.Repeat("x", 100000) + "\r\n",
	} {
		r := bufio.NewReader(strings.NewReader(in + "+next\r\n"))
		if err := Skip(r); err != nil {
			t.Errorf("%.20q: %v", in, err)
		}
		if next, _ := r.ReadString('\n'); next != "+next\r\n" {
			t.Errorf("%.20q: then %q", in, next)
		}
	}
	for _, in := range []string{"|0\r\n", "?\r\n", strings.Repeat("*1\r\n", 6), "$9999999999\r\n", "%9223372036854775807\r\n"} {
		if err := Skip(bufio.NewReader(strings.NewReader(in))); !errors.Is(err, ErrBad) {
			t.Errorf("%.20q: %v", in, err)
		}
	}
}

// A server reads a command as it was meant, whatever bytes its arguments have.
func FuzzCommand(f *testing.F) {
	f.Add("SET", "a\r\n$1\r\nx")
	f.Add("", "\xff\x00")
	f.Add("", strings.Repeat("x", MostBytes-2*ItemCost)) // as long as a reply may be, including its items
	f.Fuzz(func(t *testing.T, a, b string) {
		if 2*ItemCost+len(a)+len(b) > MostBytes {
			t.Skip()
		}
		r := bufio.NewReader(strings.NewReader(string(AppendCommand(nil, a, b))))
		got, err := ReadValue(r) // a command has the form of a reply
		if err != nil || len(got.Items) != 2 || got.Items[0].Text != a || got.Items[1].Text != b || r.Buffered() > 0 {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

func FuzzReadValue(f *testing.F) {
	f.Add("*2\r\n:1\r\n*1\r\n$1\r\nx\r\n")
	f.Add("$4\r\na\r\nb\r\n")
	f.Fuzz(func(t *testing.T, in string) {
		_, _ = ReadValue(bufio.NewReader(strings.NewReader(in)))
	})
}

// Number agrees with the standard library, whatever the text.
func TestNumber(t *testing.T) {
	for _, text := range []string{
		"", "-", "+", "0", "-0", "+7", "12", "-12", "007", "1-2", "1.5", "x", "1 ",
		"999999999999999999", "9223372036854775807", "-9223372036854775808", "9223372036854775808",
	} {
		n, err := strconv.ParseInt(text, 10, 64)
		if got, ok := Number([]byte(text)); ok != (err == nil) || ok && got != n {
			t.Errorf("%q: %d, %v; want %d, %v", text, got, ok, n, err)
		}
	}
}
