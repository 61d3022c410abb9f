package tui

import (
	"errors"
	"io/fs"
	"testing"
	"time"

	"redlockctl/internal/audit"
	"redlockctl/internal/view"
	"redlockctl/monitor/monitortest"
	"redlockctl/tui/page"
	"redlockctl/tui/source"
)

// anAudit is a log of three actions; the last one has no outcome.
func anAudit() *view.AuditLog {
	at := func(s int) time.Time { return monitortest.Epoch.Add(time.Duration(s) * time.Second) }
	line := func(n int, id, phase, act, target, reason, detail string) audit.Entry {
		return audit.Entry{Line: n, Seq: uint64(n), Record: audit.Record{
			Time: at(n - 60), ID: id, Phase: phase, Actor: "ops@host1", Cluster: "prod-locks", Act: act, Target: target, Reason: reason, Detail: detail,
		}}
	}
	return &view.AuditLog{Path: "/state/audit.jsonl", Entries: []audit.Entry{
		line(1, "a", audit.Intent, "force-release", "orders:42", "host burnt", ""),
		line(2, "a", audit.Done, "force-release", "orders:42", "host burnt", "released on n1, n3, n5"),
		line(3, "b", audit.Intent, "node cordon", "n3", "", ""),
		line(4, "b", audit.Failed, "node cordon", "n3", "", "n3: connection refused"),
		line(5, "c", audit.Intent, "revoke", "job:7\x1b[2J", "stuck", ""),
	}, Report: audit.Report{Lines: 5, Links: 5, First: 1, Last: 5}}
}

func withAudit(o *Options) { o.Audit = anAudit }

// The page of the audit log shows an action once, with its outcome; it grows under the
// cursor, which stays on its action.
func TestAuditPage(t *testing.T) {
	log := anAudit()
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40, func(o *Options) { o.Audit = func() *view.AuditLog { return log } })
	r.press(":")
	r.typed("audit")
	r.press("enter")
	r.where(page.Audit)
	r.sees("reading the audit log")
	next := r.pending[0]().(source.SeenMsg[*view.AuditLog])
	r.m.Update(next)
	r.sees("intact: 5 lines in the chain", "force-release orders:42", "failed", `revoke job:7\x1b[2J`)
	if n := len(r.m.Set.Audit.Selected().Audit.ID); n != 1 || r.m.selected().Audit.ID != "c" {
		t.Errorf("the cursor is on %+v", r.m.selected().Audit)
	}
	r.press("down", "down", "enter")
	r.sees("Who ops@host1", "Why host burnt", "Outcome done: released on n1, n3, n5", "begun")
	r.press("o")
	r.sees("it is not about a lock or a node")

	grown := anAudit()
	more := grown.Entries[4]
	more.Line, more.Phase, more.Detail = 6, audit.Done, "revoked on n1, n3"
	grown.Entries = append(grown.Entries, more)
	grown.Report.Broken = []audit.Remark{{File: "audit.jsonl", Line: 3, Text: "the line was changed"}, {}}
	log = grown
	next.It = log
	r.m.Update(next)
	r.sees("BROKEN at line 3: the line was changed, and 1 more place", "Why host burnt")
	if r.m.selected().Audit.ID != "a" {
		t.Error("the cursor left its act")
	}
	for err, says := range map[error]string{fs.ErrNotExist: "no log yet", errors.New("permission denied"): "cannot be read: permission denied"} {
		next.It = &view.AuditLog{Err: err}
		r.m.Update(next)
		r.sees(says, "nothing is logged")
	}
	r.press("esc", "esc")
	r.where(page.Overview)

	r = newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40)
	r.press(":")
	r.typed("audit")
	r.press("enter")
	r.sees("there is no command audit")
}
