package tui

import (
	"maps"
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
	// Table is for clusters that have none of their own.
	Table
	Clusters map[string]Table `json:"clusters,omitempty"` // by their names
	Theme    styles.Theme     `json:"theme,omitempty"`
	Mouse    bool             `json:"mouse,omitempty"`
	Hinted   bool             `json:"hinted,omitempty"`  // the hints of the first start were shown
	History  []string         `json:"history,omitempty"` // of the command line, the latest last
}

// Table is how the locks of a cluster are listed. A filter is never kept: it would hide locks
// from somebody who does not know of it.
type Table struct {
	Columns []string `json:"columns,omitempty"` // empty: the default ones
	Wide    bool     `json:"wide,omitempty"`
	Sort    string   `json:"sort,omitempty"`
}

// mostTables bounds how many clusters are remembered.
const mostTables = 200

// mostHistory bounds what is kept of the command line.
const mostHistory = 100

// saver writes preferences, one at a time, and always the latest: two commands
// may run in any order.
type saver struct {
	store Store

	mu     sync.Mutex
	latest Preferences
	own    map[string]bool // the clusters whose tables were chosen here

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

// choose notes that the table of a cluster was chosen here.
func (s *saver) choose(cluster string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.own == nil {
		s.own = map[string]bool{}
	}
	s.own[cluster] = true
}

// merged are the tables of clusters as they are to be kept: those that were not chosen here are
// as another console may have left them meanwhile.
func (s *saver) merged(chosen map[string]Table) map[string]Table {
	kept := map[string]Table{}
	if now, err := s.store.Load(); err == nil {
		maps.Copy(kept, now.Clusters)
	}
	for name := range s.own {
		kept[name] = chosen[name]
	}
	for _, name := range slices.Sorted(maps.Keys(kept)) {
		if len(kept) > mostTables && !s.own[name] {
			delete(kept, name)
		}
	}
	return kept
}

// savedMsg tells that preferences could not be kept.
type savedMsg struct{ err error }

// save keeps the preferences as they are now; run waits for it.
func (s *saver) save(p Preferences, run *action.Running) tea.Cmd {
	if s.store == nil {
		return nil
	}
	p.History, p.Clusters = slices.Clone(p.History), maps.Clone(p.Clusters)
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
		p.Clusters = s.merged(p.Clusters)
		s.mu.Unlock()
		if err := s.store.Save(p); err != nil {
			return savedMsg{err}
		}
		return nil
	}
}
