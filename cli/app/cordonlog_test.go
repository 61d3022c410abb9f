package app

import (
	"path/filepath"
	"testing"
	"time"

	"redlockctl/internal/audit"
)

// What is known of the cordon of n1 after each line of the log.
func TestWhoCordoned(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	log, err := audit.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	began := time.Date(2026, 11, 29, 9, 17, 19, 0, time.Local)
	follows := followCordons(&auditLines{path: path}, "shop")
	for i, line := range []struct{ id, act, phase, detail, want string }{
		{"a", "node drain", audit.Intent, "in a restart of n1, n2", "at 09:17:20 by ops: a; in a restart of n1, n2 that goes on or was interrupted"},
		{"a", "node drain", audit.Intent, "cordoned; waits until it is empty", "at 09:17:20 by ops: a; in a restart of n1, n2 that goes on or was interrupted"},
		{"b", "node uncordon", audit.Intent, "", "at 09:17:20 by ops: a; in a restart of n1, n2 that goes on or was interrupted"}, // not known to have had an effect
		{"b", "node uncordon", audit.Failed, "", "at 09:17:20 by ops: a; in a restart of n1, n2 that goes on or was interrupted"},
		{"a", "node drain", audit.Failed, "interrupted", "at 09:17:20 by ops: a; in a restart of n1, n2 that was interrupted"},
		{"c", "node restart", audit.Intent, "", "at 09:17:20 by ops: a; in a restart of n1, n2 that goes on or was interrupted"},
		{"c", "node restart", audit.Failed, "", "at 09:17:20 by ops: a; in a restart of n1, n2 that was interrupted"},
		{"d", "node uncordon", audit.Intent, "", "at 09:17:20 by ops: a; in a restart of n1, n2 that was interrupted"},
		{"d", "node uncordon", audit.Done, "", ""},
		{"e", "node cordon", audit.Intent, "", "at 09:17:29 by ops: e"},
		{"e", "node cordon", audit.Failed, "", ""},
		{"f", "node drain", audit.Intent, "", "at 09:17:31 by ops: f"},
		{"f", "node drain", audit.Done, "drained", "at 09:17:31 by ops: f"}, // when it was cordoned, not when it was drained
	} {
		at := began.Add(time.Duration(i) * time.Second)
		for _, r := range []audit.Record{
			{ID: line.id, Act: line.act, Phase: line.phase, Detail: line.detail, Actor: "ops", Reason: line.id, Cluster: "shop", Target: "n1"},
			{ID: line.id + "2", Act: "node cordon", Phase: audit.Intent, Actor: "other", Cluster: "another", Target: "n1"},
		} {
			r.Time = at.Add(time.Second)
			if err := log.Write(r); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range []*cordonLog{follows, followCordons(&auditLines{path: path}, "shop")} {
			got := ""
			if one, ok := c.now()["n1"]; ok {
				got = one.Told(began)
			}
			if got != line.want {
				t.Errorf("line %d: %q, not %q", i+1, got, line.want)
			}
		}
	}
}
