package restartguard

import (
	"errors"
)

// Errors of commands to a node. All are wrapped: test with errors.Is.
var (
	// ErrUnreachable is returned when the node does not answer. It may have carried out what was
	// sent, or not: check again.
	ErrUnreachable = errors.New("node does not answer")
	// ErrDenied is returned when the node refuses: wrong password, or no right to CONFIG or INFO.
	ErrDenied = errors.New("node does not allow it")
)
