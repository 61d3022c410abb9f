package record

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"redlockctl/monitor"
	"redlockctl/server/announce"
	"redlockctl/server/safetext"
)

// A crash and the recovery have one line for each cause, however many sources report
// them: with a monitor, and with only a guard.
func TestOneCauseIsOneLine(t *testing.T) {
	type line struct {
		second int
		level  monitor.Level
		kind   string
		part   bool
	}
	states := map[int]monitor.NodeState{0: monitor.NodeServing, 10: monitor.NodeDown, 20: monitor.NodeFenced, 30: monitor.NodeServing}
	reasons := map[int]string{0: "", 10: "n1 down", 20: "n1 fenced", 30: ""}
	for name, c := range map[string]struct {
		events []line
		want   []string
	}{
		"a console": {
			[]line{{9, 2, "down", false}, {9, 1, "guard unreachable", true}, {11, 1, "finding opened", true}, {19, 1, "guard waiting", true}, {19, 1, "guard restart", true},
				{19, 1, "fenced", true}, {19, 2, "restart", false}, {20, 1, "finding closed", true}, {29, 1, "guard rejoined", true}, {29, 1, "rejoined", false}},
			[]string{"verdict safe", "state serving", "down", "verdict degraded: n1 down", "restart", "rejoined", "verdict safe"},
		},
		"a guard that watches no locks": {
			[]line{{9, 1, "guard unreachable", false}, {19, 1, "guard waiting", false}, {19, 1, "guard restart", false}, {29, 1, "guard rejoined", false}},
			[]string{"verdict safe", "state serving", "guard unreachable", "verdict degraded: n1 down", "guard restart", "guard rejoined", "verdict safe"},
		},
		"nobody tells": {nil, []string{"verdict safe", "state serving", "verdict degraded: n1 down", "state down: refused", "state fenced", "verdict safe", "state serving"}},
	} {
		t.Run(name, func(t *testing.T) {
			path, now := filepath.Join(t.TempDir(), "record.db"), time.Now().Truncate(time.Millisecond)
			from := &told{s: cluster(now)}
			from.s.Nodes = []monitor.Node{{Name: "n1"}}
			w := begin(t, path, from, now)
			for second := 0; second <= 30; second++ {
				at := now.Add(time.Duration(second) * time.Second)
				for _, e := range c.events {
					if e.second == second {
						from.events = append(from.events, monitor.Event{Seq: uint64(len(from.events) + 1), At: at.Add(500 * time.Millisecond), Level: e.level, Kind: e.kind, Node: "n1", Text: safetext.New(e.kind), Part: e.part})
					}
				}
				if state, ok := states[second]; ok {
					n := &from.s.Nodes[0]
					n.State, n.Err, n.Since = state, safetext.Text{}, at.Add(-300*time.Millisecond) // written later than seen
					from.s.Cluster.Verdict, from.s.Cluster.Reason = monitor.VerdictSafe, reasons[second]
					if state != monitor.NodeServing {
						from.s.Cluster.Verdict = monitor.VerdictDegraded
					}
					if state == monitor.NodeDown {
						n.Err = safetext.New("refused")
					}
				}
				write(t, w, from, at)
			}
			r, in := read(t, path), Span{now.Add(-time.Minute), now.Add(time.Minute)}
			all, err := r.Happened("", in)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, e := range all {
				text := e.Kind
				if e.Kind == KindState || e.Kind == KindVerdict {
					text += " " + e.Text
				}
				got = append(got, text)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("\n%q, want\n%q", got, c.want)
			}
			if raw, err := r.Events("", "", in, 100); err != nil || len(raw) != len(c.events) {
				t.Errorf("%d of %d events are in the record: %v", len(raw), len(c.events), err)
			}
		})
	}
}

// A node that only another guard watches now has not changed, wherever the span begins.
func TestOnlyAChangeOfStateIsALine(t *testing.T) {
	path, now := filepath.Join(t.TempDir(), "record.db"), time.Now().Truncate(time.Millisecond)
	from := &told{s: cluster(now)}
	from.s.Nodes = []monitor.Node{{Name: "n1", State: monitor.NodeServing, Err: safetext.New("slow")}}
	w := begin(t, path, from, now)
	write(t, w, from, now)
	from.s.Nodes[0].Err, from.s.Nodes[0].Guards = safetext.Text{}, []announce.Guard{{ID: "g1", Host: safetext.New("ops-1")}}
	write(t, w, from, now.Add(5*time.Second))
	from.s.Nodes[0].Guards[0].ID = "g2"
	write(t, w, from, now.Add(10*time.Second))
	for _, ago := range []time.Duration{time.Second, -3 * time.Second, -7 * time.Second} {
		all, err := read(t, path).Happened("n1", Span{now.Add(-ago), now.Add(time.Minute)})
		if want := int(max(0, ago) / time.Second); err != nil || len(all) != want {
			t.Errorf("since %s before it: %+v: %v", ago, all, err)
		}
	}
}

// Locks that lose their majority together are one line with their number; a single lock
// is named; the record has them all.
func TestManyLocksAreOneLine(t *testing.T) {
	at := time.Now()
	lost := func(lock string, second int) Event {
		return Event{At: at.Add(time.Duration(second) * time.Second), Kind: "lost majority", Lock: lock, Text: "lost its majority by a restart"}
	}
	restart := Event{At: at, Kind: "restart", Node: "n1", Text: "restarted"}
	got := ofManyLocks([]Event{restart, lost("a", 1), lost("b", 1), lost("c", 2), lost("d", 60)})
	want := []Event{restart, lost("", 1), lost("d", 60)}
	want[1].Count = 3
	want[1].Text = "3 locks, the first is a: lost its majority by a restart"
	if !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// What is told late, as an action that only the audit log has, is listed at its own time, and in no
// answer about a time at which it was not known.
func TestWhatIsToldLate(t *testing.T) {
	path, now := filepath.Join(t.TempDir(), "record.db"), time.Now().Truncate(time.Second)
	second := func(n int) time.Time { return now.Add(time.Duration(n) * time.Second) }
	from := &told{s: cluster(now)}
	w := begin(t, path, from, now)
	write(t, w, from, now)
	from.tell("lost copy", "job", "a", second(2), time.Time{})
	from.tell("revoke", "job", "a", second(1), time.Time{})
	for i := range from.events {
		from.events[i].Level = monitor.LevelNotice
	}
	late := from.events[1]
	from.events = from.events[:1]
	write(t, w, from, second(3))
	from.events = append(from.events, late)
	write(t, w, from, second(4))
	for until, want := range map[int]string{3: "lost copy", 5: "revoke lost copy"} {
		events, err := read(t, path).Events("", "job", Span{now, second(until)}, 10)
		var kinds []string
		for i, e := range events {
			kinds = append(kinds, e.Kind)
			if at := second(i + 3 - len(events)); !e.At.Equal(at) {
				t.Errorf("%s at %s, not %s", e.Kind, e.At, at)
			}
		}
		if got := strings.Join(kinds, " "); got != want || err != nil {
			t.Errorf("until %d s: %s, not %s: %v", until, got, want, err)
		}
	}
}
