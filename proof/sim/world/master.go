package world

import (
	"slices"
	"time"

	"redlockctl/proof/sim/schedule"
	"redlockctl/server/minreplicas"
)

// master is one Redis server, as far as locks on one key and the guard's
// commands see of it. Resources do not know of each other in Redlock, so one
// key is all that is needed.
type master struct {
	clock clock // its wall clock, which decides expiry
	up    bool
	// silent: its host is down too.
	silent      bool
	incarnation uint16        // counts its processes from 1: the run_id
	booted      time.Duration // what its wall clock showed then
	upAt        time.Duration // when that was
	replaced    bool          // another server comes in its place
	unfenced    bool          // and does not start fenced

	token   uint8         // of the copy; 0: no copy
	expires time.Duration // by its wall clock

	minReplicas, maxLag, replicas int64
	heldSince                     time.Duration

	acl      bool // its fence is an ACL user
	blind    bool // nobody may read or set its fence
	leaks    bool // scripts write through its fence by min-replicas-to-write
	writable bool // as a replica it accepts writes
	slave    bool // it is a replica of another server
	demoted  time.Duration
	// demotedEmpty: it had nothing to lose then.
	demotedEmpty bool
	promotions   int // in this incarnation
	wipes        int64
	wiped        uint16 // how often all its data was lost at once, which no reset of counters hides
	evicted      int64
	commands     int64 // run since the counters were reset
	counter      int64 // the guard's counter key
	configured   bool

	// killed are the last few connections of each guard that the server has closed; all
	// before swept are closed too. Nothing more is read from them.
	killed [schedule.MaxGuards][killedMost]uint16
	kills  [schedule.MaxGuards]int
	swept  [schedule.MaxGuards]uint16
	// named is one more than the last connection of each guard from which it has read
	// anything: it knows the names of the earlier ones.
	named [schedule.MaxGuards]uint16

	announced uint8 // the guards that can be seen there
	drainers  uint8 // those of them that take it for drained

	// Of the witness:
	ghosts uint64 // tokens whose copies it has forgotten
	fresh  uint64 // those of them that it has forgotten since a guard let it rejoin
	// unguarded are those of which it was let rejoin too early, by a guard that could not
	// have heard of the longer D.
	unguarded uint64
	unheardAt time.Duration // the last rejoin by such a guard, or by a person whom no guard could tell that it was in use
	forgotAt  time.Duration
	lostAt    time.Duration // the last crash
	brokenAt  time.Duration // the last loss other than by a crash
	harmed    bool          // it has lost something, ever
	losses    uint16        // that a guard can see
	// excused: it serves after a loss, and no guard has had time to fence it yet. Its
	// votes now may be second votes that nobody can prevent.
	excused bool
	// crossUntil: a guard has fenced it after a loss; until then a rejoin by another guard
	// that was already under way may undo that.
	crossUntil time.Duration
	released   uint64 // tokens of which a release was carried out here
}

func (m *master) reset(i int, p *schedule.Plan) {
	*m = master{clock: clock{ppm: p.NodePPM[i], offset: time.Hour}, up: true, incarnation: 1, maxLag: 10, configured: true,
		acl: p.ACL, blind: p.Blind>>i&1 != 0, leaks: p.Leaks>>i&1 != 0 && !p.ACL, writable: p.Writable>>i&1 != 0}
	if p.Replicas {
		m.replicas = 1
	}
}

// refuses reports whether it refuses plain writes. On a replica min-replicas-to-write stops none.
func (m *master) refuses() bool {
	if m.slave && (!m.writable || !m.acl) {
		return !m.writable
	}
	return m.fenced()
}

// refusesScript reports whether it refuses the writes of scripts.
func (m *master) refusesScript() bool { return m.refuses() && (m.slave || !m.leaks) }

// empty reports whether it would lose nothing with its data: it has no unexpired copy, and gets none.
func (m *master) empty(now time.Duration) bool { return m.refusesScript() && !m.live(now) }

// fenced reports whether it refuses writes because of a fence.
func (m *master) fenced() bool {
	if m.acl {
		return m.minReplicas >= minreplicas.FenceCordon
	}
	return m.maxLag > 0 && m.minReplicas > m.replicas
}

// killedMost is how many killed connections a master remembers; more are never
// under way at a time.
const killedMost = 16

// kill ends a guard's connection. Its number is one less than its id.
func (m *master) kill(by uint8, gen uint16) {
	m.killed[by][m.kills[by]%killedMost] = gen + 1
	m.kills[by]++
}

// hears reports whether a guard's connection is still open on its side.
func (m *master) hears(by uint8, gen uint16) bool {
	return gen >= m.swept[by] && !slices.Contains(m.killed[by][:], gen+1)
}

// cordoned reports whether an operator has fenced it.
func (m *master) cordoned() bool { return m.minReplicas == minreplicas.FenceCordon && m.maxLag > 0 }

// leaves ends what is seen of a guard there.
func (m *master) leaves(guard int) {
	m.announced &^= 1 << guard
	m.drainers &^= 1 << guard
}

// live reports whether a copy is there.
func (m *master) live(now time.Duration) bool { return m.token != 0 && m.clock.at(now) < m.expires }
