package cli

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
)

// fullDisk takes nothing.
type fullDisk struct{ err error }

func (d fullDisk) Write([]byte) (int, error) { return 0, d.err }

// What was printed and is not there fails the command, and is said once.
func TestLostOutputFails(t *testing.T) {
	for _, test := range []struct {
		args string
		err  error
		code Exit
		said int
	}{
		{"version", nil, ExitDone, 0},
		{"version", syscall.ENOSPC, ExitFailed, 1},
		{"version -o json", syscall.ENOSPC, ExitFailed, 1},
		{"man", syscall.ENOSPC, ExitFailed, 1},
		{"--help", syscall.ENOSPC, ExitFailed, 1},
		{"nonsense", syscall.ENOSPC, ExitUsage, 1},
		{"version", syscall.EPIPE, ExitDone, 0}, // the reader has what it wants
		{"version", os.ErrClosed, ExitDone, 0},
	} {
		var said bytes.Buffer
		a := &commandLine{in: strings.NewReader(""), out: new(bytes.Buffer), errOut: &said, getenv: func(string) string { return "" }}
		if test.err != nil {
			a.out = fullDisk{test.err}
		}
		code := a.main(t.Context(), strings.Fields(test.args))
		if code != test.code || strings.Count(said.String(), "\n") != test.said {
			t.Errorf("%s with %v: exit code %d, want %d; said %q", test.args, test.err, code, test.code, said.String())
		}
		if errors.Is(test.err, syscall.ENOSPC) && test.code == ExitFailed && !strings.HasPrefix(said.String(), "redlockctl: standard output cannot be written: ") {
			t.Errorf("%s with %v: said %q", test.args, test.err, said.String())
		}
	}
}
