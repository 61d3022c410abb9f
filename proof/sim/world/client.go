package world

import (
	"time"

	"redlockctl/proof/sim/schedule"
	"redlockctl/redlock/attempt"
)

// operations of a client on a master.
const (
	opSet uint8 = iota
	opExtend
	opRelease
	opRepair
)

// codes of an event, beside the numbers of redlock.Status.
const (
	lostOnTheWay uint8 = 1 // of a request: its connection breaks before it arrives
	lostOnReturn uint8 = 2 // its connection breaks before the answer is back
)

type clientState uint8

const (
	clientWaiting clientState = iota // for its next attempt
	clientAsking                     // an attempt to acquire is under way
	clientHolding                    // it has the lock, and maybe an extension under way
	clientDone
)

// client is one user of the lock: it drives attempt.Attempt as the product's
// client does, over one connection to each master.
type client struct {
	index  int
	clock  clock
	paused time.Duration
	state  clientState
	waits  schedule.Trigger
	turn   uint16 // of the wait; makes events of an earlier wait void

	attempt   int // index in the plan
	extends   int // extensions begun
	token     uint8
	run       uint16 // of the machine; distinguishes its answers from those to earlier runs
	machine   *attempt.Attempt
	terms     attempt.Terms
	extend    bool
	pending   bool
	until     time.Time // end of validity, by its own clock
	conns     [schedule.MaxNodes]conn
	setGen    [schedule.MaxNodes]uint16 // of the connection that the last SET went by
	copies    attempt.Copies
	repairing uint8         // nodes that were asked to take a copy back, and have not answered
	asked     time.Duration // when the run began, in true time
	repair    uint16        // the run whose answers may bring it to put copies back; 0: none
	yes       uint8         // nodes that said yes in this run
	dead      uint8         // nodes that were down in this run

	believes time.Duration // true time until which it relies on the lock
	believed time.Duration // when it was last granted or extended it
	// extendedAt is when it last sent an extension.
	extendedAt time.Duration
}

// conn is one connection: first in, first out, in both directions, to one incarnation
// of a master. What was sent on it may arrive after it was closed.
type conn struct {
	gen         uint16
	incarnation uint16 // 0: not there yet
	out, back   time.Duration
	asked       uint16 // the run whose request is not answered; 0: none
}

func (c *client) reset(i int, p *schedule.Plan) {
	machine, copies := c.machine, c.copies
	*c = client{index: i, machine: machine, copies: copies, clock: clock{ppm: p.Client[i].PPM}, attempt: -1, state: clientHolding}
}
