package record

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"sync"
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

const (
	writeEvery = time.Second
	retryEvery = 30 * time.Second
	// takeInAfter is how long after the first view all locks are taken in. That takes
	// longer than to read them, and a person waits for the first view.
	takeInAfter = 2 * time.Second
	// A write takes in locks for takeInMost, some at a time, and pauses takeInPause times as long
	// as that took: a person presses keys meanwhile.
	takeInMost  = 800 * time.Millisecond
	takeInSome  = 64
	takeInPause = 3
)

// Recorder writes what a monitor saw into a file.
type Recorder struct {
	opt Options
	now func() time.Time

	mu  sync.Mutex
	err error // why nothing is recorded; nil: all is well
}

// New makes a recorder; it opens nothing yet.
func New(opt Options) *Recorder {
	opt.Keep = cmp.Or(opt.Keep, DefaultKeep)
	opt.MaxSize = max(cmp.Or(opt.MaxSize, DefaultMaxSize), 1<<20)
	return &Recorder{opt: opt, now: time.Now}
}

// Err is why nothing is recorded at the moment; nil while all is well.
func (r *Recorder) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// Run records until ctx ends. What it cannot write is lost, and tried again every half a
// minute.
func (r *Recorder) Run(ctx context.Context, from Source) {
	for {
		err := r.record(ctx, from)
		if ctx.Err() != nil {
			return
		}
		r.set(err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(retryEvery):
		}
	}
}

// set says how recording fares, when that has changed.
func (r *Recorder) set(err error) {
	r.mu.Lock()
	was := r.err
	r.err = err
	r.mu.Unlock()
	if r.opt.Tell != nil && (err == nil) != (was == nil) {
		r.opt.Tell(err)
	}
}

// record writes until ctx ends, and then once more, or until something fails.
func (r *Recorder) record(ctx context.Context, from Source) error {
	db, lock, err := openFile(r.opt.Path)
	if err != nil {
		return err
	}
	defer lock.Close()
	defer db.Close()
	var w *writer
	tick := time.NewTicker(writeEvery)
	defer tick.Stop()
	for last := false; ; {
		if w == nil {
			if w, err = newWriter(db, from.Snapshot().Cluster, r.opt, r.now()); err != nil {
				return err
			}
		}
		if err := w.write(ctx, from, r.now()); err != nil {
			return fmt.Errorf("the record cannot be written: %w", err)
		}
		if err := w.trim(r.opt, r.now()); err != nil {
			return fmt.Errorf("the record cannot be trimmed: %w", err)
		}
		r.set(nil)
		if last {
			_, err := db.Exec(`PRAGMA wal_checkpoint(TRUNCATE)`)
			return err
		}
		select {
		case <-ctx.Done():
			last = true
		case <-tick.C:
		}
	}
}

// writer holds what was written last, so that only changes are written.
type writer struct {
	db      *sql.DB
	cluster int64
	run     int64 // the row of this recorder
	fences  func() []restartguard.NodeStatus
	seq     uint64        // of the last event
	follows bool          // the locks that are there were taken in
	taking  taking        // them in, under way
	most    time.Duration // for which a write takes them in
	seen    time.Time
	began   time.Time // of this recorder

	names    []string          // of the nodes, with their addresses
	states   map[string]string // by node; "" is the cluster
	findings map[string]int64  // open ones: the id of their row
	grants   grants
	looks    looks
	minutes  minutes
	trimmed  time.Time
}

func newWriter(db *sql.DB, about monitor.Cluster, opt Options, now time.Time) (*writer, error) {
	w := &writer{db: db, most: takeInMost, fences: opt.Fences, seen: now, began: now, states: map[string]string{}, findings: map[string]int64{}, grants: newGrants(), looks: looks{open: map[string]*look{}}}
	err := db.QueryRow(`INSERT INTO clusters (name, n, quorum, max_ttl_ms) VALUES (?, ?, ?, ?)
		ON CONFLICT (name) DO UPDATE SET n = excluded.n, quorum = excluded.quorum, max_ttl_ms = excluded.max_ttl_ms RETURNING id`,
		about.Name, about.N, about.Quorum, about.MaxTTL.Milliseconds()).Scan(&w.cluster)
	if err != nil {
		return nil, err
	}
	// What was open when the last recorder ended has ended, or goes on; in between nobody
	// looked.
	var last sql.NullInt64
	if err := db.QueryRow(`SELECT max(seen_ms) FROM runs WHERE cluster = ?`, w.cluster).Scan(&last); err != nil {
		return nil, err
	}
	if last.Valid {
		w.seen = time.UnixMilli(last.Int64)
		_, err = db.Exec(`INSERT INTO events (cluster, at_ms, level, kind, text) VALUES (?1, ?2, 'notice', 'recorder', ?3);
			UPDATE findings SET cleared_ms = ?4 WHERE cluster = ?1 AND cleared_ms IS NULL;
			UPDATE lock_states SET ended_ms = max(?4, began_ms) WHERE ended_ms IS NULL AND lock IN (SELECT id FROM locks WHERE cluster = ?1)`,
			w.cluster, millis(now), "recording goes on; nothing was recorded since "+w.seen.UTC().Format(time.RFC3339), last.Int64)
	}
	if err != nil {
		return nil, err
	}
	err = db.QueryRow(`INSERT INTO runs (cluster, by, began_ms, seen_ms) VALUES (?, ?, ?, ?) RETURNING id`, w.cluster, opt.By, millis(now), millis(now)).Scan(&w.run)
	if err != nil {
		return nil, err
	}
	return w, nil
}

// write takes in what the source has seen since the last time; of all locks a part, and none
// when ctx has ended.
func (w *writer) write(ctx context.Context, from Source, now time.Time) error {
	// The events first: what they tell has then happened in the snapshot, too.
	events, missed := from.EventsSince(w.seq)
	s := from.Snapshot()
	begins := !w.follows && !w.taking.on && !s.Settled.IsZero() && s.At.Sub(s.Settled) >= takeInAfter
	if begins {
		if err := w.grants.resume(w.db, w.cluster); err != nil {
			return err
		}
	}
	tx, err := w.db.Begin()
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	b := batch{writer: w, ctx: ctx, tx: tx, now: now, statements: map[string]*sql.Stmt{}}
	if (w.follows || w.taking.on) && missed > 0 && w.seq > 0 {
		b.event(monitor.Event{At: now, Level: monitor.LevelNotice, Kind: "recorder", Text: gapText(missed)})
		b.takeIn(s)
		b.caughtUp = true
	}
	for _, e := range events {
		w.seq = e.Seq
		b.event(e)
	}
	if begins {
		b.takeIn(s)
	}
	var fences []restartguard.NodeStatus
	if w.fences != nil {
		fences = w.fences()
	}
	b.nodes(s, fences)
	b.open(s.Findings)
	if w.follows || w.taking.on {
		b.lookAtLocks(from, s)
	}
	if w.taking.on {
		b.goOn(s)
	}
	b.writeGrants()
	b.writeMinutes()
	b.exec(`UPDATE runs SET seen_ms = ? WHERE id = ?`, millis(now), w.run)
	if b.err != nil {
		return b.err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	w.seen = now
	return nil
}
