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
// alone; one that was seen is not reported again. What failed is reported too, as it may have
// reached some nodes, unless it was done here; what found nothing follows what removed the copies.
func TestActsThatNobodySaw(t *testing.T) {
	now := time.Now()
	from := &guardSource{}
	a := removals{cluster: "prod"}
	act := func(id, act, target, cluster string) audit.Record {
		return audit.Record{ID: id, Time: now, Act: act, Target: target, Cluster: cluster, Actor: "ops@host", Reason: "its host is gone", TokenSHA: audit.TokenSHA("t"), Phase: audit.Done}
	}
	failed := func(r audit.Record) audit.Record {
		r.Phase, r.Detail = audit.Failed, "revoked on 2 of 5 nodes only; n1 ok, n2 ok, n3 fenced"
		return r
	}
	late := failed(act("7", "force-release", "seen", "prod"))
	late.Detail = `"seen" is not locked: no copy on the 2 of 2 nodes that answered; n1 absent, n2 absent`
	early := failed(act("8", "force-release", "odd", "prod"))
	early.Detail = "refused; n1 held, n2 absent"
	done := []audit.Record{act("1", "force-release", "unseen", "prod"), act("2", "force-release", "seen", "prod"), act("3", "revoke", `odd\x1b`, "prod"), act("4", "revoke", "job", "other"),
		failed(act("5", "revoke", "partly", "prod")), failed(act("6", "revoke", "here", "prod")), late, early}
	if got := a.step(now, done, from); len(got) != 0 {
		t.Fatalf("told before anybody could see it: %v", got)
	}
	from.Note(monitor.Event{At: now.Add(100 * time.Millisecond), Kind: "force-released", Key: safetext.New("seen")})
	from.Note(monitor.Event{At: now.Add(100 * time.Millisecond), Kind: "revoked", Key: safetext.New("odd\x1b")})
	from.Note(monitor.Event{At: now.Add(100 * time.Millisecond), Kind: "revoked", Key: safetext.New("unseen")})
	from.Note(monitor.Event{At: now.Add(100 * time.Millisecond), Kind: "revoked", Key: safetext.New("partly")}) // on some nodes
	from.Note(monitor.Event{At: now.Add(100 * time.Millisecond), Kind: "operator", Key: safetext.New("here"), Act: "6"})
	from.Note(monitor.Event{At: now.Add(100 * time.Millisecond), Kind: "operator", Key: safetext.New("seen"), Act: "2"}) // who was faster
	from.Note(monitor.Event{At: now.Add(200 * time.Millisecond), Kind: "force-released", Key: safetext.New("odd")})
	from.Note(monitor.Event{At: now.Add(-time.Minute), Kind: "force-released", Key: safetext.New("unseen")})
	var got []monitor.Event
	for d := time.Second; d < 20*time.Second; d += time.Second {
		got = append(got, a.step(now.Add(d), nil, from)...)
	}
	sha, at := "sha256:"+audit.TokenSHA("t")[:16], words.Moment(now, now)
	want := map[string]string{
		"unseen": "force-release by ops@host: its host is gone (" + sha + "), by the audit log at " + at,
		"partly": "revoke failed by ops@host: its host is gone (" + sha + "), by the audit log at " + at + ": revoked on 2 of 5 nodes only; n1 ok, n2 ok, n3 fenced",
	}
	want["seen"] = "force-release failed by ops@host: its host is gone (" + sha + "), by the audit log at " + at + ": " + late.Detail
	want["odd"] = "force-release failed by ops@host: its host is gone (" + sha + "), by the audit log at " + at + ": " + early.Detail
	for _, e := range got {
		when := now
		if e.Key.Raw() == "seen" {
			when = now.Add(100 * time.Millisecond)
		}
		if text := want[e.Key.Raw()]; e.Text.Raw() != text || !e.At.Equal(when) {
			t.Errorf("told %v, want %q at %s", e, text, when)
		}
		delete(want, e.Key.Raw())
	}
	if len(want) != 0 {
		t.Errorf("not told: %v", want)
	}
	if len(a.waiting)+len(a.seen) != 0 {
		t.Errorf("kept: %v %v", a.waiting, a.seen)
	}
}

// What failed of what was done to a node is an event of it, once, unless it was done here.
func TestAFailureOnANodeIsToldOnce(t *testing.T) {
	now := time.Now()
	f := nodeFailures{cluster: "prod"}
	line := func(act, target, cluster, phase string) audit.Record {
		return audit.Record{ID: act + target, Time: now, Act: act, Target: target, Cluster: cluster, Actor: "ops@host", Reason: "update", Phase: phase, Detail: "not drained: 1 copy left"}
	}
	seen := []monitor.Event{{At: now, Kind: "operator", Node: "n3"}}
	got := f.step(now, []audit.Record{line("node drain", "n1", "prod", audit.Failed), line("node cordon", "n2", "prod", audit.Done), line("node cordon", "n3", "prod", audit.Failed),
		line("node drain", "n4", "other", audit.Failed), line("node waiting", "n5", "prod", audit.Failed)}, seen)
	if len(got) != 0 {
		t.Fatalf("told before it could be told here: %v", got)
	}
	for d := time.Second; d < 3*removalLate; d += time.Second {
		got = append(got, f.step(now.Add(d), nil, nil)...)
	}
	text := "node drain failed by ops@host: update, by the audit log at " + words.Moment(now, now) + ": not drained: 1 copy left"
	if len(got) != 1 || got[0].Node != "n1" || got[0].Kind != "node drain" || got[0].Text.Raw() != text || !got[0].At.Equal(now) {
		t.Errorf("told %v, want %q", got, text)
	}
}
