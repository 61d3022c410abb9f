package record

import (
	"time"

	"redlockctl/monitor"
	"redlockctl/restartguard"
)

// Source is what is recorded; [*observe.Monitor] implements it.
type Source interface {
	Snapshot() *monitor.Snapshot
	EventsSince(seq uint64) (events []monitor.Event, missed uint64)
	// ChangedSince returns the keys of the locks that may have changed since the snapshot
	// with this version; false: that is too long ago.
	ChangedSince(version uint64) (keys []string, ok bool)
}

// Options of a recorder.
type Options struct {
	Path string
	// Keep is how long details are kept; default 7 days. Summaries are kept for
	// [SummariesKept] longer.
	Keep time.Duration
	// MaxSize limits the file in bytes; default 512 MiB, at least 1 MiB.
	MaxSize int64
	// By is who records: "guard@ops-1".
	By string
	// Fences returns what a guard in this process knows of fences; nil: no guard.
	Fences func() []restartguard.NodeStatus
	// Tell is called when recording stops (with the error) and when it resumes (nil). It
	// may be nil.
	Tell func(error)
}

// Defaults of [Options].
const (
	DefaultKeep    = 7 * 24 * time.Hour
	DefaultMaxSize = 512 << 20
	SummariesKept  = 90 * 24 * time.Hour
)
