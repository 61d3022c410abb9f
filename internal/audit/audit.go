// Package audit is the append-only log of what people and guards did: one JSON
// object for each line. Each act leaves an intent, on disk before anything is
// sent, and an outcome with the same id. A line never holds a token, only its
// hash, and no character that a terminal would obey.
//
// The lines are a chain: each has its number and the SHA-256 of the line before.
// The end of the chain, its number and hash, also stands in a small file beside
// the log ([HeadPath]), without which a cut tail could not be seen. Its lock
// makes several processes take turns. [Verify] says what follows from all that,
// and what does not.
package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"redlockctl/internal/private"
)

// TokenSHA is what stands in the log for a token: who knows the token can find
// its lines, and nobody learns it from them. The empty token has none.
func TokenSHA(token string) string {
	if token == "" {
		return ""
	}
	return sumOf([]byte(token))
}

// HeadPath is the file beside a log that holds the end of its chain.
func HeadPath(path string) string { return path + ".head" }

// lockWait bounds how long a writer waits for its turn. Writing a line takes
// milliseconds; a process that was stopped in the middle of it must not hold up
// those that want to act.
const lockWait = 5 * time.Second

// ErrBusy is returned when another process does not give the log free.
var ErrBusy = errors.New("another process keeps writing to it")

// Log is an open audit log. It is safe for use by many goroutines, and several
// processes may append to the same file.
type Log struct {
	path string

	mu   sync.Mutex
	file *os.File // nil after Close
	head *os.File // the side file, and the lock
}

// Open opens the log for appending, creating it with mode 0600 in a directory
// of mode 0700. The path must be an ordinary file, no symbolic link, which nobody but
// its owner and its group may write: see [private.Open].
func Open(path string) (*Log, error) {
	l := &Log{path: path}
	if err := l.open(); err != nil {
		return nil, err
	}
	return l, nil
}

func (l *Log) open() error {
	// Operators may share a log by a group.
	if err := private.Dir(filepath.Dir(l.path), private.Group); err != nil {
		return l.fail("use the directory of", err)
	}
	f, err := openFile(l.path, os.O_APPEND, 0o600)
	if err != nil {
		return l.fail("open", err)
	}
	// Who may write the one must be able to write the other.
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

// openFile opens an ordinary file for reading and writing, and makes it if it is
// not there.
func openFile(path string, flags int, mode fs.FileMode) (*os.File, error) {
	f, err := private.Open(path, flags|os.O_RDWR, 0, private.Group)
	if errors.Is(err, fs.ErrNotExist) {
		if f, err = private.Open(path, flags|os.O_RDWR|os.O_CREATE, mode, private.Group); err == nil {
			// Else a crash could forget the file with its lines.
			err = private.SyncDir(filepath.Dir(path))
		}
	}
	if err != nil && f != nil {
		_ = f.Close()
		f = nil
	}
	return f, err
}

// Write appends one record and syncs it to disk. If it fails, the record must
// be taken as not written.
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
		// While we waited for our turn they may have been rotated away.
		if same(l.file, l.path) && same(l.head, HeadPath(l.path)) {
			defer unlock()
			return l.append(r)
		}
		unlock()
	}
	return l.fail("write", errors.New("it is replaced again and again"))
}

// rotations bounds how often a writer finds the files replaced in its turn.
const rotations = 10

// append writes the record behind the last one. The lock is ours.
func (l *Log) append(r Record) error {
	t, err := readTail(l.file)
	if err != nil {
		return l.fail("read the end of", err)
	}
	h, headErr := readHead(l.head)
	place := next(t, h, headErr)
	if errors.Is(headErr, errNoHead) && place.Chain == "" {
		// It is there before the first link, so that it can only be missing later if
		// somebody took it away.
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
	if t.torn { // a crash cut the last line short: this one must not be glued to it
		line = append([]byte{'\n'}, line...)
	}
	if _, err := l.file.Write(line); err != nil {
		return l.fail("write", err)
	}
	if err := l.file.Sync(); err != nil {
		return l.fail("sync", err)
	}
	// Behind by one after a crash between the two is what Verify accepts; ahead
	// would be a line that is missing.
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

// lock takes the lock of the side file, shared or not.
func lock(f *os.File, share bool, wait time.Duration) (unlock func(), err error) {
	switch err := private.Lock(f, share, wait); {
	case errors.Is(err, private.ErrLocked):
		return nil, ErrBusy
	case err != nil:
		return nil, err
	}
	return func() { _ = private.Unlock(f) }, nil
}

// follow opens both files anew if those at the paths are others by now: a log
// that was rotated away is one thing, writing to a deleted one would be another.
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

// same reports whether an open file is the one at path.
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
