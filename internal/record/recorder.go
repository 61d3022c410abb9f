package record

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"redlockctl/base/sleep"
)

const (
	writeEvery = time.Second
	// stirEvery is how often to write while nodes change, or locks to or from states that no
	// grant shows, and how often they are looked at: so exact are the times of these
	// states. Nine tenths of the time are left to others.
	stirEvery  = 100 * time.Millisecond
	stirPause  = 9
	retryEvery = 30 * time.Second
	inUseEvery = 2 * time.Second // while another process records: it may end at any time
	// checkEvery is how often the file is checked while it is written.
	checkEvery = 6 * time.Hour
)

// Recorder writes what a monitor saw into a file.
type Recorder struct {
	opt          Options
	now          func() time.Time
	retry, check time.Duration

	mu   sync.Mutex
	err  error     // why nothing is recorded; nil: no error
	last time.Time // of the last write; zero: none yet
}

// New makes a recorder; it opens nothing yet.
func New(opt Options) *Recorder {
	opt.Keep = cmp.Or(opt.Keep, DefaultKeep)
	opt.MaxSize = max(cmp.Or(opt.MaxSize, DefaultMaxSize), 1<<20)
	return &Recorder{opt: opt, now: time.Now, retry: retryEvery, check: checkEvery}
}

// Err returns why nothing is recorded now; nil if there is no error.
func (r *Recorder) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// Problem returns why nothing is recorded; nil if it is, here or by another process.
func (r *Recorder) Problem() error {
	if err := r.Err(); !errors.Is(err, ErrInUse) {
		return err
	}
	return nil
}

// Lag returns for how long nothing was written, and whether this recorder has written at
// all.
func (r *Recorder) Lag() (lag time.Duration, wrote bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Since(r.last), !r.last.IsZero()
}

// Run records until ctx ends. Data that it cannot write is lost, and it retries every
// half a minute, every two seconds while another process records.
func (r *Recorder) Run(ctx context.Context, from Source) {
	for {
		err := r.record(ctx, from)
		if ctx.Err() != nil {
			return
		}
		pause := r.retry
		switch {
		case isDamage(err):
			aside, failed := putAside(r.opt.Path, r.now())
			err = errors.Join(fmt.Errorf("%w; it is kept as %s", err, aside), failed)
			pause = writeEvery
		case errors.Is(err, errGone):
			pause = writeEvery
		case errors.Is(err, ErrInUse):
			pause = min(r.retry, inUseEvery)
		}
		r.set(err)
		if sleep.For(ctx, pause) != nil {
			return
		}
	}
}

// set reports a change between recording and not recording, and another reason.
func (r *Recorder) set(err error) {
	r.mu.Lock()
	was := r.err
	if r.err = err; err == nil {
		r.last = time.Now()
	}
	r.mu.Unlock()
	if r.opt.Tell != nil && reason(err) != reason(was) {
		r.opt.Tell(err)
	}
}

func reason(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// record writes until ctx ends, then once more, or until an error.
func (r *Recorder) record(ctx context.Context, from Source) error {
	db, lock, err := openFile(r.opt.Path)
	if err != nil {
		return err
	}
	defer lock.Close()
	defer db.Close()
	same, err := sameFile(r.opt.Path)
	if err != nil {
		return err
	}
	if err := check(context.WithoutCancel(ctx), db); err != nil {
		return err
	}
	checks := r.checks(ctx)
	defer checks.end()
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
		if !same() {
			return errGone
		}
		if err := checks.found(); err != nil {
			return err
		}
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
				s := from.Snapshot()
				w.collect(from, s)
				wait = now.Before(begun.Add(writeEvery)) && (now.Before(paused) || !w.stirred(s))
			}
		}
	}
}
