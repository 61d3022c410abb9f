package record

import (
	"fmt"
	"strings"
	"time"

	"redlockctl/monitor"
	"redlockctl/monitor/words"
	"redlockctl/server/safetext"
)

// openFinding is the row of a present finding, and its contents.
type openFinding struct {
	id       int64
	title    string
	severity monitor.Severity
	// seen is when the last recorder ended, while this one has not found it; zero: it has.
	seen time.Time
	// told: its beginning is in the record, and no event of this recorder's monitor has told it yet.
	told bool
}

// A recorder that has looked at everything for findAgain has found again what the last one found,
// if it is still so: no finding takes longer. Of one that cannot look at everything nothing is
// expected after findAtMost.
const (
	findAgain  = 10 * time.Second
	findAtMost = time.Minute
)

func findingKey(id, node string) string { return id + "\x00" + node }

// takeOver loads the findings that were open when the last recorder ended: they go on if this one
// finds them too.
func (w *writer) takeOver() error {
	rows, err := w.db.Query(`SELECT id, finding, node, title, severity, coalesce(seen_ms, opened_ms) FROM findings WHERE cluster = ? AND cleared_ms IS NULL`, w.cluster)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id, node, severity string
		one := openFinding{told: true}
		if err := rows.Scan(&one.id, &id, &node, &one.title, &severity, (*ms)(&one.seen)); err != nil {
			return err
		}
		one.severity = monitor.SeverityOf(severity)
		w.findings[findingKey(id, node)] = one
	}
	return rows.Err()
}

// open records the present findings. One whose text or severity has changed gets a new
// row, so the record knows what was found at each time.
func (b *batch) open(s *monitor.Snapshot) {
	there := make(map[string]bool, len(s.Findings))
	for i := range s.Findings {
		f := &s.Findings[i]
		key := findingKey(f.ID, f.Node)
		there[key] = true
		was, known := b.findings[key]
		switch {
		case b.err != nil:
		case known && was.title == f.Title && was.severity == f.Severity:
			if !was.seen.IsZero() {
				b.exec(`UPDATE findings SET seen_ms = NULL WHERE id = ?`, was.id)
				was.seen = time.Time{}
				b.findings[key] = was
			}
			continue
		case known:
			b.clear(was.id, b.now, time.Time{})
		}
		opened := b.now
		if f.Since.After(b.began) && f.Since.Before(opened) { // as its event says
			opened = after(f.Since, b.seen)
		}
		now := openFinding{title: f.Title, severity: f.Severity, told: was.told}
		b.scan(`INSERT INTO findings (cluster, finding, node, severity, title, evidence, consequence, remedy, lock, locks, opened_ms, since_ms)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
			[]any{b.cluster, f.ID, f.Node, f.Severity.String(), f.Title, f.Evidence.Raw(), f.Consequence, f.Remedy, f.Key.Raw(), f.Count, millis(opened), null(f.Since)}, &now.id)
		b.findings[key] = now
	}
	again := !s.Settled.IsZero() && s.At.Sub(s.Settled) >= findAgain || b.now.Sub(b.began) >= findAtMost
	for key, was := range b.findings {
		unjudged := s.Cluster.TooFewSeen() && strings.HasPrefix(key, findingKey(monitor.NodeDownID, ""))
		if there[key] || !was.seen.IsZero() && (!again || unjudged) {
			continue
		}
		b.clear(was.id, b.now, was.seen)
		if delete(b.findings, key); !was.seen.IsZero() {
			b.tellUnseen(key, was)
		}
	}
}

// earlyChanged reports whether a node began or ceased to serve before it may vote since the last
// write: a replay shows it as exposed for as long as the finding is open.
func (w *writer) earlyChanged(s *monitor.Snapshot) bool {
	there := map[string]bool{}
	for i := range s.Findings {
		if f := &s.Findings[i]; f.ID == monitor.ServesEarlyID {
			key := findingKey(f.ID, f.Node)
			there[key] = true
			if _, known := w.findings[key]; !known {
				return true
			}
		}
	}
	for key, was := range w.findings {
		if strings.HasPrefix(key, findingKey(monitor.ServesEarlyID, "")) && was.seen.IsZero() && !there[key] {
			return true
		}
	}
	return false
}

// clear ends a finding; seen is when it was last found, if that is not now.
func (b *batch) clear(row int64, at, seen time.Time) {
	b.exec(`UPDATE findings SET cleared_ms = ?, seen_ms = ? WHERE id = ?`, millis(at), null(seen), row)
}

// tellUnseen records that a finding of an earlier recorder is not found any more: its monitor is not
// there to tell.
func (b *batch) tellUnseen(key string, f openFinding) {
	id, node, _ := strings.Cut(key, "\x00")
	about := ""
	if node != "" {
		about = node + ": "
	}
	b.event(monitor.Event{
		At: b.now, Level: min(f.severity.Level(), monitor.LevelNotice), Kind: findingClosed, Node: node,
		Text: safetext.New(fmt.Sprintf("%scleared by now, not seen since %s: %s [%s %s]", about, words.Moment(f.seen, b.now), f.title, f.severity, id)),
	})
}

// The kinds of events about findings.
const (
	findingOpened = "finding opened"
	findingClosed = "finding closed"
)

// knows reports whether an event opens a finding that is open in the record: an earlier recorder found
// it. One that closes such a finding says when it ended, also while nobody recorded.
func (b *batch) knows(e monitor.Event) bool {
	if e.Kind != findingOpened && e.Kind != findingClosed {
		return false
	}
	text := e.Text.Raw() // it ends with the severity and the ID: "[warning no-guard]"
	severity, id, _ := strings.Cut(strings.TrimSuffix(text[strings.LastIndexByte(text, '[')+1:], "]"), " ")
	key := findingKey(id, e.Node)
	was, open := b.findings[key]
	if !open || !was.told {
		return false
	}
	was.told = false
	b.findings[key] = was
	if e.Kind == findingClosed && !was.seen.IsZero() {
		b.clear(was.id, after(e.At, b.seen), time.Time{})
		delete(b.findings, key)
	}
	return e.Kind == findingOpened && severity == was.severity.String()
}
