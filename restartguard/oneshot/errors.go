package oneshot

import (
	"errors"
)

// Errors of [Cordon], [Uncordon] and [RejoinNow]. All are wrapped: test with errors.Is.
var (
	// ErrNotFenced is returned by Cordon when the fence does not hold: another value was read
	// back, or a canary write was accepted.
	ErrNotFenced = errors.New("node is not fenced")
	// ErrNotCordoned is returned by Uncordon when the node is not cordoned.
	ErrNotCordoned = errors.New("node is not cordoned")
	// ErrNotServing is returned by RejoinNow when the node still refuses writes.
	ErrNotServing = errors.New("node does not serve")
)
