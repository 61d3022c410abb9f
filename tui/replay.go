package tui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"redlockctl/internal/view"
	"redlockctl/tui/page"
)

// Recording is what was seen in the past, as a [Source] that stands at a moment. Its guard
// is what one said then.
type Recording interface {
	Source
	Guard
	// MoveTo goes to a moment and Shift by a time, within what is recorded.
	MoveTo(t time.Time) error
	Shift(d time.Duration) error
	// Step goes to the next moment at which something happened, or back to the one
	// before; of a lock alone if it is not "". False: there is none.
	Step(back bool, lock string) (ok bool, err error)
	Span() (first, last time.Time)
	Refresh() error // looks how far it goes by now
	By() string     // who recorded this moment; "": nobody did
	// Holders are the holders of a lock in a time, oldest first.
	Holders(lock string, from, to time.Time) ([]view.GrantDoc, error)
	Close() error
}

// replay is the past in place of the present.
type replay struct {
	rec     Recording
	playing bool
	speed   int       // seconds in a second
	beat    int       // grows with each start of playing: what an old one still brings is not obeyed
	since   time.Time // when it was last moved on while playing
	only    bool      // there is no present: all that is shown is the record
}

// playEvery is how often the moment moves on while playing.
const playEvery = 200 * time.Millisecond

var speeds = []int{1, 2, 5, 10, 30, 60}

// offInReplay is why no action is possible in the past.
const offInReplay = "this is the past: actions are off"

// replayMsg is a recording that was opened, or moved.
type replayMsg struct {
	rec  Recording
	none bool // nothing happened there
	err  error
}

// playMsg is the time to move on.
type playMsg struct{ beat int }

// toPast opens the recording where it is not open yet, and moves it.
func (m *model) toPast(move func(Recording) (ok bool, err error)) tea.Cmd {
	if m.replay != nil {
		m.replay.playing = false
		return moveRecording(m.replay.rec, move)
	}
	if why := m.whyNoReplay(); why != "" {
		m.say(m.St.Warn, "replay: "+why)
		return nil
	}
	open := m.opt.Record
	return func() tea.Msg {
		rec, err := open()
		if err != nil {
			return replayMsg{err: err}
		}
		return moveRecording(rec, move)()
	}
}

func moveRecording(rec Recording, move func(Recording) (bool, error)) tea.Cmd {
	return func() tea.Msg {
		err := rec.Refresh()
		ok := true
		if err == nil {
			ok, err = move(rec)
		}
		return replayMsg{rec, !ok, err}
	}
}

// whyNoReplay is why there is no past to go to.
func (m *model) whyNoReplay() string {
	switch {
	case m.opt.Record == nil && m.replay == nil:
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

// replayed takes in a recording that was opened or moved.
func (m *model) replayed(msg replayMsg) tea.Cmd {
	var cmd tea.Cmd
	switch {
	case msg.err != nil:
		m.say(m.St.Bad, "replay: "+m.St.Whole(msg.err.Error()))
	case msg.none:
		m.say(m.St.Info, "nothing more is recorded there")
	}
	switch {
	case msg.rec == nil:
	case m.replay == nil && (msg.err != nil || m.whyNoReplay() != ""):
		_ = msg.rec.Close()
	case m.replay == nil:
		m.replay = &replay{rec: msg.rec, speed: 1}
		cmd = m.showSource(msg.rec, msg.rec)
	case m.replay.rec != msg.rec:
		_ = msg.rec.Close() // two were opened
	}
	return cmd
}

// showSource shows another source, past or present, on the same page.
func (m *model) showSource(source Source, guard Guard) tea.Cmd {
	m.Off = ""
	if m.replay != nil {
		m.Off = offInReplay + m.wayOut()
	}
	m.feed.source, m.feed.guard = source, guard
	m.feed.cluster++
	m.Rewind(m.Now())
	m.seeGuard(m.feed.status())
	m.Receive(source.Snapshot(), nil, false, nil)
	return tea.Batch(m.feed.next(m.Latest, m.Events.Seq, 0), m.feed.tick())
}

func (m *model) wayOut() string {
	if m.replay.only {
		return ""
	}
	return "; . goes to now"
}

// toNow ends the replay, or where there is no present goes to the end of the record.
func (m *model) toNow() tea.Cmd {
	r := m.replay
	if r.only {
		_, last := r.rec.Span()
		return m.toPast(func(rec Recording) (bool, error) { return true, rec.MoveTo(last) })
	}
	m.replay = nil
	_ = r.rec.Close()
	return m.showSource(m.opt.Source, m.opt.Guard)
}

// stepPast goes one event back or forward: of the lock whose page is shown, or of the
// cluster.
func stepPast(back bool) func(*model) tea.Cmd {
	return func(m *model) tea.Cmd {
		lock := ""
		if at := m.page.Place(); at.Kind == page.Lock {
			lock = at.Name
		}
		return m.toPast(func(rec Recording) (bool, error) { return rec.Step(back, lock) })
	}
}

func shiftPast(d time.Duration) func(*model) tea.Cmd {
	return func(m *model) tea.Cmd {
		return m.toPast(func(rec Recording) (bool, error) { return true, rec.Shift(d) })
	}
}

// replayAt is :replay and a moment as a person writes it.
func (m *model) replayAt(text string) tea.Cmd {
	at, err := view.ParseMoment(text, m.Now())
	if err != nil {
		m.say(m.St.Bad, "replay: "+m.St.Our(err.Error()))
		return nil
	}
	return m.toPast(func(rec Recording) (bool, error) { return true, rec.MoveTo(at) })
}

// togglePlay plays or pauses the past.
func (m *model) togglePlay() tea.Cmd {
	r := m.replay
	r.playing = !r.playing
	if !r.playing {
		return nil
	}
	r.beat++
	r.since = m.Now()
	return play(r.beat)
}

func play(beat int) tea.Cmd {
	return tea.Tick(playEvery, func(time.Time) tea.Msg { return playMsg{beat} })
}

// playOn moves the past on by the time that has passed.
func (m *model) playOn(msg playMsg) tea.Cmd {
	r := m.replay
	if r == nil || !r.playing || msg.beat != r.beat {
		return nil
	}
	now := m.Now()
	d := now.Sub(r.since) * time.Duration(r.speed)
	r.since = now
	if _, last := r.rec.Span(); !m.Latest.At.Before(last) {
		r.playing = false
		m.say(m.St.Info, "the end of the record"+m.wayOut())
		return nil
	}
	rec, next := r.rec, play(r.beat)
	return tea.Sequence(func() tea.Msg {
		if err := rec.Shift(d); err != nil {
			return replayMsg{rec: rec, err: err}
		}
		return nil
	}, next)
}

func (m *model) changeSpeed(by int) tea.Cmd {
	r := m.replay
	i := max(0, min(len(speeds)-1, slices.Index(speeds, r.speed)+by))
	r.speed = speeds[i]
	return nil
}

// holdersMsg is who held a lock in the last hour, as far as that is recorded.
type holdersMsg struct {
	key    string
	grants []view.GrantDoc
	from   time.Time
}

// bandTime is how long the band of a lock's holders is at most.
const bandTime = time.Hour

// askHolders reads who held the lock that is looked at, where something is recorded.
func (m *model) askHolders() tea.Cmd {
	if m.replay == nil && m.opt.Record == nil {
		return nil
	}
	key := m.Lock.Asks(m.Now())
	if key == "" {
		return nil
	}
	past, open, to := m.replay, m.opt.Record, m.shownNow()
	return func() tea.Msg {
		var rec Recording
		if past != nil {
			rec = past.rec
		} else {
			var err error
			if rec, err = open(); err != nil {
				return nil // who goes back in time is told
			}
			defer rec.Close()
		}
		grants, err := rec.Holders(key, to.Add(-bandTime), to)
		if err != nil {
			return nil
		}
		first, _ := rec.Span()
		return holdersMsg{key, grants, first}
	}
}

// shownNow is the moment that is shown.
func (m *model) shownNow() time.Time {
	if m.replay != nil {
		return m.Latest.At
	}
	return m.ShownAt(m.Now())
}

// replayBanner says that the past is shown: from the widest that fits.
func (m *model) replayBanner(w int) string {
	st, r, at := m.St, m.replay, m.Latest.At
	sep := " " + st.Sep + " "
	when := " " + st.Rewind + " REPLAY  " + at.Format("15:04:05 MST, 2006-01-02")
	ago := sep + view.Age(m.Now().Sub(at)) + " ago"
	by := sep + "not recorded then"
	if who := r.rec.By(); who != "" {
		by = sep + "recorded by " + st.Escape(who, 32)
	}
	keys := "space play"
	if r.playing {
		keys = fmt.Sprintf("%s %d%s  space pause", st.Play, r.speed, st.Times)
	}
	end := "now"
	if r.only {
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
