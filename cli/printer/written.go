package printer

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// remembering is standard output if it is not a terminal. It remembers the first failed
// write, so that a command need not check each line and still fails if its output was
// lost, for example on a full disk.
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

// Remember makes standard output remember the first write that failed, for [Printer.Unwritten].
func (p *Printer) Remember() {
	if !p.OutTTY {
		p.Out = &remembering{to: p.Out}
	}
}

// Bare returns the original standard output, for a child process.
func (p *Printer) Bare() io.Writer {
	if w, ok := p.unconverted().(*remembering); ok {
		return w.to
	}
	return p.unconverted()
}

// unconverted returns standard output below a conversion of its documents.
func (p *Printer) unconverted() io.Writer {
	if w, ok := p.Out.(*converting); ok {
		return w.Writer
	}
	return p.Out
}

// Lost returns why something that was printed is not on standard output; nil if all is.
func (p *Printer) Lost() error {
	if w, ok := p.unconverted().(*remembering); ok {
		return w.err
	}
	return nil
}

// Unwritten is [Printer.Lost], but nil if the reader is gone: it has what it wants.
func (p *Printer) Unwritten() error {
	if err := p.Lost(); !Gone(err) {
		return err
	}
	return nil
}

// Gone reports whether a write failed because the reader is gone.
func Gone(err error) bool { return errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrClosed) }
