// Package memory keeps what a guard knows in its state directory.
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

// ErrInUse is returned by Open when another guard uses the directory.
var ErrInUse = errors.New("another guard uses this state directory")

// ErrDamaged is returned by Read, and reported by [Store.Damaged], when the file is not what a
// guard wrote.
var ErrDamaged = errors.New("the guard's memory is damaged")

const (
	memoryFile = "guard.json"
	lockFile   = "lock"
	idFile     = "id"
	// memoryHead begins the file, followed by the SHA-256 of everything after the first line.
	memoryHead = "redlockctl-guard-1 "
	// memoryMost bounds the size of a file.
	memoryMost = 16 << 20
	// A directory is in use if its lock cannot be taken in lockTries attempts, lockAgain apart.
	lockTries = 10
	lockAgain = 20 * time.Millisecond
)

// Store is what a guard knows about its nodes, on disk, so that it survives the guard's end. One
// guard at a time has it. It never makes a node rejoin earlier than a guard without memory would,
// counted from when the loss was first seen: its times are on the boot clock of the machine
// ([boottime.Now]), and mean nothing in another boot.
type Store struct {
	dir     string
	id      string
	damaged error
	full    error // what found no room when it was opened

	mu    sync.Mutex
	lock  *os.File // nil as long as there is no room for it
	noted bool     // id is on disk
	lost  bool     // the directory was removed and is not written yet
	boot  string   // of what was read
	saved time.Duration
	nodes map[string]restartguard.Record
	used  bool // the cluster was in use, with these nodes or earlier ones

	delays []KnownDelay // as they are on disk
}

// document is the content of the file.
type document struct {
	Boot  string                         `json:"boot_id"`
	Saved time.Duration                  `json:"saved_ns"` // in Boot
	Used  bool                           `json:"used,omitempty"`
	Nodes map[string]restartguard.Record `json:"nodes"`
}

// Open takes a state directory for one guard: it is created with mode 0700 and locked until Close.
// Open fails with [ErrInUse] if another process has it. It also fails if other users may write to
// it, because they could make a node rejoin too early. A file that is damaged, or that others may
// write, is not an error but counts as missing, see [Store.Damaged]. Nor is a full disk, see
// [Store.Full].
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

// claim creates the directory and takes its lock.
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

// isFull reports whether err is for lack of disk space, which an operator can free while the guard
// runs.
func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// Full returns what found no disk space when the memory was opened, or nil. The guard works, and
// writes as soon as there is space. If it ends before that, the next guard does not know what
// happened, and a fenced node waits for all of D. A second guard can then be started in the same
// directory; that is as safe as two guards with directories of their own.
func (m *Store) Full() error { return m.full }

// Damaged returns what is wrong with the file that was found, or nil. The guard then starts without
// memory.
func (m *Store) Damaged() error { return m.damaged }

// Dir returns the path of the state directory.
func (m *Store) Dir() string { return m.dir }

// Used reports whether the cluster was in use, as far as the memory goes back.
func (m *Store) Used() bool { return m.used }

// ID distinguishes the guards of this state directory, one after the other, from all others. It has
// a file of its own, so it survives damage to the other files.
func (m *Store) ID() string { return m.id }

// guardID reads the id of a directory, or makes one; noted reports whether it is on disk for the
// next guard.
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

// Running reports whether a guard runs with a state directory. Without one, nothing that is
// remembered there will be done. It fails if the lock cannot be tried.
func Running(dir string) (bool, error) {
	lock, err := os.Open(filepath.Join(dir, lockFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("state directory: %w", err)
	}
	defer lock.Close()
	// Shared, so that two such checks do not take each other for a guard; closing releases it.
	switch err := private.TryLock(lock, true); {
	case err == nil:
		return false, nil
	case errors.Is(err, private.ErrLocked):
		return true, nil
	default:
		return false, fmt.Errorf("state directory %s: flock: %w", dir, err)
	}
}

// Close releases the directory. What was written stays.
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

// Removed reports whether the directory, or the lock in it, was removed or replaced after it was
// taken.
func (m *Store) Removed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lock != nil && !m.locked()
}

// locked reports whether the lock in the directory is the one that we hold.
func (m *Store) locked() bool {
	there, err := os.Lstat(filepath.Join(m.dir, lockFile))
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist) // of a disk that fails the writing tells
	}
	ours, err := m.lock.Stat()
	return err != nil || os.SameFile(there, ours)
}

// Put remembers a node and writes the file. If that fails, the file is removed, because an old one
// knows less than happened: without a file, the next guard counts from its start. A directory that
// was removed is created and taken again; remade reports that.
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
		// Without the id the next guard only has another name.
		m.noted = m.noted || noteID(m.dir, m.id) == nil
		remade, m.lost = m.lost, false
		return remade, nil
	}
	if e := os.Remove(filepath.Join(m.dir, memoryFile)); e != nil && !errors.Is(e, fs.ErrNotExist) {
		err = errors.Join(err, e)
	}
	return false, fmt.Errorf("the guard's memory cannot be written: %w", err)
}

// Expect forgets all other nodes, and notes these, also those that the guard has not met yet.
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

// Past returns the nodes as they were remembered.
func (m *Store) Past(delay time.Duration) *Past {
	m.mu.Lock()
	defer m.mu.Unlock()
	// The boot clock is read first: a delay in between makes a deadline later, never earlier.
	boot := boottime.Now()
	now := time.Now()
	id := boottime.ID()
	var nodes []Node
	for name, r := range m.nodes {
		nodes = append(nodes, Node{Name: name, Addr: r.Addr, Fence: r.Fence, State: r.State(now, boot, delay, id != "" && m.boot == id && m.saved <= boot)})
	}
	return NewPast(nodes)
}

// Read reads what a guard remembers, by the name of the node, without disturbing the guard. Without
// a file it fails with fs.ErrNotExist; if the file is damaged, with [ErrDamaged].
func Read(dir string) (map[string]restartguard.Fact, error) {
	doc, err := readDocument(dir)
	if err != nil {
		return nil, err
	}
	id, boot, now := boottime.ID(), boottime.Now(), time.Now()
	out := make(map[string]restartguard.Fact, len(doc.Nodes))
	for name, r := range doc.Nodes {
		if r.RunID == "" {
			continue // it was never met
		}
		s := r.State(now, boot, r.Delay, id != "" && doc.Boot == id && doc.Saved <= boot)
		known := restartguard.Fact{Addr: r.Addr, RunID: r.RunID, Known: r.Known, Verified: r.Verified, Incarnations: r.Incarnations, Served: r.Served, Cordoned: r.Cordoned, Cause: r.Cause}
		if !s.Basis.Deadline.IsZero() {
			known.Wait = max(0, s.Basis.Deadline.Sub(now))
		}
		out[name] = known
	}
	return out, nil
}
