package sim

import "time"

// shrinkTries bounds how many schedules are played to shorten one.
const shrinkTries = 6000

// shrinker looks for the smallest plan that still breaks a property, by leaving
// out and simplifying, as long as anything helps.
type shrinker struct {
	w     *world
	rules rules
	want  Property
	best  plan
	tries int
}

// shrink returns the smallest plan found, and how many were tried.
func shrink(w *world, p plan, r rules, want Property) (*plan, int) {
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
func (s *shrinker) try(change func(p *plan)) bool {
	if s.tries >= shrinkTries {
		return false
	}
	p := s.best
	change(&p)
	if p == s.best {
		return false
	}
	s.tries++
	s.w.run(&p, s.rules)
	if s.w.broken == nil || s.w.broken.property != s.want {
		return false
	}
	s.best = p
	return true
}

// pass tries everything once, and reports whether anything helped.
func (s *shrinker) pass() bool {
	helped := false
	try := func(change func(p *plan)) bool {
		ok := s.try(change)
		helped = helped || ok
		return ok
	}
	for i := s.best.faults - 1; i >= 0; i-- {
		try(func(p *plan) { p.dropFault(i) })
	}
	for s.best.guards > 1 && try(func(p *plan) { p.guards-- }) {
	}
	try(func(p *plan) { p.shorter = false })
	for i := s.best.clients - 1; i >= 0 && s.best.clients > 1; i-- {
		try(func(p *plan) { p.dropClient(i) })
	}
	for c := range s.best.clients {
		for k := s.best.client[c].attempts - 1; k >= 0; k-- {
			try(func(p *plan) { p.client[c].dropAttempt(k) })
		}
	}
	for n := 3; n < s.best.n; n++ { // with fewer it is hardly Redlock
		if try(func(p *plan) { p.n = n }) {
			break
		}
	}
	try(func(p *plan) { p.fenced, p.lagZero = true, false })
	try(func(p *plan) { p.replicas = false })
	try(func(p *plan) { p.nodePPM = [maxNodes]int64{} })
	for i := range s.best.n {
		try(func(p *plan) { p.nodePPM[i] = 0 })
	}
	for i := range s.best.guards {
		try(func(p *plan) { p.guard[i].ppm = 0 })
		try(func(p *plan) {
			for k := range p.guard[i].trips {
				p.guard[i].trips[k] = trip{ms, ms}
			}
		})
		for k := range s.best.guard[i].trips {
			try(func(p *plan) { p.guard[i].trips[k] = trip{ms, ms} })
		}
	}
	for i := range s.best.faults {
		try(func(p *plan) { p.fault[i].silent = false })
		try(func(p *plan) { p.fault[i].stagger = 0 })
		try(func(p *plan) { p.fault[i].nth = 1 })
		for b := range s.best.n {
			try(func(p *plan) { p.fault[i].mask &^= 1 << b })
		}
		if s.best.fault[i].count > 1 {
			try(func(p *plan) { p.fault[i].count-- })
		}
	}
	for c := range s.best.clients {
		try(func(p *plan) { p.client[c].ppm = 0 })
		try(func(p *plan) { p.client[c].skew = 0 })
		for k := range s.best.client[c].attempts {
			s.simplify(try, c, k)
		}
	}
	s.best.durations(func(get func(*plan) *time.Duration) { s.round(try, get) })
	return helped
}

func (s *shrinker) simplify(try func(func(*plan)) bool, c, k int) {
	of := func(p *plan) *attemptPlan { return &p.client[c].attempt[k] }
	try(func(p *plan) { of(p).deaf, of(p).lost, of(p).mute = 0, 0, 0 })
	try(func(p *plan) { of(p).extends = 0 })
	if of(&s.best).extends > 1 {
		try(func(p *plan) { of(p).extends-- })
	}
	try(func(p *plan) { of(p).keep = true })
	try(func(p *plan) { of(p).on = onTime })
	try(func(p *plan) { of(p).set = quiet() })
	try(func(p *plan) { of(p).rel = quiet() })
	for i := range of(&s.best).extends {
		try(func(p *plan) { of(p).ext[i].trips = quiet() })
		try(func(p *plan) { of(p).ext[i].mute = 0 })
	}
	for i := range s.best.n {
		try(func(p *plan) { of(p).deaf &^= 1 << i })
		try(func(p *plan) { of(p).lost &^= 1 << i })
		try(func(p *plan) { of(p).mute &^= 1 << i })
		try(func(p *plan) { of(p).set[i] = trip{ms, ms} })
		try(func(p *plan) { of(p).rel[i] = trip{ms, ms} })
		for e := range of(&s.best).extends {
			try(func(p *plan) { of(p).ext[e].trips[i] = trip{ms, ms} })
		}
	}
}

// round makes a duration one that is easy to read, the roundest that will do.
func (s *shrinker) round(try func(func(*plan)) bool, get func(*plan) *time.Duration) {
	old := *get(&s.best)
	for _, unit := range [...]time.Duration{0, 10 * time.Second, time.Second, 100 * ms, 10 * ms, ms} {
		to := unit // no smaller than this
		if unit > 0 {
			if old%unit == 0 && unit > ms {
				return
			}
			to = old.Round(unit)
		}
		if to == old || try(func(p *plan) { *get(p) = to }) {
			return
		}
	}
}

// quiet are the trips of a network without faults.
func quiet() (t trips) {
	for i := range t {
		t[i] = trip{ms, ms}
	}
	return t
}

func (p *plan) dropFault(i int) {
	copy(p.fault[i:], p.fault[i+1:])
	p.faults--
	p.fault[p.faults] = faultPlan{}
}

func (p *plan) dropClient(i int) {
	copy(p.client[i:], p.client[i+1:])
	p.clients--
	p.client[p.clients] = clientPlan{}
	for k := range p.faults {
		if f := &p.fault[k]; f.kind == faultClientPause && int(f.who) >= i && f.who > 0 {
			f.who--
		}
	}
}

func (c *clientPlan) dropAttempt(k int) {
	copy(c.attempt[k:], c.attempt[k+1:])
	c.attempts--
	c.attempt[c.attempts] = attemptPlan{}
}

// durations visits those durations of a plan that a trace shows.
func (p *plan) durations(visit func(get func(*plan) *time.Duration)) {
	for i := range p.faults {
		visit(func(p *plan) *time.Duration { return &p.fault[i].after })
		visit(func(p *plan) *time.Duration { return &p.fault[i].length })
	}
	for i := range p.guards {
		visit(func(p *plan) *time.Duration { return &p.guard[i].start })
		visit(func(p *plan) *time.Duration { return &p.guard[i].poll })
	}
	for c := range p.clients {
		for k := range p.client[c].attempts {
			visit(func(p *plan) *time.Duration { return &p.client[c].attempt[k].pause })
			visit(func(p *plan) *time.Duration { return &p.client[c].attempt[k].hold })
			visit(func(p *plan) *time.Duration { return &p.client[c].attempt[k].ttl })
			for e := range p.client[c].attempt[k].extends {
				visit(func(p *plan) *time.Duration { return &p.client[c].attempt[k].ext[e].hold })
				visit(func(p *plan) *time.Duration { return &p.client[c].attempt[k].ext[e].ttl })
			}
		}
	}
}
