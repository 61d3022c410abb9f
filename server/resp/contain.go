package resp

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
)

// ErrPanic is returned when reading a server's reply panicked. It wraps [ErrBad].
var ErrPanic = fmt.Errorf("%w: reading it panicked", ErrBad)

// Contain turns a panic into an [ErrPanic]: a reply of one server must not end the
// process, which talks to other servers too. Functions that read from a server defer it
// with the address of their error and the name of the request. Close the connection then.
func Contain(err *error, what string) {
	if r := recover(); r != nil {
		cause, ok := r.(error)
		if !ok {
			cause = fmt.Errorf("%v", r)
		}
		// Two %w: the client library unwraps an error that wraps a single one.
		*err = fmt.Errorf("%s: %w: %w%s", what, ErrPanic, cause, panicked())
	}
}

// panicked returns where the recovered panic began. If a deferred function panicked
// again on the way, it is the place of the first panic.
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
