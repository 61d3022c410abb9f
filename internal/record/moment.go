package record

import (
	"database/sql"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"redlockctl/monitor"
	"redlockctl/monitor/finding"
	"redlockctl/monitor/words"
	"redlockctl/restartguard"
	"redlockctl/server/announce"
	"redlockctl/server/lockform"
	"redlockctl/server/safetext"
)

// Moment is what was known at a time.
type Moment struct {
	// Snapshot is made from the record only. What the record does not have is unknown:
	// TTLs of copies, round trips, clocks, facts of servers. Tokens are the starts of
	// their SHA-256.
	Snapshot *monitor.Snapshot
	Fences   []restartguard.NodeStatus // what a guard reported of its fences
	By       string                    // who recorded it; "": nobody
}

// momentEvents limits the earlier events of a moment.
const momentEvents = 300

// At returns what was known at a time.
func (r *Reader) At(t time.Time) (m *Moment, err error) {
	err = r.atOnce(func() error { m, err = r.at(t); return err })
	return m, err
}

func (r *Reader) at(t time.Time) (*Moment, error) {
	c := r.Cluster
	s := &monitor.Snapshot{At: t, Cluster: monitor.Cluster{Name: c.Name, N: c.N, Quorum: c.Quorum, MaxTTL: c.MaxTTL}}
	m := &Moment{Snapshot: s}
	var began, seen, locks time.Time
	err := r.db.QueryRow(`SELECT by, began_ms, seen_ms, locks_ms FROM runs WHERE cluster = ? AND began_ms <= ? ORDER BY began_ms DESC, id DESC LIMIT 1`, r.cluster, millis(t)).Scan(&m.By, (*ms)(&began), (*ms)(&seen), (*ms)(&locks))
	if err != nil && err != sql.ErrNoRows {
		return nil, err
	}
	known := err == nil && !t.After(seen)
	if err := r.nodesAt(m, known); err != nil {
		return nil, err
	}
	if s.Events, err = r.eventsAt(t); err != nil {
		return nil, err
	}
	if !known {
		m.By = ""
		s.Cluster.Verdict, s.Cluster.Reason = monitor.VerdictUnknown, monitor.NothingRecorded
		s.Recall(monitor.NothingRecorded)
		return m, nil
	}
	first, err := r.beforePauses(m, began, locks)
	if err != nil {
		return nil, err
	}
	restarts, err := r.Restarts(Span{first, t.Add(time.Millisecond)})
	if err != nil {
		return nil, err
	}
	for _, e := range restarts {
		if n := s.Node(e.Node); n != nil {
			n.Restarts++
		}
	}
	if s.Findings, err = r.findingsAt(t); err != nil {
		return nil, err
	}
	unread := monitor.LocksUnrecorded
	if !locks.IsZero() && !locks.After(t) {
		s.Settled = locks
		unread, err = r.locksAt(s)
	}
	if s.Cluster.Verdict == monitor.VerdictUnknown && s.Cluster.Reason == "" {
		s.Cluster.Reason = "locks were not recorded: " + monitor.AdviceRecordLocks
	}
	s.Recall(unread)
	return m, err
}

// beforePauses returns when the recorder of a run began, which may have paused since; the moment gets
// the last pause. locks is since when the run sees locks: before it began, if it goes on after a pause.
func (r *Reader) beforePauses(m *Moment, began, locks time.Time) (first time.Time, err error) {
	if locks.IsZero() || !locks.Before(began) {
		return began, nil
	}
	m.Snapshot.Pause.Until = began
	err = r.db.QueryRow(`SELECT min(began_ms), max(seen_ms) FROM runs WHERE cluster = ?1 AND locks_ms = ?2 AND began_ms < ?3`, r.cluster, millis(locks), millis(began)).Scan((*ms)(&first), (*ms)(&m.Snapshot.Pause.Since))
	if first.IsZero() { // no longer kept
		first = began
	}
	return first, err
}

// nodesAt sets the nodes, the verdict and what guards reported. known: somebody recorded
// then.
func (r *Reader) nodesAt(m *Moment, known bool) error {
	s := m.Snapshot
	var err error
	s.Nodes, err = collect(r.db, func(row *sql.Rows, n *monitor.Node) error {
		n.Keys, n.MinReplicasToWrite = -1, -1
		return row.Scan(&n.Name, &n.Addr)
	}, `SELECT node, addr FROM nodes WHERE cluster = ? ORDER BY position`, r.cluster)
	if err != nil || !known {
		return err
	}
	states, err := r.StatesAt(s.At)
	for _, st := range states {
		if st.Node == "" {
			c := &s.Cluster
			c.Verdict, c.Reason, c.Missing = monitor.VerdictOf(st.State), st.Text, st.Guards
			c.Protected = c.Missing == "" && c.Verdict != monitor.VerdictUnknown
			continue
		}
		n := s.Node(st.Node)
		if n == nil {
			continue // no longer in the configuration
		}
		since, err := r.stateSince(st)
		if err != nil {
			return err
		}
		n.State, n.Since, n.Err, n.RejoinsAfter = monitor.NodeStateOf(st.State), since, safetext.New(st.Text), st.NotBefore
		recallProtection(n, st.protection)
		if st.Guards != "" {
			n.Guards, n.GuardsKnown = announce.DecodeAll(strings.Split(st.Guards, "\n")), true // [noGuard] is none
		}
		if !st.Rejoins.IsZero() {
			m.Fences = append(m.Fences, restartguard.NodeStatus{Node: st.Node, Phase: restartguard.PhaseFenced, Since: since, Until: st.Rejoins})
		}
	}
	return err
}

func (r *Reader) eventsAt(t time.Time) (out []monitor.Event, err error) {
	events, err := r.Events("", "", Span{time.Time{}, t.Add(time.Millisecond)}, momentEvents)
	for i, e := range events {
		level := monitor.LevelInfo
		for _, l := range []monitor.Level{monitor.LevelNotice, monitor.LevelAlarm} {
			if e.Level == l.String() {
				level = l
			}
		}
		out = append(out, monitor.Event{
			Seq: uint64(i + 1), At: e.At, Level: level, Kind: e.Kind, Node: e.Node, Key: safetext.New(e.Lock), Text: safetext.New(e.Text), Part: e.Part,
		})
	}
	return out, err
}

func (r *Reader) findingsAt(t time.Time) (out []monitor.Finding, err error) {
	all, err := r.Findings(Span{t, t.Add(time.Millisecond)})
	for _, f := range all {
		if f.Cleared.IsZero() || f.Cleared.After(t) {
			since := f.Since
			if since.IsZero() {
				since = f.Opened
			}
			evidence := f.Evidence
			if t.Sub(f.Opened) > time.Second {
				evidence = "found " + words.At(f.Opened, t) + ": " + evidence
			}
			out = append(out, monitor.Finding{
				ID: f.ID, Severity: monitor.SeverityOf(f.Severity), Node: f.Node, Key: safetext.New(f.Lock), Count: f.Locks, Since: since,
				Title: f.Title, Evidence: safetext.New(evidence), Consequence: f.Consequence, Remedy: f.Remedy,
			})
		}
	}
	finding.Sort(out)
	return out, err
}

// locksAt sets the locks: those that were held, and those in a state that no grant shows.
// unread says why some are missing.
func (r *Reader) locksAt(s *monitor.Snapshot) (unread string, err error) {
	held, err := r.heldAt(s.At, s.At)
	if err != nil {
		return "", err
	}
	locks := make(map[string]*monitor.Lock, len(held))
	for i := range held {
		g := &held[i]
		l := &monitor.Lock{Key: safetext.New(g.Lock), Held: -1, Holder: safetext.New(TokenName(g.Token))}
		if g.Owner+g.Library != "" {
			l.Form = &lockform.Form{Library: g.Library, Owner: safetext.New(g.Owner)}
		}
		recallCopies(s, l, g.Began, g.Copies, g.Token)
		if g.EndUnknown {
			g.Until = time.Time{}
		}
		*l = l.Timed(g.Began, g.Until)
		if l.Held >= 0 && l.Margin() <= 0 {
			l.State = monitor.LockBareMajority
		}
		if was := locks[g.Lock]; was != nil { // its client relied on it too
			l.Earlier = &monitor.Reliance{Token: was.Holder, Until: was.HeldUntil()}
		}
		locks[g.Lock] = l
	}
	if unread, err = r.lockStatesAt(s, locks); err != nil {
		return "", err
	}
	all := make([]monitor.Lock, 0, len(locks))
	for _, l := range locks {
		if end := l.MajorityEnd(); l.State == monitor.LockHeld && !end.IsZero() && end.Sub(s.At) <= time.Second {
			l.State = monitor.LockExpiring
		}
		all = append(all, *l)
	}
	s.Locks = monitor.NewLocks(all...)
	return unread, nil
}

// lockStatesAt adds the states of locks that their grants do not show. It omits states
// that this program does not know; unread says so.
func (r *Reader) lockStatesAt(s *monitor.Snapshot, locks map[string]*monitor.Lock) (unread string, err error) {
	type row struct {
		name, state, copies, token string
		began                      time.Time
	}
	for _, condition := range classes(`?1`) {
		rows, err := collect(r.db, func(from *sql.Rows, to *row) error {
			var tokens []byte
			err := from.Scan(&to.name, &to.state, &tokens, &to.copies, (*ms)(&to.began))
			to.token = hex.EncodeToString(tokens)
			return err
		}, `SELECT l.name, state, tokens, copies, began_ms FROM lock_states INDEXED BY lock_states_by_length CROSS JOIN locks l ON l.id = lock WHERE `+
			condition+` AND l.cluster = ?2`, millis(s.At), r.cluster)
		if err != nil {
			return "", err
		}
		for _, was := range rows {
			known, ok := monitor.LockStateOf(was.state)
			if !ok {
				delete(locks, was.name)
				unread = fmt.Sprintf("locks are missing here: the record has a state %q that this version does not know", was.state)
				continue
			}
			l := locks[was.name]
			granted := l != nil && l.Holder.Raw() == TokenName(was.token[:min(16, len(was.token))])
			if !granted && (known == monitor.LockHeld || known == monitor.LockBareMajority || known == monitor.LockLostMajority) {
				continue // its grant has ended; the state ends with the next write
			}
			if !granted {
				grant := l
				l = &monitor.Lock{Key: safetext.New(was.name)}
				if grant != nil { // it has not ended, though another token is shown
					l.Earlier = &monitor.Reliance{Token: grant.Holder, Until: grant.HeldUntil()}
				}
				locks[was.name] = l
			}
			since, end := l.Since(), l.MajorityEnd()
			if since.IsZero() {
				since = was.began
			}
			letters, relied, _ := strings.Cut(was.copies, reliedUntil)
			recallCopies(s, l, since, letters, was.token)
			if l.State = known; known == monitor.LockLostMajority || known == monitor.LockMayBeHeld || (known == monitor.LockOverTTL || known == monitor.LockNoTTL) && l.Held < s.Cluster.Quorum {
				*l = l.Timed(since, time.Time{}).Until(end)
				l.Unending = known == monitor.LockNoTTL && granted && end.IsZero()
			} else {
				*l = l.Timed(since, end)
			}
			if l.State == monitor.LockSplit {
				l.Unending = relied == "0"
			}
			if l.State == monitor.LockSplit && l.Held < s.Cluster.Quorum {
				ms, err := strconv.ParseInt(relied, 10, 64)
				switch {
				case l.Unending:
					l.Contested = l.Earlier == nil && !granted && l.Tokens > 1
				case l.Earlier != nil:
					*l = l.Until(l.Earlier.Until)
				case err == nil:
					*l = l.Until(time.UnixMilli(ms))
					l.Contested = !granted && l.Tokens > 1
				default:
					l.Nobody = l.Held+l.Lost+strings.Count(letters, "?") < s.Cluster.Quorum
				}
			}
		}
	}
	return unread, nil
}

// lossOf returns when and why a node lost what it had since then: its last restart, or wipe of its
// data, among these events.
func lossOf(events []monitor.Event, node string, since time.Time) (time.Time, monitor.LossCause) {
	for _, e := range slices.Backward(events) {
		if e.Node != node || e.At.Before(since) {
			continue
		}
		switch e.Kind {
		case "restart":
			return e.At, monitor.LostByRestart
		case "data wiped":
			return e.At, monitor.LostByWipe
		}
	}
	return time.Time{}, monitor.LostUnseen
}

// recallCopies sets the copies of a lock that is held since then; tokens has the tokens in hex,
// the holder's first.
func recallCopies(s *monitor.Snapshot, l *monitor.Lock, since time.Time, letters, tokens string) {
	names := make([]string, 0, 1)
	for tokens != "" {
		n := min(16, len(tokens))
		names, tokens = append(names, TokenName(tokens[:n])), tokens[n:]
	}
	if len(names) > 0 {
		l.Holder = safetext.New(names[0])
	}
	l.Tokens = max(1, len(names))
	copies := make([]monitor.Copy, len(s.Nodes))
	for i := range copies {
		copies[i].State = monitor.CopyUnknown
		if i >= len(letters) || letters[i] == '?' {
			continue
		}
		switch letters[i] {
		case '-':
			copies[i].State = monitor.CopyAbsent
			continue
		case '!':
			copies[i] = monitor.Copy{State: monitor.CopyLost, Type: "string", Token: l.Holder}
			copies[i].LostAt, copies[i].Cause = lossOf(s.Events, s.Nodes[i].Name, since)
			l.Lost++
			continue
		}
		copies[i].State = monitor.CopySeen
		letter := letters[i]
		if letter >= 'a' {
			copies[i].State, letter = monitor.CopyPresent, letter-'a'+'A'
		}
		name := fmt.Sprintf("token %c", letter)
		if k := int(letter - 'A'); k < len(names) {
			name = names[k]
		}
		copies[i].Type, copies[i].Token = "string", safetext.New(name)
	}
	l.Copies = monitor.PackCopies(copies...)
	if letters != "" {
		l.Held = strings.Count(strings.ToUpper(letters), "A")
	}
}

// Step returns the time of the next entry after t, or of the last one before t if back is
// set; only of one lock if lock is not "". Entries within a second are one step, and its
// time is their end. False: there is none.
func (r *Reader) Step(t time.Time, back bool, lock string) (time.Time, bool, error) {
	const apart = time.Second
	if back {
		at, ok, err := r.happened(t.Add(-apart), true, lock)
		return at, ok, err
	}
	first, ok, err := r.happened(t, false, lock)
	if !ok || err != nil {
		return first, ok, err
	}
	at, _, err := r.happened(first.Add(apart), true, lock)
	return at, true, err
}

// happened returns the time of the last entry at or before t, or of the first one after
// it.
func (r *Reader) happened(t time.Time, before bool, lock string) (time.Time, bool, error) {
	best, when := "max", "<= ?1"
	if !before {
		best, when = "min", "> ?1"
	}
	var parts []string
	add := func(column, from string) {
		parts = append(parts, fmt.Sprintf("SELECT %s(%s) AS at FROM %s AND %s %s", best, column, from, column, when))
	}
	args := []any{millis(t), r.cluster}
	if lock == "" {
		add("at_ms", "events WHERE cluster = ?2 AND level NOT IN ('info', 'part')")
		add("at_ms", "states WHERE cluster = ?2")
		add("opened_ms", "findings WHERE cluster = ?2")
		add("cleared_ms", "findings WHERE cluster = ?2")
	} else {
		const of = " WHERE lock = (SELECT id FROM locks WHERE cluster = ?2 AND name = ?3)"
		args = append(args, lock)
		add("at_ms", "events"+of)
		add("began_ms", "grants"+of)
		add("ended_ms", "grants"+of)
		add("began_ms", "lock_states"+of)
	}
	var at sql.NullInt64
	err := r.db.QueryRow("SELECT "+best+"(at) FROM ("+strings.Join(parts, " UNION ALL ")+")", args...).Scan(&at)
	return time.UnixMilli(at.Int64), at.Valid, err
}
