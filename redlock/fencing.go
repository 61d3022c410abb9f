package redlock

import (
	"errors"
	"time"
)

// How fencing tokens are drawn, and why they grow, is in the package
// documentation.

// fencingTTL is how long a counter outlives the moment at which its node's clock
// has passed the number.
const fencingTTL = 24 * time.Hour

// errFencing is why an attempt failed that had its votes.
var errFencing = errors.New("the fencing token could not be written to a quorum")
