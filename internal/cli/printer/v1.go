package printer

import (
	"bytes"
	"io"
	"strings"
)

// schemaV1 turns a line of [Schema] into the words of v1, which "--json-schema v1"
// prints for one release. Quotes within a JSON string are escaped, so what is replaced
// is a field, or a value behind its field.
var schemaV1 = func() *strings.Replacer {
	var pairs []string
	for _, field := range [][2]string{{"incarnations", "lives"}, {"cordoned", "held"}, {"no_ttl", "immortal"}, {"liveness", "life"}, {"rejoined", "opened"},
		{"bare majority", "bare"}, {"orphaned", "orphan"}, {"over max TTL", "over-TTL"}, {"no TTL", "immortal"}, // how many locks of status are so
	} {
		pairs = append(pairs, `"`+field[0]+`":`, `"`+field[1]+`":`)
	}
	for _, value := range [][3]string{
		{"schema", Schema, "redlockctl/v1"},
		{"state", "bare majority", "bare"}, {"state", "orphaned", "orphan"}, {"state", "over max TTL", "over-TTL"}, {"state", "no TTL", "immortal"},
		{"kind", "orphaned", "orphan"}, {"kind", "over max TTL", "over-TTL"}, {"kind", "no TTL", "immortal"}, {"id", "no-ttl-lock", "immortal-lock"}, {"id", "stays-fenced", "stays-closed"},
		{"state", "cordoned", "held"}, {"kind", "cordoned", "held"}, {"kind", "rejoined", "opened"}, {"done", "cordoned", "fenced"}, {"done", "serving", "opened"},
		{"act", "node cordon", "node fence"}, {"act", "node uncordon", "node open"}, {"act", "node rejoin", "node open"},
		{"boot", "fenced", "closed"}, {"boot", "unfenced", "open"},
		{"act", "node fenced", "node closed"}, {"act", "node rejoined", "node opened"}, {"act", "node cordoned", "node held"},
	} {
		for _, colon := range []string{`":"`, `": "`} {
			pairs = append(pairs, `"`+value[0]+colon+value[1]+`"`, `"`+value[0]+colon+value[2]+`"`)
		}
	}
	// A node of lab up alone has "restart" behind its state; the other nodes served in v1 too.
	for _, value := range [][2]string{{"serving", "opened"}, {"fenced", "closed"}} {
		const rest = "\",\n      \"restart\":"
		pairs = append(pairs, `"state": "`+value[0]+rest, `"state": "`+value[1]+rest)
	}
	return strings.NewReplacer(pairs...)
}()

// inV1 passes whole lines on, in the words of v1; what no newline ends, at flush.
type inV1 struct {
	to   io.Writer
	line []byte
}

func (v *inV1) Write(p []byte) (int, error) {
	v.line = append(v.line, p...)
	return len(p), v.pass(bytes.LastIndexByte(v.line, '\n') + 1)
}

func (v *inV1) flush() error { return v.pass(len(v.line)) }

func (v *inV1) pass(n int) error {
	_, err := io.WriteString(v.to, schemaV1.Replace(string(v.line[:n])))
	v.line = append(v.line[:0], v.line[n:]...)
	return err
}
