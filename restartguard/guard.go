package restartguard

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"sync"
	"time"

	"redlockctl/redlock"
)

// Defaults of [Config], and the pause between two attempts to connect to a node
// at whose address nobody listens: short, since D counts from first sight.
const (
	DefaultPoll    = 200 * time.Millisecond
	DefaultTimeout = 500 * time.Millisecond

	reconnect = 25 * time.Millisecond
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
	// always safe and costs availability: a node is out of the quorum for it.
	Delay time.Duration
	// FirstContact is what to do with an open node that is seen for the first
	// time. Default Adopt: to close a whole live cluster is an outage.
	FirstContact FirstContact
	// Poll is the pause between two looks at a node, and so how late a restart
	// is seen. Default 200 ms.
	Poll time.Duration
	// Timeout bounds dialling and the answer to one round of commands. Default
	// 500 ms.
	Timeout time.Duration
	// OnEvent is called for each event, one at a time; it must not block.
	OnEvent func(Event)
}

// Event is something the guard saw or did.
type Event struct {
	At   time.Time
	Node string
	// Kind is a word for machines: "first contact", "restart", "wiped", "role",
	// "waiting", "closed", "opened", "held", "exposed", "unreachable",
	// "reachable".
	Kind string
	// Text is the sentence, without the node's name. Text of a server in it is
	// rendered already, as safetext does.
	Text string
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
}

// Guard watches nodes, closes those that may have lost votes and opens them
// again after D.
type Guard struct {
	cfg     Config
	watches []*watch

	telling sync.Mutex // one event at a time
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
	g := &Guard{cfg: cfg}
	for _, n := range nodes {
		g.watches = append(g.watches, &watch{guard: g, node: n})
	}
	return g, nil
}

// Run guards until ctx ends, and returns after all that it started has ended. It
// never opens a node on its way out. The end of ctx is no error. A guard runs
// once.
func (g *Guard) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	for _, w := range g.watches {
		wg.Go(func() { w.run(ctx) })
	}
	wg.Wait()
	return nil
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
	guard *Guard
	node  *redlock.Node

	mu    sync.Mutex
	state State
}

func (w *watch) status(now time.Time) NodeStatus {
	w.mu.Lock()
	s := w.state
	w.mu.Unlock()
	st := NodeStatus{
		Node: w.node.Name(), Phase: s.Phase, Verified: s.Verified, Known: s.Known, Proven: s.Proven,
		RunID: s.RunID, Since: s.Since, Exposed: s.Exposed, Reason: s.Reason, Err: s.Failing,
	}
	if st.Err == "" {
		st.Err = s.Err
	}
	switch s.Phase {
	case PhaseExposed:
		st.Until = s.Deadline
		st.Exposed = now.Sub(s.OpenSince)
	case PhaseClosed:
		st.Until = s.Deadline
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
	l := dial(w.node, w.guard.cfg.Timeout)
	defer l.close()
	for first := true; ; first = false {
		asked := time.Now()
		o, err := l.look(ctx)
		switch {
		case ctx.Err() != nil:
			return 0
		case errors.Is(err, errBroken):
			// A connection that was good and has ended says little: the next one
			// tells at once if the node is there. Silence, or no connection to begin
			// with, says that it is not.
			if first || isTimeout(err) {
				w.step(Observation{About: Unreached, Asked: asked, Refused: isRefused(err), Err: show(err)})
			}
			switch {
			case !first:
				return 0
			case answered(err):
				return w.guard.cfg.Poll // it is there and does not let us in: no reason to hurry
			default:
				return min(reconnect, w.guard.cfg.Poll)
			}
		case err != nil:
			// It answers, but not what we need.
			w.step(Observation{About: Unreached, Asked: asked, Err: show(err)})
		default:
			if !w.follow(ctx, l, o) {
				return min(reconnect, w.guard.cfg.Poll)
			}
		}
		sleep(ctx, w.pause())
	}
}

// follow steps with a look and carries out what follows from it, on the same
// connection. It tells if that is still good.
func (w *watch) follow(ctx context.Context, l life, o Observation) bool {
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
			return false
		}
		todo = append(todo, w.step(outcome)...)
	}
	return true
}

func (w *watch) step(o Observation) []Action {
	p := Policy{Delay: w.guard.cfg.Delay, FirstContact: w.guard.cfg.FirstContact}
	w.mu.Lock()
	next, actions, events := Step(p, w.state, o, time.Now())
	w.state = next
	w.mu.Unlock()
	w.guard.tell(w.node.Name(), events)
	return actions
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
