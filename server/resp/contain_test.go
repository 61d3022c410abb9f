package resp

import (
	"errors"
	"strings"
	"testing"
)

func TestContain(t *testing.T) {
	read := func(list []Value) (err error) {
		defer Contain(&err, "n1: PING")
		if list[0].Text == "" {
			return ErrLong
		}
		return nil
	}
	err := read(nil)
	if !errors.Is(err, ErrPanic) || !errors.Is(err, ErrBad) {
		t.Fatal(err)
	}
	for _, part := range []string{"n1: PING: ", "index out of range", "(contain_test.go:"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
	if err := read([]Value{{}}); err != ErrLong {
		t.Error(err)
	}
	if err := read([]Value{{Text: "x"}}); err != nil {
		t.Error(err)
	}
}
