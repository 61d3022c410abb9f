package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"redlockctl/base/crash"
	"redlockctl/cli/exit"
	"redlockctl/server/safetext"
)

// confirm prints what a dangerous action will do and asks to type the name of its target.
// Without a terminal it refuses and says how to confirm in advance.
func (a *commandLine) confirm(ctx context.Context, name string, effect func(io.Writer) error) error {
	if !a.InTTY || !a.ErrTTY {
		return fmt.Errorf("%w: add --yes to do it without being asked", exit.ErrNotConfirmed)
	}
	if err := effect(a.Err); err != nil {
		return err
	}
	shown := safetext.Escape(name)
	fmt.Fprintf(a.Err, "Type the name (%s) to go on: ", shown)
	typed, err := readLine(ctx, a.In)
	if err != nil {
		fmt.Fprintln(a.Err)
		return fmt.Errorf("%w: %w", exit.ErrNotConfirmed, err)
	}
	// A name with characters that cannot be typed may be typed as it is shown.
	if typed != name && typed != shown {
		return fmt.Errorf("%w: %q is not the name", exit.ErrNotConfirmed, typed)
	}
	return nil
}

// readLine reads one line until ctx ends. A read from a terminal cannot be interrupted;
// its goroutine ends with the process.
func readLine(ctx context.Context, r io.Reader) (string, error) {
	type result struct {
		line string
		err  error
	}
	done := make(chan result, 1)
	crash.Go(func() {
		line, err := bufio.NewReader(r).ReadString('\n')
		if errors.Is(err, io.EOF) && line != "" {
			err = nil
		}
		done <- result{strings.TrimRight(line, "\r\n"), err}
	})
	select {
	case <-ctx.Done():
		return "", exit.ErrInterrupted
	case res := <-done:
		return res.line, res.err
	}
}
