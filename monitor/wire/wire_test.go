package wire

import (
	"bufio"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"redlockctl/monitor/table"

	"redlockctl/monitor"
)

// readRows parses rows of these keys from a reply with these values.
func readRows(keys []string, values []any) ([]table.Row, error) {
	var reply func(v any) string
	reply = func(v any) string {
		switch v := v.(type) {
		case int64:
			return fmt.Sprintf(":%d\r\n", v)
		case string:
			return fmt.Sprintf("$%d\r\n%s\r\n", len(v), v)
		case bool:
			return "#t\r\n"
		case []any:
			text := fmt.Sprintf("*%d\r\n", len(v))
			for _, one := range v {
				text += reply(one)
			}
			return text
		}
		return "_\r\n"
	}
	w := &wire{in: bufio.NewReader(strings.NewReader(reply(values)))}
	return w.rows(nil, keys)
}

func TestRowsAreWhatTheScriptSays(t *testing.T) {
	got, err := readRows([]string{"a", "b", "c", "d"}, []any{
		"string", int64(1500), int64(3), "abc",
		"none", int64(-2), int64(0), "",
		"hash", int64(-1), int64(7), "",
		"string", int64(1 << 62), int64(1 << 30), strings.Repeat("x", 200),
	})
	if err != nil {
		t.Fatal(err)
	}
	if got[0] != (table.Row{Key: "a", Type: "string", TTL: 1500 * time.Millisecond, Len: 3, Prefix: "abc"}) || got[1].Type != "none" ||
		got[2] != (table.Row{Key: "c", Type: "hash", TTL: -1, Len: 7, Prefix: ""}) || got[3].TTL < 1000*time.Hour || len(got[3].Prefix) != table.PrefixLen {
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
		if rows, err := readRows([]string{"a"}, values); err == nil {
			t.Errorf("%v: %v", values, rows)
		}
	}
}

// FuzzRows replaces the script's reply by values of any type and number.
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
		rows, err := readRows(keys, values)
		if err != nil {
			return
		}
		now := time.Now()
		tb := table.New([]string{"n1"}, 1, time.Minute, time.Second, now, func(monitor.Event) {})
		tb.Reachable(0, false)
		tb.Read(0, now, now, rows)
		tb.Refresh(now)
		for l := range tb.Locks().All() {
			if len(l.Copies.At(0).Token.Raw()) > table.FieldsLen || l.Copies.At(0).Expires.After(now.Add(101*365*24*time.Hour)) {
				t.Errorf("%+v", l)
			}
		}
	})
}
