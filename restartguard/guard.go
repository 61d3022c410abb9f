package restartguard

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"redlockctl/internal/safetext"
	"redlockctl/redlock"
)

// Defaults of [Config], and the pause between two attempts to connect to a node
// at whose address nobody listens: short, since D counts from first sight.
const (
	DefaultPoll    = 200 * time.Millisecond
	DefaultTimeout = 500 * time.Millisecond

	reconnect = 25 * time.Millisecond

	// DefaultCount is a good [Config] CountEvery: a snapshot that was taken longer
	// ago is told by the counter.
	DefaultCount = time.Second
)

// maxActions bounds what follows one look, whatever a server answers.
const maxActions = 8

// Delay is D, how long a node stays closed after its loss was provably over:
// maxTTL × (1 + factor) + margin, rounded up. A result beyond the range of
// time.Duration is its maximum; a part that is negative or no number counts as
// 0.
func Delay(maxTTL time.Duration, factor float64, margin time.Duration) time.Duration {
	d := max(maxTTL, 0)
	if factor > 0 {
		extra := math.Ceil(float64(d) * factor)
		if extra >= math.MaxInt64 {
			return math.MaxInt64
		}
		d = add(d, time.Duration(extra))
	}
	return add(d, max(margin, 0))
}

// add adds what is not negative, up to the maximum.
func add(a, b time.Duration) time.Duration {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

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
	FirstContact FirstContact
	// Poll is the pause between two looks at a node, and so how late a restart
	// is seen. Default 200 ms.
	Poll time.Duration
	// Timeout bounds dialling and the answer to one round of commands. Default
	// 500 ms.
	Timeout time.Duration
	// Methods are how nodes are closed, by name; a node that is not in it is closed
	// by MinReplicas.
	Methods map[string]Method
	// ClockStep is the least forward step of a node's wall clock that is a loss. 0:
	// as little as can be told; negative: none.
	ClockStep time.Duration
	// CountEvery is how often the counter key of an open node is raised, which
	// shows a server whose memory was put back to an earlier state. 0: there is no
	// such key.
	CountEvery time.Duration
	// Memory is what the guard remembers beyond its own end; nil: nothing. It must
	// stay open while the guard runs.
	Memory *Memory
	// N is how many nodes the cluster has, of which a guard may watch fewer.
	// Default: those that it watches.
	N int
	// Early lets nodes rejoin before D, where the others prove that no lock needs
	// their votes.
	Early Early
	// OnEvent is called for each event, one at a time; it must not block.
	OnEvent func(Event)
}

// Event is something the guard saw or did.
type Event struct {
	At   time.Time
	Node string
	// Kind is a word for machines. Of a loss: "restart", "wiped", "role", "clock",
	// "evicted", "restored". Of the node: "first contact", "waiting", "closed",
	// "opened", "held", "exposed", "unreachable", "reachable", "clock back". Of the
	// cluster, without a node: "no quorum", "quorum". Of the guard: "memory",
	// "same server", of two nodes that are one, "stray", of orders that may still be on their way, "delays", of another guard
	// whose D is not this one's, and "announce", where guards cannot see each other.
	Kind string
	// Text is the sentence, without the node's name. Text of a server in it is
	// rendered already, as safetext does.
	Text string
	// Alarm: a node that must not vote does or did, or the guard cannot do to it what
	// it should. Kinds of bad news (losses but restarts, "exposed", "unreachable", "no
	// quorum", "memory") are no less so without.
	Alarm bool
}

// NodeStatus is one node as the guard sees it.
type NodeStatus struct {
	Node     string
	Phase    Phase
	Verified bool // its last start came up closed ("boot fence verified")
	Known    bool // Verified means something: a start of it has been seen
	Proven   bool // a canary write was refused with NOREPLICAS since it was closed
	RunID    string
	Since    time.Time     // of Phase
	Until    time.Time     // when it may rejoin; zero where not waiting
	Exposed  time.Duration // how long its last life was open before it was closed, at most
	Reason   string        // why it is in this phase, in a few words
	Err      string        // last failure to talk to it, or to close or open it
	Out      time.Time     // since when it has no vote; zero while it has one
	Method   Method        // how it is closed
	// Lacking: it refuses writes for want of replicas, although no fence is up.
	Lacking bool
	// Delay is the D that counts for it: the guard's own, or the greatest that
	// another guard announces.
	Delay time.Duration
	// BootExposed is how long it was open after its last start, at most; 0: it was
	// not, or that is not known. Other than Exposed, it is not of a later loss.
	BootExposed time.Duration
	// Denied and Nobody, of a node that is unreachable: its server answers and
	// refuses the guard; nobody listens there. Neither: silence.
	Denied, Nobody bool
	// Same is an earlier node that is the same server, by another address: this one has
	// no vote of its own. "": none.
	Same string
}

// Guard watches nodes, closes those that may have lost votes and opens them
// again after D.
type Guard struct {
	cfg     Config
	watches []*watch

	id   string
	host safetext.Text
	pid  int

	hearing sync.Mutex
	peers   Peers

	telling sync.Mutex // one event at a time

	asking  sync.Mutex
	inquest *Inquest // nil: no early rejoin

	outlooking sync.Mutex
	noQuorum   bool // what was told last
}

// New makes a guard; nothing is contacted before Run.
func New(nodes []*redlock.Node, cfg Config) (*Guard, error) {
	if cfg.Poll == 0 {
		cfg.Poll = DefaultPoll
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = DefaultTimeout
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
	case cfg.FirstContact > Fence:
		return nil, fmt.Errorf("restart guard: first contact %d is not known", cfg.FirstContact)
	}
	if err := cfg.Early.check(cfg.Delay); err != nil {
		return nil, fmt.Errorf("restart guard: %w", err)
	}
	g := &Guard{cfg: cfg, id: rand.Text(), pid: os.Getpid()}
	if cfg.Memory != nil {
		g.id = cfg.Memory.ID()
	}
	host, _ := os.Hostname()
	g.host = safetext.New(host)
	names := map[string]bool{}
	for _, n := range nodes {
		w := &watch{guard: g, node: n, method: cfg.Methods[n.Name()], beat: time.Now(), changed: make(chan struct{}, 1)}
		if err := w.method.check(); err != nil {
			return nil, fmt.Errorf("restart guard: node %q: %w", n.Name(), err)
		}
		if cfg.Memory != nil {
			if s, ok := cfg.Memory.recall(n.Name(), n.Addr(), w.method, cfg.Delay); ok {
				w.state = s
			}
		}
		names[n.Name()] = true
		g.watches = append(g.watches, w)
	}
	if g.cfg.N == 0 {
		g.cfg.N = len(nodes)
	}
	if b := cfg.Early.AttemptBound; b > 0 {
		g.inquest = &Inquest{N: g.cfg.N, Quorum: redlock.Quorum(g.cfg.N), After: EarlyAfter(b), Apart: b / 2}
	}
	if cfg.Memory != nil {
		cfg.Memory.keep(names)
	}
	return g, nil
}

// Successor makes a guard with another configuration that goes on where g, whose
// Run has returned, has ended. Nodes are the same if name and address are. A node
// that waits never waits for less than before.
func (g *Guard) Successor(nodes []*redlock.Node, cfg Config) (*Guard, error) {
	next, err := New(nodes, cfg)
	if err != nil {
		return nil, err
	}
	for _, w := range next.watches {
		for _, old := range g.watches {
			if old.node.Name() != w.node.Name() || old.node.Addr() != w.node.Addr() {
				continue
			}
			w.state = old.state
			w.state.Trusted = time.Time{} // D may be another
			if old.method.id() != w.method.id() {
				w.state = w.state.moved()
			}
		}
	}
	next.noQuorum, next.peers = g.noQuorum, g.peers
	if cfg.Memory == nil {
		next.id = g.id
	}
	return next, nil
}

// Run guards until ctx ends, and returns after all that it started has ended. It
// never opens a node on its way out. The end of ctx is no error. A guard runs
// once.
func (g *Guard) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	for _, w := range g.watches {
		wg.Go(func() { w.run(ctx) })
		if w.method.Kind != Advice { // it closes nothing there, and must not be taken for one that does
			wg.Go(func() { w.announce(ctx) })
		}
	}
	wg.Wait()
	for _, w := range g.watches {
		w.remember(true)
	}
	return nil
}

// Healthy fails, and names the node, if the watch of a node has not come round
// for longer than any answer may take.
func (g *Guard) Healthy() error {
	limit := g.cfg.Poll + 2*maxActions*g.cfg.Timeout + 2*time.Second
	for _, w := range g.watches {
		w.mu.Lock()
		since := time.Since(w.beat)
		w.mu.Unlock()
		if since > limit {
			return fmt.Errorf("the watch of node %q has not come round for %s", w.node.Name(), round(since))
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

// Met tells if every node was met, or tried, at least once.
func (g *Guard) Met() bool {
	for _, s := range g.Status() {
		if s.Phase == PhaseUnknown {
			return false
		}
	}
	return true
}

// Outlook is what the fences mean for the cluster.
func (g *Guard) Outlook() Outlook {
	return OutlookOf(g.Status(), g.cfg.N, redlock.Quorum(g.cfg.N))
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
	g.tell("", []Event{{At: now, Kind: kind, Text: o.Text(now)}})
}

// Status is the state of each node, in the order of nodes. Its times carry the
// monotonic clock.
func (g *Guard) Status() []NodeStatus {
	now := time.Now()
	all := make([]NodeStatus, len(g.watches))
	for i, w := range g.watches {
		all[i] = w.status(now)
	}
	return all
}

func (g *Guard) tell(node string, events []Event) {
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

// watch is the guard of one node.
type watch struct {
	guard  *Guard
	node   *redlock.Node
	method Method

	mu    sync.Mutex
	state State
	same  string    // see [NodeStatus]
	beat  time.Time // when it last came round

	changed chan struct{} // what it announces may be another

	// Of the watch's own goroutine: when it last read what other guards announce, and
	// why it could not; what was written last, and when.
	heardAt   time.Time
	loudUntil time.Time // more was announced than a guard reads
	deaf      string
	written   State
	writtenAt time.Time
	unwritten string // why not
	crowded   bool   // its list of clients is more than a guard reads
}

func (w *watch) status(now time.Time) NodeStatus {
	w.mu.Lock()
	s, same := w.state, w.same
	w.mu.Unlock()
	st := NodeStatus{
		Node: w.node.Name(), Phase: s.Phase, Verified: s.Verified, Known: s.Known, Proven: s.Proven,
		RunID: s.RunID, Since: s.Since, Exposed: s.Exposed, Reason: s.Reason, Err: s.Failing,
		Out: s.Out, Method: w.method, Lacking: s.Lacking, Delay: max(w.guard.cfg.Delay, s.Heard), BootExposed: s.BootExposed,
		Denied: s.Phase == PhaseUnreachable && s.Denied, Nobody: s.Phase == PhaseUnreachable && s.Nobody,
		Same: same,
	}
	if same != "" {
		st.Err = sameServer(same)
	}
	if !s.Deadline.IsZero() {
		st.Delay = max(st.Delay, s.Delay)
	}
	if st.Err == "" {
		st.Err = s.Err
	}
	if st.Err == "" && s.Clockless {
		st.Err = clockless
	}
	switch s.Phase {
	case PhaseExposed:
		st.Until = s.Deadline
		if st.Exposed = 0; !s.OpenSince.IsZero() {
			st.Exposed = AtMost(now.Sub(s.OpenSince))
		}
	case PhaseClosed:
		st.Until = s.Deadline
		if s.Doubt != "" {
			st.Reason += "; " + s.Doubt
		}
	}
	return st
}

// run goes from one connection to the next. There is at most one at a time.
func (w *watch) run(ctx context.Context) {
	for ctx.Err() == nil {
		pause := w.live(ctx)
		sleep(ctx, pause)
	}
}

// live watches the node by one connection until that breaks, and tells how
// long to wait before the next is tried.
func (w *watch) live(ctx context.Context) (pause time.Duration) {
	l := dial(w.node, w.method, w.guard.cfg.Timeout)
	l.counter = w.guard.cfg.CountEvery > 0 && w.method.Kind != Advice
	l.crowded = w.crowded
	if m := w.guard.cfg.Memory; m != nil {
		l.name += ":" + m.ID()
	}
	defer l.close()
	var reading scan
	for first := true; ; first = false {
		w.mu.Lock()
		w.beat = time.Now()
		w.mu.Unlock()
		asked := time.Now()
		l.hear = first || asked.Sub(w.heardAt) >= hearEvery || !w.state.Deadline.IsZero()
		l.hear = l.hear && !asked.Before(w.loudUntil)
		o, err := l.look(ctx)
		if l.hear && errors.Is(err, redlock.ErrLongReply) {
			w.loudUntil = asked.Add(PeerKept)
			w.say(&w.deaf, err, unheard)
		}
		if err == nil && l.hear {
			w.heardAt = asked
			w.listen(&l)
		}
		switch {
		case ctx.Err() != nil:
			return 0
		case errors.Is(err, errBroken):
			// A connection that was good and has ended says little: the next one
			// tells at once if the node is there. Silence, or no connection to begin
			// with, says that it is not.
			if first || isTimeout(err) {
				w.step(Observation{About: Unreached, Asked: asked, Refused: isRefused(err), Denied: isDenied(err), Err: show(err)})
			}
			switch {
			case !first:
				return 0
			case answered(err), errors.Is(err, redlock.ErrFull):
				return w.guard.cfg.Poll // it is there and does not let us in: no reason to hurry
			default:
				return min(reconnect, w.guard.cfg.Poll)
			}
		case err != nil:
			// It answers, but not what we need.
			w.step(Observation{About: Unreached, Asked: asked, Denied: isDenied(err), Err: show(err)})
		default:
			if !w.follow(ctx, &l, o) {
				return min(reconnect, w.guard.cfg.Poll)
			}
		}
		if err != nil {
			sleep(ctx, w.pause())
		} else if !w.inquire(ctx, &l, &reading) {
			return min(reconnect, w.guard.cfg.Poll)
		}
	}
}

// follow steps with a look and carries out what follows from it, on the same
// connection. It tells if that is still good.
func (w *watch) follow(ctx context.Context, l *life, o Observation) bool {
	todo := w.step(o)
	for n := 0; len(todo) > 0 && n < maxActions; n++ {
		a := todo[0]
		todo = todo[1:]
		if ctx.Err() != nil {
			return false
		}
		// What was begun is brought to its end, within the timeout: a closing that
		// is cut off is neither done nor undone.
		actx, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.guard.cfg.Timeout)
		outcome, err := l.do(actx, a)
		cancel()
		if err != nil {
			w.crowded = w.crowded || a.Kind == Kill && errors.Is(err, redlock.ErrLongReply)
			return false
		}
		todo = append(todo, w.step(outcome)...)
	}
	return true
}

// step decides. What follows from it is written down before it is done, so
// that a guard that is killed in between has not forgotten a loss.
func (w *watch) step(o Observation) []Action {
	cfg := w.guard.cfg
	p := Policy{
		Delay: cfg.Delay, FirstContact: cfg.FirstContact, ClockStep: cfg.ClockStep, CountEvery: cfg.CountEvery,
		Advice: w.method.Kind == Advice, Sweep: cfg.Memory != nil,
	}
	if w.guard.inquest != nil {
		p.EarlyAfter = EarlyAfter(cfg.Early.AttemptBound)
		if o.About == Seen {
			o.Evidence = w.guard.evidence(w)
		}
	}
	if o.About == Seen {
		o.Heard = w.guard.greatest()
	}
	same := w.same
	if o.About == Seen {
		same = w.sameAs(o.RunID)
	}
	w.mu.Lock()
	next, actions, events := Step(p, w.state, o, time.Now())
	if same != w.same && same != "" {
		events = append(events, Event{At: time.Now(), Kind: "same server", Text: sameServer(same), Alarm: true})
	}
	w.same = same
	renew := next.Known != w.state.Known || next.Verified != w.state.Verified || next.BootExposed != w.state.BootExposed
	w.state = next
	w.mu.Unlock()
	if renew {
		w.renew()
	}
	w.remember(false)
	w.guard.looked(w, o)
	w.guard.tell(w.node.Name(), events)
	w.guard.lookOut()
	return actions
}

func sameServer(other string) string {
	return fmt.Sprintf("is the same server as %s, by another address: it has no vote of its own", other)
}

// sameAs is the name of a node before this one at whose address the same incarnation
// answers; "": there is none.
func (w *watch) sameAs(runID string) string {
	for _, o := range w.guard.watches {
		if o == w {
			break
		}
		o.mu.Lock()
		same := o.state.RunID == runID && o.state.Phase != PhaseUnreachable
		o.mu.Unlock()
		if same {
			return o.node.Name()
		}
	}
	return ""
}

// remember writes the state down if it changed, or if it is time, or in any
// case.
func (w *watch) remember(always bool) {
	m := w.guard.cfg.Memory
	if m == nil || w.state.RunID == "" {
		return
	}
	// The boot clock last: what comes in between makes a deadline later, never
	// sooner.
	now := time.Now()
	boot := BootTime()
	durable := w.state.durable()
	if !always && durable == w.written && now.Sub(w.writtenAt) < MemoryEvery(w.guard.cfg.Delay) {
		return
	}
	why := ""
	if err := m.put(w.node.Name(), w.state.record(w.node.Addr(), w.method, now, boot), boot); err != nil {
		why = show(err)
	}
	w.written, w.writtenAt = durable, now
	if why != w.unwritten && why != "" {
		w.guard.tell(w.node.Name(), []Event{{At: now, Kind: "memory", Text: why}})
	}
	w.unwritten = why
}

// pause is the time until the next look: the poll, or less when the node may
// rejoin before that.
func (w *watch) pause() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	poll := w.guard.cfg.Poll
	if w.state.Phase != PhaseClosed || w.state.Deadline.IsZero() {
		return poll
	}
	if d := time.Until(w.state.Deadline); d > 0 {
		return min(d, poll)
	}
	return poll
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout() || errors.Is(err, context.DeadlineExceeded)
}

func sleep(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
