package sim

import (
	"time"

	"redlockctl/proof/sim/mutant"
	"redlockctl/proof/sim/schedule"
	"redlockctl/proof/sim/world"
)

const ms = time.Millisecond

// shrinkTries bounds how many schedules are played to shorten one.
const shrinkTries = 6000

// shrinker looks for the smallest plan that still breaks a property, by leaving
// out and simplifying, as long as anything helps.
type shrinker struct {
	w     *world.World
	rules mutant.Rules
	want  mutant.Property
	best  schedule.Plan
	tries int
}

// shrink returns the smallest plan found, and how many were tried.
func shrink(w *world.World, p schedule.Plan, r mutant.Rules, want mutant.Property) (*schedule.Plan, int) {
	s := &shrinker{w: w, rules: r, want: want, best: p}
	for before := -1; before != s.tries && s.tries < shrinkTries; {
		before = s.tries
		if !s.pass() {
			break
		}
	}
	return &s.best, s.tries
}

// try plays a changed copy of the best plan, and keeps it if the property is
// still broken.
func (s *shrinker) try(change func(p *schedule.Plan)) bool {
	if s.tries >= shrinkTries {
		return false
	}
	p := s.best
	change(&p)
	if p == s.best {
		return false
	}
	s.tries++
	s.w.Play(&p, s.rules)
	if s.w.Broken == nil || s.w.Broken.Property != s.want {
		return false
	}
	s.best = p
	return true
}

// pass tries everything once, and reports whether anything helped.
func (s *shrinker) pass() bool {
	helped := false
	try := func(change func(p *schedule.Plan)) bool {
		ok := s.try(change)
		helped = helped || ok
		return ok
	}
	for i := s.best.Faults - 1; i >= 0; i-- {
		try(func(p *schedule.Plan) { p.DropFault(i) })
	}
	for s.best.Guards > 1 && try(func(p *schedule.Plan) { p.Guards-- }) {
	}
	try(func(p *schedule.Plan) { p.Shorter = false })
	try(func(p *schedule.Plan) { p.View = schedule.View{} })
	try(func(p *schedule.Plan) { p.View.Acts = false })
	for i := s.best.Clients - 1; i >= 0 && s.best.Clients > 1; i-- {
		try(func(p *schedule.Plan) { p.DropClient(i) })
	}
	for c := range s.best.Clients {
		for k := s.best.Client[c].Attempts - 1; k >= 0; k-- {
			try(func(p *schedule.Plan) { p.Client[c].DropAttempt(k) })
		}
	}
	for n := 3; n < s.best.N; n++ { // with fewer it is hardly Redlock
		if try(func(p *schedule.Plan) { p.N = n }) {
			break
		}
	}
	try(func(p *schedule.Plan) { p.Fenced, p.LagZero = true, false })
	try(func(p *schedule.Plan) { p.Replicas = false })
	try(func(p *schedule.Plan) { p.NodePPM = [schedule.MaxNodes]int64{} })
	for i := range s.best.N {
		try(func(p *schedule.Plan) { p.NodePPM[i] = 0 })
	}
	for i := range s.best.Guards {
		try(func(p *schedule.Plan) { p.Guard[i].PPM = 0 })
		try(func(p *schedule.Plan) {
			for k := range p.Guard[i].Trips {
				p.Guard[i].Trips[k] = schedule.Prompt()
			}
		})
		for k := range s.best.Guard[i].Trips {
			try(func(p *schedule.Plan) { p.Guard[i].Trips[k] = schedule.Prompt() })
		}
	}
	for i := range s.best.Faults {
		try(func(p *schedule.Plan) { p.Fault[i].Silent = false })
		try(func(p *schedule.Plan) { p.Fault[i].Stagger = 0 })
		try(func(p *schedule.Plan) { p.Fault[i].Nth = 1 })
		for b := range s.best.N {
			try(func(p *schedule.Plan) { p.Fault[i].Mask &^= 1 << b })
		}
		if s.best.Fault[i].Count > 1 {
			try(func(p *schedule.Plan) { p.Fault[i].Count-- })
		}
	}
	for c := range s.best.Clients {
		try(func(p *schedule.Plan) { p.Client[c].PPM = 0 })
		try(func(p *schedule.Plan) { p.Client[c].Skew = 0 })
		for k := range s.best.Client[c].Attempts {
			s.simplify(try, c, k)
		}
	}
	s.best.Durations(func(get func(*schedule.Plan) *time.Duration) { s.round(try, get) })
	return helped
}

func (s *shrinker) simplify(try func(func(*schedule.Plan)) bool, c, k int) {
	of := func(p *schedule.Plan) *schedule.Attempt { return &p.Client[c].Attempt[k] }
	try(func(p *schedule.Plan) { of(p).Deaf, of(p).Lost, of(p).Mute = 0, 0, 0 })
	try(func(p *schedule.Plan) { of(p).Extends = 0 })
	if of(&s.best).Extends > 1 {
		try(func(p *schedule.Plan) { of(p).Extends-- })
	}
	try(func(p *schedule.Plan) { of(p).Keep = true })
	try(func(p *schedule.Plan) { of(p).On = schedule.OnTime })
	try(func(p *schedule.Plan) { of(p).Set = schedule.Quiet() })
	try(func(p *schedule.Plan) { of(p).Release = schedule.Quiet() })
	for i := range of(&s.best).Extends {
		try(func(p *schedule.Plan) { of(p).Ext[i].Trips = schedule.Quiet() })
		try(func(p *schedule.Plan) { of(p).Ext[i].Mute = 0 })
	}
	for i := range s.best.N {
		try(func(p *schedule.Plan) { of(p).Deaf &^= 1 << i })
		try(func(p *schedule.Plan) { of(p).Lost &^= 1 << i })
		try(func(p *schedule.Plan) { of(p).Mute &^= 1 << i })
		try(func(p *schedule.Plan) { of(p).Set[i] = schedule.Prompt() })
		try(func(p *schedule.Plan) { of(p).Release[i] = schedule.Prompt() })
		for e := range of(&s.best).Extends {
			try(func(p *schedule.Plan) { of(p).Ext[e].Trips[i] = schedule.Prompt() })
		}
	}
}

// round makes a duration one that is easy to read, the roundest that will do.
func (s *shrinker) round(try func(func(*schedule.Plan)) bool, get func(*schedule.Plan) *time.Duration) {
	old := *get(&s.best)
	for _, unit := range [...]time.Duration{0, 10 * time.Second, time.Second, 100 * ms, 10 * ms, ms} {
		to := unit // no smaller than this
		if unit > 0 {
			if old%unit == 0 && unit > ms {
				return
			}
			to = old.Round(unit)
		}
		if to == old || try(func(p *schedule.Plan) { *get(p) = to }) {
			return
		}
	}
}
