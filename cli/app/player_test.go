package app

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"redlockctl/internal/record"
	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/monitor/monitortest"
	"redlockctl/server/safetext"
)

// aPast is a source of what is recorded: a node that restarts, and locks.
type aPast struct {
	mu     sync.Mutex
	state  monitor.NodeState
	events []monitor.Event
}

func (p *aPast) Snapshot() *monitor.Snapshot {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := monitortest.Safe(time.Now())
	s.Settled = s.At.Add(-time.Minute)
	s.Nodes[1].State = p.state
	return s
}

func (p *aPast) ChangedSince(uint64) ([]string, bool) { return nil, true }

func (p *aPast) EventsSince(seq uint64) ([]monitor.Event, uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.events[min(int(seq), len(p.events)):]), 0
}

func (p *aPast) becomes(state monitor.NodeState, kinds ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state = state
	for _, kind := range kinds {
		e := monitor.Event{Seq: uint64(len(p.events) + 1), At: time.Now(), Kind: kind, Text: safetext.New(kind)}
		if kind == "restart" {
			e.Node, e.Level = "n2", monitor.LevelAlarm
		} else {
			e.Key, e.Token, e.Until = safetext.New("job:1"), safetext.New("token"), e.At.Add(time.Minute)
		}
		p.events = append(p.events, e)
	}
}

// A moment of the past has the states of the nodes until then, with restarts and the times that
// nobody recorded; a lock has its events in their order, and its holders with the gaps.
func TestWhatWasBeforeAMoment(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record.db")
	from := &aPast{state: monitor.NodeServing}
	begin := func(from *aPast) (end func()) {
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); record.New(record.Options{Path: path, By: "test"}).Run(ctx, from) }()
		return func() { stop(); <-done }
	}
	turns := func() (p *Player, said string) {
		r, err := record.OpenReader(path, "")
		if err != nil {
			return nil, ""
		}
		t.Cleanup(func() { _ = r.Close() })
		if p, err = NewPlayer(r, time.Now()); err != nil {
			t.Fatal(err)
		}
		var words []string
		for _, one := range p.Turns() {
			if one.Node == "n2" {
				words = append(words, one.State.String())
				if one.Restarted {
					words = append(words, "restarted")
				}
			}
		}
		return p, strings.Join(words, " ")
	}
	until := func(want string) (p *Player) {
		t.Helper()
		said := ""
		for end := time.Now().Add(30 * time.Second); said != want; time.Sleep(50 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%q, not %q", said, want)
			}
			p, said = turns()
		}
		return p
	}
	end := begin(from)
	until("serving")
	from.becomes(monitor.NodeServing, "restart", "acquired")
	until("serving serving restarted")
	from.becomes(monitor.NodeFenced)
	until("serving serving restarted fenced")
	end()
	time.Sleep(50 * time.Millisecond) // nobody records
	end = begin(&aPast{state: monitor.NodeServing})
	p := until("serving serving restarted fenced unknown serving")
	defer end()

	var events []monitor.Event
	for deadline := time.Now().Add(30 * time.Second); len(events) < 2 && time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		p, _ = turns()
		events = p.History("job:1")
	}
	if !slices.ContainsFunc(events, func(e monitor.Event) bool { return e.Kind == "acquired" }) || !slices.IsSortedFunc(events, func(a, b monitor.Event) int { return a.At.Compare(b.At) }) {
		t.Errorf("%+v", events)
	}
	at := p.Snapshot().At
	band, err := p.Holders("job:1", at.Add(-time.Hour), at)
	if err != nil || len(band.Grants) == 0 || len(band.Gaps) == 0 || !slices.IsSortedFunc(band.Gaps, func(a, b view.SpanDoc) int { return a.Since.Compare(b.Since) }) {
		t.Errorf("%+v, %v", band, err)
	}
}
