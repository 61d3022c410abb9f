package restartguard

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// left is a copy that has so much left, read at a moment after the beginning.
func left(token string, at, left time.Duration) Copy {
	return Copy{Key: "k", Token: token, Sent: epoch.Add(at), Got: epoch.Add(at + time.Millisecond), Left: left}
}

func TestCovered(t *testing.T) {
	const s = time.Second
	odd := left("a", 0, 20*s)
	odd.Odd = "a hash"
	for name, c := range map[string]struct {
		quorum int
		copies []Copy
		want   bool
	}{
		"a quorum of one token":                       {3, []Copy{left("a", 0, 20*s), left("a", 0, 20*s), left("a", 0, 20*s)}, true},
		"one more that ends sooner":                   {3, []Copy{left("a", 0, 20*s), left("a", 0, 20*s), left("a", 0, 20*s), left("a", 0, s)}, true},
		"one less than a quorum":                      {3, []Copy{left("a", 0, 20*s), left("a", 0, 20*s)}, false},
		"less than that, of a lock that nobody holds": {3, []Copy{left("a", 0, 20*s)}, false},
		"two tokens":                                  {2, []Copy{left("a", 0, 20*s), left("b", 0, 20*s)}, false},
		"a quorum beside another token":               {2, []Copy{left("a", 0, 20*s), left("a", 0, 20*s), left("b", 0, s)}, true},
		"one copy ends sooner":                        {2, []Copy{left("a", 0, 20*s), left("a", 0, 19*s)}, false},
		"it was extended on all but one":              {3, []Copy{left("a", 0, 20*s), left("a", 0, 20*s), left("a", 0, 10*s)}, false},
		"the copies are some milliseconds apart":      {2, []Copy{left("a", 0, 20*s), left("a", 0, 20*s-20*time.Millisecond)}, true},
		"read one after the other":                    {2, []Copy{left("a", 0, 20*s), left("a", s, 19*s)}, true},
		"read so far apart that rates matter":         {2, []Copy{left("a", 0, 20*s), left("a", 15*s, 5*s)}, false},
		"without a TTL":                               {2, []Copy{left("a", 0, -1), left("a", 0, -1)}, true},
		"one of two without a TTL":                    {2, []Copy{left("a", 0, -1), left("a", 0, 20*s)}, false},
		"not a string":                                {2, []Copy{left("a", 0, 20*s), left("a", 0, 20*s), odd}, false},
		"a quorum of one":                             {1, []Copy{left("a", 0, 20*s)}, false},
		"no copy":                                     {2, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := covered(c.copies, c.quorum); got != c.want {
				t.Errorf("covered: %t", got)
			}
			slices.Reverse(c.copies)
			if got := covered(c.copies, c.quorum); got != c.want {
				t.Errorf("in the other order: %t", got)
			}
		})
	}
}

// Whoever counts a vote that was lost, and all but one of a quorum among the copies
// that are found, stops believing before the copies fall below a quorum: with
// clocks that are all wrong by up to 0.4 %, and readings at any time.
func TestCoveredOutlastsEveryBelief(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 7).Draw(t, "n")
		quorum := n/2 + 1
		ppm := func(what string) float64 { // mostly the extremes, where safety ends
			return 1 + clockError*rapid.SampledFrom([]float64{-1, 1, -1, 1, 0, 0.5, -0.3}).Draw(t, what)
		}
		ttl := time.Duration(rapid.IntRange(20, 60_000).Draw(t, "ttl")) * time.Millisecond
		client, guard := ppm("client"), ppm("guard")
		// True time; the request is sent at 0.
		belief := time.Duration(float64(ttl-ttl/100) / client)
		if belief <= 0 {
			return
		}
		read := time.Duration(rapid.Int64Range(int64(belief/50), int64(belief)).Draw(t, "read"))
		var copies []Copy
		var ends []time.Duration
		for i := range n - 1 {
			rate := ppm("node")
			var end time.Duration
			if i < quorum-1 { // one that is counted
				end = time.Duration(rapid.Int64Range(0, int64(belief)/50).Draw(t, "trip")) + time.Duration(float64(ttl)/rate)
			} else {
				end = belief + time.Duration(rapid.Int64Range(-int64(belief)/50, int64(belief)/50).Draw(t, "end"))
			}
			// All are read at about the same moment, or at any.
			at := read
			if rapid.IntRange(0, 3).Draw(t, "apart") == 0 {
				at = time.Duration(rapid.Int64Range(int64(belief/50), int64(belief)).Draw(t, "read"))
			}
			if end <= at {
				if i < quorum-1 {
					t.Fatalf("a copy that is counted is gone at %s, and the belief ends at %s", at, belief)
				}
				continue
			}
			// To the millisecond, this way or that.
			pttl := time.Duration(float64(end-at) * rate).Truncate(time.Millisecond)
			if rapid.Bool().Draw(t, "up") {
				pttl += time.Millisecond
			}
			trip := time.Duration(rapid.Int64Range(0, int64(2*time.Millisecond)).Draw(t, "rtt"))
			local := func(d time.Duration) time.Time { return epoch.Add(time.Duration(float64(d) * guard)) }
			copies = append(copies, Copy{Key: "k", Token: "a", Sent: local(at - trip), Got: local(at + trip), Left: pttl})
			ends = append(ends, end)
		}
		if !covered(copies, quorum) {
			return
		}
		slices.Sort(ends)
		if least := ends[len(ends)-quorum]; least < belief {
			t.Fatalf("covered, and a quorum is there until %s only; the belief ends at %s", least, belief)
		}
	})
}

// bench is a survey about n1 of five, with the others in good order.
type bench struct {
	*Survey
	t      *testing.T
	state  Basis
	others []Other
	now    time.Time
}

const testBound = 2 * time.Second

func newBench(t *testing.T, n int) *bench {
	b := &bench{t: t, now: epoch, Survey: &Survey{N: n, Quorum: n/2 + 1, After: testBound, Apart: testBound / 2}}
	b.state = Basis{Phase: PhaseFenced, Incarnation: Incarnation{RunID: "run1"}, Duty: Duty{Kind: DutyWait, Deadline: epoch.Add(testDelay), Holds: true}, Fencing: Fencing{Delay: testDelay}}
	for i := 2; i <= n; i++ {
		s := Basis{Phase: PhaseServing, Incarnation: Incarnation{RunID: fmt.Sprintf("run%d", i), Role: "master"}, Trust: Trust{Trusted: epoch.Add(-time.Hour)}}
		b.others = append(b.others, Other{Name: fmt.Sprintf("n%d", i), Basis: s})
	}
	return b
}

func (b *bench) doubts(part string) {
	b.t.Helper()
	if e := b.EvidenceFor("n1", b.state, b.others, b.now); e.Doubt == "" || !strings.Contains(e.Doubt, part) {
		b.t.Fatalf("%+v, want a doubt about %q", e, part)
	}
}

func (b *bench) proves(locks int) {
	b.t.Helper()
	e := b.EvidenceFor("n1", b.state, b.others, b.now)
	if e.Doubt != "" || e.Locks != locks || e.RunID != "run1" || e.Began.Before(epoch.Add(testBound)) {
		b.t.Fatalf("%+v, want %d locks", e, locks)
	}
}

// all answers the present question for each other node, with the copies that it has now.
func (b *bench) all(copies func(node int) []Copy) {
	b.t.Helper()
	for i, o := range b.others {
		q, ok := b.Question(o.Name, b.now)
		if !ok {
			b.t.Fatalf("%s is not asked", o.Name)
		}
		t := Answer{Round: q.Round, RunID: o.Basis.RunID, Began: b.now}
		b.now = b.now.Add(time.Millisecond)
		t.Ended = b.now
		for _, c := range copies(i + 2) {
			if q.Keys == nil || slices.Contains(q.Keys, c.Key) {
				c.Sent, c.Got = t.Began, t.Ended
				t.Copies = append(t.Copies, c)
			}
		}
		b.Answer(o.Name, t)
		b.now = b.now.Add(time.Millisecond)
		b.Confirm(o.Name, o.Basis, b.now, b.now)
	}
}

func key(name, token string) Copy { return Copy{Key: name, Token: token, Left: 20 * time.Second} }

func TestEarlyWhenEveryLockHasAQuorumElsewhere(t *testing.T) {
	b := newBench(t, 5)
	b.doubts("no attempt from before its loss")
	if _, ok := b.Question("n2", b.now.Add(testBound-1)); ok {
		t.Fatal("asked before the bound is over")
	}
	b.now = epoch.Add(testBound)
	b.doubts("asking the others")
	b.all(func(node int) []Copy {
		if node == 5 {
			return []Copy{key("a", "1")}
		}
		return []Copy{key("a", "1"), key("b", "2")}
	})
	b.proves(2)
}

func TestEarlyWithoutLocks(t *testing.T) {
	b := newBench(t, 3)
	b.doubts("")
	b.now = epoch.Add(testBound)
	b.all(func(int) []Copy { return nil })
	b.proves(0)
}

func TestALockInDoubtIsReadAgain(t *testing.T) {
	b := newBench(t, 5)
	b.doubts("")
	b.now = epoch.Add(testBound)
	b.all(func(node int) []Copy {
		if node <= 3 {
			return []Copy{key("a", "1"), key("x\x1b[31m", "2")}
		}
		return []Copy{key("a", "1")}
	})
	b.doubts(`lock x\x1b[31m has 2 of 3 copies elsewhere`)
	if _, ok := b.Question("n2", b.now); ok {
		t.Fatal("asked again at once")
	}
	b.now = b.now.Add(roundPause)
	q, ok := b.Question("n2", b.now)
	if !ok || !slices.Equal(q.Keys, []string{"x\x1b[31m"}) {
		t.Fatalf("asked for %q", q.Keys)
	}
	b.all(func(node int) []Copy {
		if node <= 3 {
			return []Copy{key("x\x1b[31m", "2")}
		}
		return nil
	})
	b.doubts("2 of 3")
	b.now = b.now.Add(roundPause)
	b.all(func(int) []Copy { return nil }) // released
	b.proves(1)
}

func TestDoubtsThatMeanWaiting(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*Basis)
		part  string
	}{
		"unreachable":        {func(s *Basis) { s.Phase = PhaseUnreachable }, "n3 unreachable"},
		"closed":             {func(s *Basis) { s.Phase = PhaseFenced }, "n3 fenced"},
		"held":               {func(s *Basis) { s.Phase = PhaseCordoned }, "n3 cordoned"},
		"exposed":            {func(s *Basis) { s.Phase = PhaseExposed }, "n3 exposed"},
		"not seen":           {func(s *Basis) { *s = Basis{} }, "n3 not seen yet"},
		"lost votes lately":  {func(s *Basis) { s.Trusted = epoch.Add(time.Minute) }, "less than D ago"},
		"never known":        {func(s *Basis) { s.Trusted = time.Time{} }, "less than D ago"},
		"a replica":          {func(s *Basis) { s.Role = "slave" }, "not a master"},
		"fence not readable": {func(s *Basis) { s.Blind = true }, "fence"},
		"its clock is ahead": {func(s *Basis) { s.Ahead = 1 }, "stepped"},
		"its clock is far":   {func(s *Basis) { s.Blur = time.Second }, "closely"},
		"the same server":    {func(s *Basis) { s.RunID = "run2" }, "same server"},
		"it is the lost one": {func(s *Basis) { s.RunID = "run1" }, "same server"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 5)
			b.now = epoch.Add(testBound)
			b.doubts("asking")
			b.all(func(int) []Copy { return nil })
			b.proves(0)
			good := b.others[1].Basis
			c.spoil(&b.others[1].Basis)
			b.doubts(c.part)
			b.others[1].Basis = good
			b.doubts("asking") // all over again
		})
	}
	t.Run("clocks that differ by more than what the bound leaves for them", func(t *testing.T) {
		b := newBench(t, 5)
		b.now = epoch.Add(testBound)
		b.others[0].Basis.Offset, b.others[3].Basis.Offset = testBound/4, -testBound/4
		b.doubts("asking")
		b.others[3].Basis.Offset--
		b.doubts("the clocks of the nodes differ by 1s")
		b.state.Offset = -testBound
		b.doubts("differ")
	})
	t.Run("its own clock is far", func(t *testing.T) {
		b := newBench(t, 5)
		b.state.Blur = time.Second
		b.doubts("its own clock")
	})
	t.Run("a node that is not watched", func(t *testing.T) {
		b := newBench(t, 5)
		b.others = b.others[:3]
		b.doubts("watches only 3 of the 4")
	})
	t.Run("one node", func(t *testing.T) { newBench(t, 1).doubts("no other node") })
}

// What was told counts after a look that was begun later has found nothing lost.
func TestAnswerNeedsALaterLook(t *testing.T) {
	for name, spoil := range map[string]func(*Answer, *Basis, *time.Time){
		"a look from before":   func(t *Answer, _ *Basis, asked *time.Time) { *asked = t.Ended.Add(-1) },
		"another life":         func(_ *Answer, s *Basis, _ *time.Time) { s.RunID = "other" },
		"a loss":               func(t *Answer, s *Basis, _ *time.Time) { s.Trusted = t.Ended.Add(time.Hour) },
		"an earlier loss":      func(t *Answer, s *Basis, _ *time.Time) { s.Trusted = t.Began.Add(1) },
		"closed":               func(_ *Answer, s *Basis, _ *time.Time) { s.Phase = PhaseFenced },
		"an earlier question":  func(t *Answer, _ *Basis, _ *time.Time) { t.Round-- },
		"begun before it":      func(t *Answer, _ *Basis, _ *time.Time) { t.Began = epoch.Add(testBound - 1) },
		"a scan that was hurt": func(t *Answer, _ *Basis, _ *time.Time) { t.Doubt = "cannot be read" },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 2)
			b.now = epoch.Add(testBound)
			b.doubts("")
			q, ok := b.Question("n2", b.now)
			if !ok {
				t.Fatal("not asked")
			}
			told := Answer{Round: q.Round, RunID: "run2", Began: b.now, Ended: b.now.Add(time.Millisecond)}
			asked, s := told.Ended.Add(time.Millisecond), b.others[0].Basis
			b.now = asked.Add(time.Millisecond)
			spoil(&told, &s, &asked)
			b.Answer("n2", told)
			b.Confirm("n2", s, asked, b.now)
			if e := b.EvidenceFor("n1", b.state, b.others, b.now); e.Doubt == "" {
				t.Fatalf("%+v", e)
			}
		})
	}
}

func TestEvidenceIsForOneLoss(t *testing.T) {
	b := newBench(t, 3)
	b.now = epoch.Add(testBound)
	b.doubts("")
	b.all(func(int) []Copy { return nil })
	b.proves(0)
	b.state.Deadline = b.now.Add(testDelay) // it has lost something again
	b.doubts("no attempt from before")
	if _, ok := b.Question("n2", b.now); ok {
		t.Fatal("asked before the bound of the new loss is over")
	}
}

// The step machine.

func early(run string, began time.Time) *Evidence {
	return &Evidence{RunID: run, Began: began, Locks: 412}
}

func (s *script) looks(run string, e *Evidence) *script {
	s.t.Helper()
	return s.step(Observation{About: Seen, RunID: run, Role: "master", Params: fenced, Evidence: e})
}

func fencedAfterLoss(t *testing.T) *script {
	s := newScript(t)
	s.policy.EarlyAfter = testBound
	s.sees("a", servingParams).after(tick).sees("b", fenced).canary(CanaryFenced, fenced)
	return s.phase(PhaseFenced)
}

func TestEarlyRejoin(t *testing.T) {
	s := fencedAfterLoss(t)
	lost := s.now
	s.after(testBound).looks("b", early("b", lost.Add(testBound))).does(removeIt("b"))
	s.lifted(fenced, servingParams).phase(PhaseServing).told("rejoined", "rejoined early: 412 locks, each with a quorum of copies elsewhere; D would have ended 8s later")
	if !s.state.Basis.Trusted.Equal(s.now) || s.state.Basis.Early != "" {
		t.Errorf("%+v", s.state)
	}
}

func TestNoEarlyRejoin(t *testing.T) {
	for name, c := range map[string]func(s *script, lost time.Time) *Evidence{
		"no evidence": func(*script, time.Time) *Evidence { return nil },
		"a doubt": func(_ *script, l time.Time) *Evidence {
			return &Evidence{RunID: "b", Began: l.Add(time.Hour), Doubt: "x"}
		},
		"asked too early":    func(_ *script, l time.Time) *Evidence { return early("b", l.Add(testBound-1)) },
		"of an earlier life": func(_ *script, l time.Time) *Evidence { return early("a", l.Add(testBound)) },
		"not switched on":    func(s *script, l time.Time) *Evidence { s.policy.EarlyAfter = 0; return early("b", l.Add(testBound)) },
		"advice only":        func(s *script, l time.Time) *Evidence { s.policy.Advice = true; return early("b", l.Add(testBound)) },
		"not proven to be closed": func(s *script, l time.Time) *Evidence {
			s.state.Basis.Proven = false
			return early("b", l.Add(testBound))
		},
		"an earlier lift is astray": func(s *script, l time.Time) *Evidence {
			s.state.Basis.Pending = InFlightCommand{Sent: true, Removal: true, Until: s.now.Add(time.Hour)}
			return early("b", l.Add(testBound))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := fencedAfterLoss(t)
			lost := s.now
			s.after(testBound)
			s.looks("b", c(s, lost)).phase(PhaseFenced)
			for _, a := range s.actions {
				if a.Kind == Remove {
					t.Errorf("lifted: %+v", s.actions)
				}
			}
		})
	}
	t.Run("a loss in the same look", func(t *testing.T) {
		s := fencedAfterLoss(t)
		lost := s.now
		s.after(testBound)
		s.step(Observation{About: Seen, RunID: "b", Role: "master", Params: fenced, Wipes: 1, Evidence: early("b", lost.Add(testBound))})
		s.phase(PhaseFenced).until(tick + testBound + testDelay)
		for _, a := range s.actions {
			if a.Kind == Remove {
				t.Errorf("lifted: %+v", s.actions)
			}
		}
	})
}

func TestDoubtsAreToldOnce(t *testing.T) {
	s := fencedAfterLoss(t)
	s.after(testBound)
	before := s.count("waiting")
	for i := range 50 {
		s.after(tick).looks("b", &Evidence{RunID: "b", Doubt: fmt.Sprintf("waits D: lock %d", i/10)})
	}
	if n := s.count("waiting") - before; n != mostDoubts {
		t.Errorf("told %d times: %+v", n, s.events)
	}
	s.told("waiting", "waits D: lock 0")
	s.looks("b", &Evidence{RunID: "b", Doubt: "may rejoin early: asking the others for their locks"}).phase(PhaseFenced)
	if n := s.count("waiting") - before; n != mostDoubts {
		t.Error("what passes by itself is told")
	}
}

func TestOnlyWhoIsKnownForLongMayAnswer(t *testing.T) {
	s := newScript(t).sees("a", servingParams).phase(PhaseServing)
	if s.state.Basis.unsound(s.now.Add(testDelay-1)) == "" {
		t.Error("one that was just adopted")
	}
	s.state.Basis.Blur = 0
	if why := s.state.Basis.unsound(s.now.Add(testDelay)); why != "" {
		t.Errorf("known for D: %s", why)
	}
	s.after(2*testDelay).sees("b", fenced).canary(CanaryFenced, fenced).after(tick).sees("b", servingParams).phase(PhaseServing)
	s.state.Basis.Blur = 0
	if s.state.Basis.unsound(s.now) == "" {
		t.Error("one that another opened within D of its loss")
	}
}
