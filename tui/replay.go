package tui

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"redlockctl/internal/view"
	"redlockctl/tui/page"
	"redlockctl/tui/source"
)

// offInReplay says why no action is possible in a replay.
const offInReplay = "this is the past: actions are off"

// toPast opens the record if necessary, and moves to a moment of it.
func (m *model) toPast(move func(source.Recording) (ok bool, err error)) tea.Cmd {
	if m.replay != nil {
		m.replay.Playing = false
		return source.Move(m.replay.Recording, move)
	}
	if why := m.whyNoReplay(); why != "" {
		m.say(m.St.Warn, "replay: "+why)
		return nil
	}
	open := m.here.Record
	return func() tea.Msg {
		rec, err := open()
		if err != nil {
			return source.MovedMsg{Err: err}
		}
		return source.Move(rec, move)()
	}
}

// whyNoReplay says why there is nothing to replay.
func (m *model) whyNoReplay() string {
	switch {
	case m.here.Record == nil && m.replay == nil:
		return "nothing is recorded here: [record] in the configuration"
	case m.Dialog != nil || m.Busy > 0:
		return "an action is still running"
	}
	return ""
}

func (m *model) whyNotInReplay() string {
	if m.replay == nil {
		return "this is the present: [ goes back"
	}
	return ""
}

// replayed shows a record that was opened or moved.
func (m *model) replayed(msg source.MovedMsg) tea.Cmd {
	var cmd tea.Cmd
	switch {
	case msg.Err != nil:
		m.say(m.St.Bad, "replay: "+m.St.Whole(msg.Err.Error()))
	case msg.None:
		m.say(m.St.Info, "nothing more is recorded there")
	}
	switch {
	case msg.Rec == nil:
	case m.replay == nil && (msg.Err != nil || m.whyNoReplay() != ""):
		_ = msg.Rec.Close()
	case m.replay == nil:
		m.replay = source.NewPlayer(msg.Rec, false)
		cmd = m.showSource(msg.Rec, msg.Rec)
	case m.replay.Recording != msg.Rec:
		_ = msg.Rec.Close() // it was opened twice
	}
	return cmd
}

// showSource shows another source, past or present, on the same page.
func (m *model) showSource(from source.Source, guard source.Guard) tea.Cmd {
	m.Off = ""
	if m.replay != nil {
		m.Off = offInReplay + m.wayOut()
	}
	m.feed.Show(from, guard)
	m.Rewind(m.Now())
	if m.replay != nil {
		m.Recall(m.replay.Turns())
	}
	m.seeGuard(m.feed.Status())
	m.Receive(from.Snapshot(), nil, false, nil)
	return m.feed.Begin(m.Latest, m.Events.Seq)
}

func (m *model) wayOut() string {
	if m.replay.Only {
		return ""
	}
	return "; . goes to now"
}

// toNow ends the replay, or goes to the end of the record if there is no live view.
func (m *model) toNow() tea.Cmd {
	r := m.replay
	if r.Only {
		_, last := r.Span()
		return m.toPast(func(rec source.Recording) (bool, error) { return true, rec.MoveTo(last) })
	}
	m.replay = nil
	_ = r.Close()
	return m.showSource(m.here.Source, m.here.Guard)
}

// stepPast goes one event back or forward, on the page of a lock one event of that lock.
func (m *model) stepPast(back bool) func() tea.Cmd {
	return func() tea.Cmd {
		lock := ""
		if at := m.Page.Place(); at.Kind == page.Lock {
			lock = at.Name
		}
		return m.toPast(func(rec source.Recording) (bool, error) { return rec.Step(back, lock) })
	}
}

func (m *model) shiftPast(d time.Duration) func() tea.Cmd {
	return func() tea.Cmd {
		return m.toPast(func(rec source.Recording) (bool, error) { return true, rec.Shift(d) })
	}
}

// replayAt runs :replay with a moment.
func (m *model) replayAt(text string) tea.Cmd {
	at, err := view.ParseMoment(text, m.Now())
	if err != nil {
		m.say(m.St.Bad, "replay: "+m.St.Our(err.Error()))
		return nil
	}
	return m.toPast(func(rec source.Recording) (bool, error) { return true, rec.MoveTo(at) })
}

// playOn moves the replay by the time that has passed.
func (m *model) playOn(msg source.BeatMsg) tea.Cmd {
	if m.replay == nil {
		return nil
	}
	cmd, ended := m.replay.PlayOn(msg, m.Now(), m.Latest.At)
	if ended {
		m.say(m.St.Info, "the end of the record"+m.wayOut())
	}
	return cmd
}

func (m *model) faster(by int) func() tea.Cmd {
	return func() tea.Cmd { m.replay.Faster(by); return nil }
}

// toggleFreeze freezes the screen, or plays and pauses a replay.
func (m *model) toggleFreeze() tea.Cmd {
	switch {
	case m.replay != nil:
		return m.replay.Toggle(m.Now())
	case m.Frozen.On():
		m.Thaw()
	default:
		m.Freeze(m.Now())
	}
	return nil
}

// askHolders reads the holders of the shown lock from the record, if there is one.
func (m *model) askHolders() tea.Cmd {
	if m.replay == nil && m.here.Record == nil {
		return nil
	}
	key := m.Lock.Asks(m.Now())
	if key == "" {
		return nil
	}
	return m.replay.AskHolders(m.here.Record, key, m.shownNow())
}

// askRemoval asks how the shown lock, or that of a dialog, was force-released, if no copy of it is left or a client has it.
func (m *model) askRemoval() tea.Cmd {
	if !m.tellsRemovals() {
		return nil
	}
	var key string
	switch at := m.Page.Place(); {
	case m.Dialog != nil && m.Dialog.Lock != "":
		key = m.Dialog.Lock
	case at.Kind == page.Lock:
		key = at.Name
	case at.Kind == page.Locks:
		if l := m.Page.Selected().Lock; l != nil {
			key = l.Key.Raw()
		}
	}
	if key != "" && m.Lock.Removal.Due(key, m.Shown.Locks.Get(key), m.Now()) {
		return m.removalOf(key, false)
	}
	return nil
}

// tellsRemovals reports whether it can be asked how a lock was force-released: not of the past.
func (m *model) tellsRemovals() bool { return m.here.ForceReleased != nil && m.replay == nil }

// removalOf asks how a lock was force-released; named: by somebody who wants to see that lock.
func (m *model) removalOf(key string, named bool) tea.Cmd {
	ask, l, now := m.here.ForceReleased, m.Shown.Locks.Get(key), m.Now()
	return func() tea.Msg { return source.RemovalMsg{Key: key, Text: ask(key, l, now), Named: named} }
}

// takeRemoval shows how a lock was force-released, on the page of that lock.
func (m *model) takeRemoval(msg source.RemovalMsg) tea.Cmd {
	switch {
	case msg.Named && msg.Text == "" && m.Shown.Locks.Get(msg.Key) == nil:
		m.sayNoLock(msg.Key)
		return nil
	case msg.Named:
		m.open(page.Lock, msg.Key)
		m.Lock.Removal.Due(msg.Key, m.Shown.Locks.Get(msg.Key), m.Now())
	}
	m.Lock.Removal.Take(msg.Key, msg.Text)
	return nil
}

// takeHistory adds the earlier events of the shown lock. Those of a replay are all of its events
// until the moment that is shown, with numbers of their own.
func (m *model) takeHistory(msg source.HistoryMsg) {
	switch {
	case msg.Turn != m.feed.Turn:
	case m.replay == nil:
		m.Lock.Watched.Before(msg.Key, msg.Events)
	case msg.Version == m.Latest.Version:
		m.Lock.Watched.All(msg.Key, msg.Events)
	}
}

// replayBanner says that a replay is shown, in the longest form that fits.
func (m *model) replayBanner(w int) string {
	st, r, at := m.St, m.replay, m.Latest.At
	sep := " " + st.Sep + " "
	when := " " + st.Rewind + " REPLAY  " + at.Format("15:04:05 MST, 2006-01-02")
	ago := sep + view.Age(m.Now().Sub(at)) + " ago"
	by := sep + "not recorded then"
	if who := r.By(); who != "" {
		by = sep + "recorded by " + st.Escape(who, 32)
	}
	keys := "space play"
	if r.Playing {
		keys = fmt.Sprintf("%s %d%s  space pause", st.Play, r.Speed, st.Times)
	}
	end := "now"
	if r.Only {
		end = "end"
	}
	keys += sep + ". " + end + " "
	off := sep + "actions are off"
	for _, left := range []string{when + ago + by + off, when + by + off, when + ago + off, when + off, " " + st.Rewind + " REPLAY  " + at.Format("15:04:05") + off} {
		if n := w - view.Width(left) - view.Width(keys); n >= 2 {
			return st.Banner.Of(left + strings.Repeat(" ", n) + keys)
		}
	}
	return st.Banner.Of(st.Pad(when, w))
}
