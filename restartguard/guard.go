package restartguard

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
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
