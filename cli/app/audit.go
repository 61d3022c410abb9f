package app

import (
	"errors"
	"io/fs"
	"os"
	"sync"
	"time"

	"redlockctl/internal/audit"
	"redlockctl/internal/view"
)

// mostAudit bounds how many lines of the audit log are shown.
const mostAudit = 2000

// auditReader reads an audit log for the screen, only when it has changed.
type auditReader struct {
	path string

	mu   sync.Mutex
	last *view.AuditLog // nil: it was not read
	seen [2]stamp       // of the log and its side file then
}

// stamp tells whether a file has changed.
type stamp struct {
	size int64
	at   time.Time
}

func stampOf(path string) (s stamp, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return stamp{}, err
	}
	if !info.Mode().IsRegular() { // a pipe must not hang who looks
		return stamp{}, &fs.PathError{Op: "read", Path: path, Err: fs.ErrInvalid}
	}
	return stamp{info.Size(), info.ModTime()}, nil
}

// auditLines reads the lines of an audit log one after the other, once for all that want them: all of it, then what
// is added. It is safe for concurrent use.
type auditLines struct {
	path  string
	takes []func(*audit.Record)

	mu  sync.Mutex
	log *audit.Follower // nil: nothing was read yet
}

// read hands on each line that was added since the last call; one may come twice.
func (l *auditLines) read() {
	l.mu.Lock()
	defer l.mu.Unlock()
	take := func(r *audit.Record) {
		for _, f := range l.takes {
			f(r)
		}
	}
	if l.log == nil {
		l.log = audit.FollowAll(l.path) // first: a line that is added meanwhile is read twice
		if _, err := stampOf(l.path); err == nil {
			_ = audit.Read(l.path, func(e audit.Entry) error { take(&e.Record); return nil })
		}
	}
	for lines := l.log.Lines(); len(lines) > 0; lines = l.log.Lines() {
		for i := range lines {
			take(&lines[i])
		}
	}
}

func (r *auditReader) read() *view.AuditLog {
	r.mu.Lock()
	defer r.mu.Unlock()
	var now [2]stamp
	var err error
	if now[0], err = stampOf(r.path); err != nil {
		log := &view.AuditLog{Path: r.path, Err: err}
		if errors.Is(err, fs.ErrNotExist) { // there never was one, or it was removed
			log.Report, log.Err = audit.Verify([]string{r.path}, audit.VerifyOptions{})
		}
		r.last, r.seen = log, now
		return log
	}
	now[1], _ = stampOf(audit.HeadPath(r.path))
	if r.last != nil && r.last.Err == nil && now == r.seen {
		return r.last
	}
	log := &view.AuditLog{Path: r.path}
	log.Err = audit.Read(r.path, func(e audit.Entry) error {
		if log.Entries = append(log.Entries, e); len(log.Entries) > 2*mostAudit {
			log.Older += mostAudit
			log.Entries = append(log.Entries[:0], log.Entries[mostAudit:]...)
		}
		return nil
	})
	if log.Err == nil {
		log.Report, log.Err = audit.Verify([]string{r.path}, audit.VerifyOptions{})
	}
	r.last, r.seen = log, now
	return log
}
