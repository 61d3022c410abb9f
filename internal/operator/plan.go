package operator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"redlockctl/monitor"
	"redlockctl/redlock"
	"redlockctl/server/lockform"
	"redlockctl/server/safetext"
)

// Target is a lock that an operator wants to remove from its holder, as last seen.
type Target struct {
	Keys []string // all keys of the lock; the first names it
	// Copies are the nodes' copies of the first key: Held with token, type, length and
	// TTL; Protocol with the type if it is not a string; Absent; or why it is unknown.
	// For a hash of Redisson, the holder is the token.
	Copies  []redlock.NodeResult
	LookErr error          // error of the read that found the copies
	Tokens  []string       // remove only copies of these tokens; nil: of all
	Name    string         // name shown for the lock; default: the first key, escaped
	Form    *lockform.Form // if known from more than the copies
	Quorum  int
	MaxTTL  time.Duration // of the cluster; 0: no limit
	// Standing is what a monitor knows of the lock besides its copies; nil: nothing.
	Standing *Standing
}

// TokenCopies is a token of a lock with the nodes that have its copies.
type TokenCopies struct {
	Token string
	Nodes []string
}

// String is safe to show.
func (c TokenCopies) String() string {
	return safetext.Escape(fmt.Sprintf("%s on %s", c.Token, strings.Join(c.Nodes, " ")))
}

// Plan says what a removal will do. Screen and CLI show the same texts, which are safe to
// show.
type Plan struct {
	Kind   RemovalKind
	Keys   []string
	Copies []redlock.NodeResult
	Tokens []TokenCopies // tokens whose copies are removed, the one with most copies first
	Stay   []TokenCopies // other tokens
	Silent []string      // nodes that did not answer: they may have copies
	Effect string        // what it does
	Risk   string        // to clients that still rely on the lock
	Known  []string      // notes on its library, each once
	// BareDel says what a library that unlocks with a plain DEL does; empty: it does not.
	BareDel string
	// Shared are tokens that a library sets on further keys. Only a read of all locks
	// finds those keys: see [Plan.AddKeys].
	Shared []string

	majority bool     // a token has a quorum
	revoked  []string // nodes that have a tombstone already, which a revoke leaves
	standing *Standing
}

// Planner plans removals one after the other from what it reads of each lock.
type Planner struct {
	Operator *Operator
	Kind     RemovalKind
	OnlyKeys bool // see [Removal]
	// Look reads one lock, if its copies do not say who relies on it.
	Look func(ctx context.Context, name string) (*monitor.Snapshot, error)
	// LookAtAll reads all locks. It is used if a library's keys share only their token,
	// and again for a lock that is newer than the last read.
	LookAtAll func(ctx context.Context, name string) (*monitor.Snapshot, error)

	seen *monitor.Snapshot
}

// Plan returns the plan for a lock as it is now. Without tokens, it covers all tokens
// that are found.
func (p *Planner) Plan(ctx context.Context, name string, tokens []string) (Plan, error) {
	o := p.Operator
	copies, err := o.locks.Inspect(ctx, name)
	asked := Target{Keys: []string{name}, Copies: copies, LookErr: err, Tokens: tokens, Quorum: redlock.Quorum(len(copies)), MaxTTL: o.opt.MaxTTL}
	plan, err := MakePlan(p.Kind, asked)
	if err == nil && (!plan.majority || len(plan.Tokens)+len(plan.Stay) > 1) && p.Look != nil {
		s, lookErr := p.Look(ctx, name)
		if lookErr != nil {
			return plan, lookErr
		}
		if l := s.Locks.Get(name); l != nil {
			asked.Standing = StandingOf(s, l)
			plan, err = MakePlan(p.Kind, asked)
		}
	}
	if err != nil || p.OnlyKeys || len(plan.Shared) == 0 || p.seen != nil && plan.AddKeys(p.seen) {
		return plan, err
	}
	if p.seen, err = p.LookAtAll(ctx, name); err == nil {
		plan.AddKeys(p.seen)
	}
	return plan, err
}

// AddKeys adds the keys that a snapshot of all locks groups into one lock with the plan's
// keys. It reports whether the snapshot can tell: one made before a token was drawn does
// not show its keys.
func (p *Plan) AddKeys(s *monitor.Snapshot) bool {
	known := 0
	for _, token := range p.Shared {
		has := 0
		for l := range s.Locks.All() {
			if l.Holder.Raw() != token {
				continue
			}
			has = 1
			if l.Form == nil || !l.Form.SharedToken {
				continue
			}
			for _, k := range l.Keys() {
				if !slices.Contains(p.Keys, k.Raw()) {
					p.Keys = append(p.Keys, k.Raw())
				}
			}
		}
		known += has
	}
	return known == len(p.Shared)
}

// PlanOf is [MakePlan] for a lock in a snapshot; name is the name shown for it.
func PlanOf(way RemovalKind, s *monitor.Snapshot, l *monitor.Lock, name string, now time.Time, tokens ...string) (Plan, error) {
	a := Target{Keys: []string{l.Key.Raw()}, Tokens: tokens, Name: name, Form: l.Form, Quorum: s.Cluster.Quorum, MaxTTL: s.Cluster.MaxTTL}
	if l.Keys() != nil {
		a.Keys = nil
		for _, k := range l.Keys() {
			a.Keys = append(a.Keys, k.Raw())
		}
	}
	a.Standing = StandingOf(s, l)
	for i, c := range l.Copies.All() {
		r := redlock.NodeResult{Status: redlock.StatusUnanswered}
		if i < len(s.Nodes) {
			r.Node = s.Nodes[i].Name
		}
		switch c.State {
		case monitor.CopyAbsent, monitor.CopyLost:
			r.Status = redlock.StatusAbsent
		case monitor.CopyPresent:
			r.Status, r.Token, r.Type, r.Len = redlock.StatusHeld, c.Token.Raw(), c.Type, c.Len
			if r.TTL = -1; !c.Expires.IsZero() {
				r.TTL = max(0, c.Expires.Sub(now))
			}
			if c.Type != "string" {
				r.Status = redlock.StatusProtocol
			}
		}
		a.Copies = append(a.Copies, r)
	}
	return MakePlan(way, a)
}

// MakePlan says what the removal of a lock means in its present state, or why it is
// refused.
func MakePlan(way RemovalKind, a Target) (Plan, error) {
	p := Plan{Kind: way, Keys: slices.Clone(a.Keys), Copies: a.Copies, standing: a.Standing}
	name := a.Keys[0]
	if slices.Contains(a.Keys, "") {
		return p, fmt.Errorf("%w: its name is empty, and a lock needs a name to be acted on: no action on it can be recorded", ErrRefused)
	}
	if a.Form != nil && a.Form.Refused != "" {
		return p, fmt.Errorf("%w: %s", ErrRefused, a.Form.Refused)
	}
	one := "" // the token, if one is named
	if len(a.Tokens) == 1 {
		one = a.Tokens[0]
	}
	noEnd, revoked := false, false
	for _, r := range a.Copies {
		f := lockform.Recognize(name, r.Type, r.Token, max(r.Len, int64(len(r.Token))), time.Now())
		if why := refusal(way, name, r, f, one != "" && (r.Token == one || r.Token == "")); why != "" {
			return p, fmt.Errorf("%w: %s", ErrRefused, why)
		}
		switch {
		case r.Type == "hash" || copyOf(r):
			token := cmp.Or(r.Token, one)
			if a.Tokens != nil && !slices.Contains(a.Tokens, token) {
				p.Stay = addCopy(p.Stay, token, r.Node)
				continue
			}
			noEnd = noEnd || endless(r)
			revoked = revoked || redlock.IsTombstone(token)
			p.Tokens = addCopy(p.Tokens, token, r.Node)
			p.learn(f, token)
		case r.Status != redlock.StatusAbsent:
			p.Silent = append(p.Silent, r.Node)
		}
	}
	tombstones := func(t TokenCopies) bool { return redlock.IsTombstone(t.Token) }
	if way == Revoke {
		for _, t := range slices.Concat(p.Tokens, p.Stay) {
			if tombstones(t) {
				p.revoked = append(p.revoked, t.Nodes...)
			}
		}
		if slices.ContainsFunc(p.Tokens, func(t TokenCopies) bool { return !tombstones(t) }) {
			p.Tokens = slices.DeleteFunc(p.Tokens, tombstones)
		}
	}
	for _, of := range [][]TokenCopies{p.Tokens, p.Stay} {
		slices.SortStableFunc(of, func(x, y TokenCopies) int { return len(y.Nodes) - len(x.Nodes) })
	}
	// Somebody else may have revoked the token that was named.
	before := way == Revoke && len(p.Stay) > 0 && len(p.revoked) >= a.Quorum && !slices.ContainsFunc(p.Stay, func(t TokenCopies) bool { return !tombstones(t) })
	if len(p.Tokens) == 0 && !before {
		return p, p.nothingThere(name, a)
	}
	if way == Revoke && (len(p.Tokens) == 0 || tombstones(p.Tokens[0])) {
		means := ": no other client gets it before its TTL expires"
		if on := len(p.revoked); on < redlock.Blocking(len(a.Copies)) {
			means = fmt.Sprintf(", on %d of %d nodes only", on, len(a.Copies))
		}
		return p, fmt.Errorf("%w: it is revoked already%s", ErrRefused, means)
	}
	p.describe(a, noEnd, revoked)
	return p, nil
}

func (p *Plan) learn(f *lockform.Form, token string) {
	if f == nil {
		return
	}
	if f.BareDel && p.Kind == ForceRelease {
		p.BareDel = f.Library + " unlocks by a bare DEL: a holder that still works deletes the lock of the next one when it ends"
	}
	if told := f.MadeBy() + ": " + f.TakingAway; f.TakingAway != "" && !slices.Contains(p.Known, told) {
		p.Known = append(p.Known, told)
	}
	if f.SharedToken && !slices.Contains(p.Shared, token) {
		p.Shared = append(p.Shared, token)
	}
}

func (p *Plan) nothingThere(name string, a Target) error {
	unheard := ""
	if len(p.Silent) > 0 {
		unheard = " (not heard of: " + strings.Join(p.Silent, ", ") + ")"
	}
	quorum := cmp.Or(a.Quorum, redlock.Quorum(len(a.Copies)))
	switch why := p.Unheard(quorum); {
	case len(p.Stay) > 0 && why != "":
		return notHeardError{name, why}
	case len(p.Stay) > 0:
		there := make([]string, len(p.Stay))
		for i, t := range p.Stay {
			there[i] = fmt.Sprintf("%q on %s", t.Token, strings.Join(t.Nodes, ", "))
		}
		return fmt.Errorf("%q: %w: now there is %s%s", name, ErrChanged, strings.Join(there, "; "), unheard)
	case len(p.Silent) >= quorum, len(a.Copies) == 0: // unknown
		return cmp.Or(a.LookErr, fmt.Errorf("%q: %w%s", name, redlock.ErrNoQuorum, unheard))
	}
	return fmt.Errorf("%w%s", NotLocked(name, len(a.Copies)-len(p.Silent), len(a.Copies)), unheard)
}

// Unheard says why another token may hold the lock by now: the plan's tokens may be on
// nodes that did not answer. It is empty if all answered or if another token has a
// quorum. It is safe to show.
func (p *Plan) Unheard(quorum int) string {
	if len(p.Silent) == 0 || slices.ContainsFunc(p.Stay, func(t TokenCopies) bool { return len(t.Nodes) >= quorum }) {
		return ""
	}
	return unheard(p.Copies, p.Silent)
}

// unheard describes the nodes that did not answer.
func unheard(results []redlock.NodeResult, nodes []string) string {
	var late, others []string
	for _, r := range results {
		switch {
		case !slices.Contains(nodes, r.Node):
		case r.Status == redlock.StatusUnanswered, r.Status == redlock.StatusSlow:
			late = append(late, r.Node)
		default:
			others = append(others, r.Node+" is "+r.Status.String())
		}
	}
	if late != nil {
		others = append([]string{strings.Join(late, ", ") + " did not answer in time"}, others...)
	}
	return safetext.Escape(strings.Join(others, ", ") + ": whether the holder changed is not known")
}

// notHeardError is returned when the nodes that answered have none of the tokens, but the
// other nodes may have them. It is a [redlock.ErrNoQuorum].
type notHeardError struct{ resource, why string }

func (e notHeardError) Error() string {
	return fmt.Sprintf("\"%s\": %s", safetext.Escape(e.resource), e.why)
}

func (notHeardError) Unwrap() error { return redlock.ErrNoQuorum }

// shape has the numbers that decide the texts of a plan.
type shape struct {
	name     string
	n, most  int  // nodes; the largest number of copies of one removed token
	dead     int  // nodes that have a tombstone after a revoke
	staying  int  // copies of other tokens
	free     int  // nodes that can vote for others after a force-release
	majority bool // a removed token has a quorum
	perhaps  bool // or may have one on nodes that do not answer
	another  bool // another token has one
	revoked  bool // the removed copies are tombstones
	relies   *monitor.Reliance
	now      time.Time
}

func (p *Plan) describe(a Target, noEnd, revoked bool) {
	s := shape{name: cmp.Or(a.Name, safetext.Escape(a.Keys[0])), n: len(a.Copies), revoked: revoked && len(p.Tokens) == 1, now: time.Now()}
	for _, t := range p.Tokens {
		s.most = max(s.most, len(t.Nodes))
		s.dead += len(t.Nodes)
	}
	s.dead += len(p.revoked)
	for _, t := range p.Stay {
		s.staying += len(t.Nodes)
		s.another = s.another || len(t.Nodes) >= a.Quorum
	}
	p.majority = s.most >= a.Quorum
	s.majority, s.perhaps = p.majority, !p.majority && s.most+len(p.Silent) >= a.Quorum
	s.relies = p.standing.relianceOf(p.Tokens)
	s.free = s.n - s.staying - len(p.Silent) - p.standing.closed(p)
	if p.Kind == ForceRelease {
		p.describeRelease(s, a.Quorum)
	} else {
		p.describeRevoke(s)
		if noEnd {
			p.Effect += "; a copy without TTL, or with one above ten years, ends in " + cmp.Or(a.MaxTTL, defaultTombstone).String()
		}
	}
	on := p.keeps()
	switch text, all := p.standing.refusing(p.Copies, p.Tokens, on, s.now); {
	case all:
		p.Effect, p.Risk = "nothing can be removed now: "+text, "none while nothing is removed"
		if s.relies != nil {
			p.Risk += "; " + p.standing.belief(s.relies, s.now)
		}
	case text != "" && on != nil:
		p.Effect = "copies are removed on a minority only; not removed: " + text
		p.Risk = extendableError{nodes: on}.text()
	case text != "":
		p.Effect += "; not removed: " + text
	}
	all := len(p.standing.reliances())
	switch {
	case s.majority && all > 1:
		p.Risk += ". Two may rely on it: " + p.standing.others(nil, s.now)
	case !s.majority && (all > 1 || all == 1 && s.relies == nil && !s.another):
		p.Risk += ". Besides, " + p.standing.others(s.relies, s.now)
	}
}

// keeps returns the nodes that refuse the removal or do not answer, if they may make a majority for the
// holder; else nil.
func (p *Plan) keeps() []string {
	results := slices.Clone(p.Copies)
	for i := range results {
		switch node := results[i].Node; {
		case p.standing.refuses(node):
			results[i].Status = redlock.StatusFenced
		case copyOf(results[i]):
			results[i].Status = redlock.StatusOK
		}
	}
	return extendable(p.Tokens, p.Copies, results)
}

// describeRelease says what a force-release does.
func (p *Plan) describeRelease(s shape, quorum int) {
	p.Effect = deleteEffect
	if s.staying > 0 {
		p.Effect = "all copies of this token deleted now"
	}
	switch {
	case s.staying == 0 && len(p.Silent) == 0 && s.free >= quorum:
		p.Effect += freeEffect
	case s.staying == 0 && len(p.Silent) == 0:
		p.Effect += ": others can get in as soon as enough nodes serve"
	case s.staying > 0 && s.free < quorum:
		p.Effect += "; other copies stay, so the name is not free: only their owner, or who waits until they expire, can get a quorum"
	case s.staying > 0:
		p.Effect += "; other copies stay, on a minority: others can have a quorum of the rest"
	case s.free >= quorum:
		p.Effect += ": others can have a quorum at once; on " + strings.Join(p.Silent, ", ") + " a copy may be left"
	default:
		p.Effect += "; copies may be left on " + strings.Join(p.Silent, ", ") + ", so the name may not be free"
	}
	switch {
	case s.revoked:
		p.Risk = "it is revoked already and ends by itself; " + unknowingRisk + s.name
	case s.majority:
		p.Risk = unknowingRisk + s.name + saferRisk
	case s.relies != nil:
		p.Risk = p.standing.releaseRisk(s.relies, s.name, s.now)
	case s.perhaps:
		p.Risk = "if the nodes that do not answer have the missing copies, somebody holds it and is not told: two clients will work on " + s.name
	case s.another:
		p.Risk = "these copies have no quorum; those of the holder stay. An attempt that is still under way loses its votes"
	default:
		p.Risk = "nobody holds " + s.name + " by these copies: no token has a quorum. An attempt that is still under way loses its votes"
	}
	if p.BareDel != "" {
		p.Risk += ". " + p.BareDel
	}
}

// Texts of a single lock and of several.
const (
	revokeEffect  = "no more extensions; others wait until the TTL expires"
	revokeRisk    = "a holder that works on after that shares it with the next one"
	deleteEffect  = "all copies deleted now"
	freeEffect    = ": the name is free at once"
	unknowingRisk = "a holder that still works is not told: two clients will work on "
	saferRisk     = ". Safer: revoke"
)

// Effect says what the action does to each of several locks.
func (w RemovalKind) Effect() string {
	return [...]string{ForceRelease: deleteEffect + freeEffect, Revoke: revokeEffect}[w]
}

// Risk says what clients risk that still rely on one of several locks. revoked means that
// all of them are revoked already.
func (w RemovalKind) Risk(revoked bool) string {
	switch {
	case w == Revoke:
		return revokeRisk
	case revoked:
		return "they are revoked already and end by themselves; " + unknowingRisk + "it"
	}
	return unknowingRisk + "it" + saferRisk
}

// describeRevoke says what a revoke does.
func (p *Plan) describeRevoke(s shape) {
	on := fmt.Sprintf("tombstones on %d of %d nodes, which keep others out of those", s.dead, s.n)
	blocks := s.dead >= redlock.Blocking(s.n)
	if blocks {
		on = fmt.Sprintf("tombstones on %d of %d nodes: others wait until they expire", s.dead, s.n)
	}
	switch {
	case s.majority:
		p.Effect, p.Risk = revokeEffect, revokeRisk
	case s.relies != nil:
		p.Effect = "no more extensions; " + on
		if s.perhaps {
			p.Effect = "no extension on the nodes that answer; " + on + "; " + strings.Join(p.Silent, ", ") + " may have more copies, on which it can be extended"
		}
		p.Risk = p.standing.belief(s.relies, s.now) + "; tombstones on a minority do not keep others from the rest"
		if blocks {
			p.Risk = p.standing.belief(s.relies, s.now) + "; a holder that works on after the tombstones expire shares it with the next one"
		}
		if !p.standing.isEarlier(s.relies) && p.standing.keepsOut() {
			p.Risk = p.standing.belief(s.relies, s.now) + "; nobody else gets in before, as long as the nodes that lost its copies stay fenced"
		}
	case s.perhaps:
		p.Effect = "no extension on the nodes that answer; whether a quorum is revoked is not known: " + strings.Join(p.Silent, ", ") + " may have more copies"
		p.Risk = "a holder that works on after its time shares it with the next one"
	default:
		p.Effect = "no more extensions; " + on
		if !blocks {
			p.Effect = on + " until they expire; others can get the lock on the rest"
		}
		p.Risk = "nobody holds " + s.name + " by these copies, so there is no holder to protect or to stop"
		if len(p.Tokens) > 1 {
			p.Risk = "no token has a quorum; a client that was granted the lock before is not told, and may work until its TTL expires"
		}
		if s.another {
			p.Risk = "these copies have no quorum; the holder has other ones, and is not told to stop"
		}
	}
}

func addCopy(of []TokenCopies, token, node string) []TokenCopies {
	i := slices.IndexFunc(of, func(c TokenCopies) bool { return c.Token == token })
	if i < 0 {
		i = len(of)
		of = append(of, TokenCopies{Token: token})
	}
	of[i].Nodes = append(of[i].Nodes, node)
	return of
}

// refusal says why a node's copy of key cannot be removed in this way; empty: it can.
// named means that the node has the requested token, as the holder of a hash.
func refusal(way RemovalKind, key string, r redlock.NodeResult, f *lockform.Form, named bool) string {
	switch {
	case f != nil && f.Refused != "": // some libraries keep other data beside their locks that looks like one
		return fmt.Sprintf("%q on %s: made by %s: %s", key, r.Node, f.Library, f.Refused)
	case r.Type == "hash" && named && way == ForceRelease:
		return ""
	case r.Type == "hash" && named:
		return "it is a hash, in whose place no tombstone can be put: force-release (X) removes it"
	case r.Type != "" && r.Type != "string" && r.Type != "none":
		return fmt.Sprintf("%q on %s is a %s, not a string as a Redlock lock is: another kind of lock, or none", key, r.Node, safetext.Escape(r.Type))
	case copyOf(r) && r.Token == "":
		return fmt.Sprintf("its value is empty on %s: there is no token to compare", r.Node)
	case copyOf(r) && r.Len > int64(len(r.Token)):
		return fmt.Sprintf("its value on %s has %d bytes, of which only the first are known: no token is that long", r.Node, r.Len)
	case copyOf(r) && r.TTL < 0 && lockform.IsNumber(r.Token, int64(len(r.Token))) && (f == nil || f.Deadline.IsZero()):
		return fmt.Sprintf("%q on %s: %s", key, r.Node, lockform.Number().Refused)
	}
	return ""
}

// copyOf reports whether the read found a string on the node.
func copyOf(r redlock.NodeResult) bool {
	return r.Status == redlock.StatusHeld || r.Status == redlock.StatusOK
}

// notLocked is the error of [NotLocked].
type notLocked struct {
	resource     string
	answered, of int
}

// NotLocked returns the error for a lock without a copy on the nodes that answered. It is
// a [redlock.ErrNotHeld] for an action without a named token. Its text is safe to show.
func NotLocked(resource string, answered, of int) error { return notLocked{resource, answered, of} }

func (e notLocked) Error() string {
	return fmt.Sprintf("\"%s\" is not locked: no copy on the %d of %d nodes that answered", safetext.Escape(e.resource), e.answered, e.of)
}

func (notLocked) Unwrap() error { return redlock.ErrNotHeld }
