package record

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"redlockctl/base/sleep"
)

const (
	writeEvery = time.Second
	// stirEvery is how often it is written where locks got into a state that is no grant's, or left it: so
	// exact are the moments of these. Nine tenths of the time are left to others.
	stirEvery  = 100 * time.Millisecond
	stirPause  = 9
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
		if sleep.For(ctx, retryEvery) != nil {
			return
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
	tick := time.NewTicker(stirEvery)
	defer tick.Stop()
	for last := false; ; {
		if w == nil {
			if w, err = newWriter(db, from.Snapshot().Cluster, r.opt, r.now()); err != nil {
				return err
			}
		}
		begun := time.Now()
		if err := w.write(ctx, from, r.now()); err != nil {
			return fmt.Errorf("the record cannot be written: %w", err)
		}
		if err := w.trim(r.opt, r.now()); err != nil {
			return fmt.Errorf("the record cannot be trimmed: %w", err)
		}
		r.set(nil)
		paused := time.Now().Add(stirPause * time.Since(begun))
		if last {
			_, err := db.Exec(`PRAGMA wal_checkpoint(TRUNCATE)`)
			return err
		}
		for wait := true; wait; {
			select {
			case <-ctx.Done():
				last, wait = true, false
			case now := <-tick.C:
				wait = now.Before(begun.Add(writeEvery)) && (now.Before(paused) || !w.stirred(from.Snapshot()))
			}
		}
	}
}
