package record

import (
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"redlockctl/base/private"
)

var (
	// ErrInUse is returned when another process records into the file.
	ErrInUse = errors.New("another process records into this file")
	// ErrNewer is returned for a file of a newer version of the program.
	ErrNewer = errors.New("the record was made by a newer version of redlockctl")
	// ErrNoRecord is returned if the file is missing or empty.
	ErrNoRecord = errors.New("nothing has been recorded")
	// ErrOther is returned for a file that is not a record.
	ErrOther = errors.New("not a record of redlockctl")
)

func source(path string, options url.Values) string {
	return (&url.URL{Scheme: "file", Path: path, RawQuery: options.Encode()}).String()
}

// openFile opens a record for writing, and creates it if missing, in a directory and with
// a mode that keep others out. The lock is held until the file is closed.
func openFile(path string) (db *sql.DB, lock *os.File, err error) {
	if path, err = filepath.Abs(path); err != nil {
		return nil, nil, err
	}
	if err := private.Dir(filepath.Dir(path), private.Nobody); err != nil {
		return nil, nil, err
	}
	lock, err = private.Open(path+".lock", os.O_RDWR|os.O_CREATE, 0o600, private.Nobody)
	if err != nil {
		return nil, nil, err
	}
	defer func(held *os.File) { // a return has set lock to nil
		if err != nil {
			_ = held.Close()
		}
	}(lock)
	if err := private.TryLock(lock, false); err != nil {
		return nil, nil, ErrInUse
	}
	f, err := private.Open(path, os.O_RDWR|os.O_CREATE, 0o600, private.Nobody)
	if err != nil {
		return nil, nil, err
	}
	if err := f.Close(); err != nil {
		return nil, nil, err
	}
	db, err = sql.Open("sqlite", source(path, url.Values{"_pragma": {
		// auto_vacuum must be set before there is a table. With these, a crashed process
		// loses nothing that was committed; a crashed machine loses the last
		// transactions.
		"auto_vacuum(incremental)", "busy_timeout(2000)", "journal_mode(wal)", "synchronous(normal)", "journal_size_limit(16777216)",
	}}))
	if err != nil {
		return nil, nil, err
	}
	db.SetMaxOpenConns(1)
	if err := prepare(db); err != nil {
		_ = db.Close()
		return nil, nil, err
	}
	return db, lock, nil
}

// prepare creates the tables of a new file.
func prepare(db *sql.DB) error {
	version, err := versionOf(db)
	switch {
	case err == nil && version > Version:
		return ErrNewer
	case !errors.Is(err, ErrNoRecord):
		return err
	}
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.Exec(schema); err != nil {
		return err
	}
	if _, err := tx.Exec(`INSERT INTO meta VALUES ('version', ?)`, strconv.Itoa(Version)); err != nil {
		return err
	}
	return tx.Commit()
}

// versionOf returns the schema version of a file; [ErrNoRecord] if it has no tables.
func versionOf(db *sql.DB) (version int, err error) {
	var tables int
	if err := db.QueryRow(`SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'meta'`).Scan(&tables); err != nil {
		return 0, err
	}
	if tables == 0 {
		return 0, ErrNoRecord
	}
	if err := db.QueryRow(`SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'version'`).Scan(&version); err != nil {
		return 0, fmt.Errorf("the record has no version: %w", err)
	}
	return version, nil
}
