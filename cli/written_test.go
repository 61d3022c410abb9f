package cli

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"redlockctl/cli/exit"
	"redlockctl/cli/printer"
)

// fullDisk takes nothing.
type fullDisk struct{ err error }

func (d fullDisk) Write([]byte) (int, error) { return 0, d.err }

// What was printed and is not there fails the command, and is said once.
func TestLostOutputFails(t *testing.T) {
	for _, test := range []struct {
		args string
		err  error
		code exit.Code
		said int
	}{
		{"version", nil, exit.Done, 0},
		{"version", syscall.ENOSPC, exit.Failed, 1},
		{"version -o json", syscall.ENOSPC, exit.Failed, 1},
		{"man", syscall.ENOSPC, exit.Failed, 1},
		{"--help", syscall.ENOSPC, exit.Failed, 1},
		{"nonsense", syscall.ENOSPC, exit.WrongUsage, 1},
		{"version", syscall.EPIPE, exit.Done, 0}, // the reader has what it wants
		{"version", os.ErrClosed, exit.Done, 0},
	} {
		var said bytes.Buffer
		a := newCommandLine(&printer.Printer{In: strings.NewReader(""), Out: new(bytes.Buffer), Err: &said, Getenv: func(string) string { return "" }})
		if test.err != nil {
			a.Out = fullDisk{test.err}
		}
		code := a.main(t.Context(), strings.Fields(test.args))
		if code != test.code || strings.Count(said.String(), "\n") != test.said {
			t.Errorf("%s with %v: exit code %d, want %d; said %q", test.args, test.err, code, test.code, said.String())
		}
		if errors.Is(test.err, syscall.ENOSPC) && test.code == exit.Failed && !strings.HasPrefix(said.String(), "redlockctl: standard output cannot be written: ") {
			t.Errorf("%s with %v: said %q", test.args, test.err, said.String())
		}
	}
}
