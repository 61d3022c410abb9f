package audit

import (
	"bytes"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"redlockctl/server/safetext"
)

// Follower reads the lines that any process on this machine adds to a log, to know who
// force-released or revoked locks recently, and who acted on nodes. It is safe for concurrent use.
type Follower struct {
	path string

	mu      sync.Mutex
	file    *os.File // nil: missing at the last check
	offset  int64
	rest    []byte // the beginning of an incomplete line
	looked  time.Time
	records []Record // intents to force-release or revoke, and to act on nodes, the latest last
	ended   []Record // those of them that ended since the last call of [Follower.Ended]
	whole   bool     // keep all lines for [Follower.Lines]
	lines   []Record
}

const (
	followed   = 256 // intents that are kept
	followMost = 1 << 20
	// reopenEvery is how often to check if the log was rotated.
	reopenEvery = time.Second
)

// Follow follows the log at path from its present end on.
func Follow(path string) *Follower {
	f := &Follower{path: path}
	f.reopen(io.SeekEnd)
	return f
}

// FollowAll follows a log as [Follow] does, and keeps all lines for [Follower.Lines].
func FollowAll(path string) *Follower {
	f := Follow(path)
	f.whole = true
	return f
}

// Lines returns the lines that were added since the last call. Call it often: a call reads at most
// 1 MiB.
func (f *Follower) Lines() []Record {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.read()
	lines := f.lines
	f.lines = nil
	return lines
}

func (f *Follower) reopen(whence int) {
	f.looked = time.Now()
	if f.file != nil && same(f.file, f.path) {
		return
	}
	if f.file != nil {
		_ = f.file.Close()
		f.file = nil
	}
	// Open regular files only: opening a pipe would block.
	if info, err := os.Stat(f.path); err != nil || !info.Mode().IsRegular() {
		return
	}
	if file, err := os.Open(f.path); err == nil {
		f.file, f.rest = file, nil
		f.offset, _ = file.Seek(0, whence)
	}
}

// Taken returns the intent to force-release or revoke the lock under target from the
// holder of token, unless it is known to have failed everywhere. The intent is on disk before
// anything is sent, so it is there when the lock disappears. Of one that failed and reached
// some nodes the phase is [Failed], and [Record.Obeyed] says which. Of several at a time it is the
// one that is done; before any is, the actor is said to be one of theirs, and the phase is [Undecided].
func (f *Follower) Taken(target, token string) (found Record, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.read()
	sha := TokenSHA(token)
	for i := len(f.records) - 1; i >= 0; i-- {
		r := &f.records[i]
		if !removes(r.Act) || r.Target != target && r.Target != safetext.Escape(target) || r.TokenSHA != sha && !strings.Contains(r.Detail, sha) || sha == "" {
			continue
		}
		switch {
		case !ok:
			found, ok = *r, true
		case found.Phase == Done || found.Time.Sub(r.Time) >= actsWithin:
			return found, true
		case r.Phase == Done:
			return *r, true
		case r.Phase == Intent && (found.Phase == Intent || found.Phase == Undecided):
			found.Phase = Undecided
			found.Actor = strings.TrimSuffix(r.Actor+": "+r.Reason, ": ") + ", or by " + found.Actor
		}
	}
	return found, ok
}

// nodeActs are the actions of operators that change whether a node has a vote. Those of guards have
// other names.
var nodeActs = []string{"node cordon", "node drain", "node uncordon", "node rejoin"}

// OnNode reports whether an operator changed, or tried to, whether a node has a vote.
func (r Record) OnNode() bool { return slices.Contains(nodeActs, r.Act) }

func removes(act string) bool { return act == "force-release" || act == "revoke" }

// actsWithin is how long after the intent of an action its effect on a node may be seen.
const actsWithin = 10 * time.Second

// ActedOn returns the intent of the latest action of an operator on a node, if that was a moment
// ago and is not known to have failed.
func (f *Follower) ActedOn(cluster, node string) (Record, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.read()
	for i := len(f.records) - 1; i >= 0; i-- {
		if r := &f.records[i]; !removes(r.Act) && r.Cluster == cluster && r.Target == node {
			return *r, time.Since(r.Time) < actsWithin
		}
	}
	return Record{}, false
}

// Ended returns the force-releases and revokes that were done or failed since the last call, at
// most the latest few: the intent, with the phase and the detail of its outcome. One that failed and
// changed nothing has the time of its outcome: what it found happened before.
func (f *Follower) Ended() []Record {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.read()
	ended := f.ended
	f.ended = nil
	return ended
}

// Close closes the log; no more lines are read.
func (f *Follower) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file != nil {
		_ = f.file.Close()
	}
	f.file, f.path = nil, ""
}

func (f *Follower) read() {
	if f.file == nil || time.Since(f.looked) >= reopenEvery {
		f.reopen(io.SeekStart)
	}
	if f.file == nil {
		return
	}
	info, err := f.file.Stat()
	if err != nil || info.Size() <= f.offset {
		return
	}
	more := make([]byte, min(info.Size()-f.offset, followMost))
	n, _ := f.file.ReadAt(more, f.offset)
	f.offset += int64(n)
	lines := bytes.Split(append(f.rest, more[:n]...), []byte("\n"))
	f.rest = bytes.Clone(lines[len(lines)-1])
	if len(f.rest) > followMost {
		f.rest = nil
	}
	for _, line := range lines[:len(lines)-1] {
		l, _, err := parse(line)
		if err == nil && f.whole {
			f.lines = append(f.lines, l.Record)
		}
		if err == nil && (removes(l.Act) || l.OnNode()) {
			f.add(l.Record)
		}
	}
}

// add records a line. An intent counts until the action is known to have failed. A
// second intent of the same action says whose copies were found.
func (f *Follower) add(r Record) {
	for i := range f.records {
		if old := &f.records[i]; old.ID == r.ID {
			if r.Phase == Intent {
				old.Detail += " " + r.Detail
				return
			}
			if removes(r.Act) {
				ended := *old
				if ended.Phase, ended.Detail = r.Phase, r.Detail; r.Phase == Failed && len(r.Obeyed()) == 0 {
					ended.Time = r.Time
				}
				f.ended = append(f.ended[max(0, len(f.ended)+1-followed):], ended)
			}
			switch {
			case r.Phase == Done:
				old.Phase = Done
			case r.Phase == Failed && removes(r.Act) && len(r.Obeyed()) > 0:
				old.Phase = Failed
				old.Detail += "; " + r.Detail
			case r.Phase == Failed:
				f.records = append(f.records[:i], f.records[i+1:]...)
			}
			return
		}
	}
	if r.Phase == Intent {
		if f.records = append(f.records, r); len(f.records) > followed {
			f.records = append(f.records[:0:0], f.records[len(f.records)-followed:]...)
		}
	}
}
