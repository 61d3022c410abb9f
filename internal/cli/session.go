package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"redlockctl/internal/audit"
	"redlockctl/internal/config"
	"redlockctl/internal/operator"
	"redlockctl/internal/safetext"
	"redlockctl/monitor"
	"redlockctl/redlock"
	"redlockctl/restartguard"
)

// settleTime bounds how long a screen or a stream of events waits for the first
// view: what is missing then comes later.
const settleTime = 2 * time.Second

// spec is what a session is opened on.
type spec struct {
	nodes    []*redlock.Node
	redlock  redlock.Options
	monitor  monitor.Options
	guarded  []*redlock.Node // what a guard watches; empty: no guard
	guard    restartguard.Config
	yield    bool // to a guard that already watches: none runs here then
	readOnly bool
	audit    string     // path of the audit log
	told     *listening // nil: no metrics
}

// specOf is the session of a configuration, with a guard if one is wanted.
func specOf(cfg *config.Config, withGuard bool) (spec, error) {
	nodes, err := cfg.Masters()
	if err != nil {
		return spec{}, configError{err}
	}
	s := spec{
		nodes:    nodes,
		redlock:  cfg.Redlock,
		readOnly: cfg.Cluster.ReadOnly,
		audit:    cfg.Audit.Path,
		monitor: monitor.Options{
			ClusterName:  cfg.Cluster.Name,
			LockPatterns: cfg.Cluster.LockPatterns,
			MaxTTL:       cfg.Cluster.MaxTTL,
			Redlock:      cfg.Redlock,
			Timeout:      cfg.Monitor.Timeout,
			ProbeEvery:   cfg.Monitor.ProbeEvery,
			InfoEvery:    cfg.Monitor.InfoEvery,
			ScanEvery:    cfg.Monitor.ScanEvery,
			ScanCount:    cfg.Monitor.ScanCount,
			MaxMemory:    cfg.Monitor.MaxMemory,
			Fences:       fencesOf(cfg),
		},
		guard: restartguard.Config{
			Delay:        cfg.Guard.Delay,
			Cluster:      cfg.Cluster.Name,
			FirstContact: cfg.Guard.FirstContact,
			Poll:         cfg.Guard.Poll,
			Timeout:      cfg.Guard.Timeout,
			Methods:      methodsOf(cfg),
			ClockStep:    cfg.Guard.ClockStep,
			Early:        cfg.Guard.Early,
			N:            len(nodes),
		},
	}
	if s.audit != "" {
		log := audit.Follow(s.audit)
		s.monitor.TakenBy = func(key, token string) (monitor.Taking, bool) {
			r, ok := log.Taken(key, token)
			return monitor.Taking{Act: r.Act, Actor: r.Actor, Reason: r.Reason}, ok
		}
	}
	if cfg.Guard.Counter {
		s.guard.CountEvery = restartguard.DefaultCount
	}
	fenced := slices.ContainsFunc(cfg.Nodes, func(n config.Node) bool { return n.Fence != "none" })
	if withGuard && !s.readOnly && fenced && cfg.Guardable() == nil {
		s.guarded = nodes // one without a fence is only watched
	}
	return s, nil
}

// newGuard makes the guard of a session or of the daemon: what it does is told, and
// recorded as done to the cluster. With a former guard it is its successor.
func newGuard(s spec, former *restartguard.Guard, record *recorder, tell func(e restartguard.Event, alarm bool)) (*restartguard.Guard, error) {
	cfg, cluster := s.guard, s.monitor.ClusterName
	cfg.OnEvent = func(e restartguard.Event) {
		tell(e, alarming(e))
		record.saw(cluster, e)
	}
	if former != nil {
		return former.Successor(s.guarded, cfg)
	}
	g, err := restartguard.New(s.guarded, cfg)
	if err == nil {
		record.by(g.ID()) // which its successors keep
	}
	return g, err
}

// look is a snapshot of the cluster once all that is asked for has been read,
// and what needs time to be told has been told; or, with a bound, what is known
// when that is over.
func (a *commandLine) look(ctx context.Context, cfg *config.Config, of aim) (s *monitor.Snapshot, err error) {
	err = watching(ctx, cfg, of, func(mon *monitor.Monitor) error {
		s, err = a.decided(ctx, mon, of)
		return err
	})
	return s, err
}

// aim is what a look is for.
type aim struct {
	keys  []string      // these locks alone, each read by its name
	nodes bool          // no locks at all
	locks bool          // the states of locks, and no findings
	match string        // the locks under this pattern alone
	most  time.Duration // 0: as long as it takes
	quiet bool          // no word of how far it is
}

// decided waits for the first complete snapshot, and says how far it is. What is
// missing when the bound is over is in the snapshot; only the end of ctx is an
// error.
func (a *commandLine) decided(ctx context.Context, mon *monitor.Monitor, of aim) (*monitor.Snapshot, error) {
	bounded, cancel := ctx, context.CancelFunc(func() {})
	if of.most > 0 {
		bounded, cancel = context.WithTimeout(ctx, of.most)
	}
	defer cancel()
	if !of.quiet {
		defer a.reading(mon)()
	}
	if of.locks {
		_ = mon.Assessed(bounded)
	} else {
		_ = mon.Decided(bounded)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return mon.Snapshot(), nil
}

// watching runs f beside a monitor of the cluster.
func watching(ctx context.Context, cfg *config.Config, of aim, f func(*monitor.Monitor) error) error {
	s, err := specOf(cfg, false)
	if err != nil {
		return err
	}
	s.monitor.Keys, s.monitor.Match, s.monitor.NoLocks = of.keys, of.match, of.nodes
	mon, err := monitor.New(s.nodes, s.monitor)
	if err != nil {
		return err
	}
	run, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { mon.Run(run) })
	defer wg.Wait()
	defer stop()
	return f(mon)
}

// settled waits for the first view, for so long at most, where a screen shows what
// is missing as it comes; only the end of ctx is an error.
func settled(ctx context.Context, mon *monitor.Monitor, most time.Duration) (*monitor.Snapshot, error) {
	bounded, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	_ = mon.Settled(bounded)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return mon.Snapshot(), nil
}

// justCame reports whether the look has only just begun: what was there before it began is
// not known to be new.
func justCame(s *monitor.Snapshot) bool {
	return s.Settled.IsZero() || s.At.Sub(s.Settled) < justCameTime
}

// justCameTime is longer than any look that is made once.
const justCameTime = 10 * time.Second

// errIncomplete is returned when a look ended before everything had been read.
var errIncomplete = errors.New("not everything could be read")

// incomplete says on standard error which nodes have not been read to the end, and
// is the error for that; nil if all have been.
func (a *commandLine) incomplete(s *monitor.Snapshot) error {
	if s.Complete {
		return nil
	}
	var nodes []string
	for _, n := range s.Unread() {
		nodes = append(nodes, printable(n.Node)+" "+printable(n.Why))
	}
	fmt.Fprintf(a.errOut, "redlockctl: incomplete: locks and copies may be missing: %s\n", strings.Join(nodes, ", "))
	return silent{errIncomplete}
}

// hand is what a one-shot act needs: the lock core, and the operator that
// acts on it.
type hand struct {
	client *redlock.Client
	op     *operator.Operator
	log    *audit.Log
}

func openHand(s spec) (*hand, error) {
	h := &hand{}
	if !s.readOnly {
		log, err := audit.Open(s.audit)
		if err != nil {
			return nil, fmt.Errorf("%w: the audit log cannot be written: %w", operator.ErrRefused, err)
		}
		h.log = log
	}
	client, err := redlock.New(s.nodes, s.redlock)
	if err != nil {
		if h.log != nil {
			_ = h.log.Close()
		}
		return nil, configError{err}
	}
	h.client = client
	h.op = operator.New(client, operator.Options{
		Cluster: s.monitor.ClusterName, ReadOnly: s.readOnly, Log: h.log, MaxTTL: s.monitor.MaxTTL,
		Methods: s.guard.Methods,
	})
	return h, nil
}

func (h *hand) close() {
	_ = h.client.Close()
	if h.log != nil {
		_ = h.log.Close()
	}
}

// session is a cluster that is watched, guarded and acted on: what stands
// behind the console and the demo.
type session struct {
	*hand
	mon   *monitor.Monitor
	guard seat
	// record is of what the guard does; nil without one.
	record *recorder
	delay  time.Duration
	stop   context.CancelFunc
	wg     sync.WaitGroup
	// cluster is its name; told are the metrics, nil if there are none.
	cluster string
	told    *listening
	telling sync.Mutex // to told
}

// openSession starts the parts; they run until ctx ends or the session is
// closed.
func openSession(ctx context.Context, s spec) (*session, error) {
	s.monitor.Patient = true // it stays: the masters have other work
	mon, err := monitor.New(s.nodes, s.monitor)
	if err != nil {
		return nil, err
	}
	h, err := openHand(s)
	if err != nil {
		return nil, err
	}
	ses := &session{hand: h, mon: mon, delay: s.guard.Delay, cluster: s.monitor.ClusterName, told: s.told}
	var guard *restartguard.Guard
	if len(s.guarded) > 0 {
		ses.record = newRecorder(h.log.Write, func(err error) {
			text := "guard: the audit log can be written again"
			level := monitor.LevelNotice
			if err != nil {
				text, level = "guard: the audit log cannot be written; the guard goes on: "+err.Error(), monitor.LevelAlarm
			}
			mon.Note(monitor.Event{At: time.Now(), Level: level, Kind: "guard memory", Text: safetext.New(text)})
		})
		guard, err = newGuard(s, nil, ses.record, func(e restartguard.Event, alarm bool) {
			level := monitor.LevelNotice
			if alarm {
				level = monitor.LevelAlarm
			}
			mon.Note(monitor.Event{
				At: e.At, Level: level, Kind: "guard " + e.Kind, Node: e.Node,
				Text: safetext.New("guard: " + e.Node + " " + e.Text),
			})
		})
		if err != nil {
			ses.record.close()
			h.close()
			return nil, err
		}
	}
	run, stop := context.WithCancel(ctx)
	ses.stop = stop
	ses.wg.Go(func() { mon.Run(run) })
	switch {
	case guard == nil:
	case s.yield:
		ses.wg.Go(func() { ses.runOrRely(run, guard) })
	default:
		ses.sit(guard)
		ses.wg.Go(func() { _ = guard.Run(run) })
	}
	ses.show()
	return ses, nil
}

// sightOf is what findings know of a guard.
func sightOf(g *restartguard.Guard) monitor.GuardSight {
	sight := monitor.GuardSight{Nodes: map[string]monitor.GuardedNode{}}
	for _, s := range g.Status() {
		if s.Method.Kind == restartguard.Advice {
			continue // it closes nothing
		}
		sight.Nodes[s.Node] = monitor.GuardedNode{
			Known: s.Known, Verified: s.Verified, Exposed: s.Phase == restartguard.PhaseExposed, OpenFor: restartguard.AtMost(s.BootExposed), Err: s.Err,
		}
	}
	if o := g.Outlook(); !o.Possible() && g.Met() {
		sight.Outlook = o.Text(time.Now())
	}
	return sight
}

// alarming tells if a person should look at an event of the guard.
func alarming(e restartguard.Event) bool {
	switch e.Kind {
	case "exposed", "unreachable", "no quorum", "clock", "wiped", "evicted", "restored", "memory":
		return true
	}
	return e.Alarm
}

// close ends all parts and waits for them. No node is opened on the way out.
func (s *session) close() {
	s.stop()
	s.wg.Wait()
	if s.record != nil {
		s.record.close()
	}
	s.hand.close()
}

// actions are the operator's acts, each noted in the stream of events once it
// is over.
type actions struct{ *session }

func (a actions) ReadOnly() bool { return a.op.ReadOnly() }

func (a actions) note(node, key, done string, err error) {
	if err != nil {
		done += ": " + err.Error()
	}
	a.mon.Note(monitor.Event{
		At: time.Now(), Level: monitor.LevelNotice, Kind: "operator", Node: node,
		Key: safetext.New(key), Text: safetext.New(done),
	})
}

func (a actions) Acquire(ctx context.Context, resource string, ttl time.Duration) (*redlock.Lock, error) {
	began := time.Now()
	l, err := a.op.Acquire(ctx, resource, ttl)
	if a.told != nil {
		a.told.Acquired(a.cluster, time.Since(began), err)
	}
	a.note("", resource, "operator: acquire "+resource, err)
	return l, err
}

func (a actions) Release(ctx context.Context, resource, token string) ([]redlock.NodeResult, error) {
	r, err := a.op.Release(ctx, resource, token)
	a.note("", resource, "operator: release "+resource, err)
	return r, err
}

func (a actions) FenceNode(ctx context.Context, node, reason string) error {
	err := a.op.FenceNode(ctx, node, reason)
	a.note(node, "", fmt.Sprintf("operator: fence %s (%s)", node, reason), err)
	return err
}

func (a actions) OpenNode(ctx context.Context, node, reason string) error {
	err := a.op.OpenNode(ctx, node, reason)
	a.note(node, "", fmt.Sprintf("operator: open %s (%s)", node, reason), err)
	return err
}

// describe says per node what came of an act, in groups: "ok: n1 n2, down: n3".
func describe(results []redlock.NodeResult) string {
	var order []string
	names := map[string][]string{}
	for _, r := range results {
		word := r.Status.String()
		if r.Status == redlock.StatusProtocol && r.Type != "" && r.Type != "string" {
			word = "a " + r.Type
		}
		if names[word] == nil {
			order = append(order, word)
		}
		names[word] = append(names[word], r.Node)
	}
	parts := make([]string, 0, len(order))
	for _, word := range order {
		parts = append(parts, word+": "+strings.Join(names[word], " "))
	}
	return strings.Join(parts, ", ")
}

// resultsOf are the nodes' results that an error of the lock core carries.
func resultsOf(err error) (*redlock.Error, []redlock.NodeResult) {
	var e *redlock.Error
	if errors.As(err, &e) {
		return e, e.Nodes
	}
	return nil, nil
}
