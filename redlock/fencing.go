package redlock

import (
	"errors"
	"time"
)

// How fencing tokens are drawn, and why they grow, is in the package
// documentation.

// fencingTTL is how long a counter lives after its node's clock has passed the number.
const fencingTTL = 24 * time.Hour

// errFencing is why an attempt with a quorum of votes failed.
var errFencing = errors.New("the fencing token could not be written to a quorum")
