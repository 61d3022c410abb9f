// Package audit is the append-only log of what people and guards did, one JSON
// object per line. Each action writes an intent, on disk before anything is sent,
// and later an outcome with the same id. A line contains the hash of a token, never
// the token, and no terminal control characters.
//
// The lines are a hash chain: each has a number and the SHA-256 of the line before.
// The number and hash of the last line are also in a small file beside the log
// ([HeadPath]), so that missing lines at the end are noticed. Processes that share a
// log take turns with a lock on that file. [Verify] says what the chain proves.
package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"redlockctl/base/private"
)

// TokenSHA returns the hash that the log has in place of a token. Whoever knows the
// token finds its lines; nobody learns the token from them. An empty token has no hash.
func TokenSHA(token string) string {
	if token == "" {
		return ""
	}
	return sumOf([]byte(token))
}

// HeadPath returns the path of the side file: the end of the chain of the log at path.
func HeadPath(path string) string { return path + ".head" }

// lockWait bounds how long a writer waits for its turn. A line takes milliseconds; a
// process that is stopped while it writes must not block the actions of others.
const lockWait = 5 * time.Second

// ErrBusy is returned when another process keeps the log locked.
var ErrBusy = errors.New("another process keeps writing to it")

// Log is an open audit log. It is safe for use by many goroutines, and several
// processes may append to the same file.
type Log struct {
	path string

	mu   sync.Mutex
	file *os.File // nil after Close
	head *os.File // the side file, and the lock
}

// Open opens the log for appending and creates it with mode 0600 in a directory of
// mode 0700. The file must be regular, not a symbolic link, and writable only by its
// owner and group: see [private.Open].
func Open(path string) (*Log, error) {
	l := &Log{path: path}
	if err := l.open(); err != nil {
		return nil, err
	}
	return l, nil
}

func (l *Log) open() error {
	// Operators of one group may share a log.
	if err := private.Dir(filepath.Dir(l.path), private.Group); err != nil {
		return l.fail("use the directory of", err)
	}
	f, err := openFile(l.path, os.O_APPEND, 0o600)
	if err != nil {
		return l.fail("open", err)
	}
	// Everyone who may write the log must be able to write the side file.
	mode := fs.FileMode(0o600)
	if info, err := f.Stat(); err == nil {
		mode = info.Mode().Perm()
	}
	h, err := openFile(HeadPath(l.path), 0, mode)
	if err != nil {
		_ = f.Close()
		return l.fail("open the end of the chain of", err)
	}
	l.file, l.head = f, h
	return nil
}

// openFile opens a regular file for reading and writing, and creates it if missing.
func openFile(path string, flags int, mode fs.FileMode) (*os.File, error) {
	f, err := private.Open(path, flags|os.O_RDWR, 0, private.Group)
	if errors.Is(err, fs.ErrNotExist) {
		if f, err = private.Open(path, flags|os.O_RDWR|os.O_CREATE, mode, private.Group); err == nil {
			// Without this, a crash could lose the file with its lines.
			err = private.SyncDir(filepath.Dir(path))
		}
	}
	if err != nil && f != nil {
		_ = f.Close()
		f = nil
	}
	return f, err
}

// Write appends one record and syncs it to disk. If it fails, assume that the record
// was not written.
func (l *Log) Write(r Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return l.fail("write", fs.ErrClosed)
	}
	for range rotations {
		if err := l.follow(); err != nil {
			return err
		}
		unlock, err := lock(l.head, false, lockWait)
		if err != nil {
			return l.fail("write", err)
		}
		// The files may have been rotated while we waited.
		if same(l.file, l.path) && same(l.head, HeadPath(l.path)) {
			defer unlock()
			return l.append(r)
		}
		unlock()
	}
	return l.fail("write", errors.New("it is replaced again and again"))
}

// rotations bounds how often one write may find the files replaced.
const rotations = 10

// append writes the record after the last line. The caller has the lock.
func (l *Log) append(r Record) error {
	t, err := readTail(l.file)
	if err != nil {
		return l.fail("read the end of", err)
	}
	h, headErr := readHead(l.head)
	place := next(t, h, headErr)
	if errors.Is(headErr, errNoHead) && place.Chain == "" {
		// The side file has a head before the log has a line, so a missing one means that
		// somebody removed it.
		if err := l.setHead(head{0, noHash}); err != nil {
			return err
		}
	}
	if headErr == nil && behind(t, h) {
		if err := l.setHead(head{t.last.Seq, t.sum}); err != nil {
			return err
		}
	}
	place.Record = r
	line, sum, err := place.encode()
	if err != nil {
		return l.fail("encode a record for", err)
	}
	if t.torn { // a crash cut the last line short: start a new one
		line = append([]byte{'\n'}, line...)
	}
	if _, err := l.file.Write(line); err != nil {
		return l.fail("write", err)
	}
	if err := l.file.Sync(); err != nil {
		return l.fail("sync", err)
	}
	// The log is written first: after a crash between the two, the side file lacks one
	// line, which Verify accepts. The other order would look like a missing line.
	return l.setHead(head{place.Seq, sum})
}

func (l *Log) setHead(h head) error {
	_, err := l.head.WriteAt(h.encode(), 0)
	if err == nil {
		err = l.head.Truncate(int64(headLen))
	}
	if err == nil {
		err = l.head.Sync()
	}
	if err != nil {
		return l.fail("write the end of the chain of", err)
	}
	return nil
}

// lock locks the side file.
func lock(f *os.File, share bool, wait time.Duration) (unlock func(), err error) {
	switch err := private.Lock(f, share, wait); {
	case errors.Is(err, private.ErrLocked):
		return nil, ErrBusy
	case err != nil:
		return nil, err
	}
	return func() { _ = private.Unlock(f) }, nil
}

// follow reopens both files if the log was rotated, so that nothing is written to a
// deleted file.
func (l *Log) follow() error {
	if same(l.file, l.path) && same(l.head, HeadPath(l.path)) {
		return nil
	}
	file, head := l.file, l.head
	if err := l.open(); err != nil {
		return err
	}
	return errors.Join(file.Close(), head.Close())
}

// same reports whether path still names the open file.
func same(f *os.File, path string) bool {
	have, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(have, there)
}

func (l *Log) fail(what string, err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return fmt.Errorf("%s the audit log %q: %w", what, l.path, err)
}

// Close closes the log; later writes fail.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	err := errors.Join(l.file.Close(), l.head.Close())
	l.file, l.head = nil, nil
	return err
}
