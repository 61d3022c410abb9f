package view

import (
	"fmt"
	"time"

	"redlockctl/server/safetext"
)

// Schema names the form of the JSON documents; docs/json.md describes them.
// Within a version fields are added, never renamed, retyped or removed.
// Durations are integer milliseconds with the suffix _ms, times of day RFC 3339;
// a field that does not apply is left out. [safetext.Marshal] writes text from a server.
const Schema = "redlockctl/v1"

// Envelope returns a document as one line with a line end, safe for a terminal. If kind is
// empty, the body has the kind.
func Envelope(kind string, body any) ([]byte, error) {
	line, err := safetext.Marshal(body)
	if err != nil {
		return nil, err
	}
	rest := append(line[1:], '\n')
	head := fmt.Appendf(nil, `{"schema":%q`, Schema)
	if kind != "" {
		head = fmt.Appendf(head, `,"kind":%q`, kind)
	}
	if rest[0] != '}' {
		head = append(head, ',')
	}
	return append(head, rest...), nil
}

// NoticeDoc tells of a change: package notify sends it.
type NoticeDoc struct {
	ID      string        `json:"id"` // of this notice, which may arrive twice
	At      time.Time     `json:"at"`
	What    string        `json:"what"` // verdict, finding opened or finding closed
	By      safetext.Text `json:"by"`
	Version string        `json:"version"`
	Cluster safetext.Text `json:"cluster"`
	Verdict string        `json:"verdict"`
	// Before is the verdict before; only of a verdict.
	Before string        `json:"verdict_before,omitempty"`
	Reason safetext.Text `json:"reason"`
	// Findings has the finding that was opened or closed; of a verdict those that are open.
	Findings []FindingDoc `json:"findings,omitempty"`
	// Dropped is how many notices before this one were dropped: too many waited.
	Dropped int `json:"dropped,omitempty"`
}
