// Package audit is the append-only log of what people and guards did: one JSON
// object for each line. Each act leaves an intent, on disk before anything is
// sent, and an outcome with the same id. A line never holds a token, only its
// hash, and no character that a terminal would obey.
package audit

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"redlockctl/internal/safetext"
)

// The phases of an act.
const (
	Intent = "intent"
	Done   = "done"
	Failed = "failed"
)

// Record is one line of the log.
type Record struct {
	Time     time.Time `json:"time"`
	ID       string    `json:"id"`    // the same for the intent and its outcome
	Phase    string    `json:"phase"` // "intent", then "done" or "failed"
	Actor    string    `json:"actor"` // user@host
	Cluster  string    `json:"cluster"`
	Act      string    `json:"act"` // "force-release", "node fence", …
	Target   string    `json:"target"`
	Reason   string    `json:"reason,omitempty"`
	TokenSHA string    `json:"token_sha256,omitempty"` // never the token itself
	Detail   string    `json:"detail,omitempty"`
}

// NewID is a random id for an intent and its outcome.
func NewID() string { return rand.Text() }

// TokenSHA is what stands in the log for a token: who knows the token can find
// its lines, and nobody learns it from them. The empty token has none.
func TokenSHA(token string) string {
	if token == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// Log is an open audit log. It is safe for use by many goroutines, and several
// processes may append to the same file.
type Log struct {
	path string

	mu   sync.Mutex
	file *os.File // nil after Close
	// torn says that the file may end in the middle of a line: the next one must
	// not be glued to it.
	torn bool
}

// Open opens the log for appending, creating it with mode 0600 in a directory
// of mode 0700. The path must lead to an ordinary file.
func Open(path string) (*Log, error) {
	l := &Log{path: path}
	if err := l.open(); err != nil {
		return nil, err
	}
	return l, nil
}

func (l *Log) open() error {
	dir := filepath.Dir(l.path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return l.fail("make its directory", err)
	}
	// Not blocking: a pipe without a reader must fail, not hang.
	const flags = os.O_APPEND | os.O_RDWR | syscall.O_NONBLOCK
	f, err := os.OpenFile(l.path, flags, 0)
	if errors.Is(err, fs.ErrNotExist) {
		if f, err = os.OpenFile(l.path, flags|os.O_CREATE, 0o600); err == nil {
			err = syncDir(dir) // else a crash could forget the file with its lines
		}
	}
	if err != nil {
		if f != nil {
			_ = f.Close()
		}
		return l.fail("open", err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not an ordinary file")
	}
	torn := false
	if err == nil && info.Size() > 0 {
		last := make([]byte, 1)
		// Another process may append meanwhile; its lines are whole.
		if _, err = f.ReadAt(last, info.Size()-1); errors.Is(err, io.EOF) {
			err = nil
		}
		torn = last[0] != '\n'
	}
	if err != nil {
		_ = f.Close()
		return l.fail("open", err)
	}
	l.file, l.torn = f, torn
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// Write appends one record and syncs it to disk. If it fails, the record must
// be taken as not written.
func (l *Log) Write(r Record) error {
	line, err := encode(r)
	if err != nil {
		return l.fail("encode a record for", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return l.fail("write", fs.ErrClosed)
	}
	if err := l.follow(); err != nil {
		return err
	}
	if l.torn {
		line = append([]byte{'\n'}, line...)
	}
	// One write call: with O_APPEND, lines of several writers do not mix.
	n, err := l.file.Write(line)
	if err != nil {
		l.torn = l.torn || n > 0
		return l.fail("write", err)
	}
	l.torn = false
	if err := l.file.Sync(); err != nil {
		return l.fail("sync", err)
	}
	return nil
}

// follow opens the file anew if the one at the path is another by now: a log
// that was rotated away is one thing, writing to a deleted one would be another.
func (l *Log) follow() error {
	have, err := l.file.Stat()
	if err != nil {
		return l.fail("write", err)
	}
	there, err := os.Stat(l.path)
	if err == nil && os.SameFile(have, there) {
		return nil
	}
	old := l.file
	if err := l.open(); err != nil {
		return err
	}
	return old.Close()
}

// encode is the record as one line.
func encode(r Record) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(r); err != nil {
		return nil, err
	}
	return safetext.EscapeJSON(b.Bytes()), nil
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
	err := l.file.Close()
	l.file = nil
	return err
}
