package record

import (
	"database/sql"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"redlockctl/internal/safetext"
	"redlockctl/monitor"
	"redlockctl/restartguard"
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
		b.follow(e)
	}
	if e.Level == monitor.LevelInfo && !e.Key.Empty() {
		return // a grant's life
	}
	if e.Kind == "orphaned" {
		b.minutes.orphaned(e.Key.Raw())
	}
	text := e.Text.Raw()
	if token := e.Token.Raw(); token != "" { // which is for its holder alone
		sha := shortSHA(token)
		text = strings.ReplaceAll(text, token, TokenName(hex.EncodeToString(sha[:])))
	}
	var node, lock any
	if e.Node != "" {
		node = e.Node
	}
	if !e.Key.Empty() {
		lock = b.lock(e.Key.Raw())
	}
	level := e.Level.String()
	if e.Part {
		level = partLevel
	}
	b.exec(`INSERT INTO events (cluster, at_ms, level, kind, node, lock, text) VALUES (?, ?, ?, ?, ?, ?, ?)`,
		b.cluster, millis(e.At), level, e.Kind, node, lock, text)
}

// partLevel is the level of events that another one tells too.
const partLevel = "part"

func gapText(missed uint64) safetext.Text {
	return safetext.New(fmt.Sprintf("%d events were missed: more happened than could be kept until they were written", missed))
}

// nodes writes states that have changed: of the cluster, its verdict.
func (b *batch) nodes(s *monitor.Snapshot, fences []restartguard.NodeStatus) {
	state := func(node, state, text, guards string, rejoins time.Time) {
		said := strings.Join([]string{state, text, guards, strconv.FormatInt(millis(rejoins)/100, 10)}, "\x00")
		if b.states[node] == said || b.states[node] == "" && state == "unknown" {
			return // as before, or not looked at yet
		}
		b.states[node] = said
		b.exec(`INSERT OR REPLACE INTO states VALUES (?, ?, ?, ?, ?, ?, ?)`, b.cluster, node, millis(b.now), state, text, guards, null(rejoins))
	}
	state("", s.Cluster.Verdict.String(), s.Cluster.Reason, s.Cluster.Missing, time.Time{})
	for i := range s.Nodes {
		n := &s.Nodes[i]
		var guards []string
		for _, g := range n.Guards {
			guards = append(guards, g.Channel())
		}
		var rejoins time.Time
		for _, f := range fences {
			if f.Node == n.Name && f.Phase == restartguard.PhaseFenced {
				rejoins = f.Until
			}
		}
		state(n.Name, n.State.String(), n.Err.Raw(), strings.Join(guards, "\n"), rejoins)
	}
	names := make([]string, len(s.Nodes))
	for i := range s.Nodes {
		names[i] = s.Nodes[i].Name + "\x00" + s.Nodes[i].Addr
	}
	if slices.Equal(names, b.names) {
		return
	}
	b.names = names
	b.exec(`DELETE FROM nodes WHERE cluster = ?`, b.cluster)
	for i := range s.Nodes {
		b.exec(`INSERT INTO nodes VALUES (?, ?, ?, ?)`, b.cluster, i, s.Nodes[i].Name, s.Nodes[i].Addr)
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
		b.err = b.tx.QueryRow(`INSERT INTO findings (cluster, finding, node, severity, title, evidence, consequence, remedy, lock, locks, opened_ms)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
			b.cluster, f.ID, f.Node, f.Severity.String(), f.Title, f.Evidence.Raw(), f.Consequence, f.Remedy, f.Key.Raw(), f.Count, millis(b.now)).Scan(&id)
		b.findings[key] = id
	}
	for key, id := range b.findings {
		if !there[key] {
			b.exec(`UPDATE findings SET cleared_ms = ? WHERE id = ?`, millis(b.now), id)
			delete(b.findings, key)
		}
	}
}
