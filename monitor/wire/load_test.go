package wire

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"redlockctl/internal/lab/labtest"
	"redlockctl/redlock"
	"redlockctl/server/resp"
	"redlockctl/server/serverinfo"
)

// Our own reads do not count as load of others, and the pace follows the others' load
// during a read.
func TestOnlyWhatOthersDoIsALoad(t *testing.T) {
	start := time.Unix(1700000000, 0)
	const keys = 20_000 // that we read in each step, with three calls each
	type step struct {
		others int64 // commands in this step
		want   bool
	}
	few, many := int64(calmOps/4-1), int64(BusyOps/4+1) // in a quarter of a second
	between := (few + many) / 2
	for name, c := range map[string]struct {
		begun   bool // busy, by the server's own earlier rate
		scripts bool // the server counts calls from scripts
		steps   []step
	}{
		"our own reads":                       {false, true, []step{{0, false}, {0, false}, {few, false}, {few, false}}},
		"reads before the start":              {true, true, []step{{0, true}, {0, false}}},
		"clients at work":                     {true, true, []step{{many, true}, {many, true}, {between, true}}},
		"clients begin, and end":              {false, true, []step{{0, false}, {many, false}, {many, true}, {many, true}, {few, false}}},
		"a probe in each second":              {false, true, []step{{0, false}, {many, false}, {few, false}, {few, false}, {few, false}, {many, false}}},
		"where scripts are not counted":       {false, false, []step{{0, false}, {few, false}, {few, false}, {many, false}, {many, true}}},
		"where they are not, and it was busy": {true, false, []step{{0, true}, {few, false}}},
	} {
		t.Run(name, func(t *testing.T) {
			var l load
			var ours spent
			total, now := int64(12345), start
			l.Begin(c.begun, now)
			for i, s := range c.steps {
				now = now.Add(countEvery)
				ours.commands, ours.calls = ours.commands+100, ours.calls+100+3*keys
				if total += 100 + s.others; c.scripts {
					total += 3 * keys
				}
				if l.saw(total, ours, now); l.Busy != s.want {
					t.Errorf("step %d: busy is %t", i, l.Busy)
				}
			}
		})
	}
	var l load
	l.Begin(true, start)
	if l.saw(-1, spent{}, start); l.due(start.Add(time.Hour)) || !l.Busy {
		t.Error("a server that does not say how much it does is asked again, or believed to be idle")
	}
}

// While nobody else uses a server, its counter matches what we count as ours, whatever we
// read.
func TestOurReadsAreCountedAsTheServerDoes(t *testing.T) {
	s := labtest.Servers(t, 1)[0]
	ctx := context.Background()
	client := redlock.Connect(s.Node(), 1, time.Second)
	defer client.Close()
	for i := range 300 {
		if err := client.Set(ctx, fmt.Sprintf("k:%d", i), "token", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]any{
		{"SET", "long", strings.Repeat("x", 128)},
		{"HSET", "hash", "a", "1"},
		{"HSET", "large", "a", strings.Repeat("x", 8000)},
		{"ZADD", "zset", 1, "a"},
		{"RPUSH", "list", "a"},
	} {
		if err := client.Do(ctx, args...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 9 {
		client.HSet(ctx, "many", fmt.Sprint(i), "1")
	}
	var keys []string
	for i := range 300 {
		keys = append(keys, fmt.Sprintf("k:%d", i))
	}
	keys = append(keys, "long", "hash", "large", "many", "zset", "list", "none")
	dialled, err := Dial(ctx, s.Node().Within(resp.NewBudget(1<<20, 1<<20)), NewPatience(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	defer dialled.Close()
	r := NewReader(dialled)
	if _, err := r.RunID(ctx); err != nil {
		t.Fatal(err)
	}
	count := func() (total int64, ours spent) {
		t.Helper()
		info, err := r.Conn.Info(ctx, "stats").Result()
		if err != nil {
			t.Fatal(err)
		}
		total, ours = commandsOf(info), r.spent
		r.spent.sent(1)
		return total, ours
	}
	refused := func() (n int64) {
		t.Helper()
		info, err := r.Conn.Info(ctx, "errorstats").Result()
		if err != nil {
			t.Fatal(err)
		}
		r.spent.sent(1)
		_, _ = fmt.Sscanf(serverinfo.Field(info, "errorstat_WRONGTYPE"), "count=%d", &n)
		return n
	}
	for name, read := range map[string]func() error{
		"read":           func() error { _, _, _, err := r.Read(ctx, keys[:200]); return err },
		"read, not told": func() error { r.mixed = false; _, _, _, err := r.Read(ctx, keys); return err },
		"sweep": func() error {
			r.Patient = true
			r.Load = load{}
			_, err := r.Sweep(ctx, keys, 0, "*", 100)
			return err
		},
		"a transaction": func() error { _, err := r.readMulti(ctx, keys); return err },
	} {
		if _, _, _, err := r.Read(ctx, keys); err != nil { // from here on the script is known
			t.Fatal(err)
		}
		total, ours := count()
		failed := refused()
		if err := read(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		now, spent := count()
		if now-total != spent.calls-ours.calls {
			t.Errorf("%s: the server counts %d commands, we %d", name, now-total, spent.calls-ours.calls)
		}
		switch failed = refused() - failed; {
		case name == "a transaction": // STRLEN of a list
		case failed > 1, failed == 1 && name != "read, not told":
			t.Errorf("%s: %d errors counted by the server", name, failed)
		}
		if name == "sweep" && r.Load.total == 0 {
			t.Error("the server was not asked for its load")
		}
	}
}
