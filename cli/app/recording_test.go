package app

import (
	"testing"
	"time"

	"redlockctl/internal/audit"
	"redlockctl/monitor"
	"redlockctl/monitor/words"
	"redlockctl/server/safetext"
)

// A lock that was force-released before anybody saw its holder is reported once, by the audit log
// alone; one that was seen is not reported again.
func TestActsThatNobodySaw(t *testing.T) {
	now := time.Now()
	from := &guardSource{}
	a := removals{cluster: "prod"}
	act := func(id, act, target, cluster string) audit.Record {
		return audit.Record{ID: id, Time: now, Act: act, Target: target, Cluster: cluster, Actor: "ops@host", Reason: "its host is gone", TokenSHA: audit.TokenSHA("t")}
	}
	done := []audit.Record{act("1", "force-release", "unseen", "prod"), act("2", "force-release", "seen", "prod"), act("3", "revoke", `odd\x1b`, "prod"), act("4", "revoke", "job", "other")}
	if got := a.step(now, done, from); len(got) != 0 {
		t.Fatalf("told before anybody could see it: %v", got)
	}
	from.Note(monitor.Event{At: now.Add(100 * time.Millisecond), Kind: "force-released", Key: safetext.New("seen")})
	from.Note(monitor.Event{At: now.Add(100 * time.Millisecond), Kind: "revoked", Key: safetext.New("odd\x1b")})
	from.Note(monitor.Event{At: now.Add(100 * time.Millisecond), Kind: "revoked", Key: safetext.New("unseen")})
	from.Note(monitor.Event{At: now.Add(-time.Minute), Kind: "force-released", Key: safetext.New("unseen")})
	var got []monitor.Event
	for d := time.Second; d < 20*time.Second; d += time.Second {
		got = append(got, a.step(now.Add(d), nil, from)...)
	}
	if len(got) != 1 || got[0].Key.Raw() != "unseen" || !got[0].At.Equal(now) || got[0].Kind != "force-release" ||
		got[0].Text.Raw() != "force-release by ops@host: its host is gone (sha256:"+audit.TokenSHA("t")[:16]+"), by the audit log at "+words.Moment(got[0].At, got[0].At) {
		t.Errorf("told %v", got)
	}
	if len(a.waiting)+len(a.seen) != 0 {
		t.Errorf("kept: %v %v", a.waiting, a.seen)
	}
}
