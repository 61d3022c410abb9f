package view

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"

	"redlockctl/internal/audit"
	"redlockctl/server/safetext"
)

// AuditDoc is one line of the audit log. Seq is 0 for a line without a hash.
type AuditDoc struct {
	Line int    `json:"line"`
	Seq  uint64 `json:"seq,omitempty"`
	audit.Record
	Hash  string         `json:"hash,omitempty"`
	Doubt *safetext.Text `json:"doubt,omitempty"`
}

// DocOfAudit returns the document of an entry.
func DocOfAudit(e audit.Entry) AuditDoc {
	return AuditDoc{e.Line, e.Seq, e.Record, e.Hash, safetext.OptionalError(e.Doubt)}
}

// AuditColumns are the columns of the audit log.
func AuditColumns() []Column[audit.Entry] {
	text := func(name, help, field string, of func(audit.Entry) string, cut int) Column[audit.Entry] {
		return Column[audit.Entry]{
			Name: name, Help: help, Fields: []string{field}, Compare: compareBy(of), Cut: cut,
			Cell: func(c *Context, e audit.Entry) Cell { return Cell{Text: c.Whole(of(e))} },
		}
	}
	short := func(c Column[audit.Entry], good, least int) Column[audit.Entry] {
		c.Good, c.Least, c.Middle = good, least, true
		return c
	}
	on := func(c Column[audit.Entry], rank, width, most int) Column[audit.Entry] {
		c.Rank, c.Width, c.Most = rank, width, most
		return c
	}
	wide := func(c Column[audit.Entry]) Column[audit.Entry] { c.Wide = true; return c }
	return []Column[audit.Entry]{{
		Name: "SEQ", Help: "number in the hash chain; `-` for a line without a hash", Fields: []string{"line", "seq"}, Compare: compareBy(func(e audit.Entry) int { return e.Line }), Right: true, Wide: true,
		Cell: countOf(func(e audit.Entry) int { return int(e.Seq) }),
	}, {
		Name: "TIME", Help: "when the line was written", Fields: []string{"time"}, Compare: func(a, b audit.Entry) int { return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Line, b.Line)) }, First: "oldest first", Last: "newest first", Rank: 1, Width: 8, Most: 19,
		Cell: func(c *Context, e audit.Entry) Cell {
			if c.Short {
				return Cell{Text: momentSince(e.Time, c.Now)}
			}
			return Cell{Text: Moment(e.Time)}
		},
	},
		short(on(text("ACTOR", "who: `user@host`, or `guard@host/ID`", "actor", func(e audit.Entry) string { return e.Actor }, 40), 4, 8, 30), 16, 10),
		on(text("CLUSTER", "name of the cluster", "cluster", func(e audit.Entry) string { return e.Cluster }, 24), 8, 7, 24),
		on(text("ACT", "the action", "act", func(e audit.Entry) string { return e.Act }, 0), 2, 7, 16),
		short(on(text("TARGET", "the lock or node", "target", func(e audit.Entry) string { return e.Target }, 60), 3, 8, 40), 20, 0),
		{
			Name: "PHASE", Help: "`intent` before it was sent, then `done` or `failed`. `CHANGED`: the line was modified after it was written", Fields: []string{"phase", "doubt"}, Compare: compareBy(func(e audit.Entry) string { return e.Phase }), Rank: 5, Width: 6, Most: 16,
			Cell: func(c *Context, e audit.Entry) Cell {
				phase := Cell{Text: c.Whole(e.Phase)}
				switch {
				case e.Doubt != nil:
					phase.Text, phase.Tone = phase.Text+" (CHANGED)", Bad
				case e.Phase == audit.Failed:
					phase.Tone = Warn
				case e.Phase == audit.Intent:
					phase.Tone = Dim
				}
				return phase
			},
		},
		on(text("REASON", "why, in the words of the person who did it", "reason", func(e audit.Entry) string { return e.Reason }, 60), 6, 8, 40),
		on(text("DETAIL", "the outcome", "detail", func(e audit.Entry) string { return e.Detail }, 100), 7, 10, 200),
		wide(text("ID", "the same for an intent and its outcome", "id", func(e audit.Entry) string { return e.ID }, 0)),
		wide(text("TOKEN SHA-256", "the hash of the token; never the token", "token_sha256", func(e audit.Entry) string { return e.TokenSHA }, 0)),
	}
}

// AuditLog is the audit log at the last read.
type AuditLog struct {
	Path    string
	Entries []audit.Entry // the latest ones, the oldest first
	Older   int           // number of older entries
	Report  audit.Report
	Err     error // why it cannot be read now; Entries are older then
}

// Integrity says whether the chain of the log is intact.
func (l *AuditLog) Integrity(c *Context) Cell {
	switch r := &l.Report; {
	case errors.Is(l.Err, fs.ErrNotExist):
		return Cell{c.Off, "no log yet: nothing was done with this program", Dim}
	case l.Err != nil:
		return Cell{"!", "cannot be read: " + c.Whole(l.Err.Error()), Bad}
	case !r.Intact():
		text := "BROKEN"
		if line := r.Broken[0].Line; line > 0 {
			text += fmt.Sprintf(" at line %d", line)
		}
		text += ": " + c.Whole(r.Broken[0].Text)
		if n := len(r.Broken) - 1; n > 0 {
			text += ", and " + Plural(n, "more place")
		}
		return Cell{"!", text, Bad}
	case r.Lines == 0:
		return Cell{c.Off, "no lines yet: nothing was done with this program", Dim}
	case r.Links == 0:
		return Cell{c.Off, Plural(r.Lines, "line") + ", and no chain that could be verified", Dim}
	}
	return Cell{c.On, "intact: " + Plural(l.Report.Links, "line") + " in the chain", Good}
}

// Acts returns the entries of the log, the newest first, one per action: an intent is left
// out if its outcome is there, unless the intent was tampered with.
func (l *AuditLog) Acts() []audit.Entry {
	told := map[string]bool{}
	var acts []audit.Entry
	for i := len(l.Entries) - 1; i >= 0; i-- {
		e := l.Entries[i]
		if e.Phase == audit.Intent && told[e.ID] && e.Doubt == nil {
			continue
		}
		told[e.ID] = told[e.ID] || e.Phase != audit.Intent
		acts = append(acts, e)
	}
	return acts
}

// tokenHash is the hash of a token, as such.
func tokenHash(sha string) string {
	if sha == "" {
		return ""
	}
	return hashed + sha
}

// AuditFacts returns all about one entry. An outcome also shows its intent.
func (l *AuditLog) AuditFacts(c *Context, e *audit.Entry) []Fact {
	facts := []Fact{
		{Label: "Who", Text: c.Whole(e.Actor)},
		{Label: "What", Text: c.Whole(e.Act) + " " + c.Whole(e.Target) + ", cluster " + c.Whole(e.Cluster)},
		{Label: "Why", Text: c.Whole(e.Reason)},
	}
	outcome := Fact{Label: "Outcome", Text: c.Whole(e.Phase)}
	if e.Phase == audit.Intent {
		outcome.Text += ": no outcome is logged; it still goes on, or was cut short"
		outcome.Tone = Warn
	} else if e.Phase == audit.Failed {
		outcome.Tone = Bad
	}
	if e.Detail != "" {
		outcome.Text += ": " + c.Whole(e.Detail)
	}
	facts = append(facts, outcome)
	when := Moment(e.Time)
	for i := range l.Entries {
		if b := &l.Entries[i]; b.ID == e.ID && b.Phase == audit.Intent && e.Phase != audit.Intent {
			when += ", begun " + Moment(b.Time)
		}
	}
	facts = append(facts, Fact{Label: "When", Text: when}, Fact{Label: "Token", Text: c.Whole(tokenHash(e.TokenSHA))},
		Fact{Label: "Line", Text: fmt.Sprintf("%d of %s, id %s", e.Line, c.Whole(l.Path), c.Whole(e.ID))})
	if e.Doubt != nil {
		facts = append(facts, Fact{Label: "Changed", Text: c.Whole(e.Doubt.Error()), Tone: Bad})
	}
	return facts
}
