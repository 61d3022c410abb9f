package view

import (
	"strconv"
	"strings"
	"time"

	"redlockctl/internal/who"
	"redlockctl/monitor"
	"redlockctl/redlock"
	"redlockctl/server/lockform"
	"redlockctl/server/safetext"
)

// LockEnd says when a lock ends.
func LockEnd(c *Context, l *monitor.Lock) string {
	switch end := l.HeldUntil(); {
	case !end.IsZero() && farAway(end, c.Now):
		return "never expires: its TTL is longer than ten years"
	case !l.MajorityEnd().IsZero():
		return "ends in " + Left(end.Sub(c.Now)) + " (" + Clock(end) + ")"
	case l.ReliedOn() && l.Held >= 0 && !hasMajority(l, c.Snap.Cluster.Quorum):
		return reliedText(c, l)
	case l.State == monitor.LockNoTTL, l.Unending:
		if _, block := l.Endless(c.Snap.Serves); block {
			return "never expires: no TTL"
		}
		return "no TTL"
	case l.State == monitor.LockRevoked && !end.IsZero():
		return "its holder may work " + untilText(c, l)
	case l.Held < 0, hasMajority(l, c.Snap.Cluster.Quorum):
		return "when it ends is not known"
	case l.State == monitor.LockPartial:
		return "no majority yet"
	}
	return "no majority"
}

// reliedText says until when a client may rely on a lock without a majority.
func reliedText(c *Context, l *monitor.Lock) string {
	until := untilText(c, l)
	if l.MayBeHeld() {
		return "may be held " + until
	}
	return "held " + until + ", cannot be extended"
}

func untilText(c *Context, l *monitor.Lock) string {
	if end := l.HeldUntil(); !end.IsZero() {
		return "until " + endClock(end, c.Now) + " (" + Left(end.Sub(c.Now)) + ")"
	}
	return "without end"
}

// earlierFacts lists other clients that may also rely on the lock.
func earlierFacts(c *Context, l *monitor.Lock) []Fact {
	e := l.Earlier
	if e == nil {
		return nil
	}
	by := "the holder of " + c.Token(e.Token)
	if f := lockform.Recognize(l.Key.Raw(), "string", e.Token.Raw(), int64(len(e.Token.Raw())), c.Now); f != nil && !f.Owner.Empty() {
		by = ToldBy(c, f.Owner)
	}
	until := " without end"
	if !e.Until.IsZero() {
		until = " until " + endClock(e.Until, c.Now)
	}
	return []Fact{{"Earlier", by + " may rely on it" + until + " too", Bad}}
}

// LockFacts returns what is known about a lock besides its copies.
func LockFacts(c *Context, l *monitor.Lock) []Fact {
	var facts []Fact
	if Needs(l.State) > 0 || l.State == monitor.LockPartial {
		means, _, _ := strings.Cut(States[l.State], "; ' marks") // there is none on a lock's page
		means = l.State.String() + ": " + means
		switch {
		case l.LeftByStep:
			means = "left over, by the step of a clock: its grant has ended, and the copies block others until they expire"
		case l.State == monitor.LockNoTTL:
			means = l.EndlessText(c.Snap.Serves)
		case c.Snap.BlocksNobody(l):
			means = l.State.String() + ": a minority on nodes that refuse writes: keeps nobody out as long as they do"
		case l.State == monitor.LockMayBeHeld && redlock.IsTombstone(l.Holder.Raw()):
			means = "may be held: it was revoked, and too few nodes have a tombstone left to keep others out: treat it as held"
		}
		facts = append(facts, Fact{"Means", c.Our(means), c.LockStateOf(l).Tone})
	}
	var w *who.Answer
	if c.Known != nil {
		w = c.Known(l.Holder.Raw())
	}
	holder := Fact{Label: "Holder", Text: holderText(c, l, w)}
	if l.Nobody || l.Contested {
		facts = append(facts, Fact{"Holder", l.NobodyText(), Bad})
		holder.Label = ""
	}
	if holder.Label != "" || l.Tokens == 1 {
		facts = append(facts, holder)
	}
	facts = append(append(facts, heldFact(c, l)), MarginFacts(c, l)...)
	facts = append(facts, earlierFacts(c, l)...)
	facts = append(facts, WhoFacts(c, l, w)...)
	if l.Tokens > 1 {
		facts = append(facts, Fact{Label: "Tokens", Text: tokensText(c, l)})
	}
	facts = append(facts, clockFacts(c, l)...)
	facts = append(facts, leftOverFacts(c, l)...)
	facts = append(facts, Fact{Label: "Keys", Text: lockKeys(c, l, " ")})
	if f := l.Form; f != nil && f.Refused != "" {
		facts = append(facts, Fact{"Removal", "refused: " + c.Whole(f.Refused), Bad})
	} else if l.State == monitor.LockOrphaned && redlock.IsTombstone(l.Holder.Raw()) {
		facts = append(facts, Fact{Label: "Removal", Text: "tombstones of a revoke that nobody relied on before: a force-release frees the nodes at once"})
	} else if f != nil {
		facts = append(facts, Fact{Label: "Removal", Text: c.Whole(f.TakingAway)})
	}
	return facts
}

// holderText says who holds a lock and how that is known, which library made it, and the
// token.
func holderText(c *Context, l *monitor.Lock, w *who.Answer) string {
	by := "not known"
	if l.Nobody {
		by = "left over"
	} else if redlock.IsTombstone(l.Holder.Raw()) {
		by = revokedText
	} else if f := l.Form; f != nil && !f.Owner.Empty() {
		by = ToldBy(c, f.Owner)
	} else if w != nil {
		by = whoHolds(w) + ", asked " + Age(max(0, c.Now.Sub(w.At))) + " ago"
	}
	library := "library not known"
	if f := l.Form; f != nil {
		library = formCell(c, l, f.Guess()).Text
		if !f.Created.IsZero() {
			library += ", drawn " + Moment(f.Created) + " by its clock"
		}
	}
	parts := []string{by, library}
	if !l.Holder.Empty() {
		parts = append(parts, "token "+c.Token(l.Holder))
	}
	return strings.Join(parts, " "+c.Sep+" ")
}

// heldFact says for how long a lock has been held or at least seen, and until when it is held if it has lost its majority.
func heldFact(c *Context, l *monitor.Lock) Fact {
	seen := ""
	if cell := lockSeen(c, l); cell.Tone != Dim {
		since, _, _ := c.heldSince(l)
		seen = cell.Text + ", since " + Clock(since)
	}
	switch majority := hasMajority(l, c.Snap.Cluster.Quorum); {
	case l.ReliedOn() && l.Held >= 0 && !majority:
		until := untilText(c, l)
		if l.MayBeHeld() {
			until = "maybe, " + until
		}
		if seen != "" {
			until += ", seen for " + seen
		}
		return Fact{"Held", until, Warn}
	case majority:
		return Fact{Label: "Held", Text: seen}
	}
	return Fact{Label: "Seen", Text: seen}
}

func tokensText(c *Context, l *monitor.Lock) string {
	var tokens []string
	nodes := map[string][]string{}
	for i, one := range l.Copies.All() {
		if token := one.Token.Raw(); i < len(c.Snap.Nodes) && (one.State == monitor.CopyPresent || one.State == monitor.CopySeen) {
			if nodes[token] == nil {
				tokens = append(tokens, token)
			}
			nodes[token] = append(nodes[token], c.Name(c.Snap.Nodes[i].Name))
		}
	}
	for i, token := range tokens {
		tokens[i] = c.Token(safetext.New(token)) + " on " + strings.Join(nodes[token], " ")
	}
	return strconv.Itoa(l.Tokens) + ": " + strings.Join(tokens, "; ")
}

// KeptText says who keeps a lock, since when and until when; a zero end: until it is
// released. by and reason are safe to show.
func KeptText(by string, since, end time.Time, reason string, now time.Time) string {
	text := "by " + by + " since " + Clock(since) + " (" + Age(max(0, now.Sub(since))) + ")"
	if end.IsZero() {
		text += ", until it is released"
	} else {
		text += ", for " + Remaining(end.Sub(now)) + " more, until " + Clock(end)
	}
	if reason != "" {
		text += "; reason: " + reason
	}
	return text
}
