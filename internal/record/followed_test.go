package record

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"redlockctl/monitor/monitortest"
)

// How a grant ended may be told only when the next one has begun, or has ended too.
func TestAnEndThatIsToldAfterTheNextBeginning(t *testing.T) {
	for _, c := range []struct {
		kind  string
		until int
		want  string
	}{
		{"released", 20, "a 0-4 released, b 4-6 released, c 7-"},
		{"force-released", 20, "a 0-4 force-released, b 4-6 released OVERLAP, c 7- OVERLAP"},
		{lostMajority, 20, "a 0- lost majority, b 4-6 released OVERLAP, c 7- OVERLAP"},
		{"expired", 5, "a 0-5 expired, b 4-6 released, c 7-"},
	} {
		path, now := filepath.Join(t.TempDir(), "record.db"), time.Now().Truncate(time.Second)
		second := func(n int) time.Time { return now.Add(time.Duration(n) * time.Second) }
		from := &told{s: *monitortest.Safe(now)}
		from.s.Settled = now.Add(-takeInAfter)
		w := begin(t, path, from, now)
		write(t, w, from, now)
		from.tell("acquired", "job", "a", second(0), second(c.until))
		write(t, w, from, second(1))
		from.tell("acquired", "job", "b", second(4), second(24))
		from.tell("released", "job", "b", second(6), second(24))
		from.tell("acquired", "job", "c", second(7), second(27))
		write(t, w, from, second(7))
		from.tell(c.kind, "job", "a", second(8), second(c.until))
		monitortest.Put(&from.s, monitortest.LockOf(second(8), "job", 0, "c", "19 19 19 19 -"))
		write(t, w, from, second(8))
		grants, err := read(t, path).GrantsOf("job", Span{now.Add(-time.Hour), second(9)}, 10)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, g := range grants {
			name := map[string]string{}
			for _, token := range []string{"a", "b", "c"} {
				name[fmt.Sprintf("%x", shortSHA(token))] = token
			}
			text := fmt.Sprintf("%s %d-", name[g.Token], int(g.Began.Sub(now)/time.Second))
			if !g.Ended.IsZero() {
				text += fmt.Sprint(int(g.Ended.Sub(now) / time.Second))
			}
			if g.How != "" {
				text += " " + g.How
			}
			if g.Overlaps {
				text += " OVERLAP"
			}
			got = append(got, text)
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%s:\n%s, want\n%s", c.kind, text, c.want)
		}
	}
}

// A release that is told late ended its grant when it was. What was answered before it was known stays so.
func TestAReleaseThatIsToldLate(t *testing.T) {
	path, now := filepath.Join(t.TempDir(), "record.db"), time.Now().Truncate(time.Second)
	second := func(n int) time.Time { return now.Add(time.Duration(n) * time.Second) }
	from := &told{s: *monitortest.Safe(now)}
	from.s.Settled = now.Add(-takeInAfter)
	w := begin(t, path, from, now)
	write(t, w, from, now)
	from.tell("acquired", "job", "a", second(0), second(20))
	from.tell("acquired", "other", "b", second(0), second(20))
	write(t, w, from, second(9))
	from.tell("released", "job", "a", second(3), second(20))
	from.tell("acquired", "other", "c", second(7), second(27))
	from.tell("released", "other", "b", second(4), second(20))
	write(t, w, from, second(10))
	r := read(t, path)
	ended := func(lock string, known int) string {
		all, err := r.GrantsOf(lock, Span{now.Add(-time.Hour), second(known).Add(time.Millisecond)}, 10)
		if err != nil || len(all) == 0 {
			t.Fatal(all, err)
		}
		if all[0].Ended.IsZero() {
			return all[0].How
		}
		return fmt.Sprint(int(all[0].Ended.Sub(now)/time.Second), " ", all[0].How)
	}
	for known, want := range map[int]string{8: "", 10: "3 released"} {
		if got := ended("job", known); got != want {
			t.Errorf("as known at %d: %q, and not %q", known, got, want)
		}
	}
	if got := ended("other", 10); got != "4 released" {
		t.Errorf("the one that another followed: %q", got)
	}
	for known, want := range map[int][]string{5: {"job", "other"}, 10: nil} {
		held, err := r.heldAt(second(5), second(known))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, g := range held {
			if g.Began.After(now) {
				got = append(got, g.Lock)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("held at 5, as known at %d: %q, and not %q", known, got, want)
		}
	}
}
