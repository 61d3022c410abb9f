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

// Method is where an answer comes from.
type Method string

// The methods; there is no answer without one.
const (
	Unknown  Method = "not known"
	Told     Method = "told"     // by the token, or a connection's name that is in it
	Inferred Method = "inferred" // from which connections are active when the lock changes
	Seen     Method = "seen"     // in the traffic of a node
)

// NodeConn is a connection of the holder on a node.
type NodeConn struct {
	Node string `json:"node"`
	Conn
	Find string        `json:"find,omitempty"` // the command that finds its process on its host
	Gone time.Duration `json:"-"`              // since when it is not listed any more; 0: it is open
}

// Answer is who holds a lock, and how that is known.
type Answer struct {
	At        time.Time // when it was given
	Key       string
	Held      int           // copies of the holder's token
	N         int           // nodes
	Token     safetext.Text // empty: nobody holds a majority
	Owner     safetext.Text // told by the token
	Named     bool          // it is one of this program's commands, whose connections bear its name
	Method    Method
	P         float64 // of an inference
	Events    int     // changes of the lock by this token
	Group     *Group  // the application, where it is known
	Conns     []NodeConn
	Likely    []Candidate // where it is not: the likeliest
	Liveness  Liveness    // "": cannot be said
	Extended  time.Duration
	Usually   time.Duration            // between two extensions; 0: not known
	Extends   int                      // extensions seen
	Unusable  map[string]safetext.Text // nodes that told nothing, and why
	MonitorOn string                   // the node whose traffic was read
}

// nodeState is the last that a node told.
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

// openCase is a lock that is observed.
type openCase struct {
	names    []string
	key      string
	nodes    []nodeState
	tally    Tally
	known    *Answer   // who held it when it was asked before
	began    time.Time // of watching what is known
	extended map[string][]time.Time
}

func newCase(nodes []*redlock.Node, key string) *openCase {
	c := &openCase{key: key, nodes: make([]nodeState, len(nodes)), extended: map[string][]time.Time{}}
	for _, n := range nodes {
		c.names = append(c.names, n.Name())
	}
	return c
}

// remember takes in an answer from before: connections that it names and no list has any
// more are gone.
func (c *openCase) remember(a *Answer, now time.Time) {
	if a == nil || a.Group == nil || a.Key != c.key {
		return
	}
	c.known, c.began = a, now
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

// holds reports whether the holder is the one that is known from before.
func (c *openCase) holds(token string) bool { return c.known != nil && c.known.Token.Raw() == token }

// report is what a node told at one moment.
type report struct {
	list    List
	changed bool // the node has told of a change of the key since the last report
	there   bool
	token   string
	err     error // the node can say no more
}

func (c *openCase) take(r report) {
	n := &c.nodes[r.list.Node]
	if n.err = r.err; r.err != nil {
		return
	}
	switch {
	case !r.changed:
		c.tally.Control(r.list)
	case !r.there:
		c.tally.Skip(r.list) // released or expired: a server's own end has no connection
	default:
		extended := n.heard && n.there && n.token == r.token
		c.tally.Event(r.token, extended, r.list)
		if at := c.extended[r.token]; extended && (len(at) == 0 || r.list.At.Sub(at[len(at)-1]) > sameEvent) {
			c.extended[r.token] = append(at, r.list.At)
		}
	}
	n.heard, n.there, n.token = true, r.there, r.token
	now := make(map[int64]Conn, len(r.list.Conns))
	for _, conn := range r.list.Conns {
		now[conn.ID] = conn
	}
	if n.past == nil {
		n.past = map[int64]past{}
	}
	for id, conn := range n.open {
		if _, open := now[id]; !open {
			n.past[id] = past{conn, r.list.At}
		}
	}
	n.open = now
}

// holder is the token with a majority of copies, else the one that most nodes have.
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

// sure reports whether there is nothing more to learn: somebody can be named, and the
// interval of its extensions is known.
func (c *openCase) sure(now time.Time) bool {
	token, copies := c.holder()
	heard := !slices.ContainsFunc(c.nodes, func(n nodeState) bool { return !n.heard && n.err == nil })
	if heard && copies == 0 && c.known != nil {
		return true // it was asked for the holder that is known, who has lost it
	}
	if copies < redlock.Quorum(len(c.nodes)) && !c.holds(token) {
		return false // whoever takes it next may be meant; of who is known, a minority tells as well
	}
	if c.holds(token) {
		a := c.answer(now)
		return heard && (a.Liveness == Gone || a.Liveness == Silent || len(c.extended[token]) > 0 && a.Liveness == Alive)
	}
	if heard && c.told(token) != nil {
		return true
	}
	if len(c.extended[token]) < LeastEvents {
		return false
	}
	likely, events := c.tally.Holder(token)
	return events >= LeastEvents && len(likely) > 0 && likely[0].P >= Sure
}

// ownLibrary is the form of this program's tokens.
const ownLibrary = "redlockctl"

// told is the form of a token that tells its owner; nil if it does not.
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
	a := &Answer{At: now, Key: c.key, N: len(c.nodes), Method: Unknown, Unusable: map[string]safetext.Text{}}
	for i, n := range c.nodes {
		if n.err != nil {
			a.Unusable[c.names[i]] = nodeText(n.err)
		} else if !n.heard {
			a.Unusable[c.names[i]] = safetext.New("no answer in time")
		}
	}
	token, copies := c.holder()
	if a.Held = copies; copies == 0 {
		return a
	}
	a.Token = safetext.New(token)
	if f := c.told(token); f != nil {
		a.Method, a.Owner, a.Named = Told, f.Owner, f.Library == ownLibrary
		a.Group = c.named(f.Owner.Raw())
	}
	likely, events := c.tally.Holder(token)
	a.Events = events
	if a.Method == Unknown && events >= LeastEvents && len(likely) > 0 && likely[0].P >= Sure {
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
		c.conns(a, now)
	}
	s := a.signs(now, c.extended[token])
	if c.holds(token) && s.Usually == 0 {
		s.Usually = c.known.Usually
		if s.Extends == 0 { // so far as was watched
			s.Extended = now.Sub(c.began)
		}
	}
	a.Liveness, a.Extends, a.Extended, a.Usually = AssessLiveness(s), s.Extends, s.Extended, s.Usually
	return a
}

// named is the application whose connections bear the owner behind their name, as
// those of this program do.
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

// conns are the connections of the group, those that are gone among them.
func (c *openCase) conns(a *Answer, now time.Time) {
	for i, n := range c.nodes {
		for _, conn := range n.open {
			if conn.group() == *a.Group {
				a.Conns = append(a.Conns, NodeConn{Node: c.names[i], Conn: conn, Find: findProcess(conn.Addr.Raw())})
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

// signs are those of the holder with these moments of extensions.
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
	s.Conns, s.Idle = len(a.Conns), time.Hour
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

// Nodes are the nodes on which the holder has open connections, and those on which
// all are closed, with the time since the last one was.
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

// nodeText is a failure of a node for people.
func nodeText(err error) safetext.Text {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return safetext.New("no answer in time")
	}
	return safetext.New(err.Error())
}
