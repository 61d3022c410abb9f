package record

import (
	"fmt"
	"path/filepath"
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
