package view

import (
	"time"

	"redlockctl/internal/who"
	"redlockctl/monitor"
	"redlockctl/redlock"
	"redlockctl/server/safetext"
)

// ClusterDoc is the state of the cluster.
type ClusterDoc struct {
	SightDoc
	Verdict string        `json:"verdict"`
	Reason  safetext.Text `json:"reason"`
	// Protected: no restart makes a node vote twice; Missing says what is missing for
	// that.
	Protected bool          `json:"protected"`
	Missing   safetext.Text `json:"missing"`
}

// SightDoc is the cluster in a document about locks. It has no verdict: a look at locks alone does
// not see the findings.
type SightDoc struct {
	Cluster  safetext.Text `json:"cluster"`
	N        int           `json:"n"`
	Quorum   int           `json:"quorum"`
	Serving  int           `json:"serving"`
	CanLose  int           `json:"can_lose"`
	MaxTTLms int64         `json:"max_ttl_ms"`
	BoundMs  int64         `json:"ttl_bound_ms"` // the least of max_ttl_ms and of what each guard covers; 0: unknown
	// Whether every key of every node that answers was read; if not, which nodes were
	// not.
	Complete bool        `json:"complete"`
	Unread   []UnreadDoc `json:"unread,omitempty"`
}

// UnreadDoc is a node that was not fully read.
type UnreadDoc struct {
	Node safetext.Text `json:"node"`
	Why  safetext.Text `json:"why"`
}

// DocOfCluster returns the document of a snapshot's cluster.
func DocOfCluster(s *monitor.Snapshot) ClusterDoc {
	c := &s.Cluster
	return ClusterDoc{DocOfSight(s), c.Verdict.String(), safetext.New(c.Reason), c.Protected, safetext.New(c.Missing)}
}

// DocOfSight returns the cluster for a document about locks.
func DocOfSight(s *monitor.Snapshot) SightDoc {
	c := &s.Cluster
	doc := SightDoc{Cluster: safetext.New(c.Name), N: c.N, Quorum: c.Quorum, Serving: c.Serving, CanLose: c.CanLose,
		MaxTTLms: c.MaxTTL.Milliseconds(), BoundMs: c.TTLBound.Milliseconds(), Complete: s.Complete}
	for _, n := range s.Unread() {
		doc.Unread = append(doc.Unread, UnreadDoc{safetext.New(n.Node), safetext.New(n.Why)})
	}
	return doc
}

// NodeDoc is one master.
type NodeDoc struct {
	Name               safetext.Text  `json:"name"`
	Addr               safetext.Text  `json:"addr"`
	State              string         `json:"state"`
	StateForMs         *int64         `json:"state_for_ms,omitempty"`
	Error              *safetext.Text `json:"error,omitempty"`
	RunID              *safetext.Text `json:"run_id,omitempty"`
	Version            *safetext.Text `json:"version,omitempty"`
	Role               *safetext.Text `json:"role,omitempty"`
	UptimeMs           int64          `json:"uptime_ms"`
	Locks              int            `json:"locks"`
	RTTus              int64          `json:"rtt_us"`
	ClockOffsetUs      *int64         `json:"clock_offset_us,omitempty"`
	ClockBoundUs       *int64         `json:"clock_offset_bound_us,omitempty"`
	DriftPPM           *float64       `json:"drift_ppm,omitempty"`
	DriftBoundPPM      *float64       `json:"drift_bound_ppm,omitempty"`
	MinReplicasToWrite *int64         `json:"min_replicas_to_write,omitempty"`
	FenceLeak          *safetext.Text `json:"fence_leak,omitempty"`
	ExposedDoc
	Persistent      bool            `json:"persistent"`
	DurabilityDoubt *safetext.Text  `json:"durability_doubt,omitempty"`
	MaxmemoryPolicy *safetext.Text  `json:"maxmemory_policy,omitempty"`
	Replicas        int             `json:"replicas"`
	Clients         int             `json:"clients"`
	UsedMemory      int64           `json:"used_memory_bytes"`
	Notes           []safetext.Text `json:"notes,omitempty"`
}

// DocOfNode returns the document of a node.
func DocOfNode(n monitor.Node, now time.Time) NodeDoc {
	doc := NodeDoc{
		Name: safetext.New(n.Name), Addr: safetext.New(n.Addr), State: n.State.String(), Error: safetext.Optional(n.Err.Raw()),
		RunID: safetext.Optional(n.RunID), Version: safetext.Optional(n.Version), Role: safetext.Optional(n.Role), UptimeMs: n.Uptime.Milliseconds(),
		Locks: n.Locks, RTTus: n.RTT.Microseconds(), Persistent: n.Persistent, MaxmemoryPolicy: safetext.Optional(n.Eviction),
		Replicas: n.Replicas, Clients: n.Clients, UsedMemory: n.UsedMemory, Notes: safetext.Texts(n.Notes), FenceLeak: safetext.Optional(n.Leak), ExposedDoc: docOfExposed(&n),
	}
	if _, doubt := n.Facts.Durable(); !n.Persistent {
		doc.DurabilityDoubt = safetext.Optional(doubt)
	}
	if !n.Since.IsZero() {
		doc.StateForMs = new(max(0, now.Sub(n.Since).Milliseconds()))
	}
	if n.Offset.Valid {
		doc.ClockOffsetUs, doc.ClockBoundUs = new(n.Offset.Offset.Microseconds()), new(n.Offset.Bound.Microseconds())
	}
	if n.Drift.Valid {
		doc.DriftPPM, doc.DriftBoundPPM = &n.Drift.PPM, &n.Drift.Bound
	}
	if n.MinReplicasToWrite >= 0 && n.RunID != "" {
		doc.MinReplicasToWrite = &n.MinReplicasToWrite
	}
	return doc
}

// DocsOfNodes returns the documents of nodes.
func DocsOfNodes(now time.Time, nodes []*monitor.Node) []NodeDoc {
	return Docs(nodes, func(n *monitor.Node) NodeDoc { return DocOfNode(*n, now) })
}

// LockDoc is one resource over all nodes.
type LockDoc struct {
	Key       safetext.Text  `json:"key"`
	State     string         `json:"state"`
	Holder    *safetext.Text `json:"holder,omitempty"`
	Held      int            `json:"copies"`
	N         int            `json:"n"`
	Quorum    int            `json:"quorum"`
	Tokens    int            `json:"tokens"`
	Nobody    bool           `json:"nobody,omitempty"` // none of the tokens can have a quorum
	Lost      int            `json:"lost,omitempty"`   // lost votes of the holder that would not have expired yet
	EndsMs    *int64         `json:"majority_ends_ms,omitempty"`
	HeldUntil *time.Time     `json:"held_until,omitempty"` // a client may rely on it until then
	Margin    *int           `json:"margin,omitempty"`     // how many more copies may be lost while it can be extended
	Access    *accessDoc     `json:"can_get_in,omitempty"` // other clients
	Earlier   *earlierDoc    `json:"earlier,omitempty"`
	SeenForMs *int64         `json:"seen_for_ms,omitempty"` // this holder
	formDoc
	Nodes []CopyDoc `json:"nodes"`
}

// accessDoc says who else can get a lock before its holder's end.
type accessDoc struct {
	// When: "now", "may now", "from" (At), "not before" (At, the holder's end) or "never".
	When     string     `json:"when"`
	At       *time.Time `json:"at,omitempty"`
	Restarts *int       `json:"restarts,omitempty"` // how many nodes not verified to start fenced must restart before another client gets the lock early
}

// earlierDoc is another client that may also rely on the lock.
type earlierDoc struct {
	Token safetext.Text `json:"token"`
	Until *time.Time    `json:"until,omitempty"` // nil: no TTL
}

// jsonTime rounds a time down to milliseconds; nil if JSON cannot represent it.
func jsonTime(t time.Time) *time.Time {
	if t.IsZero() || t.Year() > 9999 {
		return nil
	}
	return new(t.Truncate(time.Millisecond))
}

// docAccess adds until when a client may rely on a lock, who else can get in, and which
// other clients may rely on it.
func (d *LockDoc) docAccess(l *monitor.Lock, s *monitor.Snapshot) {
	if e := l.Earlier; e != nil {
		d.Earlier = &earlierDoc{e.Token, jsonTime(e.Until)}
	}
	if !l.ReliedOn() {
		return
	}
	end := l.HeldUntil()
	d.HeldUntil = jsonTime(end)
	a := s.Access(l)
	if a.Spare >= 0 {
		d.Margin = &a.Spare
	}
	if d.Access = (&accessDoc{When: "not before", At: d.HeldUntil}); end.IsZero() || farAway(end, s.At) {
		d.Access = &accessDoc{When: "never"}
	}
	switch {
	case a.Now:
		d.Access = &accessDoc{When: "now"}
	case a.Perhaps:
		d.Access = &accessDoc{When: "may now"}
	case !a.From.IsZero():
		d.Access = &accessDoc{When: "from", At: jsonTime(a.From)}
	case a.Restarts > 0:
		d.Access.Restarts = &a.Restarts
	}
}

// formDoc returns what the form of a lock tells; empty if the form is unknown.
type formDoc struct {
	Library     string          `json:"library,omitempty"` // several names if they cannot be distinguished
	Owner       *safetext.Text  `json:"owner,omitempty"`
	OwnerMethod who.Method      `json:"owner_method,omitempty"` // how the owner is known: "told" by the token
	Created     time.Time       `json:"created,omitzero"`       // by the clock of its maker
	Deadline    time.Time       `json:"deadline,omitzero"`      // of a lock that ends by its value
	Group       *safetext.Text  `json:"group,omitempty"`        // the lock whose part or companion the key is
	Companion   bool            `json:"companion,omitempty"`
	TakingAway  string          `json:"taking_away,omitempty"`
	Refused     string          `json:"refused,omitempty"`
	Keys        []safetext.Text `json:"keys,omitempty"` // of a lock that is several keys
}

func docOfForm(l *monitor.Lock) formDoc {
	var doc formDoc
	if f := l.Form; f != nil {
		doc = formDoc{
			Library: f.Library, Owner: safetext.Optional(f.Owner.Raw()),
			Created: f.Created, Deadline: Deadline(l), Group: safetext.Optional(f.Group.Raw()),
			Companion: f.Companion, TakingAway: f.TakingAway, Refused: f.Refused,
		}
	}
	if ownerOf(l) != "" {
		doc.OwnerMethod = who.Told
	}
	doc.Keys = l.Keys()
	return doc
}

// CopyDoc is a key on one node.
type CopyDoc struct {
	Node   safetext.Text  `json:"node"`
	State  string         `json:"state"` // present, lost, absent, unknown, unread
	Type   *safetext.Text `json:"type,omitempty"`
	Token  *safetext.Text `json:"token,omitempty"`
	Length int64          `json:"length,omitempty"`
	TTLms  *int64         `json:"ttl_ms,omitempty"` // nil: no TTL
	NoTTL  bool           `json:"no_ttl,omitempty"`
	LostAt *time.Time     `json:"lost_at,omitempty"`
	LostBy string         `json:"lost_by,omitempty"` // restart, data wiped, deleted, clock step
}

// DocOfLock returns the document of a lock in a snapshot.
func DocOfLock(l *monitor.Lock, s *monitor.Snapshot) LockDoc {
	doc := LockDoc{
		Key: l.Key, State: l.State.String(),
		Holder: safetext.Optional(l.Holder.Raw()),
		Held:   l.Held, N: s.Cluster.N, Quorum: s.Cluster.Quorum, Lost: l.Lost, Tokens: l.Tokens, EndsMs: MSUntil(l.MajorityEnd(), s.At),
		formDoc: docOfForm(l),
	}
	if doc.Nobody = l.Nobody; l.Nobody || l.Contested {
		doc.Holder = nil
	}
	doc.docAccess(l, s)
	if !l.Since().IsZero() {
		doc.SeenForMs = new(max(0, s.At.Sub(l.Since()).Milliseconds()))
	}
	for i, c := range l.Copies.All() {
		cp := CopyDoc{State: copyStateNames[c.State]}
		if i < len(s.Nodes) {
			cp.Node = safetext.New(s.Nodes[i].Name)
		}
		if c.State != monitor.CopyAbsent && !(c.State != monitor.CopyPresent && c.Type == "") {
			cp.Type, cp.Length = safetext.Optional(c.Type), c.Len
			cp.Token = safetext.Optional(c.Token.Raw())
			cp.TTLms = MSUntil(c.Expires, s.At)
			cp.NoTTL = (c.State == monitor.CopyPresent || c.State == monitor.CopyLost) && c.Expires.IsZero()
			if c.State == monitor.CopyLost {
				cp.LostAt, cp.LostBy = jsonTime(c.LostAt), c.Cause.String()
			}
		}
		doc.Nodes = append(doc.Nodes, cp)
	}
	return doc
}

var copyStateNames = [...]string{monitor.CopyAbsent: "absent", monitor.CopyPresent: "present", monitor.CopyUnknown: "unknown", monitor.CopyUnread: "unread", monitor.CopySeen: "present", monitor.CopyLost: "lost"}

// FindingDoc is one finding.
type FindingDoc struct {
	ID          string         `json:"id"`
	Severity    string         `json:"severity"`
	Node        *safetext.Text `json:"node,omitempty"`
	Key         *safetext.Text `json:"key,omitempty"`
	Count       int            `json:"count,omitempty"`
	SinceMs     int64          `json:"since_ms"` // time since it was first seen
	Title       string         `json:"title"`
	Evidence    safetext.Text  `json:"evidence"`
	Consequence string         `json:"consequence"`
	Remedy      string         `json:"remedy"`
}

// DocOfFinding returns the document of a finding.
func DocOfFinding(f monitor.Finding, now time.Time) FindingDoc {
	return FindingDoc{
		ID: f.ID, Severity: f.Severity.String(), Node: safetext.Optional(f.Node), Key: safetext.Optional(f.Key.Raw()),
		Count: f.Count, SinceMs: max(0, now.Sub(f.Since).Milliseconds()),
		Title: f.Title, Evidence: f.Evidence, Consequence: f.Consequence, Remedy: f.Remedy,
	}
}

// DocsOfFindings returns the documents of findings.
func DocsOfFindings(found []*monitor.Finding, now time.Time) []FindingDoc {
	return Docs(found, func(f *monitor.Finding) FindingDoc { return DocOfFinding(*f, now) })
}

// LockCounts counts the locks by state, and in total.
func LockCounts(s *monitor.Snapshot) map[string]int {
	counts := map[string]int{"total": s.Locks.Len()}
	for st := range monitor.LockStates() {
		if n := s.Counts[st]; n > 0 {
			counts[st.String()] = n
		}
	}
	return counts
}

// MSUntil returns the time from now until t, not negative; nil for a zero t.
func MSUntil(t, now time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	if farAway(t, now) { // t.Sub could overflow
		return new(t.UnixMilli() - now.UnixMilli())
	}
	return new(max(0, t.Sub(now).Milliseconds()))
}

func libraryOf(l *monitor.Lock) string {
	if l.Form == nil {
		return ""
	}
	return l.Form.Library
}

// Deadline returns when a lock ends by its value; zero if it ends by its TTL. Without a
// TTL a time in the value is the end; with one it may also be the time of creation.
func Deadline(l *monitor.Lock) time.Time {
	if l.Form != nil && !l.Form.Deadline.IsZero() {
		for _, one := range l.Copies.All() {
			if one.State != monitor.CopyAbsent && !one.Token.Empty() && one.Expires.IsZero() {
				return l.Form.Deadline
			}
		}
	}
	return time.Time{}
}

func ownerOf(l *monitor.Lock) string {
	if l.Form == nil {
		return ""
	}
	return l.Form.Owner.Raw()
}

// Rows returns pointers to all elements.
func Rows[T any](all []T) []*T {
	rows := make([]*T, len(all))
	for i := range all {
		rows[i] = &all[i]
	}
	return rows
}

// Docs returns the documents of rows.
func Docs[T, D any](rows []T, doc func(T) D) []D {
	docs := make([]D, len(rows))
	for i, r := range rows {
		docs[i] = doc(r)
	}
	return docs
}

// ResultDoc is the result of an action on one node.
type ResultDoc struct {
	Node      safetext.Text  `json:"node"`
	Status    string         `json:"status"`
	Token     *safetext.Text `json:"token,omitempty"`
	Type      *safetext.Text `json:"type,omitempty"`
	TTLms     *int64         `json:"ttl_ms,omitempty"`
	MayLiveMs *int64         `json:"may_live_ms,omitempty"`
	Error     *safetext.Text `json:"error,omitempty"`
}

// DocsOfResults returns the result of an action on each node.
func DocsOfResults(results []redlock.NodeResult, now time.Time) []ResultDoc {
	docs := make([]ResultDoc, 0, len(results))
	for _, r := range results {
		doc := ResultDoc{
			Node: safetext.New(r.Node), Status: r.Status.String(), Token: safetext.Optional(r.Token),
			Type: safetext.Optional(r.Type), MayLiveMs: MSUntil(r.MayLiveUntil, now), Error: safetext.OptionalError(r.Err),
		}
		if r.TTL > 0 {
			doc.TTLms = new(r.TTL.Milliseconds())
		}
		docs = append(docs, doc)
	}
	return docs
}
