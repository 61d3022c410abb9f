package supervise

import (
	"encoding/json"
	"testing"
	"time"
)

// FuzzRecord: whatever stands in the record, also with a sum that is right, a server
// starts early only where the record is of its own node, in this boot, and tells of an
// end that was seen.
func FuzzRecord(f *testing.F) {
	for _, r := range []Record{
		{Node: "n1", Boot: "b", At: 5e9, Delay: 2e9, Exact: true, Exit: "exit code 0"}, {Node: "n1", Running: true, Boot: "b", At: 5e9, Delay: 2e9},
		{Node: "n2", Boot: "b", At: -1, Delay: -1}, {Node: "n1", Boot: "other", At: 1 << 62, Delay: 1 << 62},
	} {
		text, err := json.Marshal(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, true, int64(6e9), false)
	}
	f.Add([]byte("{}\n\n"), false, int64(0), true)
	f.Fuzz(func(t *testing.T, text []byte, sum bool, at int64, fresh bool) {
		b := text
		if sum {
			b = append(append(append(append([]byte{}, text...), '\n'), digest(text)...), '\n')
		}
		m := parseRecord(b)
		if (m.Record == nil) != (m.Damaged != "") {
			t.Fatalf("%+v", m)
		}
		now := Moment{Boot: "b", At: time.Duration(uint64(at) >> 2)}
		terms := Terms{Node: "n1", Delay: 2 * time.Second, New: fresh}
		s, _ := Begin(terms, m, now)
		full := after(now.At, terms.Delay)
		r := m.Record
		if s.NotBefore < full && (r == nil || r.Node != "n1" || r.Boot != "b" || r.Running || r.At < 0 || s.NotBefore < after(r.At, terms.Delay)) {
			t.Fatalf("%+v starts at %s, not at %s", m, s.NotBefore, full)
		}
		if s, todo := Step(terms, s, Observation{About: Ticked}, now.At); s.NotBefore > now.At && len(todo) > 0 {
			t.Fatalf("it starts %s early", s.NotBefore-now.At)
		}
	})
}
