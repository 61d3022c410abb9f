package watch

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"redlockctl/redlock"
	"redlockctl/restartguard"
	"redlockctl/restartguard/memory"
	"redlockctl/server/announce"
	"redlockctl/server/safetext"
)

// Defaults of [Config], and the pause between two attempts to connect to a node
// at whose address nobody listens: short, since D counts from first sight.
const (
	reconnect = 25 * time.Millisecond

	// DefaultCount is a good [Config] CountEvery: a snapshot that was taken longer
	// ago is told by the counter.
	DefaultCount = time.Second
)

// Config of a Guard.
type Config struct {
	// Delay is D, see the function of this name; it must be positive. Longer is
	// always safe and costs availability: a node is out of the quorum for it. Where
	// another guard on the same nodes has a longer one, that one counts.
	Delay time.Duration
	// Cluster is the name under which the guard announces itself.
	Cluster string
	// FirstContact is what to do with an open node that is seen for the first
	// time. Default Adopt: to close a whole live cluster is an outage.
	FirstContact restartguard.FirstContact
	// Poll is the pause between two looks at a node, and so how late a restart
	// is seen. Default 200 ms.
	Poll time.Duration
	// Timeout bounds dialling and the answer to one round of commands. Default
	// 500 ms.
	Timeout time.Duration
	// Methods are how nodes are closed, by name; a node that is not in it is closed
	// by MinReplicas.
	Methods map[string]restartguard.Method
	// ClockStep is the least forward step of a node's wall clock that is a loss. 0:
	// as little as can be told; negative: none.
	ClockStep time.Duration
	// CountEvery is how often the counter key of an open node is raised, which
	// shows a server whose memory was put back to an earlier state. 0: there is no
	// such key.
	CountEvery time.Duration
	// Memory is what the guard remembers beyond its own end; nil: nothing. It must
	// stay open while the guard runs.
	Memory *memory.Store
	// StartedFenced: whoever runs the guard has just started the nodes, and they started fenced.
	// So a young node is adopted, and its present start is reported as seen. For a lab.
	StartedFenced bool
	// N is how many nodes the cluster has, of which a guard may watch fewer.
	// Default: those that it watches.
	N int
	// Patterns are those under which all locks of the cluster are, as of SCAN: a node that is cordoned
	// and has no copy under them is drained. None: no node is.
	Patterns []string
	// Early lets nodes rejoin before D, where the others prove that no lock needs
	// their votes.
	Early EarlyRejoin
	// OnEvent is called for each event, one at a time; it must not block.
	OnEvent func(restartguard.Event)
}

// Guard watches nodes, closes those that may have lost votes and opens them
// again after D.
type Guard struct {
	cfg     Config
	members []*member

	id   string
	host safetext.Text
	pid  int

	past *memory.Past
	used atomic.Bool // the cluster was in use: see useSeen
	// usedSince is when that was seen first, as of [BootTime]; 0: by an earlier run.
	usedSince atomic.Int64

	hearing   sync.Mutex
	peers     restartguard.Peers
	unwritten bool      // the D of others are not on disk as they are known
	wantedAt  time.Time // when it last looked whom a person wants forgotten

	telling sync.Mutex // one event at a time

	asking sync.Mutex
	survey *restartguard.Survey // nil: no early rejoin

	outlooking sync.Mutex
	noQuorum   bool // what was told last
}

// member is what a guard knows of one node. Its watch alone writes it; others read it.
type member struct {
	node   *redlock.Node
	method restartguard.Method

	mu    sync.Mutex
	state restartguard.State
	same  string // see [NodeStatus]
	// unseen is why the guard is not seen on a node that answers; "": it is seen, or that is not known.
	// invalid: the node gave no valid answer to the announcement.
	unseen  string
	invalid bool
	beat    time.Time    // when its watch last came round
	vouched []string     // what it announces of locks
	addrs   []netip.Addr // those of its name; none: it has no name, or they are not known

	changed chan struct{} // what it announces may be another
}

// New makes a guard; nothing is contacted before Run.
func New(nodes []*redlock.Node, cfg Config) (*Guard, error) {
	before := memory.NewPast(nil)
	if cfg.Memory != nil {
		before = cfg.Memory.Past(cfg.Delay)
	}
	return newGuard(nodes, cfg, before)
}

func newGuard(nodes []*redlock.Node, cfg Config, before *memory.Past) (*Guard, error) {
	if cfg.Poll == 0 {
		cfg.Poll = restartguard.DefaultPoll
	}
	if cfg.StartedFenced && cfg.FirstContact == restartguard.Adopt {
		cfg.FirstContact = restartguard.AdoptYoung
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = restartguard.DefaultTimeout
	}
	switch {
	case len(nodes) == 0:
		return nil, errors.New("restart guard: no nodes to guard")
	case cfg.Delay <= 0:
		return nil, fmt.Errorf("restart guard: delay %s is not positive", cfg.Delay)
	case cfg.Poll < 0:
		return nil, fmt.Errorf("restart guard: poll %s is negative", cfg.Poll)
	case cfg.Timeout < 0:
		return nil, fmt.Errorf("restart guard: timeout %s is negative", cfg.Timeout)
	case cfg.FirstContact > restartguard.AdoptYoung:
		return nil, fmt.Errorf("restart guard: first contact %d is not known", cfg.FirstContact)
	}
	if err := cfg.Early.check(cfg.Delay); err != nil {
		return nil, fmt.Errorf("restart guard: %w", err)
	}
	g := &Guard{cfg: cfg, id: rand.Text(), pid: os.Getpid(), past: before}
	if cfg.Memory != nil {
		g.id, g.peers = cfg.Memory.ID(), cfg.Memory.RecallPeers()
		g.used.Store(cfg.Memory.Used())
	}
	host, _ := os.Hostname()
	g.host = safetext.New(host)
	for _, n := range nodes {
		w := &member{node: n, method: cfg.Methods[n.Name()], beat: time.Now(), changed: make(chan struct{}, 1)}
		if err := w.method.Check(); err != nil {
			return nil, fmt.Errorf("restart guard: node %q: %w", n.Name(), err)
		}
		w.state.Report.Known, w.state.Report.Verified = cfg.StartedFenced, cfg.StartedFenced
		if s, ok := before.At(n.Name(), n.Addr(), w.method.ID()); ok {
			w.state = s
		} else if before.InUse {
			w.state.Basis.Joins = true
		}
		g.members = append(g.members, w)
	}
	if g.cfg.N == 0 {
		g.cfg.N = len(nodes)
	}
	if b := cfg.Early.AttemptBound; b > 0 {
		g.survey = &restartguard.Survey{N: g.cfg.N, Quorum: redlock.Quorum(g.cfg.N), After: restartguard.EarlyAfter(b), Apart: b / 2}
	}
	if cfg.Memory != nil {
		cfg.Memory.Expect(g.nodes())
	}
	return g, nil
}

// Successor makes a guard with another configuration that goes on where g, whose
// Run has returned, has ended. A node is known by its address, or by its run_id when it
// is met; one that is not has joined the cluster. A node that waits never waits for less
// than before.
func (g *Guard) Successor(nodes []*redlock.Node, cfg Config) (*Guard, error) {
	next, err := newGuard(nodes, cfg, g.pastOf())
	if err != nil {
		return nil, err
	}
	next.used.Store(g.used.Load())
	next.noQuorum, next.peers, next.unwritten = g.noQuorum, g.peers, g.unwritten
	if cfg.Memory == nil {
		next.id = g.id
	}
	return next, nil
}

func (g *Guard) tell(node string, events []restartguard.Event) {
	if g.cfg.OnEvent == nil {
		return
	}
	g.telling.Lock()
	defer g.telling.Unlock()
	for _, e := range events {
		e.Node = node
		g.cfg.OnEvent(e)
	}
}

// Healthy fails, and names the node, if the watch of a node has not come round
// for longer than any answer may take.
func (g *Guard) Healthy() error {
	limit := g.cfg.Poll + 2*restartguard.MaxActions*g.cfg.Timeout + 2*time.Second
	for _, w := range g.members {
		w.mu.Lock()
		since := time.Since(w.beat)
		w.mu.Unlock()
		if since > limit {
			return fmt.Errorf("the watch of node %q has not come round for %s", w.node.Name(), restartguard.Round(since))
		}
	}
	return nil
}

// ErrBlind is returned by [Guard.Sees] while nodes refuse the guard.
var ErrBlind = errors.New("the guard is blind")

// Sees is an [ErrBlind] that names the nodes whose servers answer and refuse the
// guard, by a wrong password or for want of rights: it protects none of them, and
// cannot know if they serve. nil: there is none. A guard that is blind is healthy:
// to start it again helps only where its password was changed.
func (g *Guard) Sees() error {
	var names []string
	why := ""
	for _, s := range g.Status() {
		if s.Denied {
			names = append(names, s.Node)
			why = s.Err
		}
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("%w: refused by %s: %s", ErrBlind, strings.Join(names, ", "), why)
}

// Met reports whether every node was met, or tried, at least once.
func (g *Guard) Met() bool {
	return !slices.ContainsFunc(g.Status(), func(s restartguard.NodeStatus) bool { return s.Phase == restartguard.PhaseUnknown })
}

// Outlook is what the fences mean for the cluster.
func (g *Guard) Outlook() restartguard.Outlook {
	return restartguard.OutlookOf(g.Status(), g.cfg.N, redlock.Quorum(g.cfg.N))
}

// lookOut tells when a quorum is lost, and when it is back.
func (g *Guard) lookOut() {
	if !g.Met() {
		return
	}
	g.outlooking.Lock()
	defer g.outlooking.Unlock()
	o := g.Outlook()
	if o.Possible() != g.noQuorum || o.Unknown() {
		return // what is not known is told of each node
	}
	g.noQuorum = !o.Possible()
	kind, now := "quorum", time.Now()
	if g.noQuorum {
		kind = "no quorum"
	}
	g.tell("", []restartguard.Event{{At: now, Kind: kind, Text: o.Text(now)}})
}

// Status is the state of each node, in the order of nodes. Its times carry the
// monotonic clock.
func (g *Guard) Status() []restartguard.NodeStatus {
	now := time.Now()
	all := make([]restartguard.NodeStatus, len(g.members))
	for i, w := range g.members {
		all[i] = w.status(now, g.cfg.Delay)
	}
	return all
}

func (w *member) status(now time.Time, delay time.Duration) restartguard.NodeStatus {
	w.mu.Lock()
	s, same, unseen, invalid := w.state, w.same, w.unseen, w.invalid
	w.mu.Unlock()
	st := restartguard.NodeStatus{
		Node: w.node.Name(), Phase: s.Basis.Phase, Verified: s.Report.Verified, Known: s.Report.Known, Proven: s.Basis.Proven,
		RunID: s.Basis.RunID, Since: s.Report.Since, Exposed: s.Report.Exposed, Reason: s.Report.Reason, Err: s.Report.Failing,
		Out: s.Report.Out, Method: w.method, Lacking: s.Basis.Lacking, Delay: max(delay, s.Basis.Heard), BootExposed: s.Report.BootExposed, AtStart: s.Report.AtStart,
		Denied: s.Basis.Phase == restartguard.PhaseUnreachable && s.Report.Denied, Nobody: s.Basis.Phase == restartguard.PhaseUnreachable && s.Report.Nobody,
		Same: same,
	}
	if same != "" {
		st.Err = restartguard.SameServer(same)
	}
	if !s.Basis.Deadline.IsZero() {
		st.Delay = max(st.Delay, s.Basis.Delay)
	}
	if st.Err == "" {
		st.Err = s.Report.Err
	}
	if st.Err == "" && s.Basis.Clockless {
		st.Err = restartguard.Clockless
	}
	if s.Basis.Phase != restartguard.PhaseUnreachable && unseen != "" {
		st.Err = cmp.Or(st.Err, unannounced+": "+unseen)
		if invalid {
			st.Invalid = unseen
		}
	}
	switch s.Basis.Phase {
	case restartguard.PhaseExposed:
		st.Until = s.Basis.Deadline
		if st.Exposed = 0; !s.Report.UnfencedSince.IsZero() {
			st.Exposed = restartguard.AtMost(now.Sub(s.Report.UnfencedSince))
		}
	case restartguard.PhaseCordoned:
		st.Until, st.Drained = s.Basis.Deadline, !s.Basis.Drained.IsZero()
	case restartguard.PhaseFenced:
		if st.Until = s.Basis.Deadline; restartguard.Foreign(s.Basis.Role) != "" {
			st.Until = time.Time{}
		}
		if s.Report.Doubt != "" {
			st.Reason += "; " + s.Report.Doubt
		}
	}
	return st
}

// EarlyRejoin is how nodes may rejoin before D, see [Survey]. The zero value: never.
type EarlyRejoin struct {
	// AttemptBound is the longest time from the moment at which any client of the
	// cluster sends the first request of an attempt, or of an extension, to the
	// moment at which it may still be granted. 0: there is no early rejoin.
	AttemptBound time.Duration
	// Patterns are those under which all locks of the cluster are, as of SCAN.
	Patterns []string
}

func (e EarlyRejoin) check(delay time.Duration) error {
	switch {
	case e.AttemptBound < 0:
		return fmt.Errorf("attempt bound %s is negative", e.AttemptBound)
	case e.AttemptBound > 0 && len(e.Patterns) == 0:
		return errors.New("early rejoin needs the patterns of the locks")
	case e.AttemptBound > 0 && restartguard.EarlyAfter(e.AttemptBound) >= delay:
		return fmt.Errorf("early rejoin is of no use: the attempt bound %s is not below the delay %s", e.AttemptBound, delay)
	}
	return nil
}

// evidence is what there is for a node that is closed.
func (g *Guard) evidence(of *member) *restartguard.Evidence {
	if g.survey == nil || of.state.Basis.Phase != restartguard.PhaseFenced {
		return nil
	}
	others := make([]restartguard.Other, 0, len(g.members))
	for _, w := range g.members {
		if w != of {
			w.mu.Lock()
			others = append(others, restartguard.Other{Name: w.node.Name(), Basis: w.state.Basis})
			w.mu.Unlock()
		}
	}
	g.asking.Lock()
	defer g.asking.Unlock()
	return g.survey.EvidenceFor(of.node.Name(), of.state.Basis, others, time.Now())
}

// looked tells the survey what a step has made of a node.
func (g *Guard) looked(w *member, state restartguard.State, o restartguard.Observation) {
	if g.survey == nil {
		return
	}
	g.asking.Lock()
	defer g.asking.Unlock()
	if state.Basis.Phase != restartguard.PhaseFenced {
		g.survey.Drop(w.node.Name())
	}
	if o.About == restartguard.Seen {
		g.survey.Confirm(w.node.Name(), state.Basis, o.Asked, time.Now())
	}
}

func (g *Guard) question(node string) (restartguard.Question, bool) {
	if g.survey == nil {
		return restartguard.Question{}, false
	}
	g.asking.Lock()
	defer g.asking.Unlock()
	return g.survey.Question(node, time.Now())
}

func (g *Guard) answer(node string, t restartguard.Answer) {
	g.asking.Lock()
	defer g.asking.Unlock()
	g.survey.Answer(node, t)
}

// Others are the guards that announce themselves beside this one, or did within
// [PeerKept].
func (g *Guard) Others() []announce.Guard {
	g.hearing.Lock()
	defer g.hearing.Unlock()
	all := g.peers.Present(time.Now())
	slices.SortStableFunc(all, func(a, b announce.Guard) int {
		return cmp.Or(cmp.Compare(b.Delay, a.Delay), cmp.Compare(a.ID, b.ID))
	})
	return all
}

// ID tells this guard from all others.
func (g *Guard) ID() string { return g.id }

// Delay is the guard's own D.
func (g *Guard) Delay() time.Duration { return g.cfg.Delay }

// heard takes in what a node tells of other guards, and says so where their D is
// another one.
func (g *Guard) heard(all []announce.Guard) {
	own, _ := announce.Decode(announce.Guard{ID: g.id, Delay: g.cfg.Delay}.Channel()) // rounded as theirs
	var events []restartguard.Event
	now := time.Now()
	g.hearing.Lock()
	for _, o := range all {
		known := slices.ContainsFunc(g.peers.Present(now), func(p announce.Guard) bool { return p.Same(o) && p.Delay == o.Delay })
		if o.ID == g.id || known || o.Delay == own.Delay && !o.Absurd {
			continue
		}
		text := fmt.Sprintf("guard %s has D = %s, this one has %s: the greater one counts. Give both the same max_ttl and delay", o.Name(), o.Delay, g.cfg.Delay)
		if o.Absurd {
			text = fmt.Sprintf("guard %s announces a D of more than %s, which no configuration allows: it counts as %s. End it, or who pretends to be one", o.Name(), announce.MostDelay, o.Delay)
		}
		events = append(events, restartguard.Event{At: now, Kind: "delays", Text: text, Alarm: true})
	}
	if g.peers.Hear(now, g.id, all) {
		g.unwritten = true
	}
	events = append(events, g.keepDelays(now)...)
	g.hearing.Unlock()
	g.tell("", events)
}

// keepDelays writes the D of others down if they changed, and forgets whom a person wants
// forgotten. g.hearing is locked.
func (g *Guard) keepDelays(now time.Time) (events []restartguard.Event) {
	m := g.cfg.Memory
	if m == nil {
		return nil
	}
	if now.Sub(g.wantedAt) >= restartguard.HearEvery {
		g.wantedAt = now
		for _, id := range m.TakeForgotten() {
			if g.peers.Forget(id) {
				events = append(events, restartguard.Event{At: now, Kind: "delays", Text: fmt.Sprintf("the D of guard %s is forgotten, as an operator wanted it", id[:min(6, len(id))])})
			}
			g.unwritten = true
		}
	}
	if g.unwritten {
		g.unwritten = m.PutDelays(&g.peers, now) != nil // and again with the next announcement that is read
	}
	return events
}

// sameAs is the name of a node before this one at whose address the same incarnation
// answers; "": there is none.
func (g *Guard) sameAs(w *member, runID string) string {
	for _, o := range g.members {
		if o == w {
			break
		}
		o.mu.Lock()
		same := o.state.Basis.RunID == runID && o.state.Basis.Phase != restartguard.PhaseUnreachable
		o.mu.Unlock()
		if same {
			return o.node.Name()
		}
	}
	return ""
}
