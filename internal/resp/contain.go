package resp

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
)

// ErrPanic is returned where reading what a server sends panicked. It wraps [ErrBad].
var ErrPanic = fmt.Errorf("%w: reading it panicked", ErrBad)

// Contain makes an [ErrPanic] of a panic: what one server sends must not end the process, which talks to
// others too. It is deferred by what reads from a server, with the address of its error; what is
// what was asked. The connection is of no more use.
func Contain(err *error, what string) {
	if r := recover(); r != nil {
		cause, ok := r.(error)
		if !ok {
			cause = fmt.Errorf("%v", r)
		}
		// Two of them: the client library takes off what stands around a single one.
		*err = fmt.Errorf("%s: %w: %w%s", what, ErrPanic, cause, panicked())
	}
}

// panicked is the place of the panic that is recovered, for whoever reports it: the first one, if what it passed through
// has panicked again with it.
func panicked() (place string) {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	inPanic := true
	for {
		f, more := frames.Next()
		switch own := strings.HasPrefix(f.Function, "runtime."); {
		case own:
			inPanic = inPanic || f.Function == "runtime.gopanic"
		case inPanic:
			place, inPanic = fmt.Sprintf(" (%s:%d)", filepath.Base(f.File), f.Line), false
		}
		if !more {
			return place
		}
	}
}
