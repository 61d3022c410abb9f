package source

import (
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"redlockctl/internal/view"
)

// Recording is a record as a [Source] at one time. Its guard is the recorded one.
type Recording interface {
	Source
	Guard
	// MoveTo goes to a time and Shift moves by a duration, within the record.
	MoveTo(t time.Time) error
	Shift(d time.Duration) error
	// Step goes to the time of the next entry, or back to the previous one; only of one
	// lock if lock is not "". False: there is none.
	Step(back bool, lock string) (ok bool, err error)
	Span() (first, last time.Time)
	Refresh() error // reads how far the record goes now
	By() string     // who recorded this time; "": nobody
	// Holders returns the holders of a lock in a period, and when locks were not recorded.
	Holders(lock string, from, to time.Time) (view.Band, error)
	// Turns returns how the nodes changed in the half hour before this time, oldest first.
	Turns() []view.NodeTurn
	Close() error
}

// Player shows a recording instead of the live view.
type Player struct {
	Recording
	Only    bool // there is no live view, only the record
	Playing bool
	Speed   int       // seconds per second
	Beat    BeatMsg   // grows with each start of playing: beats of an earlier start are ignored
	since   time.Time // last move while playing
}

// NewPlayer makes a paused player.
func NewPlayer(rec Recording, only bool) *Player {
	return &Player{Recording: rec, Only: only, Speed: 1}
}

// playEvery is how often playing moves on.
const playEvery = 200 * time.Millisecond

var speeds = []int{1, 2, 5, 10, 30, 60}

// MovedMsg has a recording that was opened or moved.
type MovedMsg struct {
	Rec  Recording
	None bool // there is no such entry
	Err  error
}

// BeatMsg says that it is time to move on.
type BeatMsg int

// Move moves a recording, which may have grown.
func Move(rec Recording, move func(Recording) (ok bool, err error)) tea.Cmd {
	return func() tea.Msg {
		err := rec.Refresh()
		ok := true
		if err == nil {
			ok, err = move(rec)
		}
		return MovedMsg{rec, !ok, err}
	}
}

// Toggle plays or pauses.
func (p *Player) Toggle(now time.Time) tea.Cmd {
	p.Playing = !p.Playing
	if !p.Playing {
		return nil
	}
	p.Beat++
	p.since = now
	return p.next()
}

func (p *Player) next() tea.Cmd {
	beat := p.Beat
	return tea.Tick(playEvery, func(time.Time) tea.Msg { return beat })
}

// PlayOn moves on by the time that has passed; at is the shown time. It reports whether
// the end of the record was reached.
func (p *Player) PlayOn(msg BeatMsg, now, at time.Time) (cmd tea.Cmd, ended bool) {
	if !p.Playing || msg != p.Beat {
		return nil, false
	}
	d := now.Sub(p.since) * time.Duration(p.Speed)
	p.since = now
	if _, last := p.Span(); !at.Before(last) {
		p.Playing = false
		return nil, true
	}
	rec := p.Recording
	return tea.Sequence(func() tea.Msg {
		if err := rec.Shift(d); err != nil {
			return MovedMsg{Rec: rec, Err: err}
		}
		return nil
	}, p.next()), false
}

// Faster increases the speed, or decreases it if by is negative.
func (p *Player) Faster(by int) {
	p.Speed = speeds[max(0, min(len(speeds)-1, slices.Index(speeds, p.Speed)+by))]
}

// HoldersMsg has the recorded holders of a lock.
type HoldersMsg struct {
	Key  string
	Band view.Band
	From time.Time // start of the record
}

// RemovalMsg says how a lock without a copy was force-released.
type RemovalMsg struct {
	Key, Text string // no text: its holder does not rely on it, as far as is known
	Named     bool   // the lock was asked for by its name: its page is to be opened
}

// bandTime is the maximum length of a lock's band of holders.
const bandTime = time.Hour

// AskHolders reads the holders of a lock in the hour before a time, from the recording
// that is played, or from one that it opens.
func (p *Player) AskHolders(open func() (Recording, error), key string, to time.Time) tea.Cmd {
	return func() tea.Msg {
		var rec Recording
		if p != nil {
			rec = p.Recording
		} else {
			var err error
			if rec, err = open(); err != nil {
				return nil // an error is shown when the user goes back in time
			}
			defer rec.Close()
		}
		band, err := rec.Holders(key, to.Add(-bandTime), to)
		if err != nil {
			return nil
		}
		first, _ := rec.Span()
		return HoldersMsg{key, band, first}
	}
}
