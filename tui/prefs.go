package tui

import (
	"slices"
	"sync"

	tea "charm.land/bubbletea/v2"

	"redlockctl/tui/action"
	"redlockctl/tui/styles"
)

// Store keeps what a person has chosen until the next time.
type Store interface {
	Load() (Preferences, error)
	Save(Preferences) error
}

// Preferences are what a person has chosen and finds again the next time. The
// zero value is the defaults.
type Preferences struct {
	Columns []string     `json:"columns,omitempty"` // of the lock table; empty: the default ones
	Wide    bool         `json:"wide,omitempty"`
	Sort    string       `json:"sort,omitempty"`
	Theme   styles.Theme `json:"theme,omitempty"`
	Mouse   bool         `json:"mouse,omitempty"`
	Hinted  bool         `json:"hinted,omitempty"`  // the hints of the first start were shown
	History []string     `json:"history,omitempty"` // of the command line, the latest last
}

// mostHistory bounds what is kept of the command line.
const mostHistory = 100

// saver writes preferences, one at a time, and always the latest: two commands
// may run in any order.
type saver struct {
	store Store

	mu     sync.Mutex
	latest Preferences

	writing sync.Mutex
}

func newSaver(store Store) (*saver, Preferences, error) {
	s := &saver{store: store}
	if store == nil {
		return s, Preferences{}, nil
	}
	p, err := store.Load()
	if err != nil {
		p = Preferences{}
	}
	if !slices.Contains(styles.Themes(), p.Theme) {
		p.Theme = ""
	}
	if n := len(p.History); n > mostHistory {
		p.History = p.History[n-mostHistory:]
	}
	return s, p, err
}

// savedMsg tells that preferences could not be kept.
type savedMsg struct{ err error }

// save keeps the preferences as they are now; run waits for it.
func (s *saver) save(p Preferences, run *action.Running) tea.Cmd {
	if s.store == nil {
		return nil
	}
	p.Columns, p.History = slices.Clone(p.Columns), slices.Clone(p.History)
	s.mu.Lock()
	s.latest = p
	s.mu.Unlock()
	return func() tea.Msg {
		if !run.Begin() {
			return nil
		}
		defer run.End()
		s.writing.Lock()
		defer s.writing.Unlock()
		s.mu.Lock()
		p := s.latest
		s.mu.Unlock()
		if err := s.store.Save(p); err != nil {
			return savedMsg{err}
		}
		return nil
	}
}
