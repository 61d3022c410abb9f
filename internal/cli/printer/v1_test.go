package printer

import (
	"bytes"
	"testing"
)

// v2 and v1 are the same line in the words of both schemas.
func TestSchemaV1Words(t *testing.T) {
	for name, tt := range map[string]struct{ v2, v1 string }{
		"the schema, without spaces": {`{"schema":"redlockctl/v2","kind":"status"}`, `{"schema":"redlockctl/v1","kind":"status"}`},
		"the schema, indented":       {`  "schema": "redlockctl/v2",`, `  "schema": "redlockctl/v1",`},
		"a field": {`{"incarnations":2,"cordoned":true,"no_ttl":true,"liveness":"alive","rejoined":["n1"]}`,
			`{"lives":2,"held":true,"immortal":true,"life":"alive","opened":["n1"]}`},
		"a state":                       {`"state": "cordoned"`, `"state": "held"`},
		"what was done":                 {`"done":"serving"`, `"done":"opened"`},
		"a cordon":                      {`"done":"cordoned"`, `"done":"fenced"`},
		"an action of the audit log":    {`"act":"node cordon"`, `"act":"node fence"`},
		"one word in another":           {`"act":"node cordoned"`, `"act":"node held"`},
		"a state that stays":            {`{"state":"serving"}`, `{"state":"serving"}`},
		"a node of lab up":              {"      \"state\": \"serving\",\n      \"restart\": \"r\"", "      \"state\": \"opened\",\n      \"restart\": \"r\""},
		"a node of the lab, restarted":  {"      \"state\": \"fenced\",\n      \"restart\": \"r\"", "      \"state\": \"closed\",\n      \"restart\": \"r\""},
		"a state of a lock":             {`"state":"bare majority","kind":"over max TTL"`, `"state":"bare","kind":"over-TTL"`},
		"a finding":                     {`"id":"no-ttl-lock"`, `"id":"immortal-lock"`},
		"counts by state":               {`"locks": {"bare majority": 1, "no TTL": 2, "orphaned": 3, "over max TTL": 4}`, `"locks": {"bare": 1, "immortal": 2, "orphan": 3, "over-TTL": 4}`},
		"a value of its own":            {`{"key":"cordoned","token":"redlockctl/v2"}`, `{"key":"cordoned","token":"redlockctl/v2"}`},
		"text with quotes":              {`{"text":"\"cordoned\":1 \"state\":\"cordoned\""}`, `{"text":"\"cordoned\":1 \"state\":\"cordoned\""}`},
		"a name that ends in a field's": {`{"was_cordoned":true}`, `{"was_cordoned":true}`},
	} {
		if got := schemaV1.Replace(tt.v2); got != tt.v1 {
			t.Errorf("%s: %s becomes %s, want %s", name, tt.v2, got, tt.v1)
		}
	}
}

// A word that is split between two writes is replaced too, and what is written last is printed
// though no newline ends it.
func TestSchemaV1Writes(t *testing.T) {
	const v2 = "{\"schema\":\"redlockctl/v2\",\"state\":\"cordoned\"}\n{\"incarnations\":1}\n{\"no_ttl\":true}"
	const v1 = "{\"schema\":\"redlockctl/v1\",\"state\":\"held\"}\n{\"lives\":1}\n{\"immortal\":true}"
	for size := 1; size <= len(v2); size++ {
		var b bytes.Buffer
		w := &inV1{to: &b}
		for rest := v2; rest != ""; {
			part := rest[:min(size, len(rest))]
			if n, err := w.Write([]byte(part)); n != len(part) || err != nil {
				t.Fatalf("wrote %d, %v", n, err)
			}
			rest = rest[len(part):]
		}
		if err := w.flush(); err != nil {
			t.Fatal(err)
		}
		if b.String() != v1 {
			t.Fatalf("in parts of %d bytes: %s", size, b.String())
		}
	}
}
