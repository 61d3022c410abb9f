// Package prefs remembers a user's choices from one run to the next.
package prefs

import (
	"maps"
	"slices"
	"sync"

	tea "charm.land/bubbletea/v2"

	"redlockctl/tui/page"
	"redlockctl/tui/styles"
)

// Store keeps a user's choices. Several consoles may share one.
type Store interface {
	Load() (Preferences, error)
	// Change reads, changes and writes the choices in one step, so that changes of
	// another console are not lost.
	Change(change func(*Preferences)) error
}

// Preferences are a user's choices. The zero value is the defaults.
type Preferences struct {
	// Tables are for clusters without their own, and for resources that do not belong to
	// a cluster.
	Tables
	Clusters map[string]Tables `json:"clusters,omitempty"` // by name
	Theme    styles.Theme      `json:"theme,omitempty"`
	Mouse    bool              `json:"mouse,omitempty"`
	Hinted   bool              `json:"hinted,omitempty"`  // the hints of the first start have been shown
	History  []string          `json:"history,omitempty"` // of the command line, the latest last
}

// Tables say how the rows of resources are listed.
type Tables struct {
	Table                   // of the locks
	Others map[string]Table `json:"tables,omitempty"` // by resource: "nodes"
}

// locks is the resource whose table is stored separately.
const locks = "locks"

// Of returns how the rows of a resource are listed.
func (t *Tables) Of(resource string) Table {
	if resource == locks {
		return t.Table
	}
	return t.Others[resource]
}

// with returns the tables with the one of a resource replaced.
func (t Tables) with(resource string, of Table) Tables {
	if resource == locks {
		t.Table = of
		return t
	}
	if t.Others = maps.Clone(t.Others); t.Others == nil {
		t.Others = map[string]Table{}
	}
	t.Others[resource] = of
	return t
}

// Table says how the rows of a resource are listed.
type Table = page.Table

// mostTables limits the remembered clusters.
const mostTables = 200

// MostHistory limits the history of the command line.
const MostHistory = 100

// Keeper has the present preferences, and saves changes in the order in which they were
// made: two commands may run in any order.
type Keeper struct {
	Preferences
	store Store
	run   Running

	mu      sync.Mutex
	pending []func(*Preferences)

	writing sync.Mutex
}

// Running counts what the program waits for before it exits.
type Running interface {
	Begin() bool // reports whether something may still start
	End()
}

// Load reads the preferences of a store; without a store nothing is saved.
func Load(store Store, run Running) (*Keeper, error) {
	k := &Keeper{store: store, run: run}
	if store == nil {
		return k, nil
	}
	p, err := store.Load()
	if err != nil {
		p = Preferences{}
	}
	if !slices.Contains(styles.Themes(), p.Theme) {
		p.Theme = ""
	}
	if n := len(p.History); n > MostHistory {
		p.History = p.History[n-MostHistory:]
	}
	k.Preferences = p
	return k, err
}

// Failed says that preferences could not be saved.
type Failed struct{ Err error }

// Keep makes a change now. The command that it returns saves it, together with earlier
// changes.
func (k *Keeper) Keep(change func(*Preferences)) tea.Cmd {
	change(&k.Preferences)
	if k.store == nil {
		return nil
	}
	k.mu.Lock()
	k.pending = append(k.pending, change)
	k.mu.Unlock()
	return func() tea.Msg {
		if !k.run.Begin() {
			return nil
		}
		defer k.run.End()
		k.writing.Lock()
		defer k.writing.Unlock()
		k.mu.Lock()
		changes := k.pending
		k.pending = nil
		k.mu.Unlock()
		if len(changes) == 0 {
			return nil // an earlier command saved it
		}
		err := k.store.Change(func(p *Preferences) {
			for _, change := range changes {
				change(p)
			}
		})
		if err != nil {
			return Failed{err}
		}
		return nil
	}
}

// Remember appends a line to the history.
func (p *Preferences) Remember(line string) {
	history := slices.DeleteFunc(slices.Clone(p.History), func(s string) bool { return s == line })
	history = append(history, line)
	p.History = history[max(0, len(history)-MostHistory):]
}

// List remembers how the rows of a resource are listed for a cluster; "": for all without
// their own.
func (p *Preferences) List(cluster, resource string, t Table) {
	if cluster == "" {
		p.Tables = p.Tables.with(resource, t)
		return
	}
	clusters := maps.Clone(p.Clusters)
	if clusters == nil {
		clusters = map[string]Tables{}
	}
	own, ok := clusters[cluster]
	if !ok {
		own = p.Tables
	}
	clusters[cluster] = own.with(resource, t)
	for _, name := range slices.Sorted(maps.Keys(clusters)) {
		if len(clusters) > mostTables && name != cluster {
			delete(clusters, name)
		}
	}
	p.Clusters = clusters
}
