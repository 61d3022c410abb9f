package app

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"redlockctl/internal/audit"
)

// The screen's reader sees a log come, grow, and be tampered with, and reads it no second
// time where nothing has changed.
func TestAuditReader(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	r := &auditReader{path: path}
	if l := r.read(); !errors.Is(l.Err, fs.ErrNotExist) {
		t.Errorf("without a log: %v", l.Err)
	}
	log, err := audit.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	write := func(phase string) {
		t.Helper()
		if err := log.Write(audit.Record{Time: time.Now(), ID: "a", Phase: phase, Act: "revoke", Target: "job:1"}); err != nil {
			t.Fatal(err)
		}
	}
	write(audit.Intent)
	first := r.read()
	if first.Err != nil || len(first.Entries) != 1 || !first.Report.Intact() || len(first.Acts()) != 1 {
		t.Fatalf("one line: %+v", first)
	}
	if r.read() != first {
		t.Error("it is read again although nothing has changed")
	}
	write(audit.Done)
	if l := r.read(); len(l.Entries) != 2 || !l.Report.Intact() || len(l.Acts()) != 1 || l.Acts()[0].Phase != audit.Done {
		t.Errorf("two lines: %+v", l)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), "job:1", "job:22", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if l := r.read(); l.Err != nil || l.Report.Intact() || l.Report.Broken[0].Line != 1 {
		t.Errorf("a line was changed: %+v", l.Report)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if l := r.read(); l.Err != nil || l.Report.Intact() {
		t.Errorf("the log was removed, its end stands beside it: %+v", l)
	}
}
