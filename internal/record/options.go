package record

import (
	"time"

	"redlockctl/monitor"
	"redlockctl/restartguard"
)

// Source is what is recorded; [*observe.Monitor] is one.
type Source interface {
	Snapshot() *monitor.Snapshot
	EventsSince(seq uint64) (events []monitor.Event, missed uint64)
	// ChangedSince is the keys of the locks that may have changed since the snapshot of
	// this version; false: it is too long ago to know.
	ChangedSince(version uint64) (keys []string, ok bool)
}

// Options of a recorder.
type Options struct {
	Path string
	// Keep is for how long details are kept; default 7 days. Summaries are kept for
	// [SummariesKept] longer.
	Keep time.Duration
	// MaxSize bounds the file in bytes; default 512 MiB, at least 1 MiB.
	MaxSize int64
	// By is who records: "guard@ops-1".
	By string
	// Fences tells what a guard in this process knows of fences; nil: there is none.
	Fences func() []restartguard.NodeStatus
	// Tell is told when recording stops (with the error), and when it goes on (nil). It
	// may be nil.
	Tell func(error)
}

// Defaults of [Options].
const (
	DefaultKeep    = 7 * 24 * time.Hour
	DefaultMaxSize = 512 << 20
	SummariesKept  = 90 * 24 * time.Hour
)
