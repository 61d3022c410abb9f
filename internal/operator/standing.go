package operator

import (
	"slices"
	"strings"
	"time"

	"redlockctl/monitor"
	"redlockctl/monitor/words"
	"redlockctl/redlock"
	"redlockctl/server/safetext"
)

// Standing says who relies on a lock, however many copies are left.
type Standing struct {
	Lock   *monitor.Lock
	Access monitor.Access // who else can acquire it before HeldUntil
	Nodes  []monitor.Node
}

// StandingOf returns the standing of a lock in a snapshot.
func StandingOf(s *monitor.Snapshot, l *monitor.Lock) *Standing {
	return &Standing{l, s.Access(l), s.Nodes}
}

// reliances returns the clients that rely on the lock or may rely on it: its holder, and
// an earlier one.
func (s *Standing) reliances() (all []monitor.Reliance) {
	if s == nil {
		return nil
	}
	if s.Lock.ReliedOn() {
		all = append(all, monitor.Reliance{Token: s.Lock.Holder, Until: s.Lock.HeldUntil()})
	}
	if s.Lock.Earlier != nil {
		all = append(all, *s.Lock.Earlier)
	}
	return all
}

// relianceOf returns the client that relies on the lock by one of these tokens, for the
// longest time; nil: none is known.
func (s *Standing) relianceOf(tokens []TokenCopies) (found *monitor.Reliance) {
	for _, r := range s.reliances() {
		mine := func(t TokenCopies) bool { return monitor.IsToken(r.Token, t.Token) }
		if slices.ContainsFunc(tokens, mine) && (found == nil || !found.Until.IsZero() && (r.Until.IsZero() || r.Until.After(found.Until))) {
			found = &r
		}
	}
	return found
}

// isEarlier reports whether r is a client from before the present holder.
func (s *Standing) isEarlier(r *monitor.Reliance) bool {
	return s.Lock.Earlier != nil && r.Token == s.Lock.Earlier.Token
}

// endlessAt reports whether somebody relies on a lock without end, or for longer than any lock lasts.
func endlessAt(at, now time.Time) bool { return at.IsZero() || at.Sub(now) > redlock.LongestTTL }

// until formats the time until which somebody relies on a lock.
func until(at, now time.Time) string {
	if endlessAt(at, now) {
		return "without end"
	}
	return "until " + words.Moment(at, now) + " (" + at.Sub(now).Round(time.Second).String() + ")"
}

// belief says what is known of the client whose copies are removed.
func (s *Standing) belief(r *monitor.Reliance, now time.Time) string {
	switch {
	case s.Lock.Earlier != nil:
		return s.beliefOf(r, now)
	case s.Lock.MayBeHeld():
		return "it may be held " + until(r.Until, now)
	}
	return "its holder relies on it " + until(r.Until, now)
}

// others names the clients that rely on the lock besides r, which may be nil; "": none is
// known.
func (s *Standing) others(r *monitor.Reliance, now time.Time) string {
	var parts []string
	for _, o := range s.reliances() {
		if r == nil || o.Token != r.Token {
			parts = append(parts, s.beliefOf(&o, now))
		}
	}
	return strings.Join(parts, ", ")
}

// beliefOf says until when the client with this token relies on the lock. Whether an
// earlier client was granted it may be unknown.
func (s *Standing) beliefOf(r *monitor.Reliance, now time.Time) string {
	relies := " relies on it "
	if s.isEarlier(r) || s.Lock.MayBeHeld() {
		relies = " may rely on it "
	}
	return "the holder of " + shortToken(r.Token) + relies + until(r.Until, now)
}

func shortToken(t safetext.Text) string {
	if t.Empty() {
		return "another token"
	}
	return safetext.Escape(safetext.Short(t.Raw()))
}

// releaseRisk is the risk of a force-release of a lock without a majority on which r
// relies.
func (s *Standing) releaseRisk(r *monitor.Reliance, name string, now time.Time) string {
	two := "two clients will work on " + name
	switch {
	case s.Lock.Earlier != nil:
		return s.belief(r, now) + " and is not notified"
	case s.Lock.MayBeHeld():
		return s.belief(r, now) + ", as not all of its copies can be accounted for: then " + two
	}
	risk := s.belief(r, now) + " and is not notified: " + two
	switch {
	case s.Access.Now:
		return risk + ". Another client can get in already"
	case endlessAt(r.Until, now):
		return risk + saferRisk
	case s.keepsOut():
		return risk + ". Until then nobody else can get in: wait"
	}
	return risk + ". Wait until then"
}

// keepsOut reports whether nobody else can acquire the lock before its holder's end.
func (s *Standing) keepsOut() bool {
	return s != nil && s.Lock.ReliedOn() && !s.Access.Now && !s.Access.Perhaps && s.Access.From.IsZero()
}

// closed counts the nodes that answer, refuse writes and have no copy that stays.
func (s *Standing) closed(p *Plan) (k int) {
	if s == nil {
		return 0
	}
	stays := func(node string) bool {
		return slices.ContainsFunc(p.Stay, func(t TokenCopies) bool { return slices.Contains(t.Nodes, node) })
	}
	for i := range s.Nodes {
		if n := &s.Nodes[i]; refusesWrites(n) && !slices.Contains(p.Silent, n.Name) && !stays(n.Name) {
			k++
		}
	}
	return k
}

func refusesWrites(n *monitor.Node) bool {
	return n.State == monitor.NodeFenced || n.State == monitor.NodeCordoned
}

// refuses reports whether a node refuses a removal, as far as is known.
func (s *Standing) refuses(node string) bool {
	if s == nil {
		return false
	}
	i := slices.IndexFunc(s.Nodes, func(n monitor.Node) bool { return n.Name == node })
	// A node fenced by another method may obey an operator.
	return i >= 0 && refusesWrites(&s.Nodes[i]) && s.Nodes[i].MinReplicasToWrite > 0
}

// refusing says why copies cannot be removed now: which of them are on nodes that refuse
// writes, and when they expire, unless they are on extendable nodes. all means that no copy is on
// another node.
func (s *Standing) refusing(copies []redlock.NodeResult, tokens []TokenCopies, extendable []string, now time.Time) (text string, all bool) {
	if s == nil {
		return "", false
	}
	var parts []string
	there := 0
	for _, t := range tokens {
		for _, node := range t.Nodes {
			there++
			k := slices.IndexFunc(copies, func(r redlock.NodeResult) bool { return r.Node == node })
			if k >= 0 && s.refuses(node) {
				parts = append(parts, s.stays(copies[k], now, slices.Contains(extendable, node)))
			}
		}
	}
	return strings.Join(parts, "; "), len(parts) == there
}

// stays says where a copy is that a node refuses to delete, and when it expires, unless its holder
// may extend it before.
func (s *Standing) stays(r redlock.NodeResult, now time.Time, extendable bool) string {
	state := "which refuses writes"
	if s != nil {
		for i := range s.Nodes {
			if n := &s.Nodes[i]; n.Name == r.Node && refusesWrites(n) {
				state = n.State.String()
			}
		}
	}
	if extendable {
		return "on " + safetext.Escape(r.Node) + ", " + state
	}
	var goes time.Time
	if !endless(r) {
		goes = now.Add(r.TTL)
	}
	return "on " + safetext.Escape(r.Node) + ", " + state + ": " + words.Goes(goes, now)
}

// endless reports whether a copy has no TTL, or one too long for any lock.
func endless(r redlock.NodeResult) bool { return r.TTL < 0 || r.TTL > redlock.LongestTTL }

// reliance is until when a client may rely on a lock; a zero end: without end.
type reliance struct {
	known bool // a client may
	end   time.Time
}

// The words of the log for a reliance.
const (
	mayRely    = "its holder may rely on it "
	withoutEnd = "without end"
)

// String says it for the log; "": no client is known.
func (r reliance) String() string {
	switch {
	case !r.known:
		return ""
	case r.end.IsZero():
		return mayRely + withoutEnd
	}
	return mayRely + "until " + r.end.UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

// RelianceEnd returns by the logged outcome of a removal until when a client may rely on the lock; zero:
// without end. false: the log names no client.
func RelianceEnd(outcome string) (until time.Time, known bool) {
	_, text, ok := strings.Cut(outcome, mayRely)
	if !ok || strings.HasPrefix(text, withoutEnd) {
		return time.Time{}, ok
	}
	at, _, _ := strings.Cut(strings.TrimPrefix(text, "until "), "Z")
	until, err := time.Parse(time.RFC3339, at+"Z")
	return until, err == nil
}

// RelianceIn says by the logged outcome of a removal until when a client may rely on the lock: "may rely on
// it until 12:03:19"; empty: it does not any more, or the log does not say.
func RelianceIn(outcome string, now time.Time) string {
	until, known := RelianceEnd(outcome)
	if !known || !until.IsZero() && !until.After(now) {
		return ""
	}
	return monitor.MayRely(until, now)
}

// later returns the one that lasts longer.
func (r reliance) later(other reliance) reliance {
	if !r.known || other.known && !r.end.IsZero() && (other.end.IsZero() || other.end.After(r.end)) {
		return other
	}
	return r
}

// reliedUntil returns until when a client may have relied on a lock by the removed tokens, from its
// copies or from what else is known.
func (s *Standing) reliedUntil(found []redlock.NodeResult, tokens []TokenCopies, now time.Time) reliance {
	var end time.Time
	if quorum := redlock.Quorum(len(found)); len(tokens) > 0 && len(tokens[0].Nodes) >= quorum {
		var ends []time.Duration
		for _, r := range found {
			switch {
			case !slices.Contains(tokens[0].Nodes, r.Node):
			case endless(r):
				ends = append(ends, redlock.LongestTTL+1)
			default:
				ends = append(ends, r.TTL)
			}
		}
		slices.Sort(ends)
		if left := ends[len(ends)-quorum]; left <= redlock.LongestTTL {
			end = now.Add(left)
		}
	} else if r := s.relianceOf(tokens); r != nil {
		end = r.Until
	} else {
		return reliance{}
	}
	return reliance{true, end}
}

// tombstones returns the tombstones among copies, those with the most first.
func tombstones(found []redlock.NodeResult) (tokens []TokenCopies) {
	for _, r := range found {
		if !copyOf(r) || !redlock.IsTombstone(r.Token) {
			continue
		}
		i := slices.IndexFunc(tokens, func(t TokenCopies) bool { return t.Token == r.Token })
		if i < 0 {
			i, tokens = len(tokens), append(tokens, TokenCopies{Token: r.Token})
		}
		tokens[i].Nodes = append(tokens[i].Nodes, r.Node)
	}
	slices.SortStableFunc(tokens, func(a, b TokenCopies) int { return len(b.Nodes) - len(a.Nodes) })
	return tokens
}
