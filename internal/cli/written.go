package cli

import (
	"fmt"
	"io"
)

// remembering is standard output that is no terminal. It remembers the first
// write that failed, so that no command has to look after each of its lines, and
// none ends well whose answer was lost on a full disk.
type remembering struct {
	to  io.Writer
	err error
}

func (w *remembering) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	n, err := w.to.Write(p)
	if err != nil {
		w.err = fmt.Errorf("standard output cannot be written: %w", err)
	}
	return n, w.err
}

// bareOut is standard output as the process was given it, for a child.
func bareOut(out io.Writer) io.Writer {
	if w, ok := out.(*remembering); ok {
		out = w.to
	}
	if v, ok := out.(*inV1); ok {
		out = v.to
	}
	return out
}
