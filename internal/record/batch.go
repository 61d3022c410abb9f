package record

import (
	"database/sql"
	"fmt"
	"time"

	"redlockctl/internal/safetext"
	"redlockctl/monitor"
)

// batch is one transaction of a writer. After the first error it does nothing more.
type batch struct {
	*writer
	tx  *sql.Tx
	now time.Time
	// caughtUp: all locks have just been taken in, with what the events of this batch say
	// of them.
	caughtUp bool
	err      error
}

func (b *batch) exec(query string, args ...any) {
	if b.err == nil {
		_, b.err = b.tx.Exec(query, args...)
	}
}

// id is the row of something that is named once, made where it is missing.
func (b *batch) id(known map[string]int64, key, query string, args ...any) (id int64) {
	if id, ok := known[key]; ok || b.err != nil {
		return id
	}
	if b.err = b.tx.QueryRow(query, args...).Scan(&id); b.err == nil {
		if len(known) >= mostKnown {
			clear(known)
		}
		known[key] = id
	}
	return id
}

// mostKnown bounds the rows whose numbers are remembered.
const mostKnown = 1 << 16

// lock is the row of a lock.
func (b *batch) lock(name string) int64 {
	return b.id(b.grants.locks, name, `INSERT INTO locks (cluster, name) VALUES (?, ?)
		ON CONFLICT (cluster, name) DO UPDATE SET name = name RETURNING id`, b.cluster, name)
}

// event writes an event that is worth keeping by itself, and follows the grants of locks by
// all of them.
func (b *batch) event(e monitor.Event) {
	if !e.Key.Empty() && !b.caughtUp {
		b.grants.follow(e, b.now)
	}
	if e.Level == monitor.LevelInfo && !e.Key.Empty() {
		return // a grant's life
	}
	if e.Kind == "orphan" {
		b.minutes.orphaned(e.Key.Raw())
	}
	var node, lock any
	if e.Node != "" {
		node = e.Node
	}
	if !e.Key.Empty() {
		lock = b.lock(e.Key.Raw())
	}
	b.exec(`INSERT INTO events (cluster, at_ms, level, kind, node, lock, text) VALUES (?, ?, ?, ?, ?, ?, ?)`,
		b.cluster, millis(e.At), e.Level.String(), e.Kind, node, lock, e.Text.Raw())
}

func gapText(missed uint64) safetext.Text {
	return safetext.New(fmt.Sprintf("%d events were missed: more happened than could be kept until they were written", missed))
}

// nodes writes states that have changed: of the cluster, its verdict.
func (b *batch) nodes(s *monitor.Snapshot) {
	state := func(node, state, text string) {
		if b.states[node] == state+"\x00"+text || b.states[node] == "" && state == "unknown" {
			return // as before, or not looked at yet
		}
		b.states[node] = state + "\x00" + text
		b.exec(`INSERT OR REPLACE INTO states VALUES (?, ?, ?, ?, ?)`, b.cluster, node, millis(b.now), state, text)
	}
	state("", s.Cluster.Verdict.String(), s.Cluster.Reason)
	for i := range s.Nodes {
		n := &s.Nodes[i]
		state(n.Name, n.State.String(), n.Err.Raw())
	}
}

// open writes findings that are new, and ends those that are no more.
func (b *batch) open(found []monitor.Finding) {
	there := make(map[string]bool, len(found))
	for i := range found {
		f := &found[i]
		key := f.ID + "\x00" + f.Node
		there[key] = true
		if _, ok := b.findings[key]; ok || b.err != nil {
			continue
		}
		var id int64
		b.err = b.tx.QueryRow(`INSERT INTO findings (cluster, finding, node, severity, title, evidence, opened_ms) VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id`,
			b.cluster, f.ID, f.Node, f.Severity.String(), f.Title, f.Evidence.Raw(), millis(b.now)).Scan(&id)
		b.findings[key] = id
	}
	for key, id := range b.findings {
		if !there[key] {
			b.exec(`UPDATE findings SET cleared_ms = ? WHERE id = ?`, millis(b.now), id)
			delete(b.findings, key)
		}
	}
}
