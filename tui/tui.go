// Package tui is the terminal UI. It draws snapshots and reaches acts through
// the interfaces that it declares here.
//
// One [tea.Model] routes messages (program.go); what it owns is little (model.go). The
// pages are in package page, dialogs and actions in package action. Snapshots and the
// passing of seconds come in as messages (feed.go); actions run as commands on values
// that were copied, and come back as an outcome. Every key is a binding of the one key
// map (keymap.go), which also makes the help and the key line.
//
// Text from servers reaches the screen through package styles and in no other way.
package tui

import (
	"context"
	"io"
	"time"

	"github.com/charmbracelet/colorprofile"

	"redlockctl/internal/view"
	"redlockctl/tui/action"
	"redlockctl/tui/styles"
)

// What the screen does it does through these.
type (
	Actions    = action.Actions
	Kept       = action.Kept
	Parting    = action.Parting
	Left       = action.Left
	Lab        = action.Lab
	ClientKind = action.ClientKind
)

// Clusters are those that a person may change to.
type Clusters interface {
	Names() []string
	// Open opens another cluster and ends with the one before; it may take as long
	// as the first look at it.
	Open(ctx context.Context, name string) (Cluster, error)
	// Watch looks at all of them until ctx ends; rows are what is known of each by
	// now, in the order of Names.
	Watch(ctx context.Context) (rows func() []view.ClusterRow)
}

// Cluster is all that is shown of one cluster.
type Cluster struct {
	Source  Source
	Guard   Guard
	Actions Actions
	Delay   time.Duration
	Record  func() (Recording, error) // opens what was recorded of it; nil: nothing is
	Audit   func() *view.AuditLog     // reads the audit log, or knows it still; nil: there is none
}

// Options of the UI.
type Options struct {
	Source  Source  // must not be nil, but for Replay
	Guard   Guard   // nil: no guard runs in this process
	Actions Actions // nil: the screen only shows
	Lab     Lab     // nil: nothing to crash
	// Passing: the cluster is gone with the screen, and nothing that is chosen for it is kept.
	Passing bool
	Tour    bool                 // it begins with the tour of the demo
	Delay   time.Duration        // D: the length of a fence's countdown; where no guard is, it is only named
	ASCII   bool                 // no character beyond ASCII
	NoColor bool                 // attributes such as bold and reverse stay; Theme does not count
	Theme   styles.Theme         // default: what was chosen last, else styles.ThemeANSI
	Colors  styles.Palette       // single ones in place of the theme's
	Profile colorprofile.Profile // how many colours the terminal has; default, and at least: sixteen
	Mouse   bool                 // also where it was not chosen: clicks and the wheel are taken; the terminal's own selection needs shift then
	FPS     int                  // most pictures a second; default 15
	In      io.Reader            // default: the terminal
	Out     io.Writer            // default: standard output

	Record func() (Recording, error) // as that of a [Cluster]
	Audit  func() *view.AuditLog     // the same
	Replay Recording                 // all that is shown is this, and there is no present; nil: there is

	Store    Store    // nil: nothing is remembered
	Clusters Clusters // nil: there is one
	// Clipboard puts text into the clipboard of this machine; nil: the terminal is
	// asked to, which is right over SSH.
	Clipboard func(ctx context.Context, text string) error
	// Tell is told what became of the locks that were acquired on the screen, once the
	// terminal is as it was; nil: nobody is.
	Tell func(Parting)
}
