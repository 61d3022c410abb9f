package memory

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
	"strings"
	"sync"
	"syscall"
	"time"

	"redlockctl/base/boottime"
	"redlockctl/base/private"
	"redlockctl/restartguard"
	"redlockctl/server/serverinfo"
)

// ErrInUse is returned by OpenMemory when another guard uses the directory.
var ErrInUse = errors.New("another guard uses this state directory")

// ErrDamaged is returned by ReadMemory, and reported by [Memory.Damaged], when
// the file is not what a guard wrote.
var ErrDamaged = errors.New("the guard's memory is damaged")

const (
	memoryFile = "guard.json"
	lockFile   = "lock"
	idFile     = "id"
	// memoryHead begins the file; behind it stands the SHA-256 of what follows the
	// first line.
	memoryHead = "redlockctl-guard-1 "
	// memoryMost bounds what is read.
	memoryMost = 16 << 20
	// A directory counts as in use when its lock was not to be had so often, with
	// this pause between.
	lockTries = 10
	lockAgain = 20 * time.Millisecond
)

// Memory is what a guard knows of its nodes, on disk, so that it survives the
// guard's own end. One guard at a time has it. Nothing in it makes a node
// open sooner than a guard without memory would, counted from the moment at which
// the loss was first seen: a moment is kept on the clock of the machine's boot
// ([BootTime]), and is worth nothing in another boot.
type Store struct {
	dir     string
	id      string
	damaged error
	full    error // what found no room when it was opened

	mu    sync.Mutex
	lock  *os.File // nil as long as there is no room for it
	noted bool     // id is on disk
	lost  bool     // the directory was removed, and is not written anew
	boot  string   // of what was read
	saved time.Duration
	nodes map[string]restartguard.Record
	used  bool // the cluster was in use, with these nodes or earlier ones

	delays []KnownDelay // as they are on disk
}

// document is the file.
type document struct {
	Boot  string                         `json:"boot_id"`
	Saved time.Duration                  `json:"saved_ns"` // in Boot
	Used  bool                           `json:"used,omitempty"`
	Nodes map[string]restartguard.Record `json:"nodes"`
}

// OpenMemory takes a state directory for one guard: it is made with mode 0700 if
// it is not there, and locked until Close. It fails with [ErrInUse] if another
// process has it, and where another user may write to it, since whoever can do that
// can have a node rejoin too early. A file that is damaged, or that others may write,
// is no error: it is as good as none, see [Memory.Damaged]. Neither is a disk that is
// full: see [Memory.Full].
func Open(dir string) (*Store, error) {
	m := &Store{dir: dir, nodes: map[string]restartguard.Record{}}
	err := m.claim()
	if err == nil {
		m.id, m.noted, err = guardID(dir)
	}
	switch {
	case isFull(err):
		m.full = err
		if m.id == "" {
			m.id = rand.Text()
		}
	case err != nil:
		_ = m.Close()
		return nil, err
	}
	if m.lock != nil {
		private.Sweep(filepath.Join(dir, memoryFile))
	}
	switch doc, err := readDocument(dir); {
	case err == nil:
		m.boot, m.saved, m.nodes, m.used = doc.Boot, doc.Saved, doc.Nodes, doc.Used
		for _, r := range m.nodes {
			m.used = m.used || r.Used()
		}
	case !errors.Is(err, fs.ErrNotExist):
		m.damaged = err
	}
	if m.delays, err = ReadDelays(dir); err != nil {
		m.damaged = errors.Join(m.damaged, err)
	}
	return m, nil
}

// claim makes the directory and takes its lock.
func (m *Store) claim() error {
	if err := private.Dir(m.dir, private.Nobody); err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	if err := os.Chmod(m.dir, 0o700); err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	lock, err := private.Open(filepath.Join(m.dir, lockFile), os.O_RDWR|os.O_CREATE, 0o600, private.Nobody)
	if err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	err = private.TryLock(lock, false)
	for try := 1; errors.Is(err, private.ErrLocked) && try < lockTries; try++ {
		time.Sleep(lockAgain) // it may be no guard, but a look at the lock: see Running
		err = private.TryLock(lock, false)
	}
	if err == nil {
		m.lock = lock
		return nil
	}
	_ = lock.Close()
	if errors.Is(err, private.ErrLocked) {
		return fmt.Errorf("%w: %s", ErrInUse, m.dir)
	}
	return fmt.Errorf("state directory %s: flock: %w", m.dir, err)
}

// isFull reports whether err is for want of room, which an operator can make while
// the guard runs.
func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// Full tells what found no room when the memory was opened, nil if all did. The guard
// works, and writes as soon as there is room. Before that its own end makes it forget:
// what has happened so far is not known to the next guard, for which a fenced node
// waits for all of D; and a second guard can be started in the same directory, which
// is as safe as two guards with directories of their own.
func (m *Store) Full() error { return m.full }

// Damaged tells what is wrong with the file that was found, nil if nothing is.
// The guard then begins as one without memory.
func (m *Store) Damaged() error { return m.damaged }

// Dir returns the path of the state directory.
func (m *Store) Dir() string { return m.dir }

// Used reports whether the cluster was in use, as far as the memory goes back.
func (m *Store) Used() bool { return m.used }

// ID tells the guards of this state directory, one after the other, from all
// others. It is no part of what can be damaged or forgotten with the nodes.
func (m *Store) ID() string { return m.id }

// guardID reads the id of a directory, and makes one where there is none; noted
// reports whether it is there for the next guard.
func guardID(dir string) (id string, noted bool, err error) {
	path := filepath.Join(dir, idFile)
	raw, err := readOwn(path)
	if id := strings.TrimSpace(string(raw)); err == nil && serverinfo.IsWord(id) {
		return id, true, nil
	}
	if errors.Is(err, private.ErrUnsafe) {
		return "", false, fmt.Errorf("state directory: %w", err)
	}
	id = rand.Text()
	if err := noteID(dir, id); err != nil {
		return id, false, fmt.Errorf("state directory: %w", err)
	}
	return id, true, nil
}

func noteID(dir, id string) error {
	return private.Replace(filepath.Join(dir, idFile), []byte(id+"\n"))
}

// readOwn reads a small file that nobody else may write.
func readOwn(path string) ([]byte, error) {
	f, err := private.Open(path, os.O_RDONLY, 0, private.Nobody)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, memoryMost+1))
	if err == nil && len(raw) > memoryMost {
		err = fmt.Errorf("%s is too large to be ours", path)
	}
	return raw, err
}

// Running reports whether a guard has a state directory: without one nothing that is
// remembered there will be done. A directory that is not there has none. It fails
// where the lock cannot be looked at.
func Running(dir string) (bool, error) {
	lock, err := os.Open(filepath.Join(dir, lockFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("state directory: %w", err)
	}
	defer lock.Close()
	// Shared, so that two who look do not take each other for a guard; it is given
	// back at once by the closing.
	switch err := private.TryLock(lock, true); {
	case err == nil:
		return false, nil
	case errors.Is(err, private.ErrLocked):
		return true, nil
	default:
		return false, fmt.Errorf("state directory %s: flock: %w", dir, err)
	}
}

// Close gives the directory free. What was remembered stays.
func (m *Store) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lock == nil {
		return nil
	}
	return m.lock.Close()
}

func readDocument(dir string) (document, error) {
	var doc document
	path := filepath.Join(dir, memoryFile)
	raw, err := readOwn(path)
	if errors.Is(err, fs.ErrNotExist) {
		return doc, err
	} else if err != nil {
		return doc, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if doc, err = parseDocument(raw); err != nil {
		return document{}, fmt.Errorf("%w: %s: %w", ErrDamaged, path, err)
	}
	return doc, nil
}

func parseDocument(raw []byte) (doc document, err error) {
	head, body, _ := bytes.Cut(raw, []byte("\n"))
	if string(head) != memoryHead+sumOf(body) {
		return doc, errors.New("it does not have the sum that it names")
	}
	return doc, json.Unmarshal(body, &doc)
}

func sumOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// removed reports whether the directory, or the lock in it, was removed or replaced after
// it was taken.
func (m *Store) Removed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lock != nil && !m.locked()
}

// locked reports whether the lock that stands in the directory is the one that we have.
func (m *Store) locked() bool {
	there, err := os.Lstat(filepath.Join(m.dir, lockFile))
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist) // of a disk that fails the writing tells
	}
	ours, err := m.lock.Stat()
	return err != nil || os.SameFile(there, ours)
}

// put remembers a node and writes the file. When that fails nothing may be left
// that says less than is known now, so the file is removed: without it a guard
// counts from now. A directory that was removed is made and taken again; remade
// reports that.
func (m *Store) Put(n Node, now time.Time, boot time.Duration) (remade bool, err error) {
	r := n.State.Record(n.Addr, n.Fence, now, boot)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.nodes[n.Name] = r
	m.used = m.used || r.Used()
	if m.lock != nil && !m.locked() {
		_ = m.lock.Close()
		m.lock, m.noted, m.lost = nil, false, true
	}
	if m.lock == nil {
		if err := m.claim(); err != nil { // what is there is not ours
			return false, fmt.Errorf("the guard's memory cannot be written: %w", err)
		}
	}
	if err = m.write(document{Boot: boottime.ID(), Saved: boot, Used: m.used, Nodes: m.nodes}); err == nil {
		// Without it the next guard only has another name.
		m.noted = m.noted || noteID(m.dir, m.id) == nil
		remade, m.lost = m.lost, false
		return remade, nil
	}
	if e := os.Remove(filepath.Join(m.dir, memoryFile)); e != nil && !errors.Is(e, fs.ErrNotExist) {
		err = errors.Join(err, e)
	}
	return false, fmt.Errorf("the guard's memory cannot be written: %w", err)
}

// expect forgets all nodes but these, and notes those that were not met yet.
func (m *Store) Expect(nodes []Node) {
	now, boot := time.Now(), boottime.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.nodes = make(map[string]restartguard.Record, len(nodes))
	for _, n := range nodes {
		m.nodes[n.Name] = n.State.Record(n.Addr, n.Fence, now, boot)
	}
}

// write replaces the file.
func (m *Store) write(doc document) error {
	body, err := json.MarshalIndent(doc, "", " ")
	if err != nil {
		return err
	}
	return private.Replace(filepath.Join(m.dir, memoryFile), append([]byte(memoryHead+sumOf(body)+"\n"), body...))
}

// past are the nodes as they were remembered.
func (m *Store) Past(delay time.Duration) *Past {
	m.mu.Lock()
	defer m.mu.Unlock()
	// The moment on the boot clock first: what comes in between makes a deadline
	// later, never sooner.
	boot := boottime.Now()
	now := time.Now()
	id := boottime.ID()
	var nodes []Node
	for name, r := range m.nodes {
		nodes = append(nodes, Node{Name: name, Addr: r.Addr, Fence: r.Fence, State: r.State(now, boot, delay, id != "" && m.boot == id && m.saved <= boot)})
	}
	return NewPast(nodes)
}

// ReadMemory reads what a guard remembers, without disturbing it: by the name
// of the node. A directory without a memory is fs.ErrNotExist; a file that is
// damaged is [ErrDamaged].
func Read(dir string) (map[string]restartguard.Remembered, error) {
	doc, err := readDocument(dir)
	if err != nil {
		return nil, err
	}
	id, boot, now := boottime.ID(), boottime.Now(), time.Now()
	out := make(map[string]restartguard.Remembered, len(doc.Nodes))
	for name, r := range doc.Nodes {
		if r.RunID == "" {
			continue // it was never met
		}
		s := r.State(now, boot, r.Delay, id != "" && doc.Boot == id && doc.Saved <= boot)
		known := restartguard.Remembered{Addr: r.Addr, RunID: r.RunID, Known: r.Known, Verified: r.Verified, Incarnations: r.Incarnations, Served: r.Served, Cordoned: r.Cordoned, Cause: r.Cause}
		if !s.Basis.Deadline.IsZero() {
			known.Wait = max(0, s.Basis.Deadline.Sub(now))
		}
		out[name] = known
	}
	return out, nil
}
