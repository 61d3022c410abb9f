package record

import (
	"context"
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
	ctx context.Context
	tx  *sql.Tx
	now time.Time
	// caughtUp: all locks have just been taken in, with what the events of this batch say
	// of them.
	caughtUp   bool
	statements map[string]*sql.Stmt // of this transaction, by their text
	err        error
}

// prepared is a statement of this transaction; nil after an error.
func (b *batch) prepared(query string) *sql.Stmt {
	s := b.statements[query]
	if s == nil && b.err == nil {
		if s, b.err = b.tx.Prepare(query); b.err == nil {
			b.statements[query] = s
		}
	}
	if b.err != nil {
		return nil
	}
	return s
}

func (b *batch) exec(query string, args ...any) (done sql.Result) {
	if s := b.prepared(query); s != nil {
		done, b.err = s.Exec(args...)
	}
	return done
}

func (b *batch) scan(query string, args []any, dest ...any) {
	if s := b.prepared(query); s != nil {
		b.err = s.QueryRow(args...).Scan(dest...)
	}
}

// id is the row of something that is named once, made where it is missing.
func (b *batch) id(known map[string]int64, key, query string, args ...any) (id int64) {
	if id, ok := known[key]; ok || b.err != nil {
		return id
	}
	if b.scan(query, args, &id); b.err == nil {
		if len(known) >= mostKnown {
			clear(known)
		}
		known[key] = id
	}
	return id
}

// mostKnown bounds the rows whose numbers are remembered.
const mostKnown = 1 << 16

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
		b.scan(`INSERT INTO findings (cluster, finding, node, severity, title, evidence, consequence, remedy, lock, locks, opened_ms)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
			[]any{b.cluster, f.ID, f.Node, f.Severity.String(), f.Title, f.Evidence.Raw(), f.Consequence, f.Remedy, f.Key.Raw(), f.Count, millis(b.now)}, &id)
		b.findings[key] = id
	}
	for key, id := range b.findings {
		if !there[key] {
			b.exec(`UPDATE findings SET cleared_ms = ? WHERE id = ?`, millis(b.now), id)
			delete(b.findings, key)
		}
	}
}
