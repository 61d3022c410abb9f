package app

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"redlockctl/internal/metrics"
	"redlockctl/internal/otlp"
	"redlockctl/internal/record"
	"redlockctl/internal/safetext"
	"redlockctl/monitor"
	"redlockctl/restartguard"
)

// noted is a source of what is recorded that takes events in.
type noted interface {
	record.Source
	Note(monitor.Event)
}

// recorded runs a recorder until ctx ends, and puts among the events how it fares. That
// another process records already is no trouble. who is what records; fences tells what its
// guard knows, and may be nil.
func recorded(ctx context.Context, wg *sync.WaitGroup, opt record.Options, from noted, who string, fences func() []restartguard.NodeStatus) {
	if opt.Path == "" {
		return
	}
	host, _ := os.Hostname()
	opt.By, opt.Fences = who+"@"+host, fences
	opt.Tell = func(err error) {
		e := monitor.Event{At: time.Now(), Level: monitor.LevelNotice, Kind: "recorder", Text: safetext.New("recording goes on")}
		switch {
		case errors.Is(err, record.ErrInUse):
			e.Level, e.Text = monitor.LevelInfo, safetext.New("another process on this machine records this cluster")
		case err != nil:
			e.Level, e.Text = monitor.LevelAlarm, safetext.New("nothing is recorded; all else goes on: "+err.Error())
		}
		from.Note(e)
	}
	wg.Go(func() { record.New(opt).Run(ctx, from) })
}

// exported sends the events of a cluster to an OTLP receiver until ctx ends; nil where the
// environment names none.
func exported(ctx context.Context, wg *sync.WaitGroup, cluster string, from noted) metrics.Export {
	e, err := otlp.New(cluster)
	if err != nil {
		from.Note(monitor.Event{Level: monitor.LevelAlarm, Kind: "export", Text: safetext.New("events are not exported: " + err.Error())})
	}
	if e == nil {
		return nil // and not a nil *Exporter, which would not be nil
	}
	wg.Go(func() { e.Run(ctx, from) })
	return e
}

// guardSource is what a guard that watches no locks has to be recorded: the states of its
// nodes, and what it tells.
type guardSource struct {
	guard *restartguard.Guard
	about monitor.Cluster

	mu     sync.Mutex
	seq    uint64
	events []monitor.Event
}

// mostGuardEvents are kept until they are written: a second's worth.
const mostGuardEvents = 1024

// Note takes an event in.
func (g *guardSource) Note(e monitor.Event) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.seq++
	e.Seq = g.seq
	g.events = append(g.events[max(0, len(g.events)+1-mostGuardEvents):], e)
}

// EventsSince implements [record.Source].
func (g *guardSource) EventsSince(seq uint64) (events []monitor.Event, missed uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := min(g.seq-seq, uint64(len(g.events)))
	return slices.Clone(g.events[len(g.events)-int(n):]), g.seq - seq - n
}

// ChangedSince implements [record.Source]: there are no locks.
func (g *guardSource) ChangedSince(uint64) ([]string, bool) { return nil, true }

// Snapshot implements [record.Source]; it has nodes alone.
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
			if n.State = monitor.NodeDown; st.Denied {
				n.State = monitor.NodeDenied
			}
		}
		s.Nodes = append(s.Nodes, n)
	}
	return s
}

// eventOf is an event of the guard among those of a monitor.
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
