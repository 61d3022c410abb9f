package record

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"redlockctl/monitor"
	"redlockctl/server/safetext"
)

// handOver records two findings, and more, and returns a second recorder that began when the first had ended
// five seconds before.
func handOver(t *testing.T, now time.Time, settled time.Duration, more ...monitor.Finding) (path string, from *told, w *writer, at func(n int) time.Time) {
	path = filepath.Join(t.TempDir(), "record.db")
	at = func(n int) time.Time { return now.Add(time.Duration(n) * time.Second) }
	from = &told{s: cluster(now)}
	from.s.Findings = append(more, []monitor.Finding{
		{ID: "same-host", Severity: monitor.SeverityInfo, Title: "several nodes on one host"},
		{ID: "stays-fenced", Node: "n3", Severity: monitor.SeverityInfo, Title: "cordoned by an operator"},
	}...)
	w = begin(t, path, from, now)
	for n := range 11 {
		write(t, w, from, at(n))
	}
	w, err := newWriter(w.db, from.s.Cluster, Options{By: "another"}, at(15))
	if err != nil {
		t.Fatal(err)
	}
	from.s.Settled, from.s.Findings = at(15).Add(-settled), nil
	return path, from, w, at
}

func (t *told) finding(kind, node, text string, at time.Time) {
	t.events = append(t.events, monitor.Event{Seq: uint64(len(t.events) + 1), At: at, Level: monitor.LevelNotice, Kind: kind, Node: node, Text: safetext.New(text)})
}

// A finding goes on if the next recorder finds it too, and is told once. If it is not found any more, it is
// known since when, but not how long it was so.
func TestFindingsGoOnWithTheNextRecorder(t *testing.T) {
	now := time.Now().Truncate(time.Millisecond)
	path, from, w, at := handOver(t, now, 0)
	for n := 15; n <= 30; n++ {
		if n == 18 {
			from.s.Findings = []monitor.Finding{{ID: "same-host", Severity: monitor.SeverityInfo, Title: "several nodes on one host"}}
			from.finding("finding opened", "", "several nodes on one host [info same-host]", at(18))
			from.finding("finding opened", "n1", "n1: its clock was stepped [danger clock-step]", at(18))
		}
		write(t, w, from, at(n))
	}
	r, in := read(t, path), Span{now.Add(-time.Minute), now.Add(time.Minute)}
	all, err := r.Findings(in)
	if err != nil || len(all) != 2 {
		t.Fatalf("%+v: %v", all, err)
	}
	if f := all[0]; !f.Opened.Equal(now) || !f.Cleared.IsZero() || !f.Seen.IsZero() {
		t.Errorf("it goes on: %+v", f)
	}
	if f := all[1]; !f.Opened.Equal(now) || !f.Cleared.Equal(at(25)) || !f.Seen.Equal(at(10)) {
		t.Errorf("it was not found again: %+v", f)
	}
	events, err := r.Events("", "", in, 100)
	var told []string
	for _, e := range events {
		if e.Kind != "recorder" {
			told = append(told, e.Kind+" "+e.Text)
		}
	}
	want := []string{"finding opened n1: its clock was stepped [danger clock-step]",
		"finding closed n3: cleared by now, not seen since " + at(10).Format("15:04:05") + ": cordoned by an operator [info stays-fenced]"}
	if err != nil || !slices.Equal(told, want) {
		t.Errorf("%q, want %q: %v", told, want, err)
	}
}

// A recorder that has looked all the time knows when a finding was cleared, also in a gap of the record.
func TestAFindingThatWasClearedInAGap(t *testing.T) {
	now := time.Now().Truncate(time.Millisecond)
	path, from, w, at := handOver(t, now, time.Hour)
	from.finding("finding closed", "n3", "n3: cleared: cordoned by an operator [info stays-fenced]", at(12))
	write(t, w, from, at(15))
	all, err := read(t, path).Findings(Span{now, now.Add(time.Minute)})
	if err != nil || len(all) != 2 || !all[0].Cleared.Equal(at(15)) || !all[0].Seen.Equal(at(10)) || !all[1].Cleared.Equal(at(12)) || !all[1].Seen.IsZero() {
		t.Errorf("%+v: %v", all, err)
	}
}

// While too few nodes are seen, nothing is found of a node that is down: what an earlier recorder found
// of it lasts until a quorum is seen.
func TestANodeStaysDownWithTheNextRecorder(t *testing.T) {
	now := time.Now().Truncate(time.Millisecond)
	path, from, w, at := handOver(t, now, 0, monitor.Finding{ID: monitor.NodeDownID, Node: "n2", Severity: monitor.SeverityWarning, Title: "the node is down"})
	from.s.Cluster.Verdict = monitor.VerdictUnavailable
	for n := 15; n <= 40; n++ {
		if n == 35 {
			from.s.Cluster.Verdict = monitor.VerdictSafe
		}
		write(t, w, from, at(n))
	}
	all, err := read(t, path).Findings(Span{now, now.Add(time.Minute)})
	i := slices.IndexFunc(all, func(f Finding) bool { return f.Node == "n2" })
	if err != nil || i < 0 || !all[i].Cleared.Equal(at(35)) {
		t.Errorf("%+v: %v", all, err)
	}
}

// A finding is open from when its event says, not from the next write.
func TestAFindingOpensWithItsEvent(t *testing.T) {
	path, now := filepath.Join(t.TempDir(), "record.db"), time.Now().Truncate(time.Second)
	from := &told{s: cluster(now)}
	w := begin(t, path, from, now)
	write(t, w, from, now.Add(time.Second))
	opened := now.Add(1300 * time.Millisecond)
	from.s.Findings = []monitor.Finding{{ID: "force-released", Severity: monitor.SeverityWarning, Title: "a lock that was force-released", Since: opened}}
	write(t, w, from, now.Add(2*time.Second))
	all, err := read(t, path).Findings(Span{now, now.Add(time.Minute)})
	if err != nil || len(all) != 1 || !all[0].Opened.Equal(opened) {
		t.Errorf("%+v: %v", all, err)
	}
}
