package app

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"redlockctl/restartguard"
)

// An event that somebody should look at is a warning in the log of the daemon.
func TestGuardLogLevels(t *testing.T) {
	var w strings.Builder
	d := &clusterGuard{log: slog.New(slog.NewTextHandler(&w, nil))}
	k := newGuardEvents(filepath.Join(t.TempDir(), "audit.jsonl"), d.tell)
	defer k.record.Close()
	for want, e := range map[string]restartguard.Event{
		"INFO":  {Kind: "restart", Text: "restarted, started fenced"},
		"WARN":  {Kind: "restart", Text: "restarted, is OPEN", Alarm: true},
		"WARN ": {Kind: "wiped", Text: "its data were wiped"},
	} {
		w.Reset()
		if k.take("shop", nil, e); !strings.Contains(w.String(), "level="+strings.TrimSpace(want)+" ") {
			t.Errorf("not %s: %s", want, w.String())
		}
	}
}
