// Package watch is the restart guard: a watcher for each node observes it, has
// [restartguard.Step] decide, and applies that.
package watch

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"redlockctl/base/crash"
	"redlockctl/redlock"
	"redlockctl/restartguard"
	"redlockctl/restartguard/memory"
	"redlockctl/server/fences"
	"redlockctl/server/safetext"
)

// Guard watches nodes, fences those that may have lost votes, and lets them rejoin after D.
type Guard struct {
	cfg     Config
	members []*member

	id   string
	host safetext.Text
	pid  int

	past *memory.Past
	used atomic.Bool // the cluster was in use, see useSeen
	// usedSince is when that was first seen, by [boottime.Now]; 0: in an earlier run.
	usedSince atomic.Int64

	peersMu         sync.Mutex
	peers           restartguard.Peers
	delaysUnwritten bool      // the D of other guards are not on disk yet
	forgetReadAt    time.Time // when the list of guards to forget was last read

	eventMu sync.Mutex // one event at a time

	surveyMu sync.Mutex
	survey   *restartguard.Survey // nil: no early rejoin

	quorumMu sync.Mutex
	noQuorum bool // as last reported
}

// New returns a guard. It contacts nothing before Run.
func New(nodes []*redlock.Node, cfg Config) (*Guard, error) {
	before := memory.NewPast(nil)
	if cfg.Memory != nil {
		before = cfg.Memory.Past(cfg.Delay)
	}
	return newGuard(nodes, cfg, before)
}

func newGuard(nodes []*redlock.Node, cfg Config, before *memory.Past) (*Guard, error) {
	cfg, err := cfg.complete(len(nodes))
	if err != nil {
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
		w := &member{node: n, method: cfg.Methods[n.Name()], lastRound: time.Now(), changed: make(chan struct{}, 1)}
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
	if b := cfg.Early.AttemptBound; b > 0 {
		g.survey = &restartguard.Survey{N: g.cfg.N, Quorum: redlock.Quorum(g.cfg.N), After: restartguard.EarlyAfter(b), Apart: b / 2}
	}
	if cfg.Memory != nil {
		cfg.Memory.Expect(g.nodes())
	}
	return g, nil
}

// Successor returns a guard with another configuration that continues where g ended; g.Run must
// have returned. A node is recognized by its address, or by its run_id when the guard meets it; any
// other has joined the cluster. A node that waits never waits for a shorter time than before.
func (g *Guard) Successor(nodes []*redlock.Node, cfg Config) (*Guard, error) {
	next, err := newGuard(nodes, cfg, g.pastOf())
	if err != nil {
		return nil, err
	}
	next.used.Store(g.used.Load())
	next.noQuorum, next.peers, next.delaysUnwritten = g.noQuorum, g.peers, g.delaysUnwritten
	if cfg.Memory == nil {
		next.id = g.id
	}
	return next, nil
}

func (g *Guard) emit(node string, events []restartguard.Event) {
	if g.cfg.OnEvent == nil {
		return
	}
	g.eventMu.Lock()
	defer g.eventMu.Unlock()
	for _, e := range events {
		e.Node = node
		g.cfg.OnEvent(e)
	}
}

// Run guards until ctx ends, and returns when everything that it started has ended. It leaves
// fenced nodes fenced. The end of ctx is not an error. A guard runs once.
func (g *Guard) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	watches := make([]*watcher, len(g.members))
	for i, m := range g.members {
		w := &watcher{guard: g, member: m}
		watches[i] = w
		wg.Go(crash.Safe(func() { w.run(ctx) }))
		if hostOf(m.node.Addr()) != "" {
			wg.Go(crash.Safe(func() { w.resolve(ctx) }))
		}
		if m.method.Kind != fences.None { // a guard that cannot fence must not look like one that can
			wg.Go(crash.Safe(func() { w.keepAnnounced(ctx) }))
		}
	}
	wg.Wait()
	for _, w := range watches {
		w.remember(true)
	}
	return nil
}

// ID returns what distinguishes this guard from all others.
func (g *Guard) ID() string { return g.id }

// Delay returns the guard's own D.
func (g *Guard) Delay() time.Duration { return g.cfg.Delay }
