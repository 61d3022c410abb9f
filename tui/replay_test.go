package tui

import (
	"errors"
	"fmt"
	"regexp"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"redlockctl/internal/audit"
	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/monitor/monitortest"
	"redlockctl/restartguard"
	"redlockctl/server/safetext"
	"redlockctl/tui/source"
)

// fakeRecording is a record of an hour, with problems in its last half.
type fakeRecording struct {
	fakeSource
	first, at time.Time
	closed    bool
	err       error
}

func newFakeRecording() *fakeRecording {
	r := &fakeRecording{first: monitortest.Epoch.Add(-time.Hour), fakeSource: *newFakeSource(&monitor.Snapshot{})}
	_ = r.MoveTo(monitortest.Epoch)
	return r
}

func (r *fakeRecording) MoveTo(t time.Time) error {
	if t.After(monitortest.Epoch) {
		t = monitortest.Epoch
	}
	if t.Before(r.first) {
		t = r.first
	}
	s := monitortest.Safe(t)
	if t.After(r.first.Add(30 * time.Minute)) {
		s = monitortest.Degraded(t)
	}
	r.at = t
	r.push(s)
	return r.err
}

func (r *fakeRecording) Shift(d time.Duration) error { return r.MoveTo(r.at.Add(d)) }
func (r *fakeRecording) Step(back bool, lock string) (bool, error) {
	to := r.first.Add(30 * time.Minute)
	if lock != "" {
		to = to.Add(time.Minute)
	}
	if back != to.Before(r.at) || to.Equal(r.at) {
		return false, r.err
	}
	return true, r.MoveTo(to)
}
func (r *fakeRecording) Span() (first, last time.Time)     { return r.first, monitortest.Epoch }
func (r *fakeRecording) Refresh() error                    { return nil }
func (r *fakeRecording) By() string                        { return "guard@ops-1" }
func (r *fakeRecording) Close() error                      { r.closed = true; return nil }
func (r *fakeRecording) ID() string                        { return "" }
func (r *fakeRecording) Status() []restartguard.NodeStatus { return nil }
func (r *fakeRecording) Turns() []view.NodeTurn {
	return []view.NodeTurn{
		{Node: "n2", At: r.at.Add(-10 * time.Minute), State: monitor.NodeServing},
		{Node: "n2", At: r.at.Add(-8 * time.Minute), State: monitor.NodeServing, Restarted: true},
		{Node: "n2", At: r.at.Add(-5 * time.Minute), State: monitor.NodeUnknown},
		{Node: "n2", At: r.at.Add(-3 * time.Minute), State: monitor.NodeFenced},
	}
}
func (r *fakeRecording) Holders(lock string, from, to time.Time) (view.Band, error) {
	band := view.Band{From: from, To: to, Gaps: []view.SpanDoc{{Since: to.Add(-100 * time.Second), Until: to.Add(-40 * time.Second)}}}
	if lock == "invoices:2026-11" { // of the token that left a copy behind
		band.Grants = []view.GrantDoc{{Lock: safetext.New(lock), TokenSHA: audit.TokenSHA(monitortest.TokenA)[:16], Owner: safetext.Optional("web-9"), Began: to.Add(-10 * time.Minute),
			Extended: to.Add(-3 * time.Minute), Extensions: 60, Ended: to.Add(-2 * time.Minute), How: "lost majority"}}
		return band, nil
	}
	band.Grants = []view.GrantDoc{{Lock: safetext.New(lock), TokenSHA: "0123456789abcdef", Owner: safetext.Optional("web-7"), Began: to.Add(-4 * time.Minute), Ended: to.Add(-2 * time.Minute), How: "released"}}
	return band, nil
}

// past presses keys and waits for their effect on the screen.
func (r *rig) past(keys ...string) {
	r.t.Helper()
	for _, k := range keys {
		_, cmd := r.m.Update(keyPress(k))
		if k == "." { // its commands wait for the live view to change
			cmd = func() tea.Msg { return nil }
		}
		r.arrives(cmd)
	}
}

func (r *rig) arrives(cmd tea.Cmd) {
	r.t.Helper()
	if cmd == nil {
		return
	}
	switch msg := cmd().(type) {
	case source.MovedMsg:
		r.m.Update(msg)
	case tea.BatchMsg:
		for _, one := range msg {
			if msg, ok := one().(source.MovedMsg); ok {
				r.m.Update(msg)
			}
		}
	}
	r.m.Update(source.SnapshotMsg{Turn: r.m.feed.Turn, Snap: r.m.feed.Source.Snapshot(), Guard: r.m.feed.Status()})
	r.m.View()
}

// The past is shown on the same pages under a banner that does not depend on colour, and
// in ASCII too; the cursor stays, and . returns to the live view.
func TestReplay(t *testing.T) {
	var rec *fakeRecording
	opened := 0
	record := func(o *Options) {
		o.Record = func() (source.Recording, error) { opened++; rec = newFakeRecording(); return rec, nil }
	}
	for name, look := range map[string]func(*Options){
		"dark": record, "ascii": func(o *Options) { record(o); o.ASCII = true }, "no colour": func(o *Options) { record(o); o.NoColor = true },
	} {
		for _, w := range []int{60, 80, 120} {
			r := newRig(t, monitortest.Degraded(monitortest.Epoch), w, 30, look)
			r.press("2", "/")
			r.typed("42")
			r.press("enter")
			r.past("[")
			r.sees("REPLAY", "11:33:10", "space play", ". now", "orders:42")
			r.seesNot("orders:43")
			if w == 120 {
				r.sees("30m ago", "recorded by guard@ops-1", "actions are off")
			}
			checkFrame(t, r.m.View().Content, w, 30, name == "ascii")
			r.past("1")
			r.sees("SAFE")
			r.past("}")
			r.sees("11:34:10", "DANGER")
			r.past("{", "{")
			r.sees("11:32:10", "SAFE")
			r.past(".")
			r.seesNot("REPLAY")
			r.sees("DANGER")
			if !rec.closed {
				t.Error("the record is still open")
			}
		}
	}
	if opened != 9 {
		t.Errorf("opened %d times", opened)
	}
}

// No action is possible in the past, and each says why; in the live view they work again.
func TestNoActionInThePast(t *testing.T) {
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 140, 40, func(o *Options) {
		o.Record = func() (source.Recording, error) { return newFakeRecording(), nil }
	})
	r.past("[", "}")
	for i := range r.m.keys {
		b := &r.m.keys[i]
		if !b.Danger || b.Do == nil || b.In&r.m.mode() == 0 {
			continue
		}
		if why := b.Disabled(); why == "" {
			t.Errorf("%s is possible", b.Name)
		}
	}
	for _, k := range []string{"a", "R", "X", "c"} {
		r.press(k)
		r.refused(offInReplay)
	}
	r.press(":")
	r.typed("force-release orders:42")
	r.press("enter")
	r.refused(offInReplay)
	r.past(".")
	r.press("a")
	if r.m.Dialog == nil {
		t.Error("nothing can be acquired in the present again")
	}
	if n := len(r.acts.sent()); n > 0 {
		t.Errorf("%d actions were sent", n)
	}
}

// A replay has a speed, pauses, and stops at the end of the record.
func TestPlay(t *testing.T) {
	rec := newFakeRecording()
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 30, func(o *Options) { o.Replay, o.Source = rec, nil })
	r.press(":")
	r.typed("replay 12:00")
	_, cmd := r.m.Update(keyPress("enter"))
	r.arrives(cmd)
	r.sees("12:00:00", ". end")
	r.press("+", "+", "+", "space")
	r.sees("10", "space pause")
	beat := func(d time.Duration) {
		r.clock = r.clock.Add(d)
		if cmd := r.m.playOn(r.m.replay.Beat); cmd != nil {
			_ = rec.Shift(d * time.Duration(r.m.replay.Speed)) // what the command does before the next beat
		}
		r.m.Update(source.SnapshotMsg{Turn: r.m.feed.Turn, Snap: rec.Snapshot()})
		r.m.View()
	}
	beat(time.Second)
	r.sees("12:00:10")
	r.press("space")
	beat(time.Second)
	r.sees("12:00:10", "space play")
	r.press("+", "+", "+", "space")
	for range 4 {
		beat(time.Second)
	}
	r.sees("12:03:10", "the end of the record")
}

// Of a moment that nobody recorded the pages say so, and count nothing.
func TestNothingWasRecordedThen(t *testing.T) {
	rec := newFakeRecording()
	gap := &monitor.Snapshot{At: monitortest.Epoch, Cluster: monitor.Cluster{Name: "orders", N: 5, Quorum: 3, Reason: monitor.NothingRecorded}}
	for i := range 5 {
		gap.Nodes = append(gap.Nodes, monitor.Node{Name: fmt.Sprint("n", i+1), Keys: -1})
	}
	gap.Recall(monitor.NothingRecorded)
	rec.push(gap)
	r := newRig(t, gap, 120, 40, func(o *Options) { o.Replay, o.Source = rec, nil })
	for _, page := range []string{"1", "2", "3", "5"} {
		r.press(page)
		r.sees(monitor.NothingRecorded)
		r.seesNot("0 of 5", "0 serving", "Locks 0", "Findings 0", "no node answers", "looking", "nothing here that needs you", "waiting for")
	}
}

// An unreadable record is reported, and the live view stays.
func TestNoRecord(t *testing.T) {
	broken := errors.New("nothing has been recorded")
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 30, func(o *Options) { o.Record = func() (source.Recording, error) { return nil, broken } })
	r.past("[")
	r.sees("nothing has been recorded")
	r.seesNot("REPLAY")
	r.press(":")
	r.typed("replay soon")
	r.press("enter")
	r.sees("write how long ago")
}

// The record says who left an orphaned lock, on its page and before it is force-released.
func TestMakerOfAnOrphan(t *testing.T) {
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40, func(o *Options) { o.Record = func() (source.Recording, error) { return newFakeRecording(), nil } })
	r.press("/")
	r.typed("invoices")
	r.press("enter", "X")
	r.m.View()
	r.clock = r.clock.Add(11 * time.Second)
	r.m.Update(r.m.askHolders()())
	r.sees("Maker", "web-9 (told by its token) held it for 8m00s", "(lost majority)", "last extended 3m", "usually every 7s")
	r.press("esc", "o")
	r.sees("Maker", "web-9 (told by its token) held it for 8m00s")
}

// The page of a lock has a band of its holders, if there is a record.
func TestBandOnALocksPage(t *testing.T) {
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40, func(o *Options) { o.Record = func() (source.Recording, error) { return newFakeRecording(), nil } })
	r.press(":")
	r.typed("lock orders:42")
	r.press("enter")
	r.clock = r.clock.Add(11 * time.Second)
	r.m.Update(r.m.askHolders()())
	r.m.View()
	r.sees("Holders", "web-7 2m00s", "last 5m00s")
	r.sees("not recorded  ")
	if r.m.askHolders() != nil {
		t.Error("it is asked for again at once")
	}
}

// The guard's page shows in a replay what was until then: a restart, a time that nobody recorded,
// a fence.
func TestTimelinesOfThePast(t *testing.T) {
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40, func(o *Options) { o.Record = func() (source.Recording, error) { return newFakeRecording(), nil } })
	r.past("[")
	r.press(":")
	r.typed("guard")
	r.press("enter")
	r.sees("16m")
	line := regexp.MustCompile(`n2 +─+R─+ +▒+`)
	if !line.MatchString(r.screen()) {
		t.Errorf("no line like %s:\n%s", line, r.screen())
	}
}

// The page of a lock shows in a replay the events that the record has until then, in their order,
// whatever numbers the events of the cluster have.
func TestEventsOfALockInThePast(t *testing.T) {
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40, func(o *Options) { o.Record = func() (source.Recording, error) { return newFakeRecording(), nil } })
	r.past("[")
	r.press(":")
	r.typed("lock orders:42")
	r.press("enter")
	r.m.View()
	at, key := r.m.Latest.At, "orders:42"
	var events []monitor.Event
	for i, kind := range []string{"acquired", "extended", "released"} {
		events = append(events, monitor.Event{Seq: uint64(i + 1), At: at.Add(time.Duration(i-10) * time.Second), Kind: kind, Key: safetext.New(key), Text: safetext.New(kind + " in the past")})
	}
	turn := r.m.feed.Turn
	r.m.Update(source.HistoryMsg{Turn: turn, Version: r.m.Latest.Version, Key: key, Events: events})
	r.m.Update(source.HistoryMsg{Turn: turn, Version: r.m.Latest.Version + 1, Key: key}) // of another moment
	r.m.Update(source.HistoryMsg{Turn: turn - 1, Version: r.m.Latest.Version, Key: key}) // of the present
	if got := r.m.Lock.Watched.Events; len(got) != len(events) {
		t.Errorf("%+v", got)
	}
	r.sees("acquired in the past", "extended in the past", "released in the past")
}

// A time when locks were not recorded says so, with the command that records them, on a
// narrow screen too.
func TestLocksThatNobodyRecorded(t *testing.T) {
	s := monitortest.Safe(monitortest.Epoch)
	s.Locks, s.Counts = monitor.Locks{}, monitor.Counts{}
	s.Recall(monitor.LocksUnrecorded)
	r := newRig(t, s, 80, 24)
	r.sees("locks were not recorded then: " + monitor.AdviceRecordLocks)
	r.seesNot("keys that have been read")
}
