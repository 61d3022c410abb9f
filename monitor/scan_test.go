package monitor

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestRowsAreWhatTheScriptSays(t *testing.T) {
	got, err := parseRows([]string{"a", "b", "c", "d"}, []any{
		"string", int64(1500), int64(3), "abc",
		"none", int64(-2), int64(0), "",
		"hash", int64(-1), int64(7), "",
		"string", int64(1 << 62), int64(1 << 30), strings.Repeat("x", 200),
	})
	if err != nil {
		t.Fatal(err)
	}
	if got[0] != (row{"a", "string", 1500 * time.Millisecond, 3, "abc"}) || got[1].typ != "none" ||
		got[2] != (row{"c", "hash", -1, 7, ""}) || got[3].pttl < 1000*time.Hour || len(got[3].prefix) != prefixLen {
		t.Errorf("%+v", got)
	}
}

func TestAnAnswerOfAnotherShapeIsRefused(t *testing.T) {
	for _, values := range [][]any{
		nil,
		{"string", int64(1), int64(3)},
		{"string", int64(1), int64(3), "abc", "more"},
		{"string", "1", int64(3), "abc"},
		{nil, int64(1), int64(3), "abc"},
		{"string", int64(1), int64(3), []any{}},
	} {
		if rows, err := parseRows([]string{"a"}, values); err == nil {
			t.Errorf("%v: %v", values, rows)
		}
	}
}

// A node is read at once where that hurts nobody, and else with pauses.
func TestTheMastersWorkSetsThePace(t *testing.T) {
	for name, c := range map[string]struct {
		feed, patient bool
		task          task
		missing       bool
		want          int
	}{
		"the first read of an idle node":    {true, true, task{gap: true}, false, 0},
		"the first read of a busy node":     {true, true, task{gap: true, busy: true}, false, paceBusy},
		"by one who looks once":             {true, false, task{gap: true, busy: true}, false, 0},
		"after a flush":                     {true, true, task{busy: true}, true, paceBusy},
		"now and then":                      {true, true, task{}, false, paceShare},
		"where changes are seen by reading": {false, true, task{}, false, 0},
	} {
		l := follower{missing: c.missing, reader: &reader{patient: c.patient}}
		if c.feed {
			l.feed = &feed{}
		}
		l.reader.load.begin(c.task.busy, time.Now())
		if got := l.pace(c.task); got != c.want {
			t.Errorf("%s: %d, not %d", name, got, c.want)
		}
	}
	w := newWatch("n1", "addr", time.Time{})
	w.answered(sight{info: map[string]string{"instantaneous_ops_per_sec": "250"}})
	if w.ops != 250 {
		t.Error(w.ops)
	}
}

// A feed that fails again and again is left alone for longer and longer; a node that
// hangs now and then, and is well in between, is not.
func TestFeedIsTriedAgain(t *testing.T) {
	now := time.Unix(1700000000, 0)
	for name, c := range map[string]struct{ well, most time.Duration }{
		"well for a minute or less": {30 * time.Second, feedRetryMost},
		"well for most of the time": {10 * time.Minute, feedRetry},
	} {
		var p feedPlan
		for range 10 {
			p.failed(errMute, now)
			p.failed(errMute, now.Add(10*time.Second))
			now = p.next.Add(c.well)
		}
		if p.pause != c.most {
			t.Errorf("%s: left alone for %s", name, p.pause)
		}
	}
}

// FuzzRows feeds the script's answer with values of any shape and number.
func FuzzRows(f *testing.F) {
	f.Add("siisk", "string", int64(1500), int64(3), "abc")
	f.Add("siis", "none", int64(-2), int64(0), "")
	f.Add("sii", "hash", int64(math.MaxInt64), int64(math.MinInt64), strings.Repeat("f", 2000))
	f.Add("nsab", "", int64(0), int64(0), "x")
	f.Fuzz(func(t *testing.T, shape, typ string, pttl, length int64, prefix string) {
		var values []any
		ints, texts := 0, 0
		for _, c := range shape {
			switch c {
			case 'i':
				values = append(values, []int64{pttl, length}[ints%2])
				ints++
			case 's':
				values = append(values, []string{typ, prefix}[texts%2])
				texts++
			case 'a':
				values = append(values, []any{typ})
			case 'b':
				values = append(values, true)
			default:
				values = append(values, nil)
			}
		}
		keys := make([]string, max(1, len(values)/4))
		for i := range keys {
			keys[i] = prefix
		}
		rows, err := parseRows(keys, values)
		if err != nil {
			return
		}
		r := newRig(1, time.Minute)
		r.table.read(0, r.now, r.now, rows)
		r.refresh(r.now)
		for l := range r.view().All() {
			if len(l.Copies.At(0).Token.Raw()) > fieldsLen || l.Copies.At(0).Expires.After(r.now.Add(101*365*24*time.Hour)) {
				t.Errorf("%+v", l)
			}
		}
	})
}

func FuzzParseInfo(f *testing.F) {
	f.Add("# Server\r\nredis_version:7.0.15\r\nrun_id:abc\r\n\r\n# Replication\r\nrole:master\r\n")
	f.Add("a:b:c\n:\n\x1b[2J:\xff\r")
	f.Fuzz(func(t *testing.T, text string) {
		fields := map[string]string{}
		parseInfo(text, fields)
		for name, value := range fields {
			if strings.ContainsAny(value, "\r\n\x1b\x00") {
				t.Errorf("%q: %q", name, value)
			}
		}
		w := newWatch("n1", "addr", time.Time{})
		w.answered(sight{info: fields, config: fields})
	})
}

// What is mostly gone when it is read is read less often.
func TestReadsInVainAreFewer(t *testing.T) {
	there, gone := row{typ: "string"}, row{typ: "none"}
	if coalesceFor([]row{there, gone}) != coalesce || coalesceFor([]row{gone, there, gone}) != coalesceGone {
		t.Error("the pause does not follow from what was gone")
	}
}
