package sim

import (
	"fmt"
	"math/bits"
	"time"

	"redlockctl/internal/sim/trace"
	"redlockctl/redlock"
)

// Property is what must hold in every schedule.
type Property uint8

const (
	// Exclusion: no two clients believe in the lock at the same true time.
	Exclusion Property = iota
	// LeftBehind: a copy of an attempt that failed, or of a lock that was
	// released, does not outlive its release; but for what no client can help (a
	// connection that broke, a master that refused).
	LeftBehind
	// EarlyRejoin: a guard opens a master no earlier than D after its last loss,
	// less what its clock may be wrong.
	EarlyRejoin
	// CordonRemoved: no guard opens a master that it has seen cordoned by an operator.
	CordonRemoved
	// NeedlessFence: where nothing goes wrong no guard closes a master, however far
	// clocks differ within their bounds.
	NeedlessFence
	// Resurrected: a lock that was taken away is not extended any more, and no copy of
	// a lock is put back that has ended, in the place of another's, or on a fenced
	// master.
	Resurrected
)

// String is the property as a sentence says it.
func (p Property) String() string {
	return [...]string{"two clients hold one lock", "a copy is left behind", "a master rejoins too early", "a cordon is removed",
		"a master that lost nothing is fenced", "a lock is held on to that was force-released or has expired"}[p]
}

// ID is the property as one word for machines.
func (p Property) ID() string {
	return [...]string{"exclusion", "left-behind", "early-removal", "cordon-removed", "needless-fence", "resurrected"}[p]
}

// tokens is one more than the greatest token: the number of a client's attempt,
// see tokenOf. 0 is none.
const tokens = maxClients*8 + 1

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
	seconds     [maxNodes]uint64
	abandoned   bool // failed or released
	abandonedAt time.Duration
	release     [maxNodes]uint8
	repaired    uint8 // nodes on which it was put back
	relied      uint8 // the nodes that said yes to the last grant or extension

	taking         bool // an operator takes it away
	takeBegan      time.Duration
	clean, deleted uint8
	takenAt        time.Duration // when he was told that it is gone
}

// breach is a violation.
type breach struct {
	property Property
	text     string
}

func (w *world) breach(p Property, format string, args ...any) {
	if w.broken == nil && w.rules.checks&(1<<p) != 0 {
		w.broken = &breach{property: p, text: fmt.Sprintf(format, args...)}
		if w.trace != nil {
			w.trace.Add(w.now, "!!", w.broken.text)
		}
	}
}

// believe takes note that from now until a true time a client believes in its
// lock, and looks if another does.
func (w *world) believe(c *client, until time.Duration) {
	c.believes = until
	if until <= w.now {
		return
	}
	for i := range w.plan.clients {
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
		w.breach(Exclusion, "c%d believes in the lock until %s, and c%d until %s", o.index+1, trace.At(o.believes), c.index+1, trace.At(until))
		return
	}
}

// excusable reports whether a grant stands on votes that masters gave a second time,
// after one for another, while they were open after a loss and before any guard
// could close them.
func (w *world) excusable(second, first uint8) bool {
	if w.rules.noExcuse {
		return false
	}
	g := &w.grants[second]
	votes := g.votes
	if g.repaired != 0 {
		votes = g.relied // it has outlived others
	}
	relied := votes
	for i := range w.plan.n {
		if g.seconds[i]>>first&1 != 0 {
			votes &^= 1 << i
		}
	}
	return votes != relied && bits.OnesCount8(votes) < redlock.Quorum(w.plan.n)
}
