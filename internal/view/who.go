package view

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"redlockctl/internal/who"
	"redlockctl/monitor"
	"redlockctl/redlock"
	"redlockctl/server/safetext"
)

// WhoHeadline returns in one line who holds a lock and how that is known. The odds of an
// inference come before the name, which may be long and cut.
func WhoHeadline(w *who.Answer) string {
	times := Plural(w.Events, "change of the lock", "changes of the lock")
	held, unknown := "held by ", "holder not known"
	switch {
	case (w.LastHeld.IsZero() || !w.Ended) && w.N > 0 && w.Held > 0 && w.Held < redlock.Quorum(w.N):
		held, unknown = "its copies were made by ", "who made its copies is not known"
	case w.Ended:
		held = "was held by "
	}
	switch {
	case w.Revoked:
		return revokedText
	case !w.Since.IsZero():
		name := "token " + w.Token.String()
		if w.Method == who.Told {
			name = w.Owner.String() + told
		}
		if held = strings.Replace(held, "held by", "held now by", 1); w.Held == 0 {
			held = "no copy is left; last known of "
		}
		return held + name + ", first seen " + Clock(w.Since) + ": nobody watched it"
	case w.Method == who.Told:
		return held + w.Owner.String() + told
	case w.Method == who.Inferred:
		text := fmt.Sprintf("inferred %s, from %s: %s%s?", whoOdds(w), times, held, w.Group)
		if w.Shared {
			text += "  (whoever connects from there without a name)"
		}
		return text
	case w.Method == who.Seen:
		return fmt.Sprintf("%s%s  (seen in the traffic of %s)", held, w.Group, safetext.Escape(w.MonitorOn))
	case w.MonitorOn != "":
		return "holder not known; it sent nothing with this token to " + safetext.Escape(w.MonitorOn)
	case len(w.Likely) == 0:
		return unknown + " (" + times + " seen); the token tells nobody"
	}
	var names []string
	for _, c := range w.Likely {
		names = append(names, fmt.Sprintf("p %.2f %s", math.Floor(c.P*100)/100, c.Group))
	}
	return unknown + " (" + times + " seen); candidates: " + strings.Join(names, ", ")
}

// WhoAsOf is an answer as a look at the lock after it shows it, so that all of it is of one moment: the
// copies are those of now, or it has ended since, or another client has the lock, which nobody watched.
func WhoAsOf(w *who.Answer, s *monitor.Snapshot) *who.Answer {
	l := s.LockNamed(w.Key)
	if next := whoNext(w, l, s); next != nil {
		return next
	}
	now, have := *w, copiesOf(l, w.Token.Raw())
	now.N = s.Cluster.N
	switch {
	case l != nil && l.ReliedOn():
		if now.Held, now.Ended = have, false; Answering(s) < now.N { // other copies may not be seen
			now.Held = max(w.Held, have)
		}
	case w.Held == 0, w.Token.Empty(), !s.Complete || Answering(s) < s.Cluster.Quorum:
	case have > 0:
		now.Held = have
	default:
		now.Ended = true
	}
	return &now
}

// whoNext is the answer about another client than that of w, which has a lock now; nil: none has.
func whoNext(w *who.Answer, l *monitor.Lock, s *monitor.Snapshot) *who.Answer {
	switch {
	case l == nil || !l.ReliedOn() || l.Contested || l.Held < 0:
		return nil
	case w.Held == 0 && w.Token.Empty():
	case w.Token.Empty(), monitor.IsToken(l.Holder, w.Token.Raw()), w.Held > 0 && l.Held < s.Cluster.Quorum:
		return nil
	}
	next := &who.Answer{
		At: s.At, Key: w.Key, Held: l.Held, N: s.Cluster.N, Token: l.Holder, Method: who.Unknown, Since: l.Since(),
		Uncounted: w.Uncounted, Unusable: w.Unusable,
	}
	if next.Since.IsZero() {
		next.Since = s.At
	}
	if owner := ownerOf(l); owner != "" {
		next.Method, next.Owner = who.Told, l.Form.Owner
	}
	if !w.Token.Empty() {
		before := *w
		before.N, before.Ended, next.Before = s.Cluster.N, copiesOf(l, w.Token.Raw()) == 0, &before
	}
	return next
}

// copiesOf returns how many copies of a lock have a token.
func copiesOf(l *monitor.Lock, token string) (n int) {
	if l == nil {
		return 0
	}
	for _, c := range l.Copies.All() {
		if c.State == monitor.CopyPresent && monitor.IsToken(c.Token, token) {
			n++
		}
	}
	return n
}

// WhoHad says when a client whose lock has ended was last seen to hold it.
func WhoHad(w *who.Answer) string {
	if w.LastHeld.IsZero() {
		return "it has ended since"
	}
	return "token " + w.Token.String() + " was last seen to hold it at " + Clock(w.LastHeld) + "; it has ended since"
}

// WhoBefore says who had a lock before the client of an answer, or has copies of it too; empty: not known.
func WhoBefore(w *who.Answer) string {
	switch b := w.Before; {
	case b == nil:
		return ""
	case !b.Ended:
		return "copies of token " + b.Token.String() + " are there too: " + WhoHeadline(b)
	case b.LastHeld.IsZero():
		return "before that, token " + b.Token.String() + ": " + WhoHeadline(b)
	default:
		return "before that, token " + b.Token.String() + ", last seen to hold it at " + Clock(b.LastHeld) + ": " + WhoHeadline(b)
	}
}

// revokedText says why a lock that is revoked has no holder to find.
const revokedText = "revoked: a tombstone does not name who had it"

// MayWork says until when the holder of a revoked grant may work.
func MayWork(g *GrantDoc) string {
	if g.Until.IsZero() {
		return "without end: it had no TTL"
	}
	return "until " + Moment(g.Until)
}

// WhoElse says whether others can get a lock that is revoked, by one tombstone or several; s is a look
// at it after the answer, nil without one.
func WhoElse(w *who.Answer, s *monitor.Snapshot) string {
	if w.Tombstones >= redlock.Blocking(w.N) {
		return "others wait until they expire"
	}
	if s != nil {
		if l := s.LockNamed(w.Key); l != nil {
			switch a := s.Access(l); {
			case a.Now:
				return "others can get in"
			case !a.Perhaps:
				return "others wait, as the rest give no vote"
			}
		}
	}
	return "others may get in, unless the rest are fenced"
}

// WhoElseRelies says which other clients may rely on a lock, or have a copy while its holder has no majority, a line each.
func WhoElseRelies(c *Context, l *monitor.Lock) (lines []string) {
	switch {
	case l.Nobody, l.Contested:
		lines = append(lines, "copies of several tokens, no majority of one: who holds it: "+l.NobodyText())
	case l.Tokens > 1 && (l.State == monitor.LockSplit || l.State == monitor.LockLostMajority || l.State == monitor.LockMayBeHeld):
		lines = append(lines, "copies of several tokens: "+tokensText(c, l))
	}
	for _, f := range earlierFacts(c, l) {
		lines = append(lines, f.Text)
	}
	return lines
}

// told follows an owner whom the token names.
const told = "  (told by its token)"

// ToldBy returns an owner whom a token names, and that it does; empty without one.
func ToldBy(c *Context, owner safetext.Text) string {
	if owner.Empty() {
		return ""
	}
	return c.Whole(owner.Raw()) + told
}

// WhoHint says what names a holder that could not be inferred; empty if one is named.
func WhoHint(w *who.Answer) string {
	if w.Method != who.Unknown || w.Held == 0 || w.Revoked || w.MonitorOn != "" {
		return ""
	}
	if len(w.Uncounted) > 0 {
		return WhoUncounted(w.Key, w.Uncounted)
	}
	return whoByTraffic(w.Key, "NODE")
}

// whoByTraffic returns the command that finds the holder of a lock in the traffic of a node.
func whoByTraffic(key, node string) string {
	return fmt.Sprintf("for certain, and in seconds: redlockctl who %s --monitor --node %s --reason TEXT", safetext.Escape(key), safetext.Escape(node))
}

// WhoUncounted says what nodes lack that do not count the commands of connections, and how
// to find the holder of a lock all the same.
func WhoUncounted(key string, nodes []string) string {
	does := "do"
	if len(nodes) == 1 {
		does = "does"
	}
	return safetext.Escape(strings.Join(nodes, " ")) + " " + does + " not count the commands of each connection (Valkey does since 8.1), so often nobody can be named; " + whoByTraffic(key, nodes[0])
}

// WhoRefused says why too few nodes can be watched to find the holder; empty if enough
// can.
func WhoRefused(w *who.Answer) string {
	can := w.N - len(w.Unusable)
	if can >= redlock.Quorum(w.N) {
		return ""
	}
	first := slices.Min(slices.Collect(maps.Keys(w.Unusable)))
	return fmt.Sprintf("%d of %d nodes can be watched: %s: %s", can, w.N, safetext.Escape(first), w.Unusable[first])
}

// whoFresh is how long an answer counts as current.
const whoFresh = 2 * time.Second

// WhoLiveness says whether the holder was alive when it was asked, and how that is known;
// empty if unknown.
func WhoLiveness(w *who.Answer) string {
	now, since := w.AsOf(w.At, nil)
	return livenessText(w, now, since, 0, true)
}

// WhoLivenessNow says that of an earlier answer as it is now: the monitor sees whether the
// holder of l extends it. l is nil if it is gone, w if nobody asked: then only extensions tell.
func WhoLivenessNow(c *Context, l *monitor.Lock, w *who.Answer) string {
	if w == nil {
		if l == nil || l.ExtendedAt().IsZero() {
			return ""
		}
		w = &who.Answer{At: l.ExtendedAt(), Extends: int(max(1, l.Extensions))}
	}
	seen := c.watched(l)
	now, since := w.AsOf(c.Now, seen)
	return livenessText(w, now, since, max(0, c.Now.Sub(w.At)), seen != nil)
}

// watched returns what the snapshot knows of the extensions of a lock; nil if some may not
// have been seen.
func (c *Context) watched(l *monitor.Lock) *who.Watched {
	if l == nil || l.Supposed || c.Snap == nil || !c.Snap.Complete || Answering(c.Snap) < redlock.Quorum(len(c.Snap.Nodes)) {
		return nil
	}
	w := &who.Watched{Extended: l.ExtendedAt()}
	switch {
	case l.Extensions > 2 && l.Extending > 0:
		w.Usually = time.Duration(l.Extending) * time.Millisecond / time.Duration(l.Extensions-1)
	case l.Extensions > 2: // of a record
		w.Usually = usually(w.Extended.Sub(l.Since()), int(l.Extensions))
	}
	return w
}

// usually returns the time between n extensions that were seen within a span. It begins at any
// time before the first of them: half of such a time, if the grant was not seen to begin.
func usually(span time.Duration, n int) time.Duration { return 2 * span / time.Duration(2*n-1) }

// livenessText tells the liveness of now, which is the answer w as it is later. watched:
// extensions since then were seen.
func livenessText(w, now *who.Answer, since, later time.Duration, watched bool) string {
	var parts []string
	if now.Liveness != "" {
		parts = append(parts, aged(now.Liveness, since))
	}
	old, usually := later >= whoFresh, ""
	if now.Usually > 0 {
		usually = ", usually every " + Span(now.Usually.Round(100*time.Millisecond))
	}
	switch {
	case now.Extends > 0 && (watched || !old):
		parts = append(parts, "last extended "+Age(now.Extended)+" ago"+usually)
	case now.Extends > 0:
		parts = append(parts, "last seen extended "+Age(now.Extended)+" ago"+usually)
	case now.Usually > 0:
		parts = append(parts, "not extended for "+Age(now.Extended)+" at least"+usually)
	}
	open, closed := w.Nodes()
	latest := time.Duration(-1)
	var gone []string
	for node, since := range closed {
		gone = append(gone, safetext.Escape(node)+" "+Age(since+later)+" ago")
		if latest < 0 || since < latest {
			latest = since
		}
	}
	slices.Sort(gone)
	asked := ""
	if old {
		asked = " when asked, " + Age(later) + " ago"
	}
	switch {
	case w.Absent():
		parts = append(parts, noneNamedText(w)+asked)
	case len(w.Conns) == 0:
	case len(open) == 0:
		parts = append(parts, fmt.Sprintf("its last connection was seen closed %s ago on %d of %d nodes", Age(latest+later), len(closed), w.Watched()))
	case len(gone) > 0:
		parts = append(parts, "connections open on "+safetext.Escape(strings.Join(open, " "))+asked+", closed on "+strings.Join(gone, ", "))
	default:
		parts = append(parts, fmt.Sprintf("connections open on %d of %d nodes%s", len(open), w.Watched(), asked))
	}
	return strings.Join(parts, "; ")
}

// aged returns the word with its age: "alive", "alive 7s ago", "silent 9s", "gone 12s".
func aged(life who.Liveness, since time.Duration) string {
	switch {
	case life != who.Alive:
		return string(life) + " " + Age(since)
	case since < whoFresh:
		return string(life)
	}
	return string(life) + " " + Age(since) + " ago"
}

// WhoThere says in a few words whether the holder of l is alive now; empty if unknown.
func WhoThere(c *Context, l *monitor.Lock, w *who.Answer) string {
	now, _ := w.AsOf(c.Now, c.watched(l))
	if now.Liveness == "" && w.Absent() {
		return noneNamedText(w)
	}
	return string(now.Liveness)
}

func noneNamedText(w *who.Answer) string {
	text := fmt.Sprintf("no open connection with its name (%d of %d nodes checked)", w.Watched()-len(w.Unusable), w.Watched())
	if len(w.Unusable) == 0 {
		text = "gone or cut off, unless it was acquired without --keep: " + text
	}
	return text
}

// WhoConns returns the connections of the holder as a table. Those of a named client to one
// node are one row: that which sent a change of the lock, or was used last, and how many more.
func WhoConns(w *who.Answer) *Table {
	t := NewTable("NODE", "CLIENT", "NAME", "USER", "LIBRARY", "OPEN FOR", "FIND ITS PROCESS THERE")
	type client struct {
		node, host string
		name, user safetext.Text
		library    safetext.Text
		gone       bool
	}
	var rows []who.NodeConn
	var more []int
	at := map[client]int{}
	for _, c := range w.Conns {
		one := client{c.Node, hostOf(c), c.Name, c.User, c.Library, c.Gone > 0}
		i, ok := at[one]
		if !ok || c.Name.Empty() { // several processes may be behind connections without a name
			at[one], rows, more = len(rows), append(rows, c), append(more, 0)
			continue
		}
		more[i]++
		if was := &rows[i]; c.Sent != was.Sent && c.Sent || c.Sent == was.Sent && c.Idle < was.Idle {
			*was = c
		}
	}
	for i, c := range rows {
		addr := c.Addr.String()
		if more[i] > 0 {
			addr += " and " + Count(more[i]) + " more"
		}
		age, find := Age(time.Duration(c.Age)*time.Second), c.Find
		if c.Gone > 0 {
			age, find = "closed "+Age(c.Gone)+" ago", ""
		}
		var row []Cell
		for _, text := range []string{safetext.Escape(c.Node), addr, c.Name.String(), c.User.String(), c.Library.String(), age, find} {
			row = append(row, Cell{Text: text})
		}
		t.Add(row...)
	}
	return t
}

// whoHolds is the headline after the label Holder.
func whoHolds(w *who.Answer) string {
	return strings.NewReplacer("held by ", "", "its copies were made by ", "", "holder not known", "not known", "who made its copies is not known", "not known").Replace(WhoHeadline(w))
}

// WhoFacts returns what the extensions of a lock and an earlier answer (nil: nobody asked) say besides the holder, for the
// page of the lock. If a node has several connections of the holder, it shows the one used last.
func WhoFacts(c *Context, l *monitor.Lock, w *who.Answer) []Fact {
	var facts []Fact
	if w != nil {
		if hint := WhoHint(w); hint != "" {
			facts = append(facts, Fact{Text: hint})
		}
	}
	if life := WhoLivenessNow(c, l, w); life != "" {
		tone := None
		if strings.HasPrefix(life, string(who.Silent)) || w != nil && !strings.HasPrefix(life, string(who.Alive)) {
			tone = Warn
		}
		facts = append(facts, Fact{"Liveness", life, tone})
	}
	if w == nil {
		return facts
	}
	later := max(0, c.Now.Sub(w.At))
	facts = append(facts, WhoFind(c, w)...)
	best := map[string]who.NodeConn{}
	for _, conn := range w.Conns {
		if was, ok := best[conn.Node]; !ok || cmp.Or(cmp.Compare(conn.Gone, was.Gone), cmp.Compare(conn.Idle, was.Idle)) < 0 {
			best[conn.Node] = conn
		}
	}
	label := "From"
	for _, conn := range w.Conns {
		if best[conn.Node].ID != conn.ID || conn.Gone > 0 {
			continue
		}
		text := c.Name(conn.Node) + ": " + c.Whole(conn.Addr.Raw())
		for _, more := range []string{conn.User.Raw(), conn.Library.Raw()} {
			if more != "" {
				text += ", " + c.Whole(more)
			}
		}
		text += ", open for " + Age(time.Duration(conn.Age)*time.Second+later)
		facts = append(facts, Fact{Label: label, Text: text})
		label = ""
	}
	return facts
}

// hostOf returns the host of a client.
func hostOf(c who.NodeConn) string {
	addr := c.Addr.Raw()
	return addr[:max(0, strings.LastIndexByte(addr, ':'))]
}

// WhoFind returns the commands that find the holder's process, one line per host, so that
// each can be copied.
func WhoFind(c *Context, w *who.Answer) (facts []Fact) {
	label, hosts := "Find it", map[string]bool{}
	for _, conn := range w.Conns {
		host := hostOf(conn)
		if conn.Gone > 0 || conn.Find == "" || hosts[host] {
			continue
		}
		hosts[host] = true
		facts = append(facts, Fact{Label: label, Text: conn.Find + "  # on " + c.Whole(host)})
		label = ""
	}
	return facts
}
