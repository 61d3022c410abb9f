package boot

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"redlockctl/restartguard"
)

// That a process started fenced says how it starts again only as long as its files are what they were. On
// the server's own host, nobody is sent there.
func TestFilesThatWereChangedAfterTheStart(t *testing.T) {
	for name, c := range map[string]struct {
		seen, unchanged bool
		want            State
	}{
		"seen to start fenced, and nothing changed":  {true, true, Fenced},
		"seen to start fenced, then changed":         {true, false, Unfenced},
		"its start was not seen, nor a command line": {false, false, Unknown},
	} {
		check := Check{Local: true}
		check.byPresentProcess(restartguard.Observation{}, c.seen, true, c.unchanged)
		if check.Boot != c.want || strings.Contains(strings.Join(check.Do, "; "), "own host") {
			t.Errorf("%s: %s, %q, %q", name, check.Boot, check.Because, check.Do)
		}
	}
	file := filepath.Join(t.TempDir(), "redis.conf")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var check Check
	var changed time.Time
	if _, err := check.reading(&changed)(file); err != nil || len(check.Files) != 1 || unchanged("uptime_in_seconds:60\r\n", changed) {
		t.Errorf("%v %s: %v", check.Files, changed, err)
	}
	if err := os.Chtimes(file, time.Time{}, time.Now().Add(-2*time.Minute)); err != nil {
		t.Fatal(err)
	}
	changed = time.Time{}
	if _, err := new(Check).reading(&changed)(file); err != nil || !unchanged("uptime_in_seconds:60\r\n", changed) {
		t.Errorf("%s: %v", changed, err)
	}
}
