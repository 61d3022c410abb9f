package app

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"redlockctl/base/crash"
	"redlockctl/base/sleep"
	"redlockctl/internal/audit"
	"redlockctl/internal/metrics"
	"redlockctl/internal/notify"
	"redlockctl/internal/otlp"
	"redlockctl/internal/record"
	"redlockctl/monitor"
	"redlockctl/monitor/words"
	"redlockctl/restartguard"
	"redlockctl/restartguard/memory"
	"redlockctl/restartguard/watch"
	"redlockctl/server/safetext"
)

// noted is a source of what is recorded that accepts events.
type noted interface {
	record.Source
	Note(monitor.Event)
}

// recorded runs a recorder until ctx ends, and reports its problems as events and to log,
// which may be nil. It is no problem if another process already records. who is what records;
// fences returns what its guard knows, and may be nil. It returns nil if nothing is to be recorded.
func recorded(ctx context.Context, wg *sync.WaitGroup, opt record.Options, from noted, who string, fences func() []restartguard.NodeStatus, log *slog.Logger) *record.Recorder {
	if opt.Path == "" {
		return nil
	}
	host, _ := os.Hostname()
	opt.By, opt.Fences = who+"@"+host, fences
	opt.Tell = func(err error) {
		e := monitor.Event{At: time.Now(), Level: monitor.LevelNotice, Kind: "recorder", Text: safetext.New("recording goes on")}
		switch {
		case errors.Is(err, record.ErrInUse):
			e.Level, e.Text = monitor.LevelInfo, safetext.New("another process on this machine records this cluster")
		case err != nil:
			e.Level, e.Text = monitor.LevelAlarm, safetext.New("nothing is recorded; everything else continues: "+err.Error())
		}
		from.Note(e)
		switch {
		case log == nil:
		case e.Level == monitor.LevelAlarm:
			log.Error("nothing is recorded; everything else continues", "path", safetext.Escape(opt.Path), "error", safetext.Printable(err.Error()))
		default:
			log.Info(e.Text.Raw(), "path", safetext.Escape(opt.Path))
		}
	}
	r := record.New(opt)
	wg.Go(crash.Safe(func() { r.Run(ctx, from) }))
	return r
}

// conditionEvery is how often the file of another process is looked at.
const conditionEvery = 5 * time.Second

// recordFails follows until ctx ends why the guard that runs on this machine fails to record the
// cluster. What it returns gives the last answer without waiting; nil: it records, none runs here,
// or nothing is to be recorded.
func recordFails(ctx context.Context, wg *sync.WaitGroup, s Spec) func() error {
	if s.Record.Path == "" || s.Memory == "" {
		return func() error { return nil }
	}
	var last atomic.Pointer[error]
	look := func() {
		var err error
		if runs, unknown := memory.Running(s.Memory); unknown == nil && runs {
			err = record.Condition(s.Record.Path, s.Monitor.ClusterName, time.Now())
		}
		last.Store(&err)
	}
	look()
	wg.Go(crash.Safe(func() {
		for sleep.For(ctx, conditionEvery) == nil {
			look()
		}
	}))
	return func() error { return *last.Load() }
}

// removalLate is how long a removal waits for an event that shows that it was seen.
const removalLate = 3 * time.Second

// recordRemovals adds to a cluster's events, until ctx ends, the locks that were force-released or
// revoked by the audit log at path and that nobody saw: they were acquired and gone between two
// observations, or nobody watches locks here; and what failed, for it may have reached some nodes. So
// it adds what failed of what was done to nodes.
func recordRemovals(ctx context.Context, wg *sync.WaitGroup, path, cluster string, from noted) {
	if path == "" {
		return
	}
	log := audit.FollowAll(path)
	wg.Go(crash.Safe(func() {
		defer log.Close()
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		a, failed := removals{cluster: cluster}, nodeFailures{cluster: cluster}
		for {
			select {
			case <-ctx.Done():
				return
			case now := <-tick.C:
				for _, e := range a.step(now, log.Ended(), from) {
					from.Note(e)
				}
				for _, e := range failed.step(now, log.Lines(), a.seen) {
					from.Note(e)
				}
			}
		}
	}))
}

// nodeFailures are actions on nodes that failed, until it is known whether that was told here.
type nodeFailures struct {
	cluster string
	waiting []audit.Record
}

// step takes new lines of the audit log and returns the failures that were not among the events that
// were seen: the state of a node shows only what was done to it, and not that its drain was cut short.
func (f *nodeFailures) step(now time.Time, lines []audit.Record, seen []monitor.Event) (untold []monitor.Event) {
	for _, r := range lines {
		if r.OnNode() && r.Phase == audit.Failed && r.Cluster == f.cluster {
			f.waiting = append(f.waiting, r)
		}
	}
	f.waiting = slices.DeleteFunc(f.waiting, func(r audit.Record) bool {
		told := slices.ContainsFunc(seen, func(e monitor.Event) bool {
			return e.Kind == "operator" && e.Node == r.Target && e.At.Sub(r.Time).Abs() < time.Second
		})
		if told || now.Sub(r.Time) < removalLate {
			return told
		}
		untold = append(untold, monitor.NodeEvent(r.Time, monitor.LevelNotice, r.Act, r.Target, "%s failed%s, by the audit log at %s: %s", r.Act, actionOf(r).By(), words.Moment(r.Time, now), r.Detail))
		return true
	})
	return untold
}

// removals are locks that were force-released or revoked, until it is known whether that was seen.
type removals struct {
	cluster string
	seq     uint64
	waiting []audit.Record
	seen    []monitor.Event
}

// step takes new lines of the audit log and returns the removals that nobody saw.
func (a *removals) step(now time.Time, ended []audit.Record, from record.Source) (unseen []monitor.Event) {
	events, _ := from.EventsSince(a.seq)
	for _, e := range events {
		if a.seq = e.Seq; slices.Contains([]string{"force-released", "revoked", "operator", monitor.LockLostMajority.String()}, e.Kind) {
			a.seen = append(a.seen, e)
		}
	}
	a.seen = slices.DeleteFunc(a.seen, func(e monitor.Event) bool { return now.Sub(e.At) > 4*removalLate })
	for _, r := range ended {
		if r.Cluster == a.cluster {
			a.waiting = append(a.waiting, r)
		}
	}
	a.waiting = slices.DeleteFunc(a.waiting, func(r audit.Record) bool {
		at, seen := r.Time, false
		for _, e := range a.seen {
			switch {
			case e.Kind == "operator":
				seen = seen || e.Act == r.ID
			case e.Key.Raw() != r.Target && safetext.Escape(e.Key.Raw()) != r.Target || !e.At.After(r.Time.Add(-time.Second)):
			case r.Phase == audit.Done:
				seen = seen || e.Kind == monitor.LockLostMajority.String() || (e.Kind == "force-released") == (r.Act == "force-release")
			case r.FoundNothing() && e.At.After(at) && e.At.Before(r.Time.Add(time.Second)):
				at = e.At // why nothing was found: it was seen a moment after it happened
			}
		}
		if seen || now.Sub(r.Time) < removalLate {
			return seen
		}
		text := r.Act
		if r.Phase == audit.Failed {
			text += " failed" // the end of a long line is cut
		}
		text += actionOf(r).By()
		if sha := r.TokenSHA; len(sha) >= 16 {
			text += " (" + record.TokenName(sha[:16]) + ")"
		}
		text += ", by the audit log at " + words.Moment(r.Time, now)
		if r.Phase == audit.Failed {
			text += ": " + r.Detail
		}
		unseen = append(unseen, monitor.Event{At: at, Level: monitor.LevelNotice, Kind: r.Act, Key: safetext.New(r.Target), Text: safetext.New(text)})
		return true
	})
	return unseen
}

// exported sends the events of a cluster to an OTLP receiver until ctx ends; nil where the
// environment names none.
// With them goes what is added to the audit log at path, about this cluster.
func exported(ctx context.Context, wg *sync.WaitGroup, path, cluster, version string, from noted) metrics.Export {
	e, err := otlp.New(cluster, version)
	if err != nil {
		from.Note(monitor.Event{Level: monitor.LevelAlarm, Kind: "export", Text: safetext.New("events are not exported: " + err.Error())})
	}
	if e == nil {
		return nil // and not a nil *Exporter, which would not be nil
	}
	wg.Go(crash.Safe(func() { e.Run(ctx, from) }))
	if path != "" {
		log := audit.FollowAll(path)
		wg.Go(crash.Safe(func() {
			defer log.Close()
			e.RunAudit(ctx, func() []audit.Record {
				return slices.DeleteFunc(log.Lines(), func(r audit.Record) bool { return r.Cluster != cluster })
			})
		}))
	}
	return e
}

// notified tells whoever is to be notified of a cluster's verdict and findings, until ctx ends.
func notified(ctx context.Context, wg *sync.WaitGroup, opt notify.Options, from notify.Source) {
	if !opt.On() {
		return
	}
	host, _ := os.Hostname()
	opt.By = "guard@" + host
	wg.Go(crash.Safe(func() { notify.New(opt).Run(ctx, from) }))
}

// guardSource is what a guard that watches no locks has to be recorded: the states of its
// nodes, and what it tells.
type guardSource struct {
	guard *watch.Guard
	about monitor.Cluster

	mu     sync.Mutex
	seq    uint64
	events []monitor.Event
}

// mostGuardEvents are kept until they are written: a second's worth.
const mostGuardEvents = 1024

func (g *guardSource) Note(e monitor.Event) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.seq++
	e.Seq = g.seq
	g.events = append(g.events[max(0, len(g.events)+1-mostGuardEvents):], e)
}

func (g *guardSource) EventsSince(seq uint64) (events []monitor.Event, missed uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := min(g.seq-seq, uint64(len(g.events)))
	return slices.Clone(g.events[len(g.events)-int(n):]), g.seq - seq - n
}

// ChangedSince implements [record.Source]: it has no locks.
func (g *guardSource) ChangedSince(uint64) ([]string, bool) { return nil, true }

// Snapshot implements [record.Source]; it has only nodes.
func (g *guardSource) Snapshot() *monitor.Snapshot {
	s := &monitor.Snapshot{At: time.Now(), Cluster: g.about}
	for _, st := range g.guard.Status() {
		n := monitor.Node{Name: st.Node, Err: safetext.New(st.Err)}
		switch st.Phase {
		case restartguard.PhaseServing, restartguard.PhaseExposed:
			n.State = monitor.NodeServing
		case restartguard.PhaseFenced:
			n.State = monitor.NodeFenced
		case restartguard.PhaseCordoned:
			n.State = monitor.NodeCordoned
		case restartguard.PhaseUnreachable:
			switch n.State = monitor.NodeDown; {
			case st.Denied:
				n.State = monitor.NodeDenied
			case st.Absent != "":
				n.State = monitor.NodeStateOf(st.Absent)
			}
		}
		s.Nodes = append(s.Nodes, n)
	}
	return s
}

func eventOf(e restartguard.Event) monitor.Event {
	level := monitor.LevelNotice
	if e.Alarm {
		level = monitor.LevelAlarm
	}
	return monitor.Event{
		At: e.At, Level: level, Kind: strings.TrimSpace("guard " + e.Kind), Node: e.Node,
		Text: safetext.New("guard: " + strings.TrimSpace(e.Node+" "+e.Text)),
	}
}
