package operator_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"redlockctl/internal/operator"
	"redlockctl/redlock"
)

// TestMonitorLockIsOnRecord: reading a node's traffic needs a reason and a known node, is
// refused in read-only mode, and its result is in the audit log.
func TestMonitorLockIsOnRecord(t *testing.T) {
	b := start(t, 1, nil)
	read := 0
	do := func(context.Context, *redlock.Node) (string, error) { read++; return "holder seen", nil }
	if err := b.MonitorLock(t.Context(), "n1", "job", "", do); !errors.Is(err, operator.ErrRefused) {
		t.Error("without a reason:", err)
	}
	if err := b.MonitorLock(t.Context(), "n9", "job", "hangs", do); !errors.Is(err, operator.ErrRefused) {
		t.Error("no such node:", err)
	}
	silent := start(t, 1, func(o *operator.Options) { o.ReadOnly = true })
	if err := silent.MonitorLock(t.Context(), "n1", "job", "hangs", do); !errors.Is(err, operator.ErrReadOnly) {
		t.Error("read-only:", err)
	}
	if read > 0 {
		t.Error("it was read all the same")
	}
	if err := b.MonitorLock(t.Context(), "n1", "job", "holder hangs, INC-7", do); err != nil || read != 1 {
		t.Error(err, read)
	}
	raw, _ := os.ReadFile(b.log)
	lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], "INC-7") || !strings.Contains(lines[0], "intent") || !strings.Contains(lines[1], "on n1, holder seen") {
		t.Errorf("%s", raw)
	}
}
