// Package tui is the terminal UI. It draws snapshots and reaches acts through
// the interfaces that it declares here.
//
// One [tea.Model] (model.go) routes messages and owns focus and layout; its
// parts are plain structs that are given data and draw lines: header, node
// table, lock table, events, and a dock at the foot for details and dialogs.
// Pictures and the passing of seconds come in as messages (feed.go); acts run as
// commands on values that were copied out of the model, and come back as an
// outcome. Every key is a binding of the one key map (keymap.go), which also
// makes the help and the key line.
//
// Text from servers reaches the screen through package styles and in no other way.
package tui

import (
	"context"
	"io"
	"time"

	"redlockctl/internal/operator"
	"redlockctl/internal/safetext"
	"redlockctl/monitor"
	"redlockctl/redlock"
	"redlockctl/restartguard"
	"redlockctl/tui/styles"
)

// Source is where the snapshots come from; *monitor.Monitor is one.
type Source interface {
	Snapshot() *monitor.Snapshot
	Changed(version uint64) <-chan struct{}
	// ChangedSince is the keys of the locks that may have changed since the snapshot
	// of this version; false: it is too long ago to know.
	ChangedSince(version uint64) (keys []string, ok bool)
	// EventsSince is the events after the one with this Seq, oldest first, and how
	// many more there were that are not kept any longer.
	EventsSince(seq uint64) (events []monitor.Event, missed uint64)
	// History is the latest events of one lock, oldest first.
	History(key string) []monitor.Event
}

// Guard tells what the guard in this process thinks; nil where there is none.
type Guard interface {
	// ID is that of its announcements; empty: none runs, for the moment or at all.
	ID() string
	Status() []restartguard.NodeStatus
}

// Actions is what an operator may do; each call blocks until it is done. What
// is taken from a holder is compared with the token once more when it is sent.
type Actions interface {
	ReadOnly() bool
	Acquire(ctx context.Context, resource string, ttl time.Duration) (*redlock.Lock, error)
	// Keep is Acquire for a lock that is extended until it is released.
	Keep(ctx context.Context, resource string, ttl time.Duration) (Kept, error)
	// Extend sets the TTL of a grant anew. The lock is there also with an error,
	// where the extension was made and could not be recorded.
	Extend(ctx context.Context, resource, token string, ttl time.Duration) (*redlock.Lock, error)
	Release(ctx context.Context, resource, token string) ([]redlock.NodeResult, error)
	// Remove takes a lock from its holder, all its keys, and tells of each.
	Remove(ctx context.Context, r operator.Removal) operator.Outcome
	FenceNode(ctx context.Context, node, reason string) error
	OpenNode(ctx context.Context, node, reason string) error
}

// Kept is a lock that is extended until it is released.
type Kept = operator.Kept

// Left is a lock that was acquired on the screen and outlives it.
type Left struct {
	Key   safetext.Text
	Until time.Time // the end of its validity: nothing extends it any more
}

// Lab is what a demo adds: masters to do something to, and clients that do
// something wrong.
type Lab interface {
	// Cannot is why an action ("stop", "skew", "flush", "clients") cannot be done in
	// this lab; empty: it can.
	Cannot(action string) string
	// CrashNode crashes a node and brings it back empty a moment later.
	CrashNode(name string) error
	// StopNode stops a node as SIGSTOP does: it keeps its data and its connections,
	// and answers nothing.
	StopNode(name string) error
	ContinueNode(name string) error
	// SkewNode puts the node's wall clock off by this much from what it is.
	SkewNode(name string, by time.Duration) error
	// FlushNode makes a node forget its data while it runs.
	FlushNode(name string) error
	ClientKinds() []ClientKind
	// StartClients starts n more of a kind; 0 ends all of that kind.
	StartClients(kind string, n int) error
}

// ClientKind is a kind of client of a lab.
type ClientKind struct {
	Name    string // "leak"
	Does    string // what it does, in a sentence
	Running int
}

// Store keeps what a person has chosen until the next time.
type Store interface {
	Load() (Preferences, error)
	Save(Preferences) error
}

// Clusters are those that a person may change to.
type Clusters interface {
	Names() []string
	// Open opens another cluster and ends with the one before; it may take as long
	// as the first look at it.
	Open(ctx context.Context, name string) (Cluster, error)
}

// Cluster is all that is shown of one cluster.
type Cluster struct {
	Source  Source
	Guard   Guard
	Actions Actions
	Delay   time.Duration
}

// Options of the UI.
type Options struct {
	Source  Source        // must not be nil
	Guard   Guard         // nil: no guard runs in this process
	Actions Actions       // nil: the screen only shows
	Lab     Lab           // nil: nothing to crash
	Delay   time.Duration // D: the length of a fence's countdown; where no guard is, it is only named
	ASCII   bool          // no character beyond ASCII
	NoColor bool          // attributes such as bold and reverse stay; Theme does not count
	Theme   styles.Theme  // default: what was chosen last, else ThemeDark
	Mouse   bool          // also where it was not chosen: clicks and the wheel are taken; the terminal's own selection needs shift then
	FPS     int           // most pictures a second; default 15
	In      io.Reader     // default: the terminal
	Out     io.Writer     // default: standard output

	Store    Store    // nil: nothing is remembered
	Clusters Clusters // nil: there is one
	// Clipboard puts text into the clipboard of this machine; nil: the terminal is
	// asked to, which is right over SSH.
	Clipboard func(ctx context.Context, text string) error
	// Tell is told of the locks that outlive the screen, once the terminal is as it
	// was; nil: nobody is.
	Tell func([]Left)
}
