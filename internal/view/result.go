package view

import (
	"time"

	"redlockctl/internal/safetext"
	"redlockctl/redlock"
)

// ResultDoc is one node's part in an act.
type ResultDoc struct {
	Node        safetext.Text  `json:"node"`
	Status      string         `json:"status"`
	Token       *safetext.Text `json:"token,omitempty"`
	TokenBase64 string         `json:"token_base64,omitempty"`
	Type        *safetext.Text `json:"type,omitempty"`
	TTLms       *int64         `json:"ttl_ms,omitempty"`
	MayLiveMs   *int64         `json:"may_live_ms,omitempty"`
	Error       *safetext.Text `json:"error,omitempty"`
}

// DocsOfResults are what an act did on each node.
func DocsOfResults(results []redlock.NodeResult, now time.Time) []ResultDoc {
	docs := make([]ResultDoc, 0, len(results))
	for _, r := range results {
		doc := ResultDoc{
			Node: safetext.New(r.Node), Status: r.Status.String(), Token: safetext.Optional(r.Token), TokenBase64: safetext.New(r.Token).Base64(),
			Type: safetext.Optional(r.Type), MayLiveMs: MSUntil(r.MayLiveUntil, now), Error: safetext.OptionalError(r.Err),
		}
		if r.TTL > 0 {
			doc.TTLms = new(r.TTL.Milliseconds())
		}
		docs = append(docs, doc)
	}
	return docs
}
