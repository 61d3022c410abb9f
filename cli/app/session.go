package app

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"redlockctl/base/crash"
	"redlockctl/internal/metrics"
	"redlockctl/internal/operator"
	"redlockctl/internal/record"
	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/monitor/observe"
	"redlockctl/restartguard"
	"redlockctl/restartguard/watch"
	"redlockctl/tui"
	"redlockctl/tui/source"
)

// GuardMode is whether a session runs a guard.
type GuardMode uint8

const (
	GuardUnlessSeen GuardMode = iota // if no other guard watches
	GuardAlways
	GuardNever
)

// Session is a cluster that is watched, guarded and acted on, behind the console and the demo.
type Session struct {
	Monitor  *observe.Monitor
	Operator *operator.Operator
	Delay    time.Duration // D

	guard  currentGuard
	events *guardEvents // nil: no guard is wanted
	stop   context.CancelFunc
	wg     sync.WaitGroup
	// cluster is its name; metrics are nil if there are none.
	cluster string
	memory  string // where a guard on this machine writes down what it knows
	metrics *metrics.Metrics
	export  metrics.Export
	// recorder is nil if nothing is to be recorded.
	recorder metrics.Recorder
	record   func() (source.Recording, error) // nil: nothing is recorded
	audit    func() *view.AuditLog            // nil: nothing is logged
	kept     Kept
	showing  sync.Mutex
}

// OpenSession starts the parts; they run until ctx ends or the session is closed.
// m may be nil.
func OpenSession(ctx context.Context, s Spec, mode GuardMode, m *metrics.Metrics) (*Session, error) {
	s.Monitor.Patient = true // it stays: the masters have other work
	mon, err := newMonitor(s.Nodes, s.Monitor)
	if err != nil {
		return nil, err
	}
	ses := &Session{Monitor: mon, Delay: s.Guard.Delay, cluster: s.Monitor.ClusterName, memory: s.Memory, metrics: m, record: OpenRecording(s.Record.Path, s.Monitor.ClusterName), kept: s.kept()}
	if s.Audit != "" {
		ses.audit = (&auditReader{path: s.Audit}).read
	}
	opt := operator.Options{Note: mon.Note}
	if m != nil {
		opt.Acquired = func(took time.Duration, err error) { m.Acquired(ses.cluster, took, err) }
	}
	if ses.Operator, err = OpenOperator(s, opt); err != nil {
		return nil, err
	}
	var guard *watch.Guard
	if mode != GuardNever && len(s.Guarded) > 0 {
		ses.events = newGuardEvents(s.Audit, ses.tell)
		if guard, err = ses.events.newGuard(s, nil); err != nil {
			ses.events.record.Close()
			_ = ses.Operator.Close()
			return nil, err
		}
	}
	run, stop := context.WithCancel(ctx)
	ses.stop = stop
	ses.wg.Go(crash.Safe(func() { mon.Run(run) }))
	ses.wg.Go(crash.Safe(func() {
		seen := bootSights(run, s, boots{})
		mon.Booted(seen.sights)
		followBoots(run, s, mon, seen)
	}))
	if r := recorded(run, &ses.wg, s.Record, mon, "console", ses.GuardStatus, nil); r != nil {
		ses.recorder = r
		others := recordFails(run, &ses.wg, s)
		mon.Recorded(func() error {
			if err := r.Err(); !errors.Is(err, record.ErrInUse) {
				return err
			}
			return others() // another process records
		})
	}
	recordRemovals(run, &ses.wg, s.Audit, ses.cluster, mon)
	ses.export = exported(run, &ses.wg, s.Audit, ses.cluster, s.Version, mon)
	switch {
	case guard == nil:
	case mode == GuardUnlessSeen:
		ses.wg.Go(crash.Safe(func() { ses.runOrRely(run, guard) }))
	default:
		ses.useGuard(run, guard)
		ses.wg.Go(crash.Safe(func() { _ = guard.Run(run) }))
	}
	ses.show()
	return ses, nil
}

func (s *Session) tell(e restartguard.Event) { s.Monitor.Note(eventOf(e)) }

// Close ends all parts and waits for them. Fenced nodes stay fenced.
func (s *Session) Close() {
	s.stop()
	s.wg.Wait()
	s.metrics.Hide(s.cluster)
	if s.events != nil {
		s.events.record.Close()
	}
	_ = s.Operator.Close()
}

// GuardStatus returns the status of the guard, or what another one on this machine remembers; nil:
// there is neither.
func (s *Session) GuardStatus() []restartguard.NodeStatus { return s.guard.Status() }

// Screen returns the session for a screen.
func (s *Session) Screen() tui.Cluster {
	return tui.Cluster{Source: s.Monitor, Guard: &s.guard, Actions: s.Operator, Delay: s.Delay, Record: s.record, Audit: s.audit, ForceReleased: s.kept.ForceReleased}
}

// currentGuard is the session's guard: none until it runs.
type currentGuard struct {
	at atomic.Pointer[watch.Guard]
	// remembered is what the guard that the session relies on has written to its memory, if it
	// runs on this machine.
	remembered atomic.Pointer[[]restartguard.NodeStatus]
}

// ID returns the id of the guard's announcements; empty: none runs.
func (s *currentGuard) ID() string {
	if g := s.at.Load(); g != nil {
		return g.ID()
	}
	return ""
}

// Status returns the guard's status, or what another guard remembers; nil: there is neither.
func (s *currentGuard) Status() []restartguard.NodeStatus {
	if g := s.at.Load(); g != nil {
		return g.Status()
	}
	if status := s.remembered.Load(); status != nil {
		return *status
	}
	return nil
}

// useGuard makes the guard visible to the screen and the monitor from now on.
func (s *Session) useGuard(ctx context.Context, g *watch.Guard) {
	s.guard.at.Store(g)
	s.wg.Go(crash.Safe(func() { vouch(ctx, s.Monitor, g) }))
	s.Monitor.Guarded(func() monitor.GuardView { return guardView(g) })
}

func (s *Session) show() {
	s.showing.Lock()
	defer s.showing.Unlock()
	about := metrics.Cluster{Name: s.cluster, Monitor: s.Monitor, Export: s.export, Record: s.recorder}
	if g := s.guard.at.Load(); g != nil { // a nil *Guard in the interface would not be nil
		about.Guard = g
	}
	s.metrics.Show(about)
}
