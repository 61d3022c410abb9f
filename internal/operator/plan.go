package operator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"redlockctl/internal/lockform"
	"redlockctl/internal/safetext"
	"redlockctl/internal/words"
	"redlockctl/monitor"
	"redlockctl/redlock"
)

// Asked is a lock that somebody wants to take from its holder, as it was last
// seen.
type Asked struct {
	Keys []string // all keys of the lock; the first names it
	// Copies are what each node has under the first key: Held with token, type,
	// length and TTL; Protocol with the type of what is no string; Absent; or why it
	// is not known. A hash of Redisson has its holder as token.
	Copies  []redlock.NodeResult
	LookErr error          // how the look at them ended
	Tokens  []string       // only copies of these tokens; nil: of all
	Name    string         // how the lock is shown; default: the first key, escaped
	Form    *lockform.Form // where it is known from more than the copies tell
	Quorum  int
	MaxTTL  time.Duration // of the cluster; 0: none
	// Standing is what a monitor knows of the lock beside its copies; nil: nothing.
	Standing *Standing
}

// Standing is who relies on a lock, whatever copies are left of it.
type Standing struct {
	Lock   *monitor.Lock
	Access monitor.Access // who else can get it before HeldUntil
}

// standingOf is the standing of a lock in a snapshot.
func standingOf(s *monitor.Snapshot, l *monitor.Lock) *Standing {
	return &Standing{l, s.Access(l)}
}

// reliedOn reports whether a client relies on one of these tokens, or may, though no quorum of
// its copies is seen.
func (s *Standing) reliedOn(tokens []TokenCopies) bool {
	return s != nil && s.Lock.ReliedOn() && slices.ContainsFunc(tokens, func(t TokenCopies) bool { return t.Token == s.Lock.Holder.Raw() })
}

// until says until when the holder relies on the lock.
func (s *Standing) until(now time.Time) string {
	if at := s.Lock.HeldUntil(); !at.IsZero() {
		return "until " + words.Moment(at, now) + " (" + at.Sub(now).Round(time.Second).String() + ")"
	}
	return "without end"
}

// risk is that of a force-release of a lock without a majority that a client relies on, or may.
func (s *Standing) risk(name string, now time.Time) string {
	if s.Lock.State == monitor.LockLostMajority {
		risk := "its holder relies on it " + s.until(now) + " and is not notified: two clients will work on " + name
		switch a := s.Access; {
		case a.Now:
			return risk + ". Another client can get in already"
		case !a.Perhaps && a.From.IsZero():
			return risk + ". Nobody else can get in before: wait"
		}
		return risk + ". Wait until then"
	}
	return "it may be held " + s.until(now) + ", as nodes do not answer or may have forgotten a vote: then two clients will work on " + name
}

// TokenCopies is one of the tokens of a lock, and the nodes that have its copies.
type TokenCopies struct {
	Token string
	Nodes []string
}

// String is safe to show.
func (c TokenCopies) String() string {
	return safetext.Escape(fmt.Sprintf("%s on %s", c.Token, strings.Join(c.Nodes, " ")))
}

// Plan is what taking a lock away will do: the same on the screen and by
// command. Its texts are safe to show.
type Plan struct {
	Way    Way
	Keys   []string
	Copies []redlock.NodeResult
	Tokens []TokenCopies // whose copies go, the one with most copies first
	Stay   []TokenCopies // those of other tokens
	Silent []string      // nodes that did not answer: copies may be there
	Effect string        // what it does
	Risk   string        // to whoever works under the lock
	Known  []string      // what is to be known of its library, each once
	// BareDel is what a library that unlocks by a bare DEL does; empty: it does not.
	BareDel string
	// Shared are the tokens that a library sets on further keys, of which nothing but
	// a look at all locks tells: see [Plan.AddKeys].
	Shared []string

	majority bool // a token has a quorum
}

// Planner plans removals one after the other, by what a look at each lock finds.
type Planner struct {
	Operator *Operator
	Way      Way
	OnlyKeys bool // see [Removal]
	// Look looks at all locks. That is done where a library binds the keys of a lock by
	// their token alone, and again for a lock that is newer than the last look.
	Look func(ctx context.Context, name string) (*monitor.Snapshot, error)

	seen *monitor.Snapshot
}

// Plan is what a removal means by what is there now. Without tokens it is of all that
// are found.
func (p *Planner) Plan(ctx context.Context, name string, tokens []string) (Plan, error) {
	o := p.Operator
	copies, err := o.locks.Inspect(ctx, name)
	asked := Asked{Keys: []string{name}, Copies: copies, LookErr: err, Tokens: tokens, Quorum: redlock.Quorum(len(copies)), MaxTTL: o.opt.MaxTTL}
	plan, err := MakePlan(p.Way, asked)
	if err == nil && !plan.majority && p.Look != nil {
		// The copies do not tell whether a client relies on the lock.
		if p.seen, err = p.Look(ctx, name); err != nil {
			return plan, err
		}
		if l := p.seen.Locks.Get(name); l != nil {
			asked.Standing = standingOf(p.seen, l)
			plan, err = MakePlan(p.Way, asked)
		}
	}
	if err != nil || p.OnlyKeys || len(plan.Shared) == 0 || p.seen != nil && plan.AddKeys(p.seen) {
		return plan, err
	}
	if p.seen, err = p.Look(ctx, name); err == nil {
		plan.AddKeys(p.seen)
	}
	return plan, err
}

// AddKeys adds the further keys that a snapshot of all locks shows as one lock with
// those of the plan. It reports whether the snapshot can tell: one that was made
// before a token was drawn says nothing about its keys.
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

// PlanOf is [MakePlan] for a lock as a snapshot shows it, by the name that is shown
// for it.
func PlanOf(way Way, s *monitor.Snapshot, l *monitor.Lock, name string, now time.Time, tokens ...string) (Plan, error) {
	a := Asked{Keys: []string{l.Key.Raw()}, Tokens: tokens, Name: name, Form: l.Form, Quorum: s.Cluster.Quorum, MaxTTL: s.Cluster.MaxTTL}
	if l.Keys() != nil {
		a.Keys = nil
		for _, k := range l.Keys() {
			a.Keys = append(a.Keys, k.Raw())
		}
	}
	a.Standing = standingOf(s, l)
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

// MakePlan works out what taking a lock away means in the state that it is in, or
// why it is refused.
func MakePlan(way Way, a Asked) (Plan, error) {
	p := Plan{Way: way, Keys: slices.Clone(a.Keys), Copies: a.Copies}
	name := a.Keys[0]
	if slices.Contains(a.Keys, "") {
		return p, fmt.Errorf("%w: its name is empty, and a lock needs a name to be acted on: no action on it can be recorded", ErrRefused)
	}
	if a.Form != nil && a.Form.Refused != "" {
		return p, fmt.Errorf("%w: %s", ErrRefused, a.Form.Refused)
	}
	one := "" // the token that is named
	if len(a.Tokens) == 1 {
		one = a.Tokens[0]
	}
	endless, revoked := false, false
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
			endless = endless || r.TTL < 0
			revoked = revoked || redlock.IsTombstone(token)
			p.Tokens = addCopy(p.Tokens, token, r.Node)
			p.learn(f, token)
		case r.Status != redlock.StatusAbsent:
			p.Silent = append(p.Silent, r.Node)
		}
	}
	for _, of := range [][]TokenCopies{p.Tokens, p.Stay} {
		slices.SortStableFunc(of, func(x, y TokenCopies) int { return len(y.Nodes) - len(x.Nodes) })
	}
	if len(p.Tokens) == 0 {
		return p, p.nothingThere(name, a)
	}
	if way == Revoke && len(p.Tokens) == 1 && revoked {
		return p, fmt.Errorf("%w: it is revoked already: nobody gets in before its TTL expires", ErrRefused)
	}
	p.describe(a, endless, revoked)
	return p, nil
}

func (p *Plan) learn(f *lockform.Form, token string) {
	if f == nil {
		return
	}
	if f.BareDel && p.Way == ForceRelease {
		p.BareDel = f.Library + " unlocks by a bare DEL: a holder that still works deletes the lock of the next one when it ends"
	}
	if told := "made by " + f.Library + ": " + f.TakingAway; f.TakingAway != "" && !slices.Contains(p.Known, told) {
		p.Known = append(p.Known, told)
	}
	if f.SharedToken && !slices.Contains(p.Shared, token) {
		p.Shared = append(p.Shared, token)
	}
}

func (p *Plan) nothingThere(name string, a Asked) error {
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
	case len(p.Silent) >= quorum, len(a.Copies) == 0: // nobody knows
		return cmp.Or(a.LookErr, fmt.Errorf("%q: %w%s", name, redlock.ErrNoQuorum, unheard))
	}
	return fmt.Errorf("%w%s", NotLocked(name, len(a.Copies)-len(p.Silent), len(a.Copies)), unheard)
}

// Unheard says why it cannot be known whether another token holds the lock by now: the
// tokens of the plan may be on nodes that did not answer. It is empty where all did, or
// another token has a quorum. It is safe to show.
func (p *Plan) Unheard(quorum int) string {
	if len(p.Silent) == 0 || slices.ContainsFunc(p.Stay, func(t TokenCopies) bool { return len(t.Nodes) >= quorum }) {
		return ""
	}
	return unheard(p.Copies, p.Silent)
}

// unheard tells of nodes that did not answer.
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

// notHeardError is the error of an act that found none of its tokens on the nodes that
// answered, while they may be on the others: a [redlock.ErrNoQuorum].
type notHeardError struct{ resource, why string }

func (e notHeardError) Error() string {
	return fmt.Sprintf("\"%s\": %s", safetext.Escape(e.resource), e.why)
}

func (notHeardError) Unwrap() error { return redlock.ErrNoQuorum }

func (p *Plan) describe(a Asked, endless, revoked bool) {
	most := 0
	for _, t := range p.Tokens {
		most = max(most, len(t.Nodes))
	}
	majority := most >= a.Quorum
	p.majority = majority
	relied := !majority && a.Standing.reliedOn(p.Tokens)
	now := time.Now()
	perhaps := !majority && most+len(p.Silent) >= a.Quorum
	staying, another := 0, false
	for _, t := range p.Stay {
		staying += len(t.Nodes)
		another = another || len(t.Nodes) >= a.Quorum
	}
	name := cmp.Or(a.Name, safetext.Escape(a.Keys[0]))
	switch p.Way {
	case ForceRelease:
		p.Effect = "all copies deleted now"
		if staying > 0 {
			p.Effect = "all copies of this token deleted now"
		}
		switch free := len(a.Copies) - staying - len(p.Silent); {
		case staying == 0 && len(p.Silent) == 0:
			p.Effect += ": the name is free at once"
		case staying > 0 && free < a.Quorum:
			p.Effect += "; other copies stay, so the name is not free: only their owner, or who waits until they expire, can get a quorum"
		case staying > 0:
			p.Effect += "; other copies stay, on a minority: others can have a quorum of the rest"
		case free >= a.Quorum:
			p.Effect += ": others can have a quorum at once; on " + strings.Join(p.Silent, ", ") + " a copy may be left"
		default:
			p.Effect += "; copies may be left on " + strings.Join(p.Silent, ", ") + ", so the name may not be free"
		}
		switch {
		case revoked && len(p.Tokens) == 1:
			p.Risk = "it is revoked already and ends by itself; a holder that still works is not told: two clients will work on " + name
		case majority:
			p.Risk = "a holder that still works is not told: two clients will work on " + name + ". Safer: revoke"
		case relied:
			p.Risk = a.Standing.risk(name, now)
		case perhaps:
			p.Risk = "if the nodes that do not answer have the missing copies, somebody holds it and is not told: two clients will work on " + name
		case another:
			p.Risk = "these copies have no quorum; those of the holder stay. An attempt that is still under way loses its votes"
		default:
			p.Risk = "nobody holds " + name + " by these copies: no token has a quorum. An attempt that is still under way loses its votes"
		}
		if p.BareDel != "" {
			p.Risk += ". " + p.BareDel
		}
	case Revoke:
		switch {
		case majority:
			p.Effect = "no more extensions; others wait until the TTL expires"
			p.Risk = "a holder that works on after that shares it with the next one"
		case relied:
			p.Effect = fmt.Sprintf("no more extensions; tombstones on %d of %d nodes, which keep others out of those", most, len(a.Copies))
			held := "its holder relies on it "
			if a.Standing.Lock.State != monitor.LockLostMajority {
				held = "it may be held "
			}
			p.Risk = held + a.Standing.until(now) + "; tombstones on a minority do not keep others from the rest"
		case perhaps:
			p.Effect = "no extension on the nodes that answer; whether a quorum is revoked is not known: " + strings.Join(p.Silent, ", ") + " may have more copies"
			p.Risk = "a holder that works on after its time shares it with the next one"
		default:
			p.Effect = fmt.Sprintf("tombstones on %d of %d nodes, which keep others out of those until they expire; the lock can be had on the rest", most, len(a.Copies))
			p.Risk = "nobody holds " + name + " by these copies, so there is no holder to protect or to stop"
			if another {
				p.Risk = "these copies have no quorum; the holder has other ones, and is not told to stop"
			}
		}
		if endless {
			p.Effect += "; a copy without TTL gets the cluster's max TTL"
			if a.MaxTTL > 0 {
				p.Effect += ", " + a.MaxTTL.String()
			}
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

// refusal is why what a node has under key is not removed in this way; empty:
// it may be. named: it has the token that was asked for, as the holder of a hash.
func refusal(way Way, key string, r redlock.NodeResult, f *lockform.Form, named bool) string {
	switch {
	case f != nil && f.Refused != "": // what some libraries keep beside their locks looks like one
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

// copyOf reports whether a look found a string on the node.
func copyOf(r redlock.NodeResult) bool {
	return r.Status == redlock.StatusHeld || r.Status == redlock.StatusOK
}

// notLocked is the error of [NotLocked].
type notLocked struct {
	resource     string
	answered, of int
}

// NotLocked is the error of an act on a lock, or a look for one, of which no copy
// was found on the nodes that answered, so many of so many: a [redlock.ErrNotHeld]
// for an act in which no token was named. Its text is safe to show.
func NotLocked(resource string, answered, of int) error { return notLocked{resource, answered, of} }

func (e notLocked) Error() string {
	return fmt.Sprintf("\"%s\" is not locked: no copy on the %d of %d nodes that answered", safetext.Escape(e.resource), e.answered, e.of)
}

func (notLocked) Unwrap() error { return redlock.ErrNotHeld }
