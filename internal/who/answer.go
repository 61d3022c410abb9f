package who

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"redlockctl/redlock"
	"redlockctl/server/lockform"
	"redlockctl/server/safetext"
)

// Method is how an answer was found.
type Method string

// The methods; every answer has one.
const (
	Unknown  Method = "not known"
	Told     Method = "told"     // by the token, or by a connection name in it
	Inferred Method = "inferred" // by which connections are active when the lock changes
	Seen     Method = "seen"     // by reading the traffic of a node
)

// NodeConn is a connection of the holder on a node.
type NodeConn struct {
	Node string `json:"node"`
	Conn
	Find string        `json:"find,omitempty"` // the command that finds its process on its host
	Sent bool          `json:"sent,omitempty"` // it alone can have sent one of the changes
	Gone time.Duration `json:"-"`              // since when it is no longer listed; 0: it is open
}

// Answer says who holds a lock, and how that is known.
type Answer struct {
	At    time.Time // when it was given
	Key   string
	Held  int           // copies of the holder's token
	Ended bool          // copies were seen while it was watched, and are not there any more; the answer is of who had it
	N     int           // nodes
	Token safetext.Text // empty: nobody has a copy, or had the lock while it was watched
	// LastHeld is when Token was last seen with a majority while it was watched; zero: it never was.
	LastHeld time.Time
	// Before is the client that had the lock before Token while it was watched; nil: none is known.
	Before *Answer
	// Since is set for a client that was seen after the watch: when. Nobody watched it.
	Since   time.Time
	Revoked bool // the token is a tombstone, which nobody holds
	// Tombstones is how many nodes have a tombstone, of whichever token.
	Tombstones int
	Owner      safetext.Text // from the token
	Named      bool          // a command of this program, found by its connection names
	Method     Method
	P          float64 // probability of an inference
	Events     int     // changes of the lock by this token
	Shared     bool    // the group is of an address: several applications may be behind it
	Group      *Group  // the application, if known
	Conns      []NodeConn
	Likely     []Candidate // the most likely ones, if not
	Liveness   Liveness    // "": unknown
	Extended   time.Duration
	Usually    time.Duration            // interval between two extensions; 0: unknown
	Extends    int                      // extensions seen
	Uncounted  []string                 // nodes that do not count the commands of a connection
	Unusable   map[string]safetext.Text // nodes that did not answer, and why
	MonitorOn  string                   // the node whose traffic was read
}

// Watched is of how many nodes the connections were read, or the traffic.
func (a *Answer) Watched() int {
	if a.MonitorOn != "" {
		return 1
	}
	return a.N
}

// nodeState is the last report of a node.
type nodeState struct {
	heard bool
	there bool
	token string
	open  map[int64]Conn
	past  map[int64]past
	err   error
}

type past struct {
	Conn
	gone time.Time
}

// tenure is a token that was seen with a majority, the last time at until.
type tenure struct {
	token string
	until time.Time
}

// openCase is a lock under observation.
type openCase struct {
	names []string
	key   string
	nodes []nodeState
	tally Tally
	known *Answer   // who held it at an earlier request
	began time.Time // start of the watch for known
	seen  bool      // a copy was seen
	had   []tenure  // who was seen with a majority, at most the last two
	few   time.Time // since when fewer copies than a quorum are seen; zero: there is one
}

func newCase(nodes []*redlock.Node, key string) *openCase {
	c := &openCase{key: key, nodes: make([]nodeState, len(nodes))}
	for _, n := range nodes {
		c.names = append(c.names, n.Name())
	}
	return c
}

// remember adds an earlier answer: connections that it names and that are in no list any
// more are gone.
func (c *openCase) remember(a *Answer, now time.Time) {
	if a == nil || a.Group == nil || a.Key != c.key {
		return
	}
	c.known, c.began = a, now
	if a.Held >= redlock.Quorum(a.N) {
		c.had = []tenure{{a.Token.Raw(), a.At}}
	}
	for i, name := range c.names {
		n := &c.nodes[i]
		n.open, n.past = map[int64]Conn{}, map[int64]past{}
		for _, conn := range a.Conns {
			switch {
			case conn.Node != name:
			case conn.Gone > 0:
				n.past[conn.ID] = past{conn.Conn, a.At.Add(-conn.Gone)}
			default:
				n.open[conn.ID] = conn.Conn
			}
		}
	}
}

// holds reports whether the holder is the one known from before.
func (c *openCase) holds(token string) bool { return c.known != nil && c.known.Token.Raw() == token }

// report is a snapshot of a node, or why it can give no more.
type report struct {
	Snapshot
	err error
}

func (c *openCase) take(r report) {
	n := &c.nodes[r.Node]
	if n.err = r.err; r.err != nil {
		return
	}
	c.tally.Take(&r.Snapshot)
	n.heard, n.there, n.token = true, r.There, r.Token
	c.seen = c.seen || r.There
	now := make(map[int64]Conn, len(r.Conns))
	for _, conn := range r.Conns {
		now[conn.ID] = conn
	}
	if n.past == nil {
		n.past = map[int64]past{}
	}
	for id, conn := range n.open {
		if _, open := now[id]; !open {
			n.past[id] = past{conn, r.At}
		}
	}
	n.open = now
	if token, copies := c.holder(); copies >= redlock.Quorum(len(c.nodes)) && !redlock.IsTombstone(token) {
		c.held(token, r.At)
	}
}

// held notes that a token has a majority.
func (c *openCase) held(token string, at time.Time) {
	if last := len(c.had) - 1; last >= 0 && c.had[last].token == token {
		c.had[last].until = at
		return
	}
	c.had = append(c.had[max(0, len(c.had)-1):], tenure{token, at})
}

// holder returns the token with a majority of copies, or the one on most nodes.
func (c *openCase) holder() (token string, copies int) {
	count := map[string]int{}
	for _, n := range c.nodes {
		if n.there {
			count[n.token]++
		}
	}
	for t, k := range count {
		if k > copies || k == copies && t < token {
			token, copies = t, k
		}
	}
	return token, copies
}

// done reports whether there is nothing more to learn: a holder can be named, and the
// interval of its extensions is known; or nobody can be.
func (c *openCase) done(now time.Time) bool {
	token, copies := c.holder()
	heard := c.heard()
	if heard && copies == 0 && c.known != nil {
		return true // the question was about the known holder, which has lost the lock
	}
	if heard && redlock.IsTombstone(token) {
		return true // nobody extends or releases it
	}
	if copies >= redlock.Quorum(len(c.nodes)) {
		c.few = time.Time{}
	} else if c.few.IsZero() {
		c.few = now
	}
	if copies < redlock.Quorum(len(c.nodes)) && !c.holds(token) {
		// Another client may acquire it next, so one look is not enough. A lock that was
		// seen and stays away has ended, and who made a minority may be told.
		stays := heard && now.Sub(c.few) >= fewFor
		return stays && (copies > 0 && c.told(token) != nil || copies == 0 && c.seen)
	}
	if heard && c.told(token) != nil {
		return true
	}
	extended := c.tally.Extensions(token)
	if c.holds(token) {
		a := c.answer(now)
		return heard && (a.Liveness == Gone || a.Liveness == Silent || len(extended) > 0 && a.Liveness == Alive)
	}
	return c.tally.Proved(token) && len(extended) > 1 || c.tally.Hopeless(token, now)
}

// heard reports whether each node has answered or failed.
func (c *openCase) heard() bool {
	return !slices.ContainsFunc(c.nodes, func(n nodeState) bool { return !n.heard && n.err == nil })
}

// free reports whether nobody has the lock, as far as a quorum says.
func (c *openCase) free() bool {
	answered := 0
	for _, n := range c.nodes {
		if n.err == nil && n.heard {
			answered++
		}
	}
	_, copies := c.holder()
	return copies == 0 && answered >= redlock.Quorum(len(c.nodes))
}

// lacksCounts reports whether the holder has to be inferred, and may not be, as nodes do not
// count the commands of their connections.
func (c *openCase) lacksCounts() bool {
	token, copies := c.holder()
	return copies > 0 && c.heard() && c.told(token) == nil && !redlock.IsTombstone(token) && len(c.uncounted()) > 0
}

// uncounted returns the nodes that answer and do not count the commands of their connections.
func (c *openCase) uncounted() (names []string) {
	for i, n := range c.nodes {
		if n.err == nil && n.heard && !n.counts() {
			names = append(names, c.names[i])
		}
	}
	return names
}

// fewFor is how long a lock stays without a quorum before that is an answer.
const fewFor = time.Second

// ownLibrary is the form of this program's tokens.
const ownLibrary = "redlockctl"

// told returns the form of a token that contains its owner, or nil.
func (c *openCase) told(token string) *lockform.Form {
	f := lockform.Recognize(c.key, "string", token, int64(len(token)), time.Now())
	if f == nil || f.Owner.Empty() {
		return nil
	}
	return f
}

// mostLikely is how many candidates are named.
const mostLikely = 5

func (c *openCase) answer(now time.Time) *Answer {
	a := &Answer{At: now, Key: c.key, N: len(c.nodes), Method: Unknown, Uncounted: c.uncounted(), Unusable: map[string]safetext.Text{}}
	for i, n := range c.nodes {
		if n.err != nil {
			a.Unusable[c.names[i]] = nodeText(n.err)
		} else if !n.heard {
			a.Unusable[c.names[i]] = safetext.New("no answer in time")
		}
		if n.there && redlock.IsTombstone(n.token) {
			a.Tombstones++
		}
	}
	token, copies := c.holder()
	if a.Held = copies; copies == 0 {
		if a.Ended = c.seen || len(c.had) > 0; len(c.had) == 0 {
			return a
		}
		token = c.had[len(c.had)-1].token
	}
	if a.Token, a.Revoked = safetext.New(token), redlock.IsTombstone(token); !a.Revoked {
		c.describe(a, now)
	}
	for _, t := range slices.Backward(c.had) {
		switch {
		case t.token == token:
			a.LastHeld = t.until
		case a.Before == nil:
			a.Before = &Answer{At: now, Key: c.key, N: a.N, Ended: true, Token: safetext.New(t.token), Method: Unknown, LastHeld: t.until}
			c.describe(a.Before, now)
		}
	}
	return a
}

// describe says of an answer who has its token, and how that is known.
func (c *openCase) describe(a *Answer, now time.Time) {
	token := a.Token.Raw()
	if f := c.told(token); f != nil {
		a.Method, a.Owner, a.Named = Told, f.Owner, f.Library == ownLibrary
		if a.Group = c.named(f.Owner.Raw()); a.Group == nil && c.holds(token) {
			a.Group = c.known.Group // its connections were open, and are not any more
		}
	}
	likely, events := c.tally.Holder(token)
	a.Events = events
	if a.Method == Unknown && c.tally.Proved(token) {
		a.Method, a.P, a.Group = Inferred, likely[0].P, &likely[0].Group
	}
	if c.holds(token) && a.Method != Told {
		a.Method, a.P, a.Group = c.known.Method, c.known.P, c.known.Group
		a.Events = max(events, c.known.Events)
	}
	if a.Method == Unknown && events > 0 {
		for _, l := range likely[:min(len(likely), mostLikely)] {
			if l.P >= 0.01 {
				a.Likely = append(a.Likely, l)
			}
		}
	}
	if a.Group != nil {
		a.Shared = a.Group.Name == ""
		c.conns(a, token, now)
	}
	s := a.signs(now, c.tally.Extensions(token))
	if c.holds(token) && s.Usually == 0 {
		s.Usually = c.known.Usually
		if s.Extends == 0 { // so far
			s.Extended = now.Sub(c.began)
		}
	}
	a.Liveness, a.Extends, a.Extended, a.Usually = AssessLiveness(s), s.Extends, s.Extended, s.Usually
}

// counts reports whether the node counts the commands of its connections.
func (n *nodeState) counts() bool {
	for _, c := range n.open {
		return c.Cmds >= 0
	}
	return true
}

// named returns the application whose connection names contain the owner, as those of
// this program do.
func (c *openCase) named(owner string) *Group {
	for _, n := range c.nodes {
		for _, conn := range n.open {
			if name := conn.Name.Raw(); strings.HasPrefix(name, ownName) && strings.HasSuffix(name, ":"+owner) {
				return &Group{Name: name}
			}
		}
	}
	return nil
}

// conns returns the connections of the group, including closed ones.
func (c *openCase) conns(a *Answer, token string, now time.Time) {
	for i, n := range c.nodes {
		for _, conn := range n.open {
			if conn.group() == *a.Group {
				a.Conns = append(a.Conns, NodeConn{Node: c.names[i], Conn: conn, Find: findProcess(conn.Addr.Raw()), Sent: c.tally.Sent(token, i, conn.ID)})
			}
		}
		for _, conn := range n.past {
			if conn.group() == *a.Group {
				a.Conns = append(a.Conns, NodeConn{Node: c.names[i], Conn: conn.Conn, Gone: max(now.Sub(conn.gone), time.Millisecond)})
			}
		}
	}
	slices.SortFunc(a.Conns, func(x, y NodeConn) int {
		return cmp.Or(slices.Index(c.names, x.Node)-slices.Index(c.names, y.Node), cmp.Compare(x.ID, y.ID))
	})
}

// signs returns the signs of the holder with extensions at these times.
func (a *Answer) signs(now time.Time, extended []time.Time) (s Signs) {
	if s.Extends = len(extended); s.Extends > 0 {
		s.Extended = now.Sub(extended[s.Extends-1])
	}
	var gaps []time.Duration
	for i := range extended[:max(s.Extends-1, 0)] {
		gaps = append(gaps, extended[i+1].Sub(extended[i]))
	}
	if slices.Sort(gaps); len(gaps) > 0 {
		s.Usually = gaps[len(gaps)/2]
	}
	s.Conns, s.Absent, s.Idle = len(a.Conns), a.Absent(), time.Hour
	for _, c := range a.Conns {
		if c.Gone > 0 {
			continue
		}
		s.Open++
		if c.fits() {
			s.Idle = min(s.Idle, time.Duration(c.Idle)*time.Second)
		}
	}
	return s
}

// Nodes returns the nodes on which the holder has open connections, and those on which
// all are closed, with the time since the last one closed.
func (a *Answer) Nodes() (open []string, closed map[string]time.Duration) {
	closed = map[string]time.Duration{}
	for _, c := range a.Conns {
		if c.Gone == 0 && !slices.Contains(open, c.Node) {
			open = append(open, c.Node)
		}
	}
	for _, c := range a.Conns {
		if since, ok := closed[c.Node]; c.Gone > 0 && !slices.Contains(open, c.Node) && (!ok || c.Gone < since) {
			closed[c.Node] = c.Gone
		}
	}
	return open, closed
}

// nodeText describes a failure of a node for people.
func nodeText(err error) safetext.Text {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return safetext.New("no answer in time")
	}
	return safetext.New(err.Error())
}
