package view

import (
	"time"

	"redlockctl/internal/audit"
	"redlockctl/internal/safetext"
)

// AuditDoc is one line of the audit log. Seq is left out for a line from before there
// was a chain.
type AuditDoc struct {
	Line     int            `json:"line"`
	Seq      uint64         `json:"seq,omitempty"`
	Time     time.Time      `json:"time"`
	ID       safetext.Text  `json:"id"`
	Phase    safetext.Text  `json:"phase"`
	Actor    safetext.Text  `json:"actor"`
	Cluster  safetext.Text  `json:"cluster"`
	Act      safetext.Text  `json:"act"`
	Target   safetext.Text  `json:"target"`
	Reason   *safetext.Text `json:"reason,omitempty"`
	TokenSHA *safetext.Text `json:"token_sha256,omitempty"`
	Detail   *safetext.Text `json:"detail,omitempty"`
	Hash     string         `json:"hash,omitempty"`
	Doubt    *safetext.Text `json:"doubt,omitempty"`
}

// DocOfAudit is a line of the log.
func DocOfAudit(e audit.Entry) AuditDoc {
	doc := AuditDoc{
		Line: e.Line, Seq: e.Seq, Time: e.Time, ID: safetext.New(e.ID), Phase: safetext.New(e.Phase), Actor: safetext.New(e.Actor), Cluster: safetext.New(e.Cluster),
		Act: safetext.New(e.Act), Target: safetext.New(e.Target), Reason: safetext.Optional(e.Reason), TokenSHA: safetext.Optional(e.TokenSHA), Detail: safetext.Optional(e.Detail), Hash: e.Hash,
	}
	if e.Doubt != nil {
		doc.Doubt = safetext.Optional(e.Doubt.Error())
	}
	return doc
}

// AuditColumns are the columns of the audit log.
func AuditColumns() []Column[audit.Entry] {
	text := func(name, help, field string, of func(audit.Entry) string, cut int) Column[audit.Entry] {
		return Column[audit.Entry]{
			Name: name, Help: help, Fields: []string{field}, Compare: by(of), Cut: cut,
			Cell: func(_ *Context, e audit.Entry) Cell { return Cell{Text: safetext.Escape(of(e))} },
		}
	}
	wide := func(c Column[audit.Entry]) Column[audit.Entry] { c.Wide = true; return c }
	return []Column[audit.Entry]{{
		Name: "SEQ", Help: "its number in the chain of lines; none (`-`) before there was one", Fields: []string{"line", "seq"}, Compare: by(func(e audit.Entry) int { return e.Line }), Right: true, Wide: true,
		Cell: func(c *Context, e audit.Entry) Cell {
			if e.Seq == 0 {
				return c.orNone("")
			}
			return Cell{Text: Count(int(e.Seq))}
		},
	}, {
		Name: "TIME", Help: "when the line was written", Fields: []string{"time"}, Compare: func(a, b audit.Entry) int { return a.Time.Compare(b.Time) }, First: "the oldest",
		Cell: func(_ *Context, e audit.Entry) Cell { return Cell{Text: Moment(e.Time)} },
	},
		text("ACTOR", "who: `user@host`, or `guard@host/ID`", "actor", func(e audit.Entry) string { return e.Actor }, 40),
		text("CLUSTER", "in which cluster", "cluster", func(e audit.Entry) string { return e.Cluster }, 24),
		text("ACT", "what was done", "act", func(e audit.Entry) string { return e.Act }, 0),
		text("TARGET", "to which lock or node", "target", func(e audit.Entry) string { return e.Target }, 60),
		{
			Name: "PHASE", Help: "`intent` before it was sent; then `done` or `failed`. `CHANGED`: the line is not what was written", Fields: []string{"phase", "doubt"}, Compare: by(func(e audit.Entry) string { return e.Phase }),
			Cell: func(_ *Context, e audit.Entry) Cell {
				phase := Cell{Text: safetext.Escape(e.Phase)}
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
		text("REASON", "why, in the words of who did it", "reason", func(e audit.Entry) string { return e.Reason }, 60),
		text("DETAIL", "what came of it", "detail", func(e audit.Entry) string { return e.Detail }, 100),
		wide(text("ID", "the same for an intent and its outcome", "id", func(e audit.Entry) string { return e.ID }, 0)),
		wide(text("TOKEN SHA-256", "the hash of the token; never the token", "token_sha256", func(e audit.Entry) string { return e.TokenSHA }, 0)),
	}
}
