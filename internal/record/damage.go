package record

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"modernc.org/sqlite"

	"redlockctl/base/crash"
	"redlockctl/base/sleep"
)

// errGone is returned when the file of a recorder was removed or replaced.
var errGone = errors.New("the record was removed or replaced while it was written; a new one is made")

// errDamaged is returned for a file that does not pass SQLite's check.
var errDamaged = errors.New("the record is damaged")

// SQLite's codes for files that are no longer a database.
const (
	sqliteCorrupt = 11
	sqliteNotADB  = 26
)

// isDamage reports whether an error is about a damaged file, which is of no use any more.
func isDamage(err error) bool {
	var failed *sqlite.Error
	if errors.As(err, &failed) {
		code := failed.Code() & 0xff
		return code == sqliteCorrupt || code == sqliteNotADB
	}
	return errors.Is(err, errDamaged)
}

// check looks for damage. It reads the whole file, and compares the indexes with their tables:
// that takes no longer than SQLite's quick check, which does not find half as much.
func check(ctx context.Context, db *sql.DB) error {
	var said string
	if err := db.QueryRowContext(ctx, `PRAGMA integrity_check(1)`).Scan(&said); err != nil {
		return err
	}
	if said != "ok" {
		return fmt.Errorf("%w: %s", errDamaged, said)
	}
	return nil
}

// checking looks for damage again and again, beside the writing and with its own connection: what
// the writer has in its memory is not what the disk has.
type checking struct {
	stop   context.CancelFunc
	done   chan struct{}
	damage chan error
}

// checks begins the checks of a recorder's file.
func (r *Recorder) checks(ctx context.Context) *checking {
	ctx, stop := context.WithCancel(ctx)
	c := &checking{stop, make(chan struct{}), make(chan error, 1)}
	crash.Go(func() {
		defer close(c.done)
		for sleep.For(ctx, r.check) == nil {
			if err := checkFile(ctx, r.opt.Path); isDamage(err) {
				c.damage <- err
				return
			}
		}
	})
	return c
}

// found returns the damage that was found; nil: none so far.
func (c *checking) found() error {
	select {
	case err := <-c.damage:
		return err
	default:
		return nil
	}
}

func (c *checking) end() {
	c.stop()
	<-c.done
}

func checkFile(ctx context.Context, path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	db, err := sql.Open("sqlite", source(path, url.Values{"mode": {"ro"}, "_pragma": {"busy_timeout(2000)"}}))
	if err != nil {
		return err
	}
	defer db.Close()
	return check(ctx, db)
}

// putAside renames a damaged file and what is beside it: a part may still be readable.
func putAside(path string, now time.Time) (aside string, err error) {
	aside = path + ".damaged-" + now.UTC().Format("20060102T150405Z")
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if failed := os.Rename(path+suffix, aside+suffix); failed != nil && !errors.Is(failed, fs.ErrNotExist) {
			err = errors.Join(err, failed)
		}
	}
	return filepath.Base(aside), err
}

// sameFile returns what reports whether the file at path is still the one that is there now.
func sameFile(path string) (same func() bool, err error) {
	was, err := os.Lstat(path)
	return func() bool {
		is, err := os.Lstat(path)
		return err == nil && os.SameFile(was, is)
	}, err
}
