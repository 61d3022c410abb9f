package record

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"sync"
	"time"

	"redlockctl/monitor"
)

// Source is what is recorded; [*monitor.Monitor] is one.
type Source interface {
	Snapshot() *monitor.Snapshot
	EventsSince(seq uint64) (events []monitor.Event, missed uint64)
}

// Options of a recorder.
type Options struct {
	Path string
	// Keep is for how long details are kept; default 7 days. Summaries are kept for
	// [SummariesKept] longer.
	Keep time.Duration
	// MaxSize bounds the file in bytes; default 512 MiB, at least 1 MiB.
	MaxSize int64
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
			if w, err = newWriter(db, from.Snapshot().Cluster, r.now()); err != nil {
				return err
			}
		}
		if err := w.write(from, r.now()); err != nil {
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
	seq     uint64 // of the last event
	follows bool   // the locks that are there were taken in
	seen    time.Time

	states   map[string]string // by node; "" is the cluster
	findings map[string]int64  // open ones: the id of their row
	grants   grants
	minutes  minutes
	trimmed  time.Time
}

func newWriter(db *sql.DB, about monitor.Cluster, now time.Time) (*writer, error) {
	w := &writer{db: db, states: map[string]string{}, findings: map[string]int64{}, grants: newGrants()}
	err := db.QueryRow(`INSERT INTO clusters (name, n, quorum, max_ttl_ms) VALUES (?, ?, ?, ?)
		ON CONFLICT (name) DO UPDATE SET n = excluded.n, quorum = excluded.quorum, max_ttl_ms = excluded.max_ttl_ms RETURNING id`,
		about.Name, about.N, about.Quorum, about.MaxTTL.Milliseconds()).Scan(&w.cluster)
	if err != nil {
		return nil, err
	}
	// What was open when the last recorder ended has ended, or goes on; in between nobody
	// looked.
	var last sql.NullInt64
	if err := db.QueryRow(`SELECT CAST(value AS INTEGER) FROM meta WHERE key = ?`, w.seenKey()).Scan(&last); err != nil && err != sql.ErrNoRows {
		return nil, err
	}
	w.seen = now
	if last.Valid {
		w.seen = time.UnixMilli(last.Int64)
		_, err = db.Exec(`INSERT INTO events (cluster, at_ms, level, kind, text) VALUES (?, ?, 'notice', 'recorder', ?)`, w.cluster, millis(now),
			"recording goes on; nothing was recorded since "+w.seen.UTC().Format(time.RFC3339))
		if err == nil {
			_, err = db.Exec(`UPDATE findings SET cleared_ms = ? WHERE cluster = ? AND cleared_ms IS NULL`, last.Int64, w.cluster)
		}
	}
	if err != nil {
		return nil, err
	}
	return w, w.grants.resume(db, w.cluster)
}

func (w *writer) seenKey() string { return fmt.Sprintf("seen_ms of cluster %d", w.cluster) }

// write takes in what the source has seen since the last time.
func (w *writer) write(from Source, now time.Time) error {
	// The events first: what they tell has then happened in the snapshot, too.
	events, missed := from.EventsSince(w.seq)
	s := from.Snapshot()
	tx, err := w.db.Begin()
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	b := batch{writer: w, tx: tx, now: now}
	if !s.Settled.IsZero() && (!w.follows || missed > 0 && w.seq > 0) {
		if w.follows {
			b.event(monitor.Event{At: now, Level: monitor.LevelNotice, Kind: "recorder", Text: gapText(missed)})
		}
		w.grants.takeIn(s, w.seen, now)
		w.follows, b.caughtUp = true, true
	}
	for _, e := range events {
		w.seq = e.Seq
		b.event(e)
	}
	b.nodes(s)
	b.open(s.Findings)
	b.writeGrants()
	b.writeMinutes()
	b.exec(`INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value`, w.seenKey(), millis(now))
	if b.err != nil {
		return b.err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	w.seen = now
	return nil
}

func millis(t time.Time) int64 { return t.UnixMilli() }
