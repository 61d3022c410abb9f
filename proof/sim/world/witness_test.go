package world

import (
	"testing"

	"redlockctl/proof/sim/mutant"
	"redlockctl/proof/sim/schedule"
)

// Two holders are excused only if this many votes were given a second time, for the
// same first, while nobody could close the master, that without them the second had no
// quorum.
func TestWhatIsExcused(t *testing.T) {
	const first, second, other = 1, 9, 17
	for name, c := range map[string]struct {
		votes    uint8
		seconds  map[int]uint64 // of the second's votes, by node
		noExcuse bool
		want     bool
	}{
		"a vote that it needs":                        {0b011, map[int]uint64{0: 1 << first}, false, true},
		"all of them":                                 {0b011, map[int]uint64{0: 1 << first, 1: 1 << first}, false, true},
		"a vote that it does not need":                {0b111, map[int]uint64{0: 1 << first}, false, false},
		"no such vote":                                {0b011, nil, false, false},
		"one that was given to somebody else before":  {0b011, map[int]uint64{0: 1 << other}, false, false},
		"a node that it has no vote of":               {0b011, map[int]uint64{2: 1 << first}, false, false},
		"where a boot fence is what is asked for":     {0b011, map[int]uint64{0: 1 << first}, true, false},
		"among others that were given to others, too": {0b011, map[int]uint64{0: 1<<first | 1<<other}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := New()
			w.plan, w.rules = &schedule.Plan{N: 3}, mutant.Right()
			w.rules.NoExcuse = c.noExcuse
			g := &w.grants[second]
			g.votes = c.votes
			for i, tokens := range c.seconds {
				g.seconds[i] = tokens
			}
			if got := w.excusable(second, first); got != c.want {
				t.Errorf("excused: %t", got)
			}
		})
	}
}

// What a master has forgotten before a guard opened it is no excuse any more: that
// guard should have waited.
func TestARemovalEndsAnExcuse(t *testing.T) {
	w, p := New(), new(schedule.Plan)
	p.Draw(1, schedule.NoFaults)
	p.N, p.Guards, p.Fenced, p.LagZero, p.ACL = 3, 1, false, false, false
	w.plan, w.rules = p, mutant.Right()
	for i := range p.N {
		w.masters[i].reset(i, p)
	}
	w.guards[0].reset(0)
	m := &w.masters[0]
	m.token, m.expires = 1, m.clock.at(0)+schedule.MaxTTL
	w.crash(0, ms, false)
	w.boot(0, m.incarnation)
	if !m.excused || m.fresh != 1<<1 || !w.inTime(0) {
		t.Fatalf("open after a crash: %t, %b", m.excused, m.fresh)
	}
	// A guard that was told, and whose order to close would have arrived by now.
	w.guards[0].watches[0].graceUntil = 1
	w.now = 2
	if w.inTime(0) {
		t.Error("in time after the guard had its time")
	}
	w.lose(m, 0, true)
	if w.inTime(0) {
		t.Error("a second loss gives the guard more time for the first")
	}
	removal := event{who: 0, node: 0, op: askRemove}
	w.obey(&w.guards[0], m, &removal)
	if m.fresh != 0 {
		t.Errorf("after a lift: %b", m.fresh)
	}
	// Also where scripts write through its fence, the guard has its time again after the next loss.
	m.leaks = true
	w.lose(m, 0, true)
	w.guards[0].watches[0].graceUntil = 1
	w.obey(&w.guards[0], m, &removal)
	if w.lose(m, 0, true); !w.inTime(0) {
		t.Error("no time after a rejoin and another loss")
	}
}
