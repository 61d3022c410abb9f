package world

import (
	"fmt"
	"math/bits"
	"time"

	"redlockctl/internal/sim/mutant"
	"redlockctl/internal/sim/schedule"
	"redlockctl/internal/sim/trace"
	"redlockctl/redlock"
)

// tokens is one more than the greatest token: the number of a client's attempt,
// see tokenOf. 0 is none.
const tokens = schedule.MaxClients*8 + 1

// tokenOf draws the token of a client's attempt, from 0.
func tokenOf(client, attempt int) uint8 { return uint8(client*8 + attempt + 1) }

func tokenName(t uint8) string { return fmt.Sprintf("c%d/%d", (t-1)/8+1, (t-1)%8+1) }

// What became of a release on a node.
const (
	relSent     uint8 = 1 << iota // it is, or was, on its way
	relDone                       // it was carried out
	relRefused                    // the master refuses writes
	relLost                       // its connection was gone
	relInFlight                   // it went by another connection than the SET
)

// grant is what the witness knows of one token.
type grant struct {
	votes uint8         // nodes that accepted it
	until time.Duration // the end of the attempt: what is answered later comes late
	// seconds are the tokens for which a node had voted before, and forgotten it, and
	// was open for no fault of a guard when it accepted this one.
	seconds     [schedule.MaxNodes]uint64
	abandoned   bool // failed or released
	abandonedAt time.Duration
	release     [schedule.MaxNodes]uint8
	repaired    uint8 // nodes on which it was put back
	relied      uint8 // the nodes that said yes to the last grant or extension

	taking         bool // an operator takes it away
	takeBegan      time.Duration
	clean, deleted uint8
	takenAt        time.Duration // when he was told that it is gone
}

// Breach is a violation.
type Breach struct {
	Property mutant.Property
	Text     string
}

func (w *World) breach(p mutant.Property, format string, args ...any) {
	if w.Broken == nil && w.rules.Checks&(1<<p) != 0 {
		w.Broken = &Breach{Property: p, Text: fmt.Sprintf(format, args...)}
		if w.Trace != nil {
			w.Trace.Add(w.now, "!!", w.Broken.Text)
		}
	}
}

// believe takes note that from now until a true time a client believes in its
// lock, and looks if another does.
func (w *World) believe(c *client, until time.Duration) {
	c.believes = until
	if until <= w.now {
		return
	}
	for i := range w.plan.Clients {
		o := &w.clients[i]
		if o == c || o.believes <= w.now {
			continue
		}
		if w.grants[o.token].taking || w.grants[c.token].taking {
			continue // whoever takes a lock from a holder that is alive makes two
		}
		if w.excusable(c.token, o.token) || w.excusable(o.token, c.token) {
			w.exposed = true
			return
		}
		w.breach(mutant.Exclusion, "c%d believes in the lock until %s, and c%d until %s", o.index+1, trace.At(o.believes), c.index+1, trace.At(until))
		return
	}
}

// excusable reports whether a grant stands on votes that masters gave a second time,
// after one for another, while they were open after a loss and before any guard
// could close them.
func (w *World) excusable(second, first uint8) bool {
	if w.rules.NoExcuse {
		return false
	}
	g := &w.grants[second]
	votes := g.votes
	if g.repaired != 0 {
		votes = g.relied // it has outlived others
	}
	relied := votes
	for i := range w.plan.N {
		if g.seconds[i]>>first&1 != 0 {
			votes &^= 1 << i
		}
	}
	return votes != relied && bits.OnesCount8(votes) < redlock.Quorum(w.plan.N)
}
