// Package prefs is what a person has chosen and finds again the next time.
package prefs

import (
	"maps"
	"slices"
	"sync"

	tea "charm.land/bubbletea/v2"

	"redlockctl/tui/page"
	"redlockctl/tui/styles"
)

// Store keeps what a person has chosen until the next time. Several consoles share one.
type Store interface {
	Load() (Preferences, error)
	// Change changes what is kept by now, as one step: what another console keeps meanwhile stays.
	Change(change func(*Preferences)) error
}

// Preferences are what a person has chosen and finds again the next time. The
// zero value is the defaults.
type Preferences struct {
	// Tables are for clusters that have none of their own, and of what is no cluster's.
	Tables
	Clusters map[string]Tables `json:"clusters,omitempty"` // by their names
	Theme    styles.Theme      `json:"theme,omitempty"`
	Mouse    bool              `json:"mouse,omitempty"`
	Hinted   bool              `json:"hinted,omitempty"`  // the hints of the first start were shown
	History  []string          `json:"history,omitempty"` // of the command line, the latest last
}

// Tables are how the rows of resources are listed.
type Tables struct {
	Table                   // of the locks
	Others map[string]Table `json:"tables,omitempty"` // by what the rows are: "nodes"
}

// locks is the resource that stands apart from the others in what is kept.
const locks = "locks"

// Of is how the rows of a resource are listed.
func (t *Tables) Of(resource string) Table {
	if resource == locks {
		return t.Table
	}
	return t.Others[resource]
}

// with are the tables with another one of a resource.
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

// Table is how the rows of a resource are listed.
type Table = page.Table

// mostTables bounds how many clusters are remembered.
const mostTables = 200

// MostHistory bounds what is kept of the command line.
const MostHistory = 100

// Keeper has the preferences as they are now, and makes changes of them in the order in which they
// were chosen: two commands may run in any order.
type Keeper struct {
	Preferences
	store Store
	run   Running

	mu      sync.Mutex
	pending []func(*Preferences)

	writing sync.Mutex
}

// Running counts what the program waits for before it ends.
type Running interface {
	Begin() bool // whether something may still begin
	End()
}

// Load has what a store keeps; without a store nothing is kept.
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

// Failed tells that preferences could not be kept.
type Failed struct{ Err error }

// Keep makes a change now, and keeps it, with those that were chosen before it, in what it returns.
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
			return nil // an earlier command kept it
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

// Remember puts a line of the command line behind the others.
func (p *Preferences) Remember(line string) {
	history := slices.DeleteFunc(slices.Clone(p.History), func(s string) bool { return s == line })
	history = append(history, line)
	p.History = history[max(0, len(history)-MostHistory):]
}

// List has the rows of a resource listed so the next time that the cluster is shown; "": whichever is.
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
