package record

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"modernc.org/sqlite"
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

// check looks for damage. It reads the whole file.
func check(db *sql.DB) error {
	var said string
	if err := db.QueryRow(`PRAGMA quick_check(1)`).Scan(&said); err != nil {
		return err
	}
	if said != "ok" {
		return fmt.Errorf("%w: %s", errDamaged, said)
	}
	return nil
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
