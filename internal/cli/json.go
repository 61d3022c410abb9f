package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"redlockctl/internal/safetext"
	"redlockctl/internal/view"
	"redlockctl/redlock"
)

// Schema names the form of the JSON documents; docs/json.md describes them.
// Within a version fields are added, never renamed, retyped or removed.
// Durations are integer milliseconds with the suffix _ms, times of day RFC 3339;
// a field that does not apply is left out. Text that came from a server keeps its
// characters by JSON escapes; where its bytes are no UTF-8, a second field with
// the suffix _base64 holds them exactly.
const Schema = "redlockctl/v2"

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

// document is what --output json prints. kind says which one it is, in a word:
// "schema" and "kind" come first in each.
type document struct {
	kind string
	body any
}

// printJSON writes one document.
func printJSON(w io.Writer, doc document) error {
	line, err := encoded(doc)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, line, "", "  "); err != nil {
		return err
	}
	_, err = b.WriteTo(w)
	return err
}

// printLine writes one document on one line.
func printLine(w io.Writer, doc document) error {
	line, err := encoded(doc)
	if err != nil {
		return err
	}
	_, err = w.Write(line)
	return err
}

// encoded is a document on one line, which it ends, safe for a terminal.
func encoded(doc document) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(doc.body); err != nil {
		return nil, err
	}
	body := safetext.EscapeJSON(b.Bytes()[1:])
	head := fmt.Appendf(nil, `{"schema":%q,"kind":%q`, Schema, doc.kind)
	if body[0] != '}' {
		head = append(head, ',')
	}
	return append(head, body...), nil
}

// resultJSON is one node's part in an act.
type resultJSON struct {
	Node        safetext.Text  `json:"node"`
	Status      string         `json:"status"`
	Token       *safetext.Text `json:"token,omitempty"`
	TokenBase64 string         `json:"token_base64,omitempty"`
	Type        *safetext.Text `json:"type,omitempty"`
	TTLms       *int64         `json:"ttl_ms,omitempty"`
	MayLiveMs   *int64         `json:"may_live_ms,omitempty"`
	Error       *safetext.Text `json:"error,omitempty"`
}

func resultDocs(results []redlock.NodeResult, now time.Time) []resultJSON {
	docs := make([]resultJSON, 0, len(results))
	for _, r := range results {
		doc := resultJSON{
			Node: safetext.New(r.Node), Status: r.Status.String(), Token: safetext.Optional(r.Token), TokenBase64: safetext.New(r.Token).Base64(),
			Type: safetext.Optional(r.Type), MayLiveMs: view.MSUntil(r.MayLiveUntil, now), Error: safetext.OptionalError(r.Err),
		}
		if r.TTL > 0 {
			doc.TTLms = new(r.TTL.Milliseconds())
		}
		docs = append(docs, doc)
	}
	return docs
}
