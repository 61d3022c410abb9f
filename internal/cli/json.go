package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
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
const Schema = "redlockctl/v1"

// document is what --output json prints. kind says which one it is, in a word:
// "schema" and "kind" come first in each.
type document interface{ kind() string }

func (statusJSON) kind() string     { return "status" }
func (locksJSON) kind() string      { return "locks" }
func (lockLineJSON) kind() string   { return "lock line" }
func (locksEndJSON) kind() string   { return "locks end" }
func (lockPageJSON) kind() string   { return "lock" }
func (nodesJSON) kind() string      { return "nodes" }
func (nodePageJSON) kind() string   { return "node" }
func (whoJSON) kind() string        { return "who" }
func (guardPageJSON) kind() string  { return "guard" }
func (doctorJSON) kind() string     { return "doctor" }
func (grantJSON) kind() string      { return "grant" }
func (keptJSON) kind() string       { return "kept" }
func (releaseJSON) kind() string    { return "release" }
func (actsJSON) kind() string       { return "acts" }
func (failureJSON) kind() string    { return "failure" }
func (nodeActJSON) kind() string    { return "node act" }
func (openedJSON) kind() string     { return "new cluster" }
func (bootFenceJSON) kind() string  { return "boot fence" }
func (bootFencesJSON) kind() string { return "boot fences" }
func (auditJSON) kind() string      { return "audit" }
func (auditEntryJSON) kind() string { return "audit line" }
func (verifyJSON) kind() string     { return "audit verify" }
func (configJSON) kind() string     { return "config" }
func (badConfigJSON) kind() string  { return "config" }
func (aclJSON) kind() string        { return "acl" }
func (infoJSON) kind() string       { return "info" }
func (versionJSON) kind() string    { return "version" }
func (labJSON) kind() string        { return "lab" }
func (simulateJSON) kind() string   { return "simulation" }
func (mutantsJSON) kind() string    { return "mutants" }
func (exploreJSON) kind() string    { return "exploration" }

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

// encoded is a document on one line, which it ends.
func encoded(doc document) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(doc); err != nil {
		return nil, err
	}
	// Some say the schema themselves.
	body := bytes.TrimPrefix(b.Bytes(), fmt.Appendf(nil, `{"schema":%q`, Schema))
	body = bytes.TrimLeft(body, "{,")
	head := fmt.Appendf(nil, `{"schema":%q,"kind":%q`, Schema, doc.kind())
	if body[0] != '}' {
		head = append(head, ',')
	}
	return append(head, body...), nil
}

// text makes any string safe inside JSON: encoding/json leaves C1 controls and
// bidi characters as they are.
func text(s string) safetext.Text { return safetext.New(s) }

// base64Of is the exact bytes of a text that JSON cannot hold; else empty.
func base64Of(raw string) string { return text(raw).Base64() }

func ms(d time.Duration) int64 { return d.Milliseconds() }

// msUntil is the time from now until t, not negative; nil for a zero t.
func msUntil(t, now time.Time) *int64 { return view.MSUntil(t, now) }

func optional(s string) *safetext.Text { return safetext.Optional(s) }

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
			Node: text(r.Node), Status: r.Status.String(), Token: optional(r.Token), TokenBase64: base64Of(r.Token),
			Type: optional(r.Type), MayLiveMs: msUntil(r.MayLiveUntil, now),
		}
		if r.TTL > 0 {
			v := ms(r.TTL)
			doc.TTLms = &v
		}
		if r.Err != nil {
			doc.Error = optional(r.Err.Error())
		}
		docs = append(docs, doc)
	}
	return docs
}
