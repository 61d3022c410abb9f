package audit

import (
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// The follower knows who removed a lock as soon as the intent is written, until the
// action is known to have failed; even if only a read found the tokens, and if the log
// did not exist at first.
func TestFollower(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	f := Follow(path)
	if _, ok := f.Taken("job", "t1"); ok {
		t.Fatal("known without a log")
	}
	log, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	write := func(r Record) {
		t.Helper()
		r.Actor, r.Time = "ops@host", time.Now()
		if err := log.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	is := func(target, token string, want bool) {
		t.Helper()
		if r, ok := f.Taken(target, token); ok != want || ok && r.Actor != "ops@host" {
			t.Errorf("%s of %s: %v %+v", target, token, ok, r)
		}
	}
	write(Record{ID: "1", Phase: Intent, Act: "force-release", Target: "job", TokenSHA: TokenSHA("t1"), Reason: "dead"})
	is("job", "t1", true)
	begun := time.Now()
	is("job", "t2", false)
	is("other", "t1", false)
	write(Record{ID: "1", Phase: Failed, Act: "force-release", Target: "job", TokenSHA: TokenSHA("t1")})
	is("job", "t1", false)
	write(Record{ID: "2", Phase: Intent, Act: "force-release", Target: "all", Reason: "dead"})
	write(Record{ID: "2", Phase: Intent, Act: "force-release", Target: "all", Detail: "found n1 sha256:" + TokenSHA("t3") + ", n2 sha256:" + TokenSHA("t4")})
	write(Record{ID: "2", Phase: Done, Act: "force-release", Target: "all"})
	is("all", "t3", true)
	is("all", "t4", true)
	// One that failed and reached a part counts, and says what.
	write(Record{ID: "8", Phase: Intent, Act: "force-release", Target: "part", TokenSHA: TokenSHA("t8")})
	write(Record{ID: "8", Phase: Failed, Act: "force-release", Target: "part", Detail: "force-release: no quorum; n1 fenced (NOREPLICAS Not enough), n4 ok, n5 ok"})
	is("part", "t8", true)
	if r, _ := f.Taken("part", "t8"); r.Phase != Failed || !slices.Equal(r.Obeyed(), []string{"n4", "n5"}) {
		t.Errorf("%+v obeyed by %v", r, r.Obeyed())
	}
	write(Record{ID: "3", Phase: Intent, Act: "release", Target: "mine", TokenSHA: TokenSHA("t5")})
	is("mine", "t5", false)

	acted := func(node, want string) {
		t.Helper()
		if r, ok := f.ActedOn("shop", node); ok != (want != "") || ok && r.Act != want {
			t.Errorf("on %s: %v %+v", node, ok, r)
		}
	}
	write(Record{ID: "4", Phase: Intent, Act: "node drain", Target: "n1", Cluster: "shop"})
	write(Record{ID: "5", Phase: Intent, Act: "node cordon", Target: "n1", Cluster: "other"})
	write(Record{ID: "6", Phase: Done, Act: "node cordoned", Target: "n1", Cluster: "shop"}) // a guard
	acted("n1", "node drain")
	acted("n2", "")
	write(Record{ID: "4", Phase: Failed, Act: "node drain", Target: "n1", Cluster: "shop"})
	acted("n1", "")
	write(Record{ID: "7", Phase: Intent, Act: "node uncordon", Target: "n1", Cluster: "shop"})
	write(Record{ID: "7", Phase: Done, Act: "node uncordon", Target: "n1", Cluster: "shop"})
	acted("n1", "node uncordon")
	ended := f.Ended()
	if outcome := ended[0].Time; !outcome.After(begun) {
		t.Errorf("what found nothing is of %s, and began at %s", outcome, begun)
	}
	if len(ended) != 3 || ended[0].ID != "1" || ended[0].Phase != Failed || ended[0].Reason != "dead" || ended[1].ID != "2" || ended[1].Phase != Done {
		t.Errorf("%+v", ended)
	}
	// Two at a time: one of them, until it is known which.
	for _, id := range []string{"21", "22"} {
		write(Record{ID: id, Phase: Intent, Act: "force-release", Target: "both", TokenSHA: TokenSHA("t9"), Reason: "by " + id})
	}
	if r, _ := f.Taken("both", "t9"); r.Phase != Undecided || r.Actor != "ops@host: by 21, or by ops@host" || r.Reason != "by 22" {
		t.Errorf("%+v", r)
	}
	write(Record{ID: "21", Phase: Done, Act: "force-release", Target: "both", TokenSHA: TokenSHA("t9")})
	if r, _ := f.Taken("both", "t9"); r.Phase != Done || r.Actor != "ops@host" || r.Reason != "by 21" {
		t.Errorf("%+v", r)
	}
	write(Record{ID: "22", Phase: Failed, Act: "force-release", Target: "both", TokenSHA: TokenSHA("t9")})
	is("both", "t9", true)
}
