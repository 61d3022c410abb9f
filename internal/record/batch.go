package record

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"time"

	"redlockctl/monitor"
	"redlockctl/restartguard"
)

// looks follows lock states that their grants do not show.
type looks struct {
	version uint64           // of the last processed snapshot
	counts  monitor.Counts   // of that snapshot
	open    map[string]*look // by lock name
	// seen has the locks that changed since the last write: writes may be a second apart,
	// and what a lock is counts from when it was seen.
	seen map[string]sighting
}

// sighting is a lock, nil if it is gone, as it was seen from a moment on.
type sighting struct {
	lock *monitor.Lock
	at   time.Time
}

// note remembers since when a lock is what it is.
func (x *looks) note(key string, l *monitor.Lock, at time.Time) {
	was, known := x.seen[key]
	switch {
	case known && looksAlike(was.lock, l):
		x.seen[key] = sighting{l, was.at}
	case known || len(x.seen) < mostExtensions:
		x.seen[key] = sighting{l, at}
	}
}

// looksAlike reports whether two locks differ in nothing that the record has of their states.
func looksAlike(a, b *monitor.Lock) bool {
	if a == nil || b == nil || a.State != b.State || a.Nobody != b.Nobody || a.Contested != b.Contested || a.Holder != b.Holder || a.Copies.Len() != b.Copies.Len() {
		return a == b
	}
	for i, c := range a.Copies.All() {
		if o := b.Copies.At(i); c.State != o.State || c.Token != o.Token {
			return false
		}
	}
	return true
}

// since returns since when a lock is what it is, as far as was seen, and not before a
// moment.
func (x *looks) since(key string, l *monitor.Lock, first, now time.Time) time.Time {
	if seen, known := x.seen[key]; known && looksAlike(seen.lock, l) && seen.at.Before(now) {
		if seen.at.Before(first) {
			return first
		}
		return seen.at
	}
	return now
}

// look is a state of a lock over a period of time.
type look struct {
	id     int64 // of its row
	began  time.Time
	state  monitor.LockState
	tokens string // 8 bytes for each letter of copies
	copies string
}

// taking is a pass through all locks in the order of their keys, a part at a time: there
// may be a million. Their events are recorded meanwhile.
type taking struct {
	on    bool
	next  string // the first lock still to do
	again bool   // too much has changed meanwhile: repeat
	// noneOpen: no grant was open at the start, except of locks with events since then.
	noneOpen bool
	told     map[string]bool
}

// none reports whether a lock has no open grant because the pass has not reached it.
func (t *taking) none(lock string) bool { return t.noneOpen && lock >= t.next && !t.told[lock] }

// writer remembers what was written last, so that only changes are written.
type writer struct {
	db      *sql.DB
	path    string
	cluster int64
	run     int64 // row of this recorder
	fences  func() []restartguard.NodeStatus
	seq     uint64 // of the last event
	follows bool   // the existing locks have been recorded
	// unsighted: events were missed, and the locks have not been taken in again since.
	unsighted bool
	taking    taking        // in progress
	most      time.Duration // time limit per write
	seen      time.Time     // all events are recorded up to then; zero: none yet
	began     time.Time     // of this recorder
	before    int64         // until when the recorder before this one recorded, in milliseconds
	wrote     bool          // at least once
	pause     monitor.Pause // the last one of the source
	paused    bool          // that pause has not ended: no run covers it

	names      []string             // of the nodes, with their addresses
	states     map[string]nodeState // by node; "" is the cluster
	findings   map[string]openFinding
	grants     grants
	extensions extensions
	looks      looks
	minutes    minutes
	trimmed    time.Time
}

// nodeState is the last row of a node's state.
type nodeState struct {
	state, said string // said: all of it
	at          time.Time
	notBefore   time.Time
}

// batch is one transaction of a writer, on its own connection: a [sql.Tx] starts a
// goroutine for each query, and there are thousands a second. After the first error it
// does nothing more.
type batch struct {
	*writer
	ctx  context.Context
	conn *sql.Conn
	now  time.Time
	// caughtUp: the pass through all locks has just ended; it includes the events of this
	// batch.
	caughtUp   bool
	statements map[string]*sql.Stmt // of this transaction, by text
	err        error
}

// begin starts a transaction.
func (w *writer) begin(ctx context.Context, now time.Time) (*batch, error) {
	conn, err := w.db.Conn(context.Background())
	if err != nil {
		return nil, err
	}
	if _, err := conn.ExecContext(context.Background(), `BEGIN`); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &batch{writer: w, ctx: ctx, conn: conn, now: now, statements: map[string]*sql.Stmt{}}, nil
}

// commit commits the transaction, or rolls it back after an error.
func (b *batch) commit() error {
	for _, s := range b.statements {
		_ = s.Close()
	}
	if b.err == nil {
		_, b.err = b.conn.ExecContext(context.Background(), `COMMIT`)
	}
	if b.err != nil {
		_, _ = b.conn.ExecContext(context.Background(), `ROLLBACK`)
	}
	return errors.Join(b.err, b.conn.Close())
}

// prepared returns a statement of this transaction; nil after an error.
func (b *batch) prepared(query string) *sql.Stmt {
	s := b.statements[query]
	if s == nil && b.err == nil {
		if s, b.err = b.conn.PrepareContext(context.Background(), query); b.err == nil {
			b.statements[query] = s
		}
	}
	if b.err != nil {
		return nil
	}
	return s
}

func (b *batch) exec(query string, args ...any) (done sql.Result) {
	if s := b.prepared(query); s != nil {
		done, b.err = s.Exec(args...)
	}
	return done
}

func (b *batch) scan(query string, args []any, dest ...any) {
	if s := b.prepared(query); s != nil {
		b.err = s.QueryRow(args...).Scan(dest...)
	}
}

// id returns the row of a named item, and inserts it if missing.
func (b *batch) id(known map[string]int64, key, query string, args ...any) (id int64) {
	if id, ok := known[key]; ok || b.err != nil {
		return id
	}
	if b.scan(query, args, &id); b.err == nil {
		if len(known) >= mostKnown {
			clear(known)
		}
		known[key] = id
	}
	return id
}

func (b *batch) lock(name string) int64 {
	return b.id(b.grants.locks, name, lockRows(1)+`id`, b.cluster, name)
}

// locks finds or inserts the rows of many locks.
func (b *batch) locks(names []string) {
	names = slices.DeleteFunc(names, func(name string) bool { _, known := b.grants.locks[name]; return known })
	for ; len(names) >= atOnce && b.err == nil; names = names[atOnce:] {
		args := make([]any, 0, 2*atOnce)
		for _, name := range names[:atOnce] {
			args = append(args, b.cluster, name)
		}
		s := b.prepared(lockRows(atOnce) + `id, name`)
		if s == nil {
			return
		}
		rows, err := s.Query(args...)
		if b.err = err; err != nil {
			return
		}
		if len(b.grants.locks) >= mostKnown {
			clear(b.grants.locks)
		}
		for rows.Next() {
			var id int64
			var name string
			b.err = cmp.Or(b.err, rows.Scan(&id, &name))
			b.grants.locks[name] = id
		}
		b.err = cmp.Or(b.err, rows.Err(), rows.Close())
	}
}

// atOnce is the number of rows in a statement that inserts many.
const atOnce = 64

// lockRows returns the statement that finds or inserts the rows of n locks, up to what it
// returns of each.
func lockRows(n int) string {
	return `INSERT INTO locks (cluster, name) VALUES ` + values(n, 2) + ` ON CONFLICT (cluster, name) DO UPDATE SET name = name RETURNING `
}

// values returns the parameters of n rows.
func values(n, columns int) string {
	row := "(?" + strings.Repeat(", ?", columns-1) + ")"
	return row + strings.Repeat(", "+row, n-1)
}
