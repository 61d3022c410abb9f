package views

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9/logging"
)

var (
	events = flag.Int("events", short, "kills, cordons and cuts; 200 for the long campaign")
	seed   = flag.Uint64("seed", 0, "of all choices; 0: the time")
)

// short is how many events the campaign has beside other tests. It has to share the processors with
// them: a difference may last for longer then.
const (
	short     = 8
	shortMost = 3 * time.Second
)

// mostLasting is for how long a difference may last.
func mostLasting() time.Duration {
	if *events > short {
		return tolerance
	}
	return shortMost
}

// pair is what was compared of two views.
type pair struct {
	name     string
	compared int
	stopped  int           // answers that were left out: this process did not run, see stops
	off      int           // answers that were said of no moment within the tolerance
	longest  time.Duration // for which such answers followed each other
	runs     []difference  // of such answers
	agreed   bool          // the last answer
	last     string        // the lock of it
}

// difference is what two views said differently of a lock for longer than is tolerated.
type difference struct {
	key         string
	first, last time.Time // when it was asked
	lag         time.Duration
	text        string
}

func (p *pair) take(key string, at time.Time, lag time.Duration, said, then belief) {
	p.compared++
	goesOn := !p.agreed && p.last == key && at.Sub(p.runs[len(p.runs)-1].last) < shortMost // else something else may have been said meanwhile
	if p.agreed, p.last = lag <= tolerance, key; p.agreed {
		return
	}
	if p.off++; !goesOn {
		p.runs = append(p.runs, difference{key, at, at, lag, fmt.Sprintf("%s, and not %s", said, then)})
	}
	d := &p.runs[len(p.runs)-1]
	d.last, d.lag = at, max(d.lag, lag)
	p.longest = max(p.longest, at.Sub(d.first))
}

// differences are those that lasted for longer than is tolerated.
func (p *pair) differences() (all []difference) {
	for _, d := range p.runs {
		if d.last.Sub(d.first) > mostLasting() {
			all = append(all, d)
		}
	}
	return all
}

// Each moment has one answer, whatever view is asked.
func TestViewsAgree(t *testing.T) {
	logging.Disable()
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	s := open(t)
	console, guard := newTimeline("console"), newTimeline("guard")
	of := map[string]*answers{}
	for _, name := range []string{"locks", "status", "who", "history", "replay"} {
		of[name] = &answers{name: name}
	}
	of["who"].looks = 300 * time.Millisecond // it lists connections five times a second, or a little less often
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	dice := func(n uint64) *rand.Rand { return rand.New(rand.NewPCG(*seed, n)) }
	wg.Go(func() { s.stops.watch(ctx) })
	wg.Go(func() { s.follow(ctx, s.console.Monitor, console) })
	wg.Go(func() { s.follow(ctx, s.guard.Monitor, guard) })
	for i := range 4 {
		wg.Go(func() { s.client(ctx, dice(uint64(10+i))) })
	}
	time.Sleep(3 * time.Second) // until the record follows the locks
	wg.Go(func() { every(ctx, func() { s.askLocks(ctx, of["locks"]) }) })
	wg.Go(func() { every(ctx, func() { s.askStatus(ctx, of["status"]) }) })
	asked := 0
	wg.Go(func() {
		every(ctx, func() { s.askWho(ctx, keyOf(asked/6%locks), of["who"]); asked++ })
	})
	past := dice(2)
	wg.Go(func() { every(ctx, func() { s.askPast(past, of["history"], of["replay"]) }) })
	begun := time.Now()
	done := s.act(ctx, dice(1), *events)
	time.Sleep(time.Second)
	stop()
	wg.Wait()
	t.Logf("seed %d: %d times masters were killed (%d in all), %d cordons, %d uncordons, %d cuts of the operator, in %s",
		*seed, done.kills, done.killed, done.cordons, done.uncordons, done.cuts, time.Since(begun).Round(time.Second))
	if a, b := s.truths.overlap(); a != nil {
		t.Errorf("two clients relied on %s at once: %+v %+v", a.key, a, b)
	}
	s.tell(s.compare(console, guard, of), console, guard)
}

// compare compares each answer with what the views said that were followed.
func (s *stage) compare(console, guard *timeline, of map[string]*answers) []*pair {
	of["console"], of["guard"] = console.asked(), guard.asked()
	for _, a := range of { // replay is asked of one moment after the other, in no order
		slices.SortStableFunc(a.all, func(a, b answer) int { return cmp.Or(cmp.Compare(a.key, b.key), a.at.Compare(b.at)) })
	}
	var pairs []*pair
	// ends: the sight by which ends are compared; nil: they are not.
	with := func(name string, line *timeline, ends func(sight) sight, agree func(said, then belief, sees sight) bool) {
		p := &pair{name: name + " – " + line.name}
		for _, a := range of[name].all {
			if a.at.After(line.end.Add(-time.Second)) {
				continue // what follows is not known
			}
			if s.stops.near(a.at) {
				p.stopped++
				continue
			}
			sees := s.seenAt(a.at)
			lag, then := line.lag(a.key, a.at, func(b belief) bool { return agree(a.belief, b, sees) })
			if ends != nil {
				late, _ := line.lag(a.key, a.at, func(b belief) bool { return endAgrees(a.belief, b, ends(sees)) })
				lag = max(lag, late)
			}
			lag = max(0, lag-a.looked)
			if a.lasted > 0 {
				lag = min(lag, a.lasted)
			}
			p.take(a.key, a.at, lag, a.belief, then)
		}
		pairs = append(pairs, p)
	}
	agree := s.tokens.agree
	// Both are the operator's: they see the same but in the moment in which that changes.
	// A single look that gets no quorum of answers says so, where the console remembers.
	alike := func(single, console belief, sees sight) bool {
		return agree(single, console, whole) || single.class == unknown && sees == less ||
			sees == moved && (agree(single, console, moved) || agree(console, single, moved))
	}
	// Within one network the ends agree, except at the moment of a change.
	inside := func(sees sight) sight {
		if sees == moved {
			return moved
		}
		return whole
	}
	across := func(sees sight) sight { return sees }
	always := func(sight) sight { return whole }
	with("locks", console, inside, alike)
	with("who", console, inside, alike)
	with("status", console, nil, func(single, console belief, sees sight) bool { return sees == moved || alike(single, console, sees) })
	with("console", guard, across, agree)
	with("guard", console, across, func(said, then belief, sees sight) bool { return agree(then, said, sees) })
	with("replay", guard, always, func(said, then belief, _ sight) bool { return agree(said, then, whole) })
	// It lists only grants: a token that was never granted may still hold the lock.
	with("history", guard, nil, func(said, then belief, _ sight) bool {
		return said.class == nobody && then.class == perhaps || said.class.relied() == then.class.relied() && (!said.class.relied() || s.tokens.of(said.token) == s.tokens.of(then.token))
	})
	with("locks", guard, across, agree)
	with("who", guard, across, agree)
	// A single look does not know which copies there were on nodes that it does not see.
	with("locks", console, nil, func(said, then belief, sees sight) bool {
		return said.access == then.access || said.class != then.class || sees == moved || sees == less && said.access == "may now"
	})
	pairs[len(pairs)-1].name += ", who can get in"
	return append(pairs, s.withTruth(of)...)
}

// known is how long after a grant every view has to know it: a probe's interval and the tolerance.
const known = 200*time.Millisecond + tolerance

// withTruth compares each answer with what the clients believe: nobody may be told that nobody relies
// on a lock while somebody does.
func (s *stage) withTruth(of map[string]*answers) (pairs []*pair) {
	s.truths.mu.Lock()
	defer s.truths.mu.Unlock()
	byKey := map[string][]*truth{}
	for _, b := range s.truths.all {
		byKey[b.key] = append(byKey[b.key], b)
	}
	for _, name := range []string{"console", "guard", "locks", "who", "history", "replay"} {
		p := &pair{name: name + " – clients"}
		for _, a := range of[name].all {
			for _, b := range byKey[a.key] {
				if a.at.Before(b.from.Add(known+a.looked)) || a.at.After(b.until) {
					continue
				}
				lag := time.Duration(0)
				if a.belief.class == nobody {
					lag = a.at.Sub(b.from)
				}
				p.take(a.key, a.at, lag, a.belief, belief{class: held, token: b.token, until: b.until})
			}
		}
		pairs = append(pairs, p)
	}
	return pairs
}

// tell prints what was compared, and fails the test if there are differences.
func (s *stage) tell(pairs []*pair, lines ...*timeline) {
	const most = 12
	var text strings.Builder
	fmt.Fprintf(&text, "\n%-34s %10s %10s %12s %12s %12s\n", "VIEWS", "COMPARED", "LEFT OUT", "SINGLE", "DIFFERENCES", "LONGEST")
	compared, stopped := 0, 0
	for _, p := range pairs {
		fmt.Fprintf(&text, "%-34s %10d %10d %12d %12d %12s\n", p.name, p.compared, p.stopped, p.off, len(p.differences()), p.longest.Round(time.Millisecond))
		compared, stopped = compared+p.compared, stopped+p.stopped
	}
	n, d := s.stops.total()
	s.t.Logf("%sthis process did not run %d times, for %s in all: %.2f %% of the comparisons were left out", text.String(), n, d.Round(time.Millisecond), 100*float64(stopped)/float64(max(1, compared+stopped)))
	if *events > short && float64(stopped) > mostStopped*float64(compared+stopped) {
		s.t.Error("this machine is too busy: too many comparisons were left out to prove anything")
	}
	for _, p := range pairs {
		if p.compared == 0 && *events > short {
			s.t.Errorf("%s: nothing was compared", p.name)
		}
		for i, d := range p.differences() {
			if i == most {
				break
			}
			s.t.Errorf("%s: %s from %s to %s, off by %s: %s\n%s", p.name, d.key, stamp(d.first), stamp(d.last), d.lag.Round(time.Millisecond), d.text, s.around(d, lines))
		}
		for i, d := range p.runs {
			if i >= most || d.last.Sub(d.first) > mostLasting() {
				continue
			}
			s.t.Logf("%s: %s at %s alone, off by %s: %s", p.name, d.key, stamp(d.first), d.lag.Round(time.Millisecond), d.text)
		}
	}
}

func stamp(t time.Time) string { return t.Format("15:04:05.000") }

// around returns what was said about a lock around a difference.
func (s *stage) around(d difference, lines []*timeline) string {
	var text strings.Builder
	from, to := d.first.Add(-2*time.Second), d.last.Add(2*time.Second)
	for _, line := range lines {
		for _, b := range line.of[d.key] {
			if b.at.After(from) && b.at.Before(to) {
				fmt.Fprintf(&text, "    %s %-8s %s\n", stamp(b.at), line.name, b.belief)
			}
		}
	}
	for _, b := range s.truths.all {
		if b.key == d.key && b.from.Before(to) && b.until.After(from) {
			fmt.Fprintf(&text, "    client   %.12s from %s to %s\n", b.token, stamp(b.from), stamp(b.until))
		}
	}
	for _, c := range s.cuts {
		if c.from.Before(to) && (c.to.IsZero() || c.to.After(from)) {
			fmt.Fprintf(&text, "    cut      from %s to %s\n", stamp(c.from), stamp(c.to))
		}
	}
	for _, e := range s.happened {
		if e.at.After(from.Add(-6*time.Second)) && e.at.Before(to) {
			fmt.Fprintf(&text, "    %s agent    %s\n", stamp(e.at), e.what)
		}
	}
	return text.String()
}
