package monitor

import (
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
