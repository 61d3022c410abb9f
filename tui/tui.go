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
	"errors"
	"io"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

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
	// Revoke and ForceRelease take one key from its holder: the screen goes
	// through the keys of a lock that is several, and tells of each.
	Revoke(ctx context.Context, key, token, reason string) ([]redlock.NodeResult, error)
	ForceRelease(ctx context.Context, key, token, reason string) ([]redlock.NodeResult, error)
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

// Lab is what a demo adds: masters to crash. Nil outside a demo. What else a
// demo can do, it tells by the interfaces that follow.
type Lab interface {
	// CrashNode crashes a node and brings it back empty a moment later.
	CrashNode(name string) error
}

// LabStopper is a Lab that can stop a node for a while, as SIGSTOP does: it
// keeps its data and its connections, and answers nothing.
type LabStopper interface {
	StopNode(name string) error
	ContinueNode(name string) error
}

// LabClock is a Lab that can move the clock of a node.
type LabClock interface {
	// SkewNode puts the node's wall clock off by this much from what it is.
	SkewNode(name string, by time.Duration) error
}

// LabFlusher is a Lab that can make a node forget its data while it runs.
type LabFlusher interface{ FlushNode(name string) error }

// LabClients is a Lab that can start clients that do something wrong.
type LabClients interface {
	// ClientKinds are what kinds of them there are.
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

const (
	defaultFPS = 15
	// frameRate is how often what was drawn is sent: a key's answer must not wait
	// for the next picture.
	frameRate = 60
)

// Run shows the UI until the person quits or ctx ends, and leaves the terminal
// as it found it; then it returns nil. It handles no signal: whoever calls it ends
// ctx on one. Acts that are on their way are given a
// moment to end, so that their outcome is recorded. Nothing is extended any more.
func Run(ctx context.Context, opt Options) error {
	ctx, cancel := context.WithCancel(ctx)
	m := newModel(ctx, opt, time.Now)
	defer func() {
		cancel()
		m.running.close(goodbye)
		if left := m.letGo(); len(left) > 0 && opt.Tell != nil {
			opt.Tell(left)
		}
	}()
	_, err := newProgram(m).Run()
	if ctx.Err() != nil && errors.Is(err, tea.ErrProgramKilled) && !errors.Is(err, tea.ErrProgramPanic) {
		return nil
	}
	return err
}

// goodbye is how long Run waits for acts whose context it has ended.
const goodbye = 3 * time.Second

// newProgram makes the program around a model. The terminal is not asked for
// its colours: sixteen and the attributes are known everywhere, and an answer
// that never comes must not hold up the first screen. Signals end the context,
// and that ends the program: the toolkit's own handler waits for a place in the
// queue that nobody reads any more by then, and the program for the handler.
func newProgram(m *model, more ...tea.ProgramOption) *tea.Program {
	profile := colorprofile.ANSI
	if m.opt.NoColor {
		profile = colorprofile.ASCII
	}
	opts := []tea.ProgramOption{
		tea.WithContext(m.ctx),
		tea.WithoutSignalHandler(),
		tea.WithFPS(frameRate),
		tea.WithColorProfile(profile),
	}
	if m.opt.In != nil {
		opts = append(opts, tea.WithInput(m.opt.In))
	}
	if m.opt.Out != nil {
		opts = append(opts, tea.WithOutput(m.opt.Out))
	}
	return tea.NewProgram(m, append(opts, more...)...)
}
