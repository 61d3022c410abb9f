package redlock

import (
	"context"
	"fmt"
	"math/rand/v2"
	"redlockctl/base/race"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

// brokenRule is a deliberately broken mutant of the algorithm, which breaks one
// rule, and the check that has to notice. The same check passes on the whole
// algorithm, in the test that check names.
type brokenRule struct {
	rule   string
	broken string // what the mutant does instead
	check  string
	mutant finder
}

// finder plays a schedule of a mutant; an error says that its check has noticed.
type finder func(t *testing.T, seed uint64) error

// Where the whole algorithm passes the checks.
const (
	byExclusion = "TestExclusion"
	byLeftover  = "TestNothingLeftBehind"
	byExtension = "TestExtendsWhatIsThere"
	byOwed      = "TestSkippedNodeIsToldOfReleases"
	byAdmission = "TestAdmission"
)

// brokenRules are all rules of the lock core that safety rests on. What the
// keeper and the fencing tokens add has its mutants beside their tests.
func brokenRules() []brokenRule {
	return []brokenRule{
		// Quorum.
		{"the transport sends nothing twice", "a SET is sent again: a second vote", byLeftover, sendsAgain},

		// Validity.
		{"validity from before the first request", "counted from the end of the attempt", byExclusion, validityFromTheEnd},
		{"less the drift allowance", "the whole TTL is relied upon", byExclusion, noDrift},
		{"no act after the validity", "the holder goes on", byExclusion, holderGoesOn},
		{"expiry is left to the nodes", "PXAT by the client's wall clock, which is late", byExclusion, absoluteExpiry},

		// One attempt, one token, one verdict.
		{"a token names one attempt", "reused by the attempts of one call", byExclusion, tokenReused},
		{"a reply belongs to its request", "a connection is kept after a timeout", byExclusion, connectionKept},

		// Release.
		{"a release compares", "it deletes whatever is there", byExclusion, releaseWithoutComparing},
		{"released on unanswered nodes too", "only where the SET was answered", byLeftover, notWhereUnanswered},
		{"released where the answer was no", "only where it was yes", byLeftover, onlyWhereYes},
		{"a SET and its DEL in order", "releases overtake", byLeftover, releasesOvertake},
		{"an unheard release is sent again", "what is owed to a node is forgotten", byOwed, owedForgotten},
		{"released after the context's end", "nothing is sent any more", byLeftover, noReleaseAfterTheEnd},

		// Extension.
		{"an extension makes no copy", "it makes a missing one anew", byExtension, extensionRevives},
		{"an extension takes no copy", "it does not compare", byExtension, extensionTakes},
		{"an extension never shortens", "a shorter one that comes late cuts a longer one", byExclusion, extensionShortens},

		// Nothing blocks, nothing grows.
		{"admission does not block", "the caller waits for room", byAdmission, admissionMutant(waitsForRoom)},
		{"queues are bounded", "there is always room", byAdmission, admissionMutant(alwaysRoom)},
		{"no goroutine for each request", "each waits for its answer in its own", byAdmission, admissionMutant(goroutineEach)},

		// What the restart guard is for.
		{"a node keeps what it was told", "it forgets, and votes again at once", byExclusion, nodesForget},
	}
}

// mutantSchedules bounds the search for a schedule on which a mutant fails, and
// twinSearch the time that it takes: whole schedules of clients are slow.
const (
	mutantSchedules = 20_000
	mutantSearch    = time.Minute
)

// TestMutants expects that each mutant is noticed, and prints how many schedules
// that took.
func TestMutants(t *testing.T) {
	race.Skip(t)
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "rule\tbroken\tnoticed by\tschedules")
	seen := make(map[string]bool)
	for _, b := range brokenRules() {
		if seen[b.rule] {
			t.Errorf("two rows for: %s", b.rule)
		}
		seen[b.rule] = true
		t.Run(b.rule, func(t *testing.T) {
			begin, seed := time.Now(), uint64(0)
			for ; seed < mutantSchedules && time.Since(begin) < mutantSearch; seed++ {
				if err := b.mutant(t, seed); err != nil {
					t.Logf("schedule %d: %v", seed, err)
					fmt.Fprintf(w, "%s\t%s\t%s\t%d\n", b.rule, b.broken, b.check, seed+1)
					return
				}
			}
			t.Errorf("%s: not noticed in %d schedules", b.broken, seed)
		})
	}
	_ = w.Flush()
	t.Log("\n" + table.String())
}

// excludes plays a schedule in which two holders at once are looked for.
func excludes(t *testing.T, seed uint64, s schedule) error {
	beliefs, _ := s.run(t, seed)
	return overlap(beliefs)
}

// tidies plays a schedule after which nothing must be left. On the way to each
// node, twist changes what arrives.
func tidies(t *testing.T, seed uint64, s schedule, twist func(*memNode) func([]*call) []*call) error {
	if hangs := s.twist; twist != nil {
		s.twist = func(n *memNode) func([]*call) []*call {
			first, second := hangs(n), twist(n)
			return func(batch []*call) []*call { return second(first(batch)) }
		}
	}
	_, left := s.run(t, seed)
	return leftover(left)
}

// without leaves out some calls.
func without(batch []*call, drop func(*call) bool) (kept []*call) {
	for _, c := range batch {
		if !drop(c) {
			kept = append(kept, c)
		}
	}
	return kept
}

func noDrift(t *testing.T, seed uint64) error {
	s := contenders()
	s.opt.DriftFactor, s.opt.DriftMargin = 1e-12, 1
	s.faulty = false
	return excludes(t, seed, s)
}

func holderGoesOn(t *testing.T, seed uint64) error {
	s := contenders()
	s.hold = func(l *Lock, rnd *rand.Rand) {
		l.until = l.until.Add(time.Hour)
		time.Sleep(time.Duration(rnd.Int64N(int64(time.Second))))
	}
	return excludes(t, seed, s)
}

func validityFromTheEnd(t *testing.T, seed uint64) error {
	s := contenders()
	hold := s.hold
	s.hold = func(l *Lock, rnd *rand.Rand) {
		l.until = time.Now().Add(l.ttl - l.client.opt.Drift(l.ttl))
		hold(l, rnd)
	}
	return excludes(t, seed, s)
}

func absoluteExpiry(t *testing.T, seed uint64) error {
	s := contenders()
	s.twist = func(*memNode) func([]*call) []*call {
		return func(batch []*call) []*call {
			for _, c := range batch {
				if c.op == opSet {
					c.ttl -= 100 * time.Millisecond
				}
			}
			return batch
		}
	}
	return excludes(t, seed, s)
}

func nodesForget(t *testing.T, seed uint64) error {
	s := contenders()
	s.forget = true
	return excludes(t, seed, s)
}

func tokenReused(t *testing.T, seed uint64) error {
	s := contenders()
	draw := func(c *Client) {
		token := newToken(note{})
		c.token = func(note) string { return token }
	}
	hold := s.hold
	s.hold = func(l *Lock, rnd *rand.Rand) {
		draw(l.client) // for the next call
		hold(l, rnd)
	}
	s.client = func(t testing.TB, nodes []*memNode, opt Options, twist func(*memNode) func([]*call) []*call) *Client {
		c := newMemClient(t, nodes, opt, twist)
		draw(c)
		return c
	}
	return excludes(t, seed, s)
}

func releaseWithoutComparing(t *testing.T, seed uint64) error {
	s := contenders()
	s.twist = func(n *memNode) func([]*call) []*call {
		return func(batch []*call) []*call {
			for _, c := range batch {
				if at := n.get(c.key); c.op == opRelease && at.token != "" {
					n.keys[c.key] = memCopy{c.token, at.expires} // as if it were the caller's
				}
			}
			return batch
		}
	}
	return excludes(t, seed, s)
}

// keptWire gives out the same connection again after it was closed, with the
// replies that come late on it.
type keptWire struct {
	memDialer
	kept *keptLink
}

// keptLink drops a reply only while nothing is asked.
type keptLink struct{ *memLink }

func (l *keptLink) receive(oldest func() *call) (*call, answer, error) {
	for {
		c, a, err := l.memLink.receive(oldest)
		if c != nil || err != nil {
			return c, a, err
		}
	}
}

func (w *keptWire) open(ctx context.Context) (link, error) {
	l, err := w.memDialer.open(ctx)
	if err != nil {
		w.kept = nil
		return nil, err
	}
	if w.kept == nil {
		w.kept = &keptLink{l.(*memLink)}
		return w.kept, nil
	}
	w.kept.mu.Lock()
	defer w.kept.mu.Unlock()
	w.kept.closed, w.kept.deadline = false, time.Time{}
	return w.kept, nil
}

func connectionKept(t *testing.T, seed uint64) error {
	s := contenders()
	s.client = func(t testing.TB, nodes []*memNode, opt Options, twist func(*memNode) func([]*call) []*call) *Client {
		return wired(t, nodes, opt, twist, func(w memDialer) dialer { return &keptWire{memDialer: w} }, nil)
	}
	return excludes(t, seed, s)
}

func sendsAgain(t *testing.T, seed uint64) error {
	return tidies(t, seed, tidyHung(), func(n *memNode) func([]*call) []*call {
		return func(batch []*call) []*call {
			for _, c := range batch {
				if c.op == opSet && n.hung { // it was not answered in time
					again := *c
					time.AfterFunc(500*time.Millisecond, func() {
						n.set(func(n *memNode) { n.apply(&again) })
					})
				}
			}
			return batch
		}
	})
}

// releasesOvertake lets some SETs take another way than their release, as with a
// pool of connections, on which it takes longer.
func releasesOvertake(t *testing.T, seed uint64) error {
	return tidies(t, seed, tidyHung(), func(n *memNode) func([]*call) []*call {
		sets := 0
		return func(batch []*call) []*call {
			return without(batch, func(c *call) bool {
				if c.op != opSet {
					return false
				}
				if sets++; sets%5 > 0 {
					return false
				}
				late := *c
				time.AfterFunc(100*time.Millisecond, func() {
					n.set(func(n *memNode) { n.apply(&late) })
				})
				return true
			})
		}
	})
}

func notWhereUnanswered(t *testing.T, seed uint64) error {
	return tidies(t, seed, tidyHung(), func(n *memNode) func([]*call) []*call {
		unanswered := make(map[string]bool)
		return func(batch []*call) []*call {
			return without(batch, func(c *call) bool {
				if c.op == opSet && n.hung {
					unanswered[c.token] = true
				}
				return c.op == opRelease && unanswered[c.token]
			})
		}
	})
}

// onlyWhereYes takes an answer that the client did not wait for as a no.
func onlyWhereYes(t *testing.T, seed uint64) error {
	s := tidyHung()
	s.client = func(t testing.TB, nodes []*memNode, opt Options, twist func(*memNode) func([]*call) []*call) *Client {
		return wired(t, nodes, opt, twist, func(w memDialer) dialer { return yesWire{w, make(map[string]bool)} }, nil)
	}
	return tidies(t, seed, s, nil)
}

// yesWire releases only what it has seen a yes for.
type yesWire struct {
	memDialer
	yes map[string]bool
}

func (w yesWire) open(ctx context.Context) (link, error) {
	l, err := w.memDialer.open(ctx)
	if err != nil {
		return nil, err
	}
	inner := l.(*memLink)
	hangs := inner.twist
	inner.twist = func(batch []*call) []*call {
		return without(hangs(batch), func(c *call) bool { return c.op == opRelease && !w.yes[c.token] })
	}
	return yesLink{inner, w}, nil
}

type yesLink struct {
	*memLink
	wire yesWire
}

func (l yesLink) receive(oldest func() *call) (*call, answer, error) {
	c, a, err := l.memLink.receive(oldest)
	if c != nil && c.op == opSet && a.Status == StatusOK {
		l.node.set(func(*memNode) { l.wire.yes[c.token] = true })
	}
	return c, a, err
}
