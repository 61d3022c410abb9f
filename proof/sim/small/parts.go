package small

import (
	"time"

	"redlockctl/redlock"
)

const (
	nodeCount      = 3
	clientCount    = 2
	lockTTL        = 10 * time.Second
	attemptBound   = 2 * time.Second // of an attempt
	grid           = 5 * time.Second // moments at which anything may happen, besides those at which something ends
	restartHorizon = 25 * time.Second
	earlyHorizon   = 6 * time.Second // what comes at D and later is the same without it
)

// epoch is where all clocks begin; any moment would do.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

var nodeNames = [nodeCount]string{"n1", "n2", "n3"}

// What a client is about.
type phase uint8

const (
	clientWaiting phase = iota // for its attempt
	clientAsking
	clientHolding
	clientDone
)

type client struct {
	phase        phase
	start, until time.Duration // of the attempt; of validity
}

// States of a SET on its way to a node.
const (
	setNone uint8 = iota
	setSent
	setYes
	setNo
	setFailed
)

// drift is the product's allowance for clocks, of the TTL that all locks have.
var drift = redlock.Options{DriftFactor: redlock.DefaultDriftFactor, DriftMargin: redlock.DefaultDriftMargin}.Drift(lockTTL)

// validUntil is the end of the validity of an attempt that began at start.
func validUntil(start time.Duration) time.Duration { return start + lockTTL - drift }
