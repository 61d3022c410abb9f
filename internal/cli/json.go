package cli

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"
	"unicode/utf8"

	"redlockctl/internal/safetext"
	"redlockctl/monitor"
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
func base64Of(raw string) string {
	if utf8.ValidString(raw) {
		return ""
	}
	return base64.StdEncoding.EncodeToString([]byte(raw))
}

func ms(d time.Duration) int64 { return d.Milliseconds() }

// msUntil is the time from now until t, not negative; nil for a zero t.
func msUntil(t, now time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	v := max(0, t.Sub(now).Milliseconds())
	return &v
}

// clusterJSON is the state of the cluster.
type clusterJSON struct {
	Cluster safetext.Text `json:"cluster"`
	Verdict string        `json:"verdict"`
	Reason  safetext.Text `json:"reason"`
	// Protected says that no restart gives a vote twice; Missing, what is missing.
	Protected bool          `json:"protected"`
	Missing   safetext.Text `json:"missing"`
	N         int           `json:"n"`
	Quorum    int           `json:"quorum"`
	Serving   int           `json:"serving"`
	CanLose   int           `json:"can_lose"`
	MaxTTLms  int64         `json:"max_ttl_ms"`
	// Whether every key of every node that answers was read; if not, which nodes
	// were not.
	Complete bool         `json:"complete"`
	Unread   []unreadJSON `json:"unread,omitempty"`
}

// unreadJSON is a node that was not read to the end.
type unreadJSON struct {
	Node safetext.Text `json:"node"`
	Why  safetext.Text `json:"why"`
}

func clusterDoc(s *monitor.Snapshot) clusterJSON {
	c := s.Cluster
	doc := clusterJSON{
		Cluster: text(c.Name), Verdict: c.Verdict.String(), Reason: text(c.Reason),
		Protected: c.Protected, Missing: text(c.Missing), N: c.N, Quorum: c.Quorum,
		Serving: c.Serving, CanLose: c.CanLose, MaxTTLms: ms(c.MaxTTL), Complete: s.Complete,
	}
	for _, n := range s.Unread() {
		doc.Unread = append(doc.Unread, unreadJSON{text(n.Node), text(n.Why)})
	}
	return doc
}

// nodeJSON is one master.
type nodeJSON struct {
	Name               safetext.Text   `json:"name"`
	Addr               safetext.Text   `json:"addr"`
	State              string          `json:"state"`
	StateForMs         *int64          `json:"state_for_ms,omitempty"`
	Error              *safetext.Text  `json:"error,omitempty"`
	RunID              *safetext.Text  `json:"run_id,omitempty"`
	Version            *safetext.Text  `json:"version,omitempty"`
	Role               *safetext.Text  `json:"role,omitempty"`
	UptimeMs           int64           `json:"uptime_ms"`
	Locks              int             `json:"locks"`
	RTTus              int64           `json:"rtt_us"`
	ClockOffsetUs      *int64          `json:"clock_offset_us,omitempty"`
	ClockBoundUs       *int64          `json:"clock_offset_bound_us,omitempty"`
	DriftPPM           *float64        `json:"drift_ppm,omitempty"`
	DriftBoundPPM      *float64        `json:"drift_bound_ppm,omitempty"`
	MinReplicasToWrite *int64          `json:"min_replicas_to_write,omitempty"`
	Persistent         bool            `json:"persistent"`
	MaxmemoryPolicy    *safetext.Text  `json:"maxmemory_policy,omitempty"`
	Replicas           int             `json:"replicas"`
	Clients            int             `json:"clients"`
	UsedMemory         int64           `json:"used_memory_bytes"`
	Notes              []safetext.Text `json:"notes,omitempty"`
}

func optional(s string) *safetext.Text {
	if s == "" {
		return nil
	}
	t := text(s)
	return &t
}

func nodeDoc(n monitor.Node, now time.Time) nodeJSON {
	doc := nodeJSON{
		Name: text(n.Name), Addr: text(n.Addr), State: n.State.String(), Error: optional(n.Err.Raw()),
		RunID: optional(n.RunID), Version: optional(n.Version), Role: optional(n.Role), UptimeMs: ms(n.Uptime),
		Locks: n.Locks, RTTus: n.RTT.Microseconds(), Persistent: n.Persistent, MaxmemoryPolicy: optional(n.Eviction),
		Replicas: n.Replicas, Clients: n.Clients, UsedMemory: n.UsedMemory,
	}
	if !n.Since.IsZero() {
		v := ms(max(0, now.Sub(n.Since)))
		doc.StateForMs = &v
	}
	if n.Offset.Valid {
		off, bound := n.Offset.Offset.Microseconds(), n.Offset.Bound.Microseconds()
		doc.ClockOffsetUs, doc.ClockBoundUs = &off, &bound
	}
	if n.Drift.Valid {
		doc.DriftPPM, doc.DriftBoundPPM = &n.Drift.PPM, &n.Drift.Bound
	}
	if n.MinReplicasToWrite >= 0 && n.RunID != "" {
		doc.MinReplicasToWrite = &n.MinReplicasToWrite
	}
	for _, note := range n.Notes {
		doc.Notes = append(doc.Notes, text(note))
	}
	return doc
}

// lockJSON is one resource over all nodes.
type lockJSON struct {
	Key          safetext.Text  `json:"key"`
	KeyBase64    string         `json:"key_base64,omitempty"`
	State        string         `json:"state"`
	Holder       *safetext.Text `json:"holder,omitempty"`
	HolderBase64 string         `json:"holder_base64,omitempty"`
	Held         int            `json:"copies"`
	N            int            `json:"n"`
	Quorum       int            `json:"quorum"`
	Tokens       int            `json:"tokens"`
	Nobody       bool           `json:"nobody,omitempty"` // none of the tokens can have a quorum
	EndsMs       *int64         `json:"majority_ends_ms,omitempty"`
	Margin       *int           `json:"margin,omitempty"`
	SeenForMs    *int64         `json:"seen_for_ms,omitempty"` // this holder
	formJSON
	Nodes []copyJSON `json:"nodes"`
}

// formJSON is what the form of a lock tells; nothing where nobody knows it.
type formJSON struct {
	Library     string          `json:"library,omitempty"` // several names where they cannot be told apart
	Owner       *safetext.Text  `json:"owner,omitempty"`
	OwnerBase64 string          `json:"owner_base64,omitempty"`
	Created     time.Time       `json:"created,omitzero"`  // by the clock of its maker
	Deadline    time.Time       `json:"deadline,omitzero"` // of a lock that ends by its value
	Group       *safetext.Text  `json:"group,omitempty"`   // the lock whose part or companion the key is
	GroupBase64 string          `json:"group_base64,omitempty"`
	Companion   bool            `json:"companion,omitempty"`
	TakingAway  string          `json:"taking_away,omitempty"`
	Refused     string          `json:"refused,omitempty"`
	Keys        []safetext.Text `json:"keys,omitempty"`        // of a lock that is several keys
	KeysBase64  []string        `json:"keys_base64,omitempty"` // all of them, if one is no UTF-8
}

func formDoc(l *monitor.Lock) formJSON {
	var doc formJSON
	if f := l.Form; f != nil {
		doc = formJSON{
			Library: f.Library, Owner: optional(f.Owner.Raw()), OwnerBase64: base64Of(f.Owner.Raw()),
			Created: f.Created, Deadline: deadline(l), Group: optional(f.Group.Raw()), GroupBase64: base64Of(f.Group.Raw()),
			Companion: f.Companion, TakingAway: f.TakingAway, Refused: f.Refused,
		}
	}
	doc.Keys = l.Keys
	if slices.ContainsFunc(l.Keys, func(k safetext.Text) bool { return !utf8.ValidString(k.Raw()) }) {
		for _, k := range l.Keys {
			doc.KeysBase64 = append(doc.KeysBase64, base64.StdEncoding.EncodeToString([]byte(k.Raw())))
		}
	}
	return doc
}

// copyJSON is a key on one node.
type copyJSON struct {
	Node        safetext.Text  `json:"node"`
	State       string         `json:"state"` // present, absent, unknown, unread
	Type        *safetext.Text `json:"type,omitempty"`
	Token       *safetext.Text `json:"token,omitempty"`
	TokenBase64 string         `json:"token_base64,omitempty"`
	Length      int64          `json:"length,omitempty"`
	TTLms       *int64         `json:"ttl_ms,omitempty"` // absent where the copy has none
	Immortal    bool           `json:"immortal,omitempty"`
}

func lockDoc(l *monitor.Lock, s *monitor.Snapshot) lockJSON {
	doc := lockJSON{
		Key: l.Key, KeyBase64: base64Of(l.Key.Raw()), State: l.State.String(),
		Holder: optional(l.Holder.Raw()), HolderBase64: base64Of(l.Holder.Raw()),
		Held: l.Held, N: s.Cluster.N, Quorum: s.Cluster.Quorum, Tokens: l.Tokens, EndsMs: msUntil(l.MajorityEnd, s.At),
		formJSON: formDoc(l),
	}
	if l.Nobody {
		doc.Nobody, doc.Holder, doc.HolderBase64 = true, nil, ""
	}
	if l.Held >= s.Cluster.Quorum {
		margin := l.Margin()
		doc.Margin = &margin
	}
	if !l.Since.IsZero() {
		v := ms(max(0, s.At.Sub(l.Since)))
		doc.SeenForMs = &v
	}
	for i, c := range l.Copies.All() {
		cp := copyJSON{State: copyStateNames[c.State]}
		if i < len(s.Nodes) {
			cp.Node = text(s.Nodes[i].Name)
		}
		if c.State != monitor.CopyAbsent && !(c.State != monitor.CopyPresent && c.Type == "") {
			cp.Type, cp.Length = optional(c.Type), c.Len
			cp.Token, cp.TokenBase64 = optional(c.Token.Raw()), base64Of(c.Token.Raw())
			cp.TTLms = msUntil(c.Expires, s.At)
			cp.Immortal = c.State == monitor.CopyPresent && c.Expires.IsZero()
		}
		doc.Nodes = append(doc.Nodes, cp)
	}
	return doc
}

var copyStateNames = [...]string{monitor.CopyAbsent: "absent", monitor.CopyPresent: "present", monitor.CopyUnknown: "unknown", monitor.CopyUnread: "unread"}

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
