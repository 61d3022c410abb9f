package view

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"time"

	"redlockctl/internal/who"
	"redlockctl/monitor"
	"redlockctl/monitor/words"
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
	case l.State == monitor.LockNoTTL:
		if _, block := l.Endless(); block {
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

// MarginFacts returns who else can get a lock before its holder's end, and how many copies
// it may lose and still be extended; none if nobody relies on the lock.
func MarginFacts(c *Context, l *monitor.Lock) []Fact {
	if !l.ReliedOn() {
		return nil
	}
	a := c.access(l)
	text, tone := accessText(c, l, &a)
	facts := []Fact{{"Margin", "another client can get in: " + text, tone}}
	silent := silentCopies(c, l)
	switch {
	case a.Spare < 0 && a.Spare+len(silent) >= 0:
		return append(facts, Fact{"", "whether it can be extended is not known: no answer from " + strings.Join(silent, " "), Warn})
	case a.Spare < 0:
		return append(facts, Fact{"", "cannot be extended", Warn})
	case a.Spare == 0:
		return append(facts, Fact{"", "can be extended while no more nodes are lost", Warn})
	}
	return append(facts, Fact{Text: "can be extended while at most " + Plural(a.Spare, "more node is", "more nodes are") + " lost"})
}

// silentCopies returns the nodes that do not answer and may have a copy of the holder.
func silentCopies(c *Context, l *monitor.Lock) (names []string) {
	for i := range min(len(c.Snap.Nodes), l.Copies.Len()) {
		n, one := &c.Snap.Nodes[i], l.Copies.At(i)
		unknown := one.State == monitor.CopyUnknown || one.State == monitor.CopyUnread
		if !n.State.Answers() && unknown && (one.Token.Empty() || one.Token == l.Holder) {
			names = append(names, c.Name(n.Name))
		}
	}
	return names
}

func accessText(c *Context, l *monitor.Lock, a *monitor.Access) (string, Tone) {
	end := l.HeldUntil()
	least := "not before " + endClock(end, c.Now)
	if end.IsZero() || farAway(end, c.Now) {
		least = "never"
	}
	switch {
	case a.Now:
		return "now", Bad
	case a.Perhaps:
		return "maybe now: " + unsureText(c, l, a), Warn
	case !a.From.IsZero():
		node := "fenced nodes rejoin"
		for i := range c.Snap.Nodes {
			if n := &c.Snap.Nodes[i]; n.State == monitor.NodeFenced && n.RejoinsAfter.Equal(a.From) {
				node = c.Name(n.Name) + " rejoins"
			}
		}
		return "from " + Clock(a.From) + ", when " + node, Warn
	case a.Restarts == 1:
		return "after 1 more restart of a node that is " + unproven(c), Warn
	case a.Restarts > 1:
		return "after " + strconv.Itoa(a.Restarts) + " more restarts of nodes that are " + unproven(c), None
	}
	return least, None
}

// unproven says why a node may vote twice when it restarts.
func unproven(c *Context) string {
	if slices.ContainsFunc(c.Snap.Nodes, func(n monitor.Node) bool { return len(n.Guards) > 0 || !n.GuardsKnown }) {
		return "not verified to start fenced"
	}
	return "not guarded"
}

// unsureText says why it is not known whether another client can get a lock.
func unsureText(c *Context, l *monitor.Lock, a *monitor.Access) string {
	var parts, silent []string
	if e := l.Earlier; e != nil {
		parts = append(parts, "the holder of "+c.Token(e.Token)+" may rely on it")
	}
	for _, i := range a.Unsure {
		n := &c.Snap.Nodes[i]
		why := " is " + n.State.String()
		switch {
		case !n.State.Answers():
			silent = append(silent, c.Name(n.Name))
			continue
		case l.Copies.At(i).State == monitor.CopyUnread:
			why = " is being read"
		case !l.Copies.At(i).Token.Empty() && l.Copies.At(i).Token != l.Holder:
			why = " has a copy of another token, which may reach a quorum with it"
		case n.State == monitor.NodeServing:
			why = " has another key of this name"
		}
		parts = append(parts, c.Name(n.Name)+why)
	}
	switch len(silent) {
	case 0:
	case 1:
		parts = append(parts, silent[0]+" does not answer")
	default:
		parts = append(parts, strings.Join(silent, " ")+" do not answer")
	}
	return strings.Join(parts, ", ")
}

// leftOver reports whether copy i rivals nobody: the lock is held by another token, and this is no
// split, or its copies are all on nodes that refuse writes, and the nodes that are free do not complete
// a majority with them.
func leftOver(c *Context, l *monitor.Lock, i int) bool {
	one := l.Copies.At(i)
	if one.State != monitor.CopyPresent || one.Token.Empty() || one.Token == l.Holder && l.ReliedOn() || l.Contested {
		return false
	}
	if l.State <= monitor.LockBareMajority && l.ReliedOn() && !redlock.IsTombstone(one.Token.Raw()) {
		return true
	}
	votes := 0
	for k, other := range l.Copies.All() {
		there := other.State == monitor.CopyPresent || other.State == monitor.CopyUnknown || other.State == monitor.CopyUnread
		closed := k < len(c.Snap.Nodes) && refusesWrites(c.Snap.Nodes[k].State)
		switch {
		case there && other.Token == one.Token && !closed:
			return false
		case there && other.Token == one.Token, !there && !closed:
			votes++
		}
	}
	return votes < redlock.Quorum(l.Copies.Len()) || l.State == monitor.LockOrphaned
}

func refusesWrites(s monitor.NodeState) bool {
	return s == monitor.NodeFenced || s == monitor.NodeCordoned
}

// leftOverFacts lists the copies that nobody can use any more, and when they expire.
func leftOverFacts(c *Context, l *monitor.Lock) (facts []Fact) {
	for i, one := range l.Copies.All() {
		if i >= len(c.Snap.Nodes) || !leftOver(c, l, i) {
			continue
		}
		n, end := &c.Snap.Nodes[i], one.Expires
		if farAway(end, c.Now) {
			end = time.Time{}
		}
		f := Fact{Text: "on " + c.Name(n.Name) + ", " + n.State.String() + ": " + words.Goes(end, c.Now)}
		if facts == nil {
			f.Label = "Left over"
		}
		facts = append(facts, f)
	}
	return facts
}

// cutShort reports whether the holder's copy i ends early because the clock of its node was stepped
// forward since the copy was set or extended.
func cutShort(c *Context, l *monitor.Lock, i int) bool {
	f, one := &c.Snap.Nodes[i].Facts, l.Copies.At(i)
	if f.StepBy <= 0 || !f.StepAt.After(l.Since()) || !f.StepAt.After(l.ExtendedAt()) || one.State != monitor.CopyPresent || one.Token != l.Holder || one.Expires.IsZero() {
		return false
	}
	latest := l.HeldUntil()
	for _, other := range l.Copies.All() {
		if other.Token == l.Holder && other.Expires.After(latest) {
			latest = other.Expires
		}
	}
	return latest.Sub(one.Expires) > f.StepBy/2
}

// clockFacts says which copies end early because of a step of a clock.
func clockFacts(c *Context, l *monitor.Lock) (facts []Fact) {
	for i := range min(len(c.Snap.Nodes), l.Copies.Len()) {
		if !cutShort(c, l, i) {
			continue
		}
		n := &c.Snap.Nodes[i]
		f := Fact{Text: c.Name(n.Name) + " was stepped by " + words.Signed(n.Facts.StepBy) + " at " + Clock(n.Facts.StepAt) + ": its copy ends early", Tone: Warn}
		if facts == nil {
			f.Label = "Clock"
		}
		facts = append(facts, f)
	}
	return facts
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
		case l.State == monitor.LockNoTTL:
			means = l.EndlessText()
		case l.State == monitor.LockMayBeHeld && redlock.IsTombstone(l.Holder.Raw()):
			means = "may be held: it was revoked, and too few nodes have a tombstone left to keep others out: treat it as held"
		}
		facts = append(facts, Fact{"Means", c.Our(means), c.LockState(l.State).Tone})
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

// CopyBar is the remaining time of a copy on one node.
type CopyBar struct {
	Node  string
	State Cell // of the node
	Left  Cell // the remaining time, in words
	Bar   Cell // the remaining time, on an axis that all nodes share
	Held  bool // there probably is a copy
	Note  Cell // may be empty

	ends time.Time
}

// FoldBars draws copies of which at least three are alike in one line: how many they are, the
// least and the greatest remaining time, and the nodes.
func FoldBars(bars []CopyBar) (folded []CopyBar) {
	alike := func(a, b *CopyBar) bool {
		return a.State == b.State && a.Held == b.Held && a.Note == b.Note && a.ends.IsZero() == b.ends.IsZero() && (!a.ends.IsZero() || a.Left == b.Left)
	}
	done := make([]bool, len(bars))
	for i := range bars {
		if done[i] {
			continue
		}
		var group []*CopyBar
		var at []int
		for k := i; k < len(bars); k++ {
			if b := &bars[k]; !done[k] && alike(b, &bars[i]) {
				group, at = append(group, b), append(at, k)
			}
		}
		if len(group) < 3 {
			folded = append(folded, bars[i])
			continue
		}
		names := make([]string, len(group))
		for j, b := range group {
			done[at[j]], names[j] = true, b.Node
		}
		byEnd := func(a, b *CopyBar) int { return a.ends.Compare(b.ends) }
		one, last := *slices.MinFunc(group, byEnd), slices.MaxFunc(group, byEnd)
		if last.Left.Text != one.Left.Text {
			one.Left.Text += " to " + last.Left.Text
		}
		if one.Node = Plural(len(group), "node"); one.Note.Text != "" {
			one.Note.Text += ":"
		}
		one.Note.Text = strings.TrimSpace(one.Note.Text + " " + strings.Join(names, " "))
		folded = append(folded, one)
	}
	return folded
}

// LockBars returns the copies of a lock as bars on an axis of w cells and this length;
// without bars if there is no axis.
func LockBars(c *Context, l *monitor.Lock, axis time.Duration, w int) []CopyBar {
	cells := func(end time.Time) int {
		if axis <= 0 {
			return 0
		}
		return min(w, int(float64(w)*float64(max(0, end.Sub(c.Now)))/float64(axis)))
	}
	ends, mark := w, -1
	end := l.HeldUntil()
	if !end.IsZero() {
		ends = cells(end)
	}
	// Copies that agree end in another order after each extension: the first of them has the
	// mark, so that it stays where it is.
	for i, one := range l.Copies.All() {
		if one.State == monitor.CopyPresent && one.Token == l.Holder && !end.IsZero() && one.Expires.Sub(end).Abs() <= agree {
			mark = i
			break
		}
	}
	bars := make([]CopyBar, 0, l.Copies.Len())
	for i, one := range l.Copies.All() {
		if i >= len(c.Snap.Nodes) {
			break
		}
		n := &c.Snap.Nodes[i]
		bar := CopyBar{Node: c.Name(n.Name), State: c.NodeState(n.State), Left: Cell{Text: c.None, Tone: Dim}}
		switch one.State {
		case monitor.CopySeen:
			bar.Held, bar.Left = true, Cell{Text: "a copy; when it expired was not recorded"}
			if one.Token != l.Holder {
				bar.Note = Cell{Text: "of " + c.Token(one.Token), Tone: Bad}
			}
		case monitor.CopyPresent:
			bar.Held = true
			full := w
			bar.Left = Cell{Text: "no TTL", Tone: Bad}
			if !one.Expires.IsZero() {
				bar.Left, bar.ends = Cell{Text: Left(one.Expires.Sub(c.Now))}, one.Expires
			}
			switch {
			case axis == 0:
				full = 0
			case !one.Expires.IsZero():
				full = cells(one.Expires)
			}
			bar.Bar = Cell{Text: strings.Repeat(c.Full, full), Tone: c.LockState(l.State).Tone}
			if full > ends { // a copy that outlives the majority marks the majority's end
				bar.Bar.Text = strings.Repeat(c.Full, ends) + c.Here + strings.Repeat(c.Full, full-ends-1)
			}
			switch {
			case leftOver(c, l, i):
				bar.Bar.Tone, bar.Note = Dim, Cell{Text: "left over, " + n.State.String(), Tone: Dim}
			case one.Token != l.Holder:
				bar.Bar.Tone, bar.Note.Text = Bad, "of "+c.Token(one.Token)
			case i == mark:
				bar.Note.Text = c.Points + " the majority ends here"
				if l.State == monitor.LockRevoked {
					bar.Note.Text = c.Points + " others can get in from here"
				}
				if l.MajorityEnd().IsZero() {
					bar.Note.Text = c.Points + " held until here"
				}
			}
			if cutShort(c, l, i) {
				bar.Note = Cell{Text: strings.TrimSpace(bar.Note.Text + " clock stepped"), Tone: Warn}
			}
			if one.Type != "" && one.Type != "string" && one.Token.Empty() {
				bar.Note.Text = "a " + c.Whole(one.Type)
			}
		case monitor.CopyLost:
			bar.Note = Cell{Text: lostText(c, n, one), Tone: Warn}
		case monitor.CopyAbsent:
			bar.Note = Cell{Text: "no copy", Tone: Dim}
			if n.State != monitor.NodeServing {
				bar.Note.Text += ", " + n.State.String()
			}
		case monitor.CopyUnread:
			bar.Note = Cell{Text: c.Ellipsis + " " + UnknownCopy(c, n, one), Tone: Warn}
		default:
			bar.Note = Cell{Text: "? " + n.State.String() + ": " + UnknownCopy(c, n, one), Tone: Warn}
		}
		bars = append(bars, bar)
	}
	return bars
}

// lostText says when and why a copy was lost, as far as that is known, and the present state of
// its node: "lost 22:17:04 (restart), fenced 18s".
func lostText(c *Context, n *monitor.Node, one monitor.Copy) string {
	text := "lost "
	if !one.LostAt.IsZero() {
		text += Clock(one.LostAt) + " "
	}
	if why := one.Cause.String(); why != "" {
		text += "(" + why + ")"
	}
	text = strings.TrimSuffix(text, " ") + ", " + n.State.String()
	if left, ok := c.Guard.Countdown(n, c.Now); ok {
		text += " " + Remaining(left)
	} else if n.State == monitor.NodeFenced && n.RejoinsAfter.After(c.Now) {
		text += " " + c.Our("≥") + Remaining(n.RejoinsAfter.Sub(c.Now))
	}
	return text
}

// UnknownCopy describes the copy on a node that does not answer.
func UnknownCopy(c *Context, n *monitor.Node, one monitor.Copy) string {
	if n.State.Answers() && one.State == monitor.CopyUnknown {
		return "not recorded: a copy may have been there"
	}
	if one.State == monitor.CopyUnread && one.Type == "" {
		return "not read yet: a copy may be there"
	}
	end := one.Expires
	if end.IsZero() {
		if !one.Token.Empty() {
			return "the copy that was seen there has no TTL"
		}
		most := c.Snap.Cluster.MaxTTL
		if most <= 0 || n.Since.IsZero() {
			return "a copy may be there"
		}
		end = n.Since.Add(most) // of a copy that was set just before the node went silent
	}
	if farAway(end, c.Now) {
		return "a copy there, if any, never expires"
	}
	if end.Before(c.Now) {
		return "a copy there, if any, expired by " + Clock(end) + " unless extended"
	}
	return "a copy there, if any, expires by " + Clock(end) + " unless extended"
}

// Axis returns a round span that contains the remaining time of all copies; zero if no
// copy is known to expire.
func Axis(c *Context, l *monitor.Lock) time.Duration {
	var d time.Duration
	expires := false
	for _, one := range l.Copies.All() {
		if one.State == monitor.CopyPresent && !one.Expires.IsZero() && !farAway(one.Expires, c.Now) {
			d, expires = max(d, one.Expires.Sub(c.Now)), true
		}
	}
	if !expires {
		return 0
	}
	for _, axis := range []time.Duration{1, 2, 4, 6, 10, 20, 30, 60, 120, 240, 600, 1200, 1800} {
		if d <= axis*time.Second {
			return axis * time.Second
		}
	}
	const h = time.Hour
	axis := h
	for axis < d && axis < 1<<20*h {
		axis *= 2
	}
	return axis
}

// AxisLabels labels the start, the middle and the end of an axis of w cells.
func AxisLabels(d time.Duration, w int) string {
	label := func(d time.Duration) string {
		if d%time.Second == 0 && d >= 100*time.Second || d >= time.Hour {
			return Age(d)
		}
		return d.String()
	}
	half, end := label(d/2), label(d)
	s := "now"
	s += strings.Repeat(" ", max(0, w/2-len(s))) + half
	return s + strings.Repeat(" ", max(0, w-len(s)-len(end))) + end
}

// LeftBehind reports whether a lock is orphaned.
func LeftBehind(c *Context, l *monitor.Lock) bool {
	switch l.State {
	case monitor.LockOrphaned:
		return true
	case monitor.LockOverTTL, monitor.LockNoTTL: // these states are shown instead of orphaned
		return l.Held >= 0 && !l.ReliedOn()
	}
	return false
}

// MakerFacts returns what a record knows about who left an orphaned lock: until when its
// token held the lock, if ever, and when it was last seen. None for other locks.
func MakerFacts(c *Context, l *monitor.Lock, grants []GrantDoc) []Fact {
	if !LeftBehind(c, l) {
		return nil
	}
	sha := tokenSHA(l.Holder)
	for i := len(grants) - 1; i >= 0; i-- {
		g := &grants[i]
		if g.TokenSHA == "" || !strings.HasPrefix(sha, g.TokenSHA) {
			continue
		}
		until := c.Now
		if !g.Until.IsZero() && g.Until.Before(until) {
			until = g.Until // its end may not be written yet
		}
		text := "held it for " + Age(g.held(until)) + ", from " + Clock(g.Began)
		if g.Owner != nil {
			text = ToldBy(c, *g.Owner) + " " + text
		}
		if !g.Ended.IsZero() {
			text += " to " + Clock(g.Ended) + " (" + c.Whole(g.How) + ")"
		}
		return append([]Fact{{Label: "Maker", Text: text}}, Fact{Text: g.heard(c.Now)})
	}
	return nil
}

// tokenSHA returns the hash of a token; of one from a record, what is known of it.
func tokenSHA(token safetext.Text) string {
	sha, recalled := strings.CutPrefix(token.Raw(), "sha256:")
	if !recalled {
		sum := sha256.Sum256([]byte(token.Raw()))
		sha = hex.EncodeToString(sum[:])
	}
	return sha
}

// heard says when the holder was last seen.
func (g *GrantDoc) heard(now time.Time) string {
	if g.Extensions == 0 || g.Extended.IsZero() {
		return "it was not seen to extend it"
	}
	w := who.Answer{Extends: g.Extensions, Extended: max(0, now.Sub(g.Extended))}
	switch span := g.Extended.Sub(g.Began); {
	case !g.Partly:
		w.Usually = span / time.Duration(g.Extensions)
	case g.Extensions > 2:
		w.Usually = usually(span, g.Extensions)
	}
	w.Liveness = who.AssessLiveness(who.Signs{Extends: w.Extends, Extended: w.Extended, Usually: w.Usually})
	return WhoLiveness(&w)
}
