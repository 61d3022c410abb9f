package app

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"redlockctl/internal/record"
	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/restartguard"
	"redlockctl/server/safetext"
	"redlockctl/tui/source"
)

// Player is a record that stands at a moment, as a source of snapshots: the screen shows it
// in place of a monitor.
type Player struct {
	reader *record.Reader

	mu      sync.Mutex
	moment  *record.Moment
	turns   []view.NodeTurn
	changed chan struct{}
	closed  bool
}

var _ source.Recording = (*Player)(nil)

// NewPlayer begins at a moment.
func NewPlayer(r *record.Reader, at time.Time) (*Player, error) {
	p := &Player{reader: r, changed: make(chan struct{}), moment: &record.Moment{Snapshot: &monitor.Snapshot{}}}
	return p, p.MoveTo(at)
}

// MoveTo goes to a moment, or to the end of the record that is next to it.
func (p *Player) MoveTo(t time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.moveTo(t)
}

func (p *Player) moveTo(t time.Time) error {
	first, last := p.span()
	if t.After(last) {
		t = last
	}
	if t.Before(first) {
		t = first
	}
	m, err := p.reader.At(t)
	if err != nil {
		return fmt.Errorf("the record cannot be read: %w", err)
	}
	turns, err := p.turnsUntil(t)
	if err != nil {
		return fmt.Errorf("the record cannot be read: %w", err)
	}
	m.Snapshot.Version = p.moment.Snapshot.Version + 1
	p.moment, p.turns = m, turns
	if !p.closed {
		close(p.changed)
		p.changed = make(chan struct{})
	}
	return nil
}

// turnsTime is for how long before a moment the states of the nodes are shown.
const turnsTime = 30 * time.Minute

// turnsUntil reads how the nodes changed before a moment, oldest first.
func (p *Player) turnsUntil(t time.Time) ([]view.NodeTurn, error) {
	in := record.Span{Since: t.Add(-turnsTime), Until: t.Add(time.Millisecond)}
	before, err := p.reader.StatesAt(in.Since)
	if err != nil {
		return nil, err
	}
	states, err := p.reader.States(in)
	if err != nil {
		return nil, err
	}
	restarts, err := p.reader.Restarts(in)
	if err != nil {
		return nil, err
	}
	covered, err := p.reader.Coverage(in)
	if err != nil {
		return nil, err
	}
	var turns []view.NodeTurn
	nodes := map[string]bool{}
	for _, s := range append(before, states...) {
		if s.Node == "" {
			continue // the cluster's verdict
		}
		nodes[s.Node] = true
		turns = append(turns, view.NodeTurn{Node: s.Node, At: slices.MaxFunc([]time.Time{s.At, in.Since}, time.Time.Compare), State: monitor.NodeStateOf(s.State)})
	}
	for _, gap := range covered.Gaps {
		for node := range nodes {
			turns = append(turns, view.NodeTurn{Node: node, At: gap.Since, State: monitor.NodeUnknown})
		}
	}
	for _, e := range restarts {
		turns = append(turns, view.NodeTurn{Node: e.Node, At: e.At, Restarted: true})
	}
	slices.SortStableFunc(turns, func(a, b view.NodeTurn) int { return a.At.Compare(b.At) })
	state := map[string]monitor.NodeState{}
	kept := turns[:0]
	for _, one := range turns {
		was, known := state[one.Node]
		if one.Restarted {
			one.State = was
		}
		if !known && one.State == monitor.NodeUnknown {
			continue // before the record
		}
		state[one.Node] = one.State
		kept = append(kept, one)
	}
	return kept, nil
}

// Turns implements [source.Recording].
func (p *Player) Turns() []view.NodeTurn {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.turns
}

// Shift goes by so much time.
func (p *Player) Shift(d time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.moveTo(p.moment.Snapshot.At.Add(d))
}

// Step implements [source.Recording].
func (p *Player) Step(back bool, lock string) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, ok, err := p.reader.Step(p.moment.Snapshot.At, back, lock)
	if err != nil || !ok {
		return ok, err
	}
	return true, p.moveTo(at)
}

// Span is from when to when something was recorded.
func (p *Player) Span() (first, last time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.span()
}

func (p *Player) span() (first, last time.Time) {
	return p.reader.Cluster.First, p.reader.Cluster.Last
}

// Refresh looks how far the record goes by now.
func (p *Player) Refresh() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reader.Refresh()
}

func (p *Player) at() *record.Moment {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.moment
}

// By is who recorded this moment.
func (p *Player) By() string { return p.at().By }

// Gaps are the times that were not recorded in which this moment is.
func (p *Player) Gaps() (view.CoverageDoc, error) {
	at := p.Snapshot().At
	p.mu.Lock()
	first, last := p.span()
	p.mu.Unlock()
	c, err := p.reader.Coverage(record.Span{Since: first, Until: last.Add(time.Millisecond)})
	others := func(s record.Span) bool { return at.Before(s.Since) || !at.Before(s.Until) }
	c.Recorded, c.Gaps, c.LockGaps = slices.DeleteFunc(c.Recorded, others), slices.DeleteFunc(c.Gaps, others), slices.DeleteFunc(c.LockGaps, others)
	return PastCoverage(c), err
}

// Snapshot implements [source.Source].
func (p *Player) Snapshot() *monitor.Snapshot { return p.at().Snapshot }

// Changed implements [source.Source].
func (p *Player) Changed(version uint64) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.moment.Snapshot.Version > version {
		c := make(chan struct{})
		close(c)
		return c
	}
	return p.changed
}

// ChangedSince implements [source.Source]: every moment differs.
func (p *Player) ChangedSince(uint64) ([]string, bool) { return nil, false }

// EventsSince implements [source.Source].
func (p *Player) EventsSince(uint64) ([]monitor.Event, uint64) { return p.Snapshot().Events, 0 }

// historyGrants are as many holders as the history of a lock has.
const historyGrants = 50

// History implements [source.Source]: the holders that a lock had until the moment.
func (p *Player) History(lock string) (out []monitor.Event) {
	at := p.Snapshot().At
	until := at.Add(time.Millisecond)
	grants, err := p.reader.GrantsOf(lock, record.Span{Until: until}, historyGrants)
	if err != nil {
		return nil
	}
	tell := func(t time.Time, level monitor.Level, kind, text string) {
		if !t.IsZero() && !t.After(at) {
			out = append(out, monitor.Event{At: t, Level: level, Kind: kind, Key: safetext.New(lock), Text: safetext.New(text)})
		}
	}
	for _, g := range PastGrants(grants) {
		tell(g.Began, monitor.LevelInfo, "acquired", "acquired by "+g.Who())
		tell(g.Extended, monitor.LevelInfo, "extended", fmt.Sprintf("extended %s, last by %s", view.Plural(g.Extensions, "time"), g.Who()))
		tell(g.Ended, monitor.LevelInfo, g.How, g.How+" ("+g.Who()+")")
	}
	since, _ := p.span()
	if len(grants) == historyGrants {
		since = grants[0].Began
	}
	in := record.Span{Since: since, Until: until}
	if events, err := p.reader.Events("", lock, in, historyGrants); err == nil {
		for _, e := range events {
			tell(e.At, monitor.LevelNotice, e.Kind, e.Text)
		}
	}
	if c, err := p.reader.Coverage(in); err == nil {
		for _, gap := range c.LockGaps {
			tell(gap.Since, monitor.LevelNotice, "recorder", "locks were not recorded for "+view.Span(gap.Until.Sub(gap.Since)))
		}
	}
	slices.SortStableFunc(out, func(a, b monitor.Event) int { return a.At.Compare(b.At) })
	for i := range out {
		out[i].Seq = uint64(i + 1)
	}
	return out
}

// Holders implements [source.Recording].
func (p *Player) Holders(lock string, from, to time.Time) (view.Band, error) {
	return BandOf(p.reader, lock, from, to)
}

// ID implements [source.Guard]: none runs here.
func (p *Player) ID() string { return "" }

// Status implements [source.Guard]: what one said then.
func (p *Player) Status() []restartguard.NodeStatus { return p.at().Fences }

// Close ends the reading.
func (p *Player) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.closed = true
		close(p.changed)
	}
	return p.reader.Close()
}

// HoldersOf are the holders of a lock in a time, as they were seen at its end.
func HoldersOf(r *record.Reader, lock string, from, to time.Time) ([]view.GrantDoc, error) {
	grants, err := r.GrantsOf(lock, record.Span{Since: from, Until: to}, 1000)
	return PastGrants(grants), err
}

// BandOf are the holders of a lock in a time, and when locks were not recorded in it.
func BandOf(r *record.Reader, lock string, from, to time.Time) (view.Band, error) {
	grants, err := HoldersOf(r, lock, from, to)
	if err != nil {
		return view.Band{}, err
	}
	covered, err := r.Coverage(record.Span{Since: from, Until: to})
	return view.Band{From: from, To: to, Grants: grants, Gaps: PastCoverage(covered).LockGaps}, err
}

// PastGrants are the documents of grants.
func PastGrants(grants []record.Grant) []view.GrantDoc {
	docs := make([]view.GrantDoc, 0, len(grants))
	for _, g := range grants {
		docs = append(docs, view.GrantDoc{
			Lock: safetext.New(g.Lock), TokenSHA: g.Token, Owner: safetext.Optional(g.Owner), Library: g.Library, Began: g.Began, Partly: g.Partly, Until: g.Until,
			Extensions: g.Extensions, Extended: g.Extended, Ended: g.Ended, How: g.How, Overlaps: g.Overlaps,
		})
	}
	return docs
}

// PastCoverage is the document of what was recorded.
func PastCoverage(c record.Coverage) view.CoverageDoc {
	docs := func(spans []record.Span) []view.SpanDoc {
		out := make([]view.SpanDoc, 0, len(spans))
		for _, s := range spans {
			out = append(out, view.SpanDoc(s))
		}
		return out
	}
	return view.CoverageDoc{Recorded: docs(c.Recorded), Gaps: docs(c.Gaps), LockGaps: docs(c.LockGaps)}
}

// PastEvents are the documents of events.
func PastEvents(events []record.Event) []view.PastEventDoc {
	docs := make([]view.PastEventDoc, 0, len(events))
	for _, e := range events {
		docs = append(docs, view.PastEventDoc{At: e.At, Kind: e.Kind, Node: safetext.Optional(e.Node), Lock: safetext.Optional(e.Lock), Text: safetext.New(e.Text), Count: e.Count, Last: e.Last})
	}
	return docs
}

// OpenRecording is what opens the record of a cluster for the screen; nil: there is none.
func OpenRecording(path, cluster string) func() (source.Recording, error) {
	if path == "" {
		return nil
	}
	return func() (source.Recording, error) {
		r, err := record.OpenReader(path, cluster)
		if err != nil {
			return nil, err
		}
		return NewPlayer(r, time.Now())
	}
}
