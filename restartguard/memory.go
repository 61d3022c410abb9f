package restartguard

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

	"redlockctl/base/private"
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
	// memoryMostly is how often what only tells more precisely is written at least;
	// see MemoryEvery.
	memoryMostly = 30 * time.Second
	// A directory counts as in use when its lock was not to be had so often, with
	// this pause between.
	lockTries = 10
	lockAgain = 20 * time.Millisecond
)

// MemoryEvery is how often the readings of clocks are written, of a guard with a
// delay: a step of a node's clock behind the back of a guard that has crashed is told
// by the reading from before it, the better the younger that is.
func MemoryEvery(delay time.Duration) time.Duration { return min(memoryMostly, delay/4) }

// Memory is what a guard knows of its nodes, on disk, so that it survives the
// guard's own end. One guard at a time has it. Nothing in it makes a node
// open sooner than a guard without memory would, counted from the moment at which
// the loss was first seen: a moment is kept on the clock of the machine's boot
// ([BootTime]), and is worth nothing in another boot.
type Memory struct {
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
	nodes map[string]record
	used  bool // the cluster was in use, with these nodes or earlier ones

	delays []KnownDelay // as they are on disk
}

// document is the file.
type document struct {
	Boot  string            `json:"boot_id"`
	Saved time.Duration     `json:"saved_ns"` // in Boot
	Used  bool              `json:"used,omitempty"`
	Nodes map[string]record `json:"nodes"`
}

// record is one node. Moments are nanoseconds of BootTime; 0 is none.
type record struct {
	Addr  string `json:"addr"`
	Fence string `json:"fence"`
	Incarnation
	Cordoned bool  `json:"hold,omitempty"`
	Owed     int64 `json:"owed,omitempty"` // the fence that is not up yet
	Fencing
	Starts
	ClockBase
	Deadline       time.Duration `json:"deadline_ns,omitempty"`
	MayVote        time.Duration `json:"may_vote_ns,omitempty"`
	OpenSince      time.Duration `json:"open_since_ns,omitempty"`
	LastSeen       time.Duration `json:"last_seen_ns,omitempty"`
	PendingSent    bool          `json:"astray,omitempty"` // an order that was sent has no answer
	PendingRemoval bool          `json:"astray_lift,omitempty"`
	PendingConn    int64         `json:"astray_conn,omitempty"`
	PendingUntil   time.Duration `json:"astray_until_ns,omitempty"`
	Counter        int64         `json:"counter,omitempty"`
	CounterUntil   time.Duration `json:"counter_until_ns,omitempty"`
}

// OpenMemory takes a state directory for one guard: it is made with mode 0700 if
// it is not there, and locked until Close. It fails with [ErrInUse] if another
// process has it, and where another user may write to it, since whoever can do that
// can have a node rejoin too early. A file that is damaged, or that others may write,
// is no error: it is as good as none, see [Memory.Damaged]. Neither is a disk that is
// full: see [Memory.Full].
func OpenMemory(dir string) (*Memory, error) {
	m := &Memory{dir: dir, nodes: map[string]record{}}
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
			m.used = m.used || r.used()
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
func (m *Memory) claim() error {
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
func (m *Memory) Full() error { return m.full }

// Damaged tells what is wrong with the file that was found, nil if nothing is.
// The guard then begins as one without memory.
func (m *Memory) Damaged() error { return m.damaged }

// ID tells the guards of this state directory, one after the other, from all
// others. It is no part of what can be damaged or forgotten with the nodes.
func (m *Memory) ID() string { return m.id }

// guardID reads the id of a directory, and makes one where there is none; noted
// reports whether it is there for the next guard.
func guardID(dir string) (id string, noted bool, err error) {
	path := filepath.Join(dir, idFile)
	raw, err := readOwn(path)
	if id := strings.TrimSpace(string(raw)); err == nil && isWord(id) {
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
func (m *Memory) Close() error {
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
func (m *Memory) removed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lock != nil && !m.locked()
}

// locked reports whether the lock that stands in the directory is the one that we have.
func (m *Memory) locked() bool {
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
func (m *Memory) put(name string, r record, boot time.Duration) (remade bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.nodes[name] = r
	m.used = m.used || r.used()
	if m.lock != nil && !m.locked() {
		_ = m.lock.Close()
		m.lock, m.noted, m.lost = nil, false, true
	}
	if m.lock == nil {
		if err := m.claim(); err != nil { // what is there is not ours
			return false, fmt.Errorf("the guard's memory cannot be written: %w", err)
		}
	}
	if err = m.write(document{Boot: BootID(), Saved: boot, Used: m.used, Nodes: m.nodes}); err == nil {
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
func (m *Memory) expect(members []*member) {
	now, boot := time.Now(), BootTime()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.nodes = make(map[string]record, len(members))
	for _, w := range members {
		m.nodes[w.node.Name()] = w.state.record(w.node.Addr(), w.method.id(), now, boot)
	}
}

// write replaces the file.
func (m *Memory) write(doc document) error {
	body, err := json.MarshalIndent(doc, "", " ")
	if err != nil {
		return err
	}
	return private.Replace(filepath.Join(m.dir, memoryFile), append([]byte(memoryHead+sumOf(body)+"\n"), body...))
}

// past are the nodes as they were remembered.
func (m *Memory) past(delay time.Duration) *past {
	m.mu.Lock()
	defer m.mu.Unlock()
	// The moment on the boot clock first: what comes in between makes a deadline
	// later, never sooner.
	boot := BootTime()
	now := time.Now()
	id := BootID()
	var nodes []pastNode
	for name, r := range m.nodes {
		nodes = append(nodes, pastNode{name, r.Addr, r.Fence, r.state(now, boot, delay, id != "" && m.boot == id && m.saved <= boot)})
	}
	return newPast(nodes)
}

// moved is the state of a node whose method was changed: what the former one
// put up says nothing of the new one, which has to close what is waiting.
func (s State) moved() State {
	s.Holds = false
	s.Proven, s.Leaked, s.Known, s.Verified, s.Revert = false, false, false, false, FenceNone
	return s
}

// durable is what of a state is written as soon as it changes; the rest only
// makes it more precise.
func (s State) durable() State {
	d := State{Incarnation: s.Incarnation, Duty: s.Duty, Fencing: s.Fencing, Starts: s.Starts}
	d.Pending, d.Commands = s.Pending, 0
	return d
}

// record is the state as it is written; now and boot are the same moment, or
// boot a little later.
func (s State) record(addr, fence string, now time.Time, boot time.Duration) record {
	at := func(t time.Time) time.Duration {
		if t.IsZero() {
			return 0
		}
		return max(1, boot+t.Sub(now))
	}
	return record{
		Addr: addr, Fence: fence, Incarnation: s.Incarnation, Fencing: s.Fencing, Starts: s.Starts, ClockBase: s.ClockBase,
		Cordoned: s.Duty.Kind == DutyCordon, Owed: s.owed(), Deadline: at(s.Deadline), MayVote: at(s.From), OpenSince: at(s.UnfencedSince), LastSeen: at(s.LastSeen),
		Counter: s.Counter, CounterUntil: at(s.CounterUntil),
		PendingSent: s.Pending.Sent, PendingRemoval: s.Pending.Removal, PendingConn: s.Pending.Conn, PendingUntil: at(s.Pending.Until),
	}
}

// awayRate is by how much a node's clock may run ahead of ours while no guard looks,
// beyond what D allows: the most that operating systems correct a clock by is 0.05 %,
// of both clocks. With less, a guard that was away for an hour would take it for a
// step of all clocks, and close all nodes.
const awayRate = 0.001

// state is what a record means at a moment. Where its clock is that of another
// boot, a node that waits waits D from now. A reading of a node's clock goes on
// being what the next is compared with, and the first that shows a step is believed,
// without a second one: what happened while no guard looked is a loss in case of
// doubt.
func (r record) state(now time.Time, boot, delay time.Duration, sameBoot bool) State {
	at := func(d time.Duration) time.Time {
		if d == 0 || !sameBoot {
			return time.Time{}
		}
		return now.Add(d - boot)
	}
	s := State{Incarnation: r.Incarnation, Fencing: r.Fencing, Starts: r.Starts}
	waits := r.Deadline != 0 || r.Owed != FenceNone
	switch {
	case r.Cordoned || r.Owed == FenceCordon:
		s.Duty = Duty{Kind: DutyCordon, Deadline: at(r.Deadline), Holds: r.Owed == FenceNone}
		waits = r.Deadline != 0
	case waits:
		s.Duty = Duty{Kind: DutyWait, Deadline: at(r.Deadline), Holds: r.Owed == FenceNone}
	}
	s.UnfencedSince, s.LastSeen = at(r.OpenSince), at(r.LastSeen)
	s.From, s.Recalled = at(r.MayVote), now
	s.Counter, s.CounterUntil = r.Counter, at(r.CounterUntil)
	s.Pending = InFlightCommand{Sent: r.PendingSent, Removal: r.PendingRemoval, Conn: r.PendingConn, Until: at(r.PendingUntil)}
	s.Since, s.Out = now, now
	if sameBoot && r.Clock.Wall != 0 {
		s.ClockBase, s.Ahead = r.ClockBase, 1
		s.ClockDrift += time.Duration(awayRate * float64(max(0, boot-r.ClockAt-delay)))
	}
	longest := max(delay, r.Delay)
	if waits && (s.Deadline.IsZero() || s.Deadline.Sub(now) > longest) {
		s.Deadline, s.Delay = now.Add(longest), longest
	}
	return s
}

// Remembered is what a guard that starts now finds in its memory of a state, in the
// same boot of its machine, whose clock shows boot.
func (s State) Remembered(now time.Time, boot, delay time.Duration) State {
	return s.record("", "", now, boot).state(now, boot, delay, true)
}

// Remembered is what the memory of a guard says of a node.
type Remembered struct {
	Addr         string
	RunID        string        // of the life that was seen last
	Known        bool          // Verified means something
	Verified     bool          // that life started fenced
	Incarnations int           // how many lives were seen
	Served       bool          // it was open once
	Cordoned     bool          // an operator holds it
	Wait         time.Duration // how long it still waits, from now; 0 if it need not
	Cause        string        // why it waits, or waited last, in a few words
}

// ReadMemory reads what a guard remembers, without disturbing it: by the name
// of the node. A directory without a memory is fs.ErrNotExist; a file that is
// damaged is [ErrDamaged].
func ReadMemory(dir string) (map[string]Remembered, error) {
	doc, err := readDocument(dir)
	if err != nil {
		return nil, err
	}
	id, boot, now := BootID(), BootTime(), time.Now()
	out := make(map[string]Remembered, len(doc.Nodes))
	for name, r := range doc.Nodes {
		if r.RunID == "" {
			continue // it was never met
		}
		s := r.state(now, boot, r.Delay, id != "" && doc.Boot == id && doc.Saved <= boot)
		known := Remembered{Addr: r.Addr, RunID: r.RunID, Known: r.Known, Verified: r.Verified, Incarnations: r.Incarnations, Served: r.Served, Cordoned: r.Cordoned, Cause: r.Cause}
		if !s.Deadline.IsZero() {
			known.Wait = max(0, s.Deadline.Sub(now))
		}
		out[name] = known
	}
	return out, nil
}
