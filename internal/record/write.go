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
	"unicode"
	"unicode/utf8"

	"redlockctl/monitor"
	"redlockctl/restartguard"
	"redlockctl/server/announce"
	"redlockctl/server/safetext"
)

// takeInAfter is how long after the first view all locks are recorded. That takes longer
// than reading them, and a person waits for the first view.
const takeInAfter = 2 * time.Second

func newWriter(db *sql.DB, about monitor.Cluster, opt Options, now time.Time) (*writer, error) {
	w := &writer{db: db, path: opt.Path, most: takeInMost, fences: opt.Fences, began: now, states: map[string]nodeState{}, findings: map[string]openFinding{}, grants: newGrants(), extensions: extensions{seen: map[string][]extension{}}, looks: looks{open: map[string]*look{}, seen: map[string]sighting{}}}
	err := db.QueryRow(`INSERT INTO clusters (name, n, quorum, max_ttl_ms) VALUES (?, ?, ?, ?)
		ON CONFLICT (name) DO UPDATE SET n = excluded.n, quorum = excluded.quorum, max_ttl_ms = excluded.max_ttl_ms RETURNING id`,
		about.Name, about.N, about.Quorum, about.MaxTTL.Milliseconds()).Scan(&w.cluster)
	if err != nil {
		return nil, err
	}
	// What was open when the last recorder ended has ended or continues; nobody watched
	// in between.
	var last sql.NullInt64
	if err := db.QueryRow(`SELECT max(seen_ms) FROM runs WHERE cluster = ?`, w.cluster).Scan(&last); err != nil {
		return nil, err
	}
	if last.Valid {
		w.seen, w.before = time.UnixMilli(last.Int64), last.Int64
		w.grants.seen = w.seen
		_, err = db.Exec(`INSERT INTO events (cluster, at_ms, level, kind, text) VALUES (?1, ?2, 'notice', 'recorder', ?3);
			UPDATE findings SET seen_ms = ?5 WHERE cluster = ?1 AND cleared_ms IS NULL AND seen_ms IS NULL;
			UPDATE grants SET before = extensions WHERE `+fmt.Sprintf("%s = %d", lengthClass, len(lengths)+1)+` AND extensions > before;
			UPDATE lock_states SET ended_ms = max(?4, began_ms) WHERE ended_ms IS NULL AND lock IN (SELECT id FROM locks WHERE cluster = ?1)`,
			w.cluster, millis(now), "recording goes on; nothing was recorded since "+w.seen.UTC().Format(time.RFC3339), last.Int64+1, last.Int64)
	}
	if err != nil {
		return nil, err
	}
	if err := w.takeOver(); err != nil {
		return nil, err
	}
	err = db.QueryRow(`INSERT INTO runs (cluster, by, began_ms, seen_ms) VALUES (?, ?, ?, ?) RETURNING id`, w.cluster, opt.By, millis(now), millis(now)).Scan(&w.run)
	if err != nil {
		return nil, err
	}
	return w, nil
}

// write records what the source has seen since the last time, and a part of all locks;
// none of those if ctx has ended.
func (w *writer) write(ctx context.Context, from Source, now time.Time) error {
	// Read the events first: the snapshot then includes what they report.
	events, missed := from.EventsSince(w.seq)
	s := from.Snapshot()
	begins := !w.follows && !w.taking.on && !s.Settled.IsZero() && s.At.Sub(s.Settled) >= takeInAfter
	if begins {
		if err := w.grants.resume(w.db, w.cluster); err != nil {
			return err
		}
	}
	b, err := w.begin(ctx, now)
	if err != nil {
		return err
	}
	if (w.follows || w.taking.on) && missed > 0 && w.seq > 0 {
		b.event(monitor.Event{At: now, Level: monitor.LevelNotice, Kind: "recorder", Text: safetext.New(fmt.Sprintf("%d events were missed: more happened than could be kept until they were written", missed))})
		b.loseSight()
		b.takeIn(s)
		b.caughtUp = true
	}
	w.pause = s.Pause
	w.collect(from, s)
	if !w.wrote && w.before > 0 {
		b.recount(s, events)
	}
	for _, e := range events {
		w.seq = e.Seq
		if w.wrote || e.At.UnixMilli() > w.before { // the recorder before this one has those up to then
			b.event(e)
		}
	}
	b.takeAllExtensions()
	if begins {
		b.takeIn(s)
	}
	var fences []restartguard.NodeStatus
	if w.fences != nil {
		fences = w.fences()
	}
	b.nodes(s, fences)
	b.open(s)
	if w.follows || w.taking.on {
		b.lookAtLocks(from, s)
	}
	if w.taking.on {
		b.goOn(s)
	}
	if w.follows {
		b.endDue(s)
	}
	b.writeGrants()
	b.writeMinutes()
	seen := b.cover(seenBy(s, now))
	if err := b.commit(); err != nil {
		return err
	}
	w.seen, w.wrote = seen, true
	if w.follows {
		w.grants.seen = seen
	}
	clear(w.looks.seen)
	clear(w.extensions.seen)
	w.extensions.count = 0
	return nil
}

// cover records up to when something was seen. A pause of the source is a gap between two runs: the
// run ends when the pause begins, and the next one begins with its end. It returns up to when all is
// recorded.
func (b *batch) cover(seen time.Time) time.Time {
	last := b.began
	if seen.Before(last) {
		seen = last
	}
	if b.wrote && b.seen.After(last) {
		last = b.seen
	}
	p := b.pause
	if news := !p.Since.IsZero() && (p.Until.IsZero() || p.Until.After(last)); !news && !b.paused {
		b.exec(`UPDATE runs SET seen_ms = ? WHERE id = ?`, millis(seen), b.run)
		return seen
	}
	if !b.paused {
		if b.paused = true; p.Since.After(last) {
			last = p.Since
		}
		b.exec(`UPDATE runs SET seen_ms = ? WHERE id = ?`, millis(last), b.run)
	}
	if p.Until.IsZero() {
		return last
	}
	b.paused = false
	b.scan(`INSERT INTO runs (cluster, by, began_ms, seen_ms, locks_ms) SELECT cluster, by, ?, ?, locks_ms FROM runs WHERE id = ? RETURNING id`, []any{millis(p.Until), millis(seen), b.run}, &b.run)
	return seen
}

// loseSight ends the time for which locks are recorded, until all of them are taken in again.
func (b *batch) loseSight() {
	if b.follows && !b.unsighted {
		b.unsighted = true
		b.scan(`INSERT INTO runs (cluster, by, began_ms, seen_ms) SELECT cluster, by, seen_ms, seen_ms FROM runs WHERE id = ? RETURNING id`, []any{b.run}, &b.run)
	}
}

// seenBy returns until when a snapshot shows what happened: later events may not have
// been told yet.
func seenBy(s *monitor.Snapshot, now time.Time) time.Time {
	if s.At.IsZero() || s.At.After(now) {
		return now
	}
	return s.At
}

// event writes an event that is worth keeping on its own, and follows the locks' grants
// by all events.
func (b *batch) event(e monitor.Event) {
	if !e.Key.Empty() && !b.caughtUp {
		b.follow(e)
	}
	if e.Level == monitor.LevelInfo && !e.Key.Empty() {
		return // an event of a grant
	}
	if b.knows(e) {
		return
	}
	if e.Kind == "orphaned" {
		b.minutes.of(e.Key.Raw()).orphaned++
	}
	text := e.Text.Raw()
	if token := e.Token.Raw(); token != "" { // only for the holder
		sha := shortSHA(token)
		text = withoutToken(text, token, TokenName(hex.EncodeToString(sha[:])))
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
	at, own := after(e.At, b.seen), any(nil)
	if !e.At.IsZero() && at.Sub(e.At) > writeEvery { // it was told late, as what only the audit log has
		own = millis(e.At)
	}
	b.exec(`INSERT INTO events (cluster, at_ms, level, kind, node, lock, text, own_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		b.cluster, millis(at), level, e.Kind, node, lock, text, own)
}

// withoutToken returns a text with a token's hash in its place, where it stands alone. What
// is shorter than leastToken is no secret, and may be any number or word of the text.
func withoutToken(text, token, hash string) string {
	const leastToken = 8
	if len(token) < leastToken {
		return text
	}
	word := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, token)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		last, _ := utf8.DecodeLastRuneInString(before)
		next, _ := utf8.DecodeRuneInString(after)
		if word(last) || word(next) {
			b.WriteString(token)
		} else {
			b.WriteString(hash)
		}
		text = after
	}
}

// noGuard is written in place of announcements where a node was seen to have none.
const noGuard = "-"

// notBeforeJitter is how far the estimate of a node's clock may move the time before which it does
// not rejoin, before that is written again.
const notBeforeJitter = 200 * time.Millisecond

// What protects a node against restarts, besides what guards announce there.
const (
	startsFenced = 1 << iota
	startedUnfenced
	rememberedFenced
	rememberedUnfenced
	durable
	scriptsPass
)

func protectionOf(n *monitor.Node) (bits int64) {
	for bit, is := range map[int64]bool{
		startsFenced: n.StartsFenced, startedUnfenced: n.StartedUnfenced, durable: n.Persistent, scriptsPass: n.ScriptsPass,
		rememberedFenced: n.Remembered == announce.BootFenced, rememberedUnfenced: n.Remembered == announce.BootUnfenced,
	} {
		if is {
			bits |= bit
		}
	}
	return bits
}

// recallProtection sets what [protectionOf] has.
func recallProtection(n *monitor.Node, bits int64) {
	n.StartsFenced, n.StartedUnfenced = bits&startsFenced != 0, bits&startedUnfenced != 0
	n.Persistent, n.ScriptsPass = bits&durable != 0, bits&scriptsPass != 0
	switch {
	case bits&rememberedUnfenced != 0:
		n.Remembered = announce.BootUnfenced
	case bits&rememberedFenced != 0:
		n.Remembered = announce.BootFenced
	}
}

// nodes writes changed states; of the cluster, its verdict.
func (b *batch) nodes(s *monitor.Snapshot, fences []restartguard.NodeStatus) {
	var changed time.Time // the last node
	state := func(node, state, text, guards string, rejoins, notBefore time.Time, protection int64, since time.Time) {
		was := b.states[node]
		if was.notBefore.Sub(notBefore).Abs() < notBeforeJitter {
			notBefore = was.notBefore
		}
		said := strings.Join([]string{state, text, guards, strconv.FormatInt(millis(rejoins)/100, 10), strconv.FormatInt(millis(notBefore), 10), strconv.FormatInt(protection, 10)}, "\x00")
		if was.said == said || was.said == "" && state == "unknown" {
			return // as before, or not read yet
		}
		at := b.now
		if was.said != "" && (was.state != state || node == "") && since.After(b.seen) && since.After(was.at) && since.Before(at) { // it was seen before it is written
			at, changed = since, slices.MaxFunc([]time.Time{changed, since}, time.Time.Compare)
		}
		b.states[node] = nodeState{state, said, at, notBefore}
		b.exec(`INSERT OR REPLACE INTO states (cluster, node, at_ms, state, text, guards, rejoins_ms, not_before_ms, protection) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			b.cluster, node, millis(at), state, text, guards, null(rejoins), null(notBefore), protection)
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		var guards []string
		for _, g := range n.Guards {
			guards = append(guards, g.Channel())
		}
		if n.GuardsKnown && len(guards) == 0 {
			guards = []string{noGuard}
		}
		var rejoins time.Time
		for _, f := range fences {
			if f.Node == n.Name && f.Phase == restartguard.PhaseFenced {
				rejoins = f.Until
			}
		}
		state(n.Name, n.State.String(), n.Err.Raw(), strings.Join(guards, "\n"), rejoins, n.RejoinsAfter, protectionOf(n), n.Since)
	}
	state("", s.Cluster.Verdict.String(), s.Cluster.Reason, s.Cluster.Missing, time.Time{}, time.Time{}, 0, changed)
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

// stirred reports whether nodes changed, or locks changed to or from states that no grant
// shows, since the last write.
func (w *writer) stirred(s *monitor.Snapshot) bool {
	for i := range s.Nodes {
		if n := &s.Nodes[i]; w.states[n.Name].said != "" && w.states[n.Name].state != n.State.String() {
			return true
		}
	}
	if w.earlyChanged(s) || s.Pause != w.pause {
		return true
	}
	was, now := w.looks.counts, s.Counts
	for _, st := range []monitor.LockState{monitor.LockHeld, monitor.LockExpiring, monitor.LockBareMajority, monitor.LockPartial, monitor.LockNotALock} {
		was[st], now[st] = 0, 0
	}
	return w.follows && was != now
}

func (b *batch) lookAtLocks(from Source, s *monitor.Snapshot) {
	keys, known := from.ChangedSince(b.looks.version)
	b.looks.version, b.looks.counts = s.Version, s.Counts
	switch {
	case known:
		for _, key := range keys {
			b.look(key, s.Locks.Get(key))
		}
	case b.taking.on:
		b.taking.again = true
	default:
		b.lookAtAll(s)
	}
}
