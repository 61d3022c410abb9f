package source

import (
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"redlockctl/internal/view"
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

// Player is a recording that is shown in place of the present.
type Player struct {
	Recording
	Only    bool // there is no present: all that is shown is the record
	Playing bool
	Speed   int       // seconds in a second
	Beat    BeatMsg   // grows with each start of playing: what an old one still brings is not obeyed
	since   time.Time // when it was last moved on while playing
}

// NewPlayer plays a recording, when it is told to.
func NewPlayer(rec Recording, only bool) *Player {
	return &Player{Recording: rec, Only: only, Speed: 1}
}

// playEvery is how often the moment moves on while playing.
const playEvery = 200 * time.Millisecond

var speeds = []int{1, 2, 5, 10, 30, 60}

// MovedMsg is a recording that was opened, or moved.
type MovedMsg struct {
	Rec  Recording
	None bool // nothing happened there
	Err  error
}

// BeatMsg is the time to move on.
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

// PlayOn moves on by the time that has passed; at is the moment that is shown. It reports
// whether the record has ended.
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

// Faster plays faster, or slower where by is negative.
func (p *Player) Faster(by int) {
	p.Speed = speeds[max(0, min(len(speeds)-1, slices.Index(speeds, p.Speed)+by))]
}

// HoldersMsg is who held a lock, as far as that is recorded.
type HoldersMsg struct {
	Key    string
	Grants []view.GrantDoc
	From   time.Time // since when something is
}

// bandTime is how long the band of a lock's holders is at most.
const bandTime = time.Hour

// AskHolders reads who held a lock in the hour before a moment, from what is played or else
// from a recording that is opened for it.
func (p *Player) AskHolders(open func() (Recording, error), key string, to time.Time) tea.Cmd {
	return func() tea.Msg {
		var rec Recording
		if p != nil {
			rec = p.Recording
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
		return HoldersMsg{key, grants, first}
	}
}
