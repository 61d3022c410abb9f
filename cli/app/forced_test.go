package app

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"redlockctl/internal/audit"
)

// Force-releases are known from what the log has and from what is added later, until their holders do not
// rely on the locks any more.
func TestForceReleasesAreFollowed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	log, err := audit.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	now := time.Now()
	write := func(cluster, lock, phase, sha, detail string, at time.Time) {
		t.Helper()
		if err := log.Write(audit.Record{Time: at, ID: lock, Phase: phase, Actor: "ops@host", Cluster: cluster, Act: "force-release", Target: lock, TokenSHA: sha, Detail: detail}); err != nil {
			t.Fatal(err)
		}
	}
	until := func(in time.Duration) string {
		return "its holder may rely on it until " + now.Add(in).UTC().Format(time.RFC3339) + "; n1 ok"
	}
	const endless = "its holder may rely on it without end; n1 ok"
	write("shop", "before", audit.Done, audit.TokenSHA("a"), until(time.Minute), now.Add(-time.Second))
	write("shop", "ended", audit.Done, audit.TokenSHA("a"), until(-time.Second), now.Add(-time.Minute))
	write("shop", "long ago", audit.Done, audit.TokenSHA("a"), endless, now.Add(-time.Hour))
	write("shop", "failed", audit.Failed, audit.TokenSHA("a"), until(time.Minute), now)
	write("shop", "unknown", audit.Done, audit.TokenSHA("a"), "n1 ok", now)
	write("other", "elsewhere", audit.Done, audit.TokenSHA("a"), until(time.Minute), now)
	ask := followForced(&auditLines{path: path}, "shop", time.Minute)
	have := func(want string) {
		t.Helper()
		var got []string
		for _, f := range ask() {
			if !f.Took("a") || f.Took("b") || f.Took("") {
				t.Errorf("%s: not of whom the lock was taken", f.Lock)
			}
			got = append(got, f.Lock)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	have("before")
	write("shop", "later", audit.Intent, "", "", now)
	write("shop", "later", audit.Intent, "", "found n1 sha256:"+audit.TokenSHA("a"), now)
	have("before")
	write("shop", "later", audit.Done, "", endless, now)
	have("before later")
	have("before later")
}
