package restartguard

import (
	"errors"
)

// Errors of whoever asks a node something; all are wrapped, test with errors.Is.
var (
	// ErrUnreachable is returned when the node does not answer. What was sent may
	// have been carried out or not: look again.
	ErrUnreachable = errors.New("node does not answer")
	// ErrDenied is returned when the node does not let us: wrong password, or no
	// right to CONFIG or INFO.
	ErrDenied = errors.New("node does not allow it")
)
