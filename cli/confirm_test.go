package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"redlockctl/cli/exit"
	"redlockctl/cli/printer"
)

func TestConfirm(t *testing.T) {
	for _, test := range []struct {
		name, lock, typed string
		inTTY, errTTY     bool
		want              bool
	}{
		{"the name typed is a yes", "job:1", "job:1\n", true, true, true},
		{"another name is a no", "job:1", "job:2\n", true, true, false},
		{"yes is a no", "job:1", "yes\n", true, true, false},
		{"nothing is a no", "job:1", "\n", true, true, false},
		{"the end of the input is a no", "job:1", "", true, true, false},
		{"a name that cannot be typed is typed as shown", "a\x1bb", "a\\x1bb\n", true, true, true},
		{"a pipe is nobody", "job:1", "job:1\n", false, true, false},
		{"nobody reads a question in a file", "job:1", "job:1\n", true, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			var w strings.Builder
			shown := false
			a := newCommandLine(&printer.Printer{In: strings.NewReader(test.typed), Err: &w, InTTY: test.inTTY, ErrTTY: test.errTTY})
			err := a.confirm(t.Context(), test.lock, func(w io.Writer) error {
				shown = true
				_, err := fmt.Fprintln(w, "the effect")
				return err
			})
			if (err == nil) != test.want {
				t.Fatalf("error %v", err)
			}
			if err != nil && !errors.Is(err, exit.ErrNotConfirmed) {
				t.Errorf("error %v is not errNotConfirmed", err)
			}
			if asked := test.inTTY && test.errTTY; shown != asked {
				t.Errorf("effect shown: %t, want %t", shown, asked)
			}
			if strings.ContainsRune(w.String(), '\x1b') {
				t.Errorf("raw escape in %q", w.String())
			}
		})
	}
}

func TestConfirmStopsWhereTheEffectCannotBeShown(t *testing.T) {
	a := newCommandLine(&printer.Printer{In: strings.NewReader("job:1\n"), Err: io.Discard, InTTY: true, ErrTTY: true})
	boom := errors.New("boom")
	if err := a.confirm(t.Context(), "job:1", func(io.Writer) error { return boom }); !errors.Is(err, boom) {
		t.Errorf("error %v", err)
	}
}

func TestConfirmEndsWithASignal(t *testing.T) {
	r, w := io.Pipe()
	defer w.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a := newCommandLine(&printer.Printer{In: r, Err: io.Discard, InTTY: true, ErrTTY: true})
	if err := a.confirm(ctx, "job:1", func(io.Writer) error { return nil }); !errors.Is(err, exit.ErrNotConfirmed) {
		t.Errorf("error %v", err)
	}
}
