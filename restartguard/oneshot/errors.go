package oneshot

import (
	"errors"
)

// Errors of [Cordon], [Uncordon] and [RejoinNow]; all are wrapped, test with errors.Is.
var (
	// ErrNotFenced is returned by Cordon when the fence does not hold: it reads back
	// otherwise, or a canary write got through.
	ErrNotFenced = errors.New("node is not fenced")
	// ErrNotCordoned is returned by Uncordon when the node is not cordoned.
	ErrNotCordoned = errors.New("node is not cordoned")
	// ErrNotServing is returned by RejoinNow when the node still refuses writes.
	ErrNotServing = errors.New("node does not serve")
)
