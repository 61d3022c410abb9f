package report

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"redlockctl/internal/audit"
	"redlockctl/internal/record"
)

// The state in a gap of the record is unknown: the state before it does not continue.
func TestGapsAreNotKnown(t *testing.T) {
	at := func(m int) time.Time { return time.UnixMilli(0).Add(time.Duration(m) * time.Minute) }
	in := record.Span{Since: at(0), Until: at(100)}
	states := notRecorded([]record.State{
		{Node: "n1", State: "serving", At: at(-5)}, {Node: "n1", State: "down", At: at(10)}, {Node: "n1", State: "serving", At: at(60)},
	}, []record.Span{{Since: at(20), Until: at(60)}, {Since: at(80), Until: at(100)}})
	rep := &Report{}
	rep.lanes(states, nil, in)
	want := []Part{{State: "serving", Width: 10}, {State: "down", X: 10, Width: 10}, {State: unrecorded, X: 20, Width: 40}, {State: "serving", X: 60, Width: 20}, {State: unrecorded, X: 80, Width: 20}}
	if len(rep.Lanes) != 1 || len(rep.Lanes[0].Parts) != len(want) {
		t.Fatalf("%+v", rep.Lanes)
	}
	for i, p := range rep.Lanes[0].Parts {
		if w := want[i]; p.State != w.State || p.X != w.X || p.Width != w.Width {
			t.Errorf("part %d is %+v, want %+v", i, p, w)
		}
	}
	for _, a := range rep.Away {
		if a.State == "down" && a.Total != 10*time.Minute {
			t.Errorf("it was down for %s, in which it was seen", a.Total)
		}
	}
}

// A page counts the overlaps, names the longest with who got in when, and says how to look further.
func TestOverlapsAreNamed(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	rep := &Report{Since: at.Add(-time.Hour), Until: at.Add(time.Hour), utc: true, Overlaps: record.Overlaps{Count: 12, Locks: 3, Longest: []record.Overlap{
		{Lock: "job:1", Earlier: record.Grant{Owner: "web-3"}, Later: record.Grant{Token: "0123456789abcdef", Began: at}, Relied: at.Add(9 * time.Second), Both: 7 * time.Second, Others: 9},
		{Lock: "job:2", Later: record.Grant{Began: at, Partly: true}, Both: 5 * time.Second},
	}}}
	var text, page strings.Builder
	if err := errors.Join(rep.Text(&text), rep.HTML(&page)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"12 overlaps of 3 locks; of each of 2 locks, the longest is listed. All holders: redlockctl history NAME --since 2027-01-15T07:00:00Z --until 2027-01-15T09:00:00Z",
		"012345 got in while web-3 (since –) relied on it until 2027-01-15 08:00:09Z: both for 7s, and 9 more of this lock", "relied on it without end", "both for 5s or longer",
	} {
		for name, out := range map[string]string{"text": text.String(), "page": page.String()} {
			if !strings.Contains(out, want) {
				t.Errorf("no %q in the %s: %s", want, name, out)
			}
		}
	}
	for _, out := range []string{"2027-01-15 08:00:00Z  job:1: sha256:012345", "Overlaps: two clients relied on one lock"} {
		if !strings.Contains(text.String(), out) {
			t.Errorf("no %q in %s", out, text.String())
		}
	}
	text.Reset()
	if err := errors.Join((&Report{}).Text(&text)); err != nil || !strings.Contains(text.String(), "one lock\n  none, as far as was seen") {
		t.Error(text.String(), err)
	}
}

// A finding names its node or its locks.
func TestFindingsAreNamed(t *testing.T) {
	rep := &Report{utc: true, Findings: []record.Finding{
		{Severity: "info", Node: "n3", Title: "cordoned by an operator", Seen: time.Unix(1_800_000_000, 0), Cleared: time.Unix(1_800_000_060, 0)}, {Severity: "warning", Title: "orphaned copies of a lock", Lock: "job:1", Locks: 1},
		{Severity: "danger", Title: "locks on which two clients may rely", Lock: "job:2", Locks: 3}, {Severity: "info", Title: "several nodes on one host"},
	}}
	var text, page strings.Builder
	if err := errors.Join(rep.Text(&text), rep.HTML(&page)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"n3: cordoned by an operator", "job:1: orphaned copies of a lock", "job:2 and 2 more: locks on which two clients may rely", "several nodes on one host"} {
		if !strings.Contains(text.String(), " "+want+",") || !strings.Contains(page.String(), "<td>"+want+"<br>") {
			t.Errorf("no %q in %s%s", want, text.String(), page.String())
		}
	}
	const by = "cleared by 2027-01-15 08:01:00Z (not seen since 2027-01-15 08:00:00Z)"
	if !strings.Contains(text.String(), by) || !strings.Contains(page.String(), by) || !strings.Contains(text.String(), "one host, not cleared") {
		t.Errorf("no %q in %s%s", by, text.String(), page.String())
	}
}

// A page names the locks that lost their majority, and says which grants it counts.
func TestLostLocksAreNamed(t *testing.T) {
	rep := &Report{Lost: []record.Event{{Lock: "job:1", Text: "lost its majority: held until 12:00:00"}}, LostLeft: 2}
	var text, page strings.Builder
	if err := errors.Join(rep.Text(&text), rep.HTML(&page)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"job:1: lost its majority: held until 12:00:00", "and 2 more locks", "Granted most often: grants that began", "grants that ended"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in %s", want, text.String())
		}
	}
	for _, want := range []string{"<td>job:1<td>lost its majority", "Grants that began", "Grants that ended"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("no %q in %s", want, page.String())
		}
	}
}

// Of a grant that lost its majority, and has not ended, a page says until when its holder relies on it.
func TestALostMajorityThatGoesOn(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	rep := &Report{utc: true, Longest: []record.Grant{{Lock: "job:1", How: "lost majority", Until: at}, {Lock: "job:2"}, {Lock: "job:3", How: "released", Ended: at}}}
	var text, page strings.Builder
	if err := errors.Join(rep.Text(&text), rep.HTML(&page)); err != nil {
		t.Fatal(err)
	}
	for _, out := range []string{text.String(), page.String()} {
		if !strings.Contains(out, "lost majority, may rely on it until 2027-01-15 08:00:00Z") || !strings.Contains(out, "still held") || strings.Count(out, "may rely") != 1 {
			t.Error(out)
		}
	}
}

// A verdict that goes on says how its cause did: the first, the last, and how many there were in
// between.
func TestHowACauseWentOn(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(1_800_000_000, 0).Add(time.Duration(s) * time.Second) }
	in := record.Span{Since: at(0), Until: at(100)}
	rep := &Report{utc: true}
	state := func(s int, state, text string) record.State { return record.State{State: state, Text: text, At: at(s)} }
	rep.lanes([]record.State{
		state(0, "safe", ""), state(10, "degraded", "n3 down"), state(12, "degraded", ""), state(13, "degraded", "n3 down"), state(14, "degraded", "n3 fenced, n4 fenced"),
		state(50, "unavailable", "n1 down"), state(51, "unavailable", "n1 down, n2 down"), state(52, "unavailable", "n1 down, n2 down, n3 down"), state(53, "unavailable", "n1 fenced"), state(80, "safe", ""),
	}, nil, in)
	var text, page strings.Builder
	if err := errors.Join(rep.Text(&text), rep.HTML(&page)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"degraded: n3 down; then n3 fenced, n4 fenced", "unavailable: n1 down; 2 other causes; then n1 fenced"} {
		if !strings.Contains(text.String(), "2027-01-15 08:00:") || !strings.Contains(text.String(), "Z  "+want+"\n") || strings.Count(page.String(), want) != 2 {
			t.Errorf("no %q in %s%s", want, text.String(), page.String())
		}
	}
	for n := range 50 {
		rep.Lanes[0].Parts = append(rep.Lanes[0].Parts, Part{State: "degraded", From: at(n), To: at(n + 1)})
	}
	if rep.verdicts(rep.Lanes[0].Parts); len(rep.Verdicts) != mostVerdicts || rep.VerdictsLeft != 32 {
		t.Errorf("%d, %d left out", len(rep.Verdicts), rep.VerdictsLeft)
	}
}

// A verdict of less than a second is listed only if it was grave, with fractions of a second.
func TestShortVerdicts(t *testing.T) {
	at := func(ms int) time.Time {
		return time.UnixMilli(1_800_000_000_000).Add(time.Duration(ms) * time.Millisecond)
	}
	rep := &Report{utc: true}
	rep.lanes([]record.State{
		{State: "safe", At: at(0)}, {State: "degraded", Text: "n3 down", At: at(100)}, {State: "safe", At: at(200)}, {State: "unavailable", At: at(300)},
		{State: "safe", At: at(450)}, {State: "danger", At: at(500)}, {State: "safe", At: at(507)}, {State: "degraded", Text: "n2 down", At: at(1000)}, {State: "safe", At: at(2000)},
	}, nil, record.Span{Since: at(0), Until: at(10_000)})
	var text, page strings.Builder
	if err := errors.Join(rep.Text(&text), rep.HTML(&page)); err != nil {
		t.Fatal(err)
	}
	const day = "2027-01-15 08:00:"
	for _, want := range []string{day + "00.300Z to " + day + "00.450Z  unavailable", day + "00.500Z to " + day + "00.507Z  danger", day + "01Z to " + day + "02Z  degraded: n2 down"} {
		if html := "<td class=\"n\">" + strings.NewReplacer(" to ", "<td class=\"n\">", "  ", "<td>").Replace(want); !strings.Contains(text.String(), "  "+want+"\n") || !strings.Contains(page.String(), html) {
			t.Errorf("no %q in %s%s", want, text.String(), page.String())
		}
	}
	if strings.Contains(text.String(), "n3 down") || len(rep.Verdicts) != 3 {
		t.Error(text.String())
	}
}

// A lock that was lost while it was kept only expired, to the masters: the audit log has the rest.
func TestKeptLocksThatWereLost(t *testing.T) {
	lost := audit.Record{Act: "keep", Target: "deploy", Phase: audit.Failed, Actor: "ops@host", Detail: "lock lost: validity used up; noticed 4.7s after", Time: time.UnixMilli(0)}
	for _, other := range []audit.Record{{Act: "keep", Phase: audit.Intent, Detail: lost.Detail}, {Act: "run", Phase: audit.Failed, Detail: "no such command"}, {Act: "revoke", Phase: audit.Failed, Detail: lost.Detail}} {
		if KeptAndLost(audit.Entry{Record: other}) {
			t.Errorf("%+v", other)
		}
	}
	rep := &Report{Until: time.UnixMilli(0).Add(time.Hour), Kept: []audit.Entry{{Record: lost}}}
	if !KeptAndLost(rep.Kept[0]) {
		t.Error("not lost")
	}
	for name, write := range map[string]func(io.Writer) error{"text": rep.Text, "html": rep.HTML} {
		var page strings.Builder
		if err := write(&page); err != nil {
			t.Fatal(err)
		}
		if s := page.String(); !strings.Contains(s, "Lost while they were kept") || !strings.Contains(s, "lock lost: validity used up; noticed 4.7s after (keep by ops@host)") {
			t.Errorf("%s: %s", name, s)
		}
	}
}

// A lock whose majority did not answer at its end may have lost it.
func TestLocksOutOfSightAreNamed(t *testing.T) {
	rep := &Report{utc: true, NotSeen: []record.Grant{{Lock: "pm:a", Owner: "web-3", How: "not seen", Ended: time.Unix(1_800_000_000, 0)}}, NotSeenLeft: 3, Busiest: []record.Use{{Lock: "pm:a", Grants: 2, NotSeen: 1}}}
	var text, page strings.Builder
	if err := errors.Join(rep.Text(&text), rep.HTML(&page)); err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(text.String(), "Lost their majority\n")
	if section, _, _ = strings.Cut(section, "\n\n"); strings.Contains(section, "none") || !strings.Contains(section, "pm:a: its majority did not answer and may be lost: held by web-3 until 2027-01-15 08:00:00Z as last known, or longer") || !strings.Contains(section, "and 3 more grants") {
		t.Error(section)
	}
	if !strings.Contains(text.String(), "2 × pm:a, 0 lost a majority, 1 not seen to the end\n") {
		t.Error(text.String())
	}
	for _, want := range []string{"<td>pm:a<td>its majority did not answer", "3 more whose majority did not answer", `<td>pm:a<td class="n">2<td class="n">0<td class="n">1</tr>`} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("%q is not in %s", want, page.String())
		}
	}
}
