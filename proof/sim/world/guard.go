package world

import (
	"time"

	"redlockctl/proof/sim/schedule"
	"redlockctl/proof/sim/trace"
	"redlockctl/restartguard"
)

// Times of the product's guard, see restartguard.Guard.
const (
	reconnect    = 25 * ms
	guardTimeout = restartguard.DefaultTimeout
	maxActions   = 8
)

// exchanges of a guard with a master.
const (
	askLook uint8 = iota
	askRaise
	askProve
	askRemove
	askScan
	askKill
	askCount
	askKillOthers
	askCopies
)

var askNames = [...]string{"a look", "to fence", "a canary write", "to rejoin", "its locks", "to end an earlier connection", "to count", "to end the connections of other guards", "to count its copies"}

// codes of an order to fence: what is set first.
const (
	codeLag uint8 = 1 << iota
	codeReadOnly
)

// codes of the outcome of an exchange.
const (
	toldAnswer  uint8 = iota
	toldRefused       // connection refused
	toldBroken        // the connection has ended
)

// guard is one guard: it drives restartguard.Step as the product's guard does.
type guard struct {
	index    int
	clock    clock
	up       bool
	since    time.Duration // it runs
	used     bool          // it, or its memory, knows that the cluster was in use
	amnesic  bool          // of a mutant: it has forgotten that
	memory   bool          // its memory is on disk for the next start
	paused   time.Duration
	wallStep time.Duration // of its host's wall clock, which must make no difference
	cut      [schedule.MaxNodes]time.Duration
	trip     int // index of the next trip
	watches  [schedule.MaxNodes]watch
	survey   restartguard.Survey
	peers    restartguard.Peers
	heardAt  time.Duration // of the witness: when it last learned of a longer D; 0: never
}

// counts are what a guard can tell losses by, other than restarts and clocks.
type counts struct {
	incarnation              uint16
	former                   string
	wipes, evicted, commands int64
	counter                  int64
}

func (x *watch) countsRead() counts {
	o := &x.inbox
	return counts{x.inIncarnation, o.Former, o.Wipes, o.Evicted, o.Commands, o.Counter}
}

// hides reports whether counters that were reset count again what they did before: no guard can
// tell the loss in between.
func (c counts) hides(now counts) bool {
	return c.incarnation == now.incarnation && c.former == now.former && c.wipes == now.wipes && c.evicted == now.evicted && c.wipes+c.evicted > 0 &&
		now.commands >= c.commands && now.counter >= c.counter
}

// watch is a guard's watch over one master: one connection at a time.
type watch struct {
	state restartguard.State

	gen         uint16 // of the connection
	incarnation uint16 // that it goes to; 0: not there yet
	replaced    bool   // the configuration that it reads when it starts again has another server here
	first       bool   // nothing has been answered on it
	turn        uint16 // of exchanges and pauses; makes events of an earlier one void
	asked       time.Duration
	asking      uint8
	inbox       restartguard.Observation
	looked      time.Duration // when the master answered the probe
	todo        [maxActions]restartguard.Action
	do, n       int // next of todo, and how many there are

	// Of the witness: which losses the guard knows, and until when it may take to fence
	// the master after it learned of one.
	knows  bool
	losses uint16
	counts counts        // in the last answer
	readAt time.Duration // when the master was asked what the guard read last
	// away: two probes were further apart than D. A step between them could hide in the
	// allowed difference of clocks, so the guard allows less.
	away          bool
	inLosses      uint16
	inServing     bool
	inOffset      time.Duration // of the master's wall clock
	inIncarnation uint16
	inBlind       bool
	inGuards      uint8 // announced there
	inDrainers    uint8
	countAt       time.Duration // it counts copies no sooner
	// warned: it learned of a longer D in this fence, or shortly before.
	warned            bool
	fencedBefore      bool          // at the previous probe
	counter           int64         // in the last answer
	offset            time.Duration // of inIncarnation offsetIncarnation, at the last good reading, offsetAt
	offsetAt          time.Duration
	offsetIncarnation uint16
	gained            time.Duration // by steps, beyond what clock rates may hide
	ahead             int
	telling           bool
	before            restartguard.ActionKind // the last one that it ordered
	graceUntil        time.Duration
	// ending is how long it takes from a fencing until the connections of other guards
	// are ended, and the master is fenced again if one of them has let it rejoin meanwhile.
	ending time.Duration

	// Its memory on disk: the last written reading of the clock, and when it was
	// written.
	kept   clockMemory
	keptAt time.Duration

	// Of early rejoin:
	question        restartguard.Question
	inCopy, oldCopy restartguard.Copy
	inWhole         bool // the master has never forgotten anything

	// Of mutants:
	failed      time.Duration // first failed ping of this outage; 0: none
	removeAgain bool
	fencedRun   string
	lateFor     time.Time // the deadline of a loss for which it has put off its fencing
	refused     bool
	reading     restartguard.Reading
}

// clockMemory is what a guard has saved about a master's clock.
type clockMemory struct {
	runID string
	clock restartguard.ClockBase
}

func (g *guard) reset(i int) {
	*g = guard{index: i}
	for k := range g.watches {
		g.watches[k].graceUntil = trace.Never
	}
}
