package supervise_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

const unit = "../../deploy/systemd/redis-supervised@.service"

// The unit file must not let systemd give up before D is over, start the server
// without us, or end it behind our back.
func TestUnit(t *testing.T) {
	b, err := os.ReadFile(unit)
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	for _, line := range []string{"Type=notify", "NotifyAccess=main", "Restart=always", "KillMode=mixed", "StartLimitIntervalSec=0", "StateDirectoryMode=0700"} {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("%s is missing", line)
		}
	}
	start := regexp.MustCompile(`(?m)^ExecStart=(\S+) supervise --once --node %i .* -- \S+ .*--daemonize no`)
	if !start.MatchString(text) {
		t.Error("ExecStart does not supervise one server in the foreground")
	}
	if m := regexp.MustCompile(`(?m)^TimeoutStartSec=(\d+)min$`).FindStringSubmatch(text); m == nil {
		t.Error("TimeoutStartSec is missing")
	} else if d, err := time.ParseDuration(m[1] + "m"); err != nil || d < 5*time.Minute {
		t.Errorf("TimeoutStartSec=%s: %v", d, err)
	}

	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("no systemd-analyze to verify the unit file with")
	}
	// It looks for the programs: give it some that are there.
	text = regexp.MustCompile(`/usr/local/bin/redlockctl|/usr/bin/redis-server`).ReplaceAllString(text, "/bin/sh")
	path := filepath.Join(t.TempDir(), "redis-supervised@n1.service")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(analyze, "verify", "--man=no", path).CombinedOutput(); err != nil || strings.Contains(string(out), "redis-supervised") {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}
