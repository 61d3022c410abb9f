package world

import (
	"time"

	"redlockctl/proof/sim/schedule"
	"redlockctl/proof/sim/trace"
	"redlockctl/restartguard"
)

// What the product's guard does between looks, see restartguard.Guard.
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

// codes of an order to fence: what is set before.
const (
	codeLag uint8 = 1 << iota
	codeReadOnly
)

// codes of what came of an exchange.
const (
	toldAnswer  uint8 = iota
	toldRefused       // nobody listens
	toldBroken        // the connection has ended
)

// guard is one guard: it drives restartguard.Step as the product's guard does.
type guard struct {
	index    int
	clock    clock
	up       bool
	since    time.Duration // it runs
	used     bool          // it knows, or its memory, that the cluster was in use
	amnesic  bool          // of a mutant: it has forgotten that
	memory   bool          // it is on disk for the next start
	paused   time.Duration
	wallStep time.Duration // of its host's wall clock, on which nothing may depend
	cut      [schedule.MaxNodes]time.Duration
	trip     int // index of the next trip
	watches  [schedule.MaxNodes]watch
	survey   restartguard.Survey
	peers    restartguard.Peers
	heardAt  time.Duration // of the witness: when it last heard of a longer D; 0: never
}

// watch is a guard's watch over one master: one connection at a time.
type watch struct {
	state restartguard.State

	gen         uint16 // of the connection
	incarnation uint16 // that it goes to; 0: not there yet
	replaced    bool   // the configuration that it reads when it starts again has another server here
	first       bool   // nothing has been answered on it
	turn        uint16 // of exchanges and pauses; makes an earlier one's events void
	asked       time.Duration
	asking      uint8
	inbox       restartguard.Observation
	looked      time.Duration // when the look was answered by the master
	todo        [maxActions]restartguard.Action
	do, n       int // next of todo, and how many there are

	// Of the witness: which losses the guard knows of, and until when it has time
	// to fence the master after it was told of one.
	knows  bool
	losses uint16
	readAt time.Duration
	// away: there were two looks further apart than D, between which a step could hide
	// behind what clocks may differ by, so that the guard allows less.
	away          bool
	inLosses      uint16
	inServing     bool
	inOffset      time.Duration // of the master's wall clock
	inIncarnation uint16
	inBlind       bool
	inGuards      uint8 // announced there
	inDrainers    uint8
	countAt       time.Duration // it counts copies no sooner
	// warned: it has heard of a longer D in this fence, or shortly before.
	warned            bool
	fencedBefore      bool          // at the look before
	counter           int64         // it was told last
	offset            time.Duration // of inIncarnation offsetIncarnation, at the last good reading, offsetAt
	offsetAt          time.Duration
	offsetIncarnation uint16
	gained            time.Duration // by steps, beyond what may hide behind the rates of clocks
	ahead             int
	telling           bool
	killing           bool // it was told, and ends earlier connections before it fences
	graceUntil        time.Duration
	// ending is how long it takes from a fencing until the connections of other guards
	// are ended, and the master is fenced again if one of them has let it rejoin meanwhile.
	ending time.Duration

	// Of its memory on disk: the reading of the clock that was written last, and
	// when.
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

// clockMemory is what a guard has written down of a master's clock.
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
