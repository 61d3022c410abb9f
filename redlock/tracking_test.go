package redlock

import (
	"bufio"
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestTapReadsPushes: messages come between answers and in the midst of them.
func TestTapReadsPushes(t *testing.T) {
	tap := &redisTap{in: bufio.NewReader(strings.NewReader("" +
		":-2\r\n$0\r\n\r\n" +
		">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\na\r\n" +
		">3\r\n+message\r\n+x\r\n:1\r\n" + // of another kind
		":1500\r\n" + ">2\r\n$10\r\ninvalidate\r\n_\r\n" + "$5\r\ntoken\r\n" +
		":-1\r\n-WRONGTYPE it is a hash\r\n" +
		"-NOPERM no\r\n-NOPERM no\r\n" +
		"+odd\r\n+odd\r\n"))}
	for i, want := range []message{
		{},
		{changed: true, keys: []string{"a"}},
		{there: true, token: "token", ttl: 1500 * time.Millisecond},
		{changed: true, all: true},
		{there: true, ttl: -1},
		{err: ServerError("NOPERM no")},
		{err: errBadReply},
	} {
		if got, err := tap.hear(); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("message %d: %+v, %v", i, got, err)
		}
	}
	if _, err := tap.hear(); err == nil {
		t.Error("there is no more")
	}
}

func TestTapRefusesBadPushes(t *testing.T) {
	for _, in := range []string{">x\r\n", ">0\r\n", ">1000000\r\n", ">2\r\n$10\r\ninvalidate\r\n*100000\r\n", ">1\r\n!1\r\n"} {
		tap := &redisTap{in: bufio.NewReader(strings.NewReader(in))}
		if m, err := tap.hear(); err == nil {
			t.Errorf("%q: %+v", in, m)
		}
	}
}
