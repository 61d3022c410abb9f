package view

import (
	"cmp"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"redlockctl/monitor"
	"redlockctl/server/safetext"
)

// GrantDoc is a recorded grant: the time for which one holder has a lock.
type GrantDoc struct {
	Lock       safetext.Text  `json:"lock"`
	TokenSHA   string         `json:"token_sha256"` // its first 16 digits
	Owner      *safetext.Text `json:"owner,omitempty"`
	Library    string         `json:"library,omitempty"`
	Began      time.Time      `json:"began"`
	Partly     bool           `json:"partly,omitempty"` // it began before the record, or while its recorder was stopped
	Until      time.Time      `json:"until,omitzero"`   // left out: no TTL
	Extensions int            `json:"extensions"`
	Extended   time.Time      `json:"last_extended,omitzero"`
	Ended      time.Time      `json:"ended,omitzero"` // left out: not seen to end
	How        string         `json:"how,omitempty"`
	Overlaps   bool           `json:"overlaps,omitempty"` // with the previous grant

	unwritten bool // it began, or ended, as the lock is seen now; the record does not say so yet
}

// PastEventDoc is a recorded event or change of state.
type PastEventDoc struct {
	At   time.Time      `json:"at"`
	Kind string         `json:"event"`
	Node *safetext.Text `json:"node,omitempty"`
	Lock *safetext.Text `json:"lock,omitempty"`
	Text safetext.Text  `json:"text"`
	// Count is how many events of locks this one stands for; 0: it is one.
	Count int       `json:"count,omitempty"`
	Last  time.Time `json:"last_at,omitzero"` // of these, the last one
}

// Stamp formats a moment with its date and zone.
func Stamp(t time.Time, utc bool) string {
	if t.IsZero() {
		return ""
	}
	if utc {
		return t.UTC().Format("2006-01-02 15:04:05.000Z")
	}
	return t.Local().Format("2006-01-02 15:04:05.000-07:00")
}

// held returns how long a grant lasted, or has lasted until now.
func (g *GrantDoc) held(now time.Time) time.Duration {
	if !g.Ended.IsZero() {
		now = g.Ended
	}
	return max(0, now.Sub(g.Began))
}

// reliedUntil returns until when the holder of a grant may rely on it though the lock was taken
// from it, by a removal or by the loss of its majority: nobody tells it. Zero: not beyond the
// grant's end; endless: it had no TTL.
func (g *GrantDoc) reliedUntil() (until time.Time, endless bool) {
	if g.How != "revoked" && g.How != "force-released" && g.How != lostMajority {
		return until, false
	}
	if g.Until.Sub(g.Ended) > time.Second {
		until = g.Until
	}
	return until, g.Until.IsZero()
}

// lostMajority is how a grant ends whose majority was lost. With no end, its holder relies on it
// still, and another one got in.
const lostMajority = "lost majority"

// relied says until when the holder of a grant may rely on it though the lock was taken from it;
// empty: not beyond its end.
func (g *GrantDoc) relied(moment func(time.Time) string) string {
	switch until, endless := g.reliedUntil(); {
	case endless:
		return "may rely on it without end: it had no TTL"
	case until.IsZero():
		return ""
	default:
		return "may rely on it until " + moment(until)
	}
}

// Relies says until when the holder of a grant may rely on it though the lock was taken from it;
// empty: not any more.
func Relies(g *GrantDoc, now time.Time) string {
	if until, endless := g.reliedUntil(); !endless && !until.After(now) {
		return ""
	}
	return g.relied(func(t time.Time) string { return momentSince(t, now) })
}

// Who returns the owner that the token names, or the beginning of the token's SHA-256, as such.
func (g *GrantDoc) Who() string { return cmp.Or(rawOf(g.Owner), hashName(g.TokenSHA)) }

// TokensOf returns the tokens in events, by as much of their SHA-256 as a grant has.
func TokensOf(events []monitor.Event) map[string]safetext.Text {
	all := map[string]safetext.Text{}
	for i := range events {
		if t := events[i].Token; !t.Empty() && (i == 0 || t != events[i-1].Token) {
			sha := tokenSHA(t)
			all[sha[:min(shaDigits, len(sha))]] = t
		}
	}
	return all
}

// shaDigits is how many digits of a token's SHA-256 a grant has.
const shaDigits = 16

// who names the holder of a grant as the list of locks does: by its token, if the live
// lock or events have it, and else by its hash.
func (c *Context) who(g *GrantDoc) string {
	if t, ok := c.Tokens[g.TokenSHA]; ok && g.Owner == nil {
		return c.Token(t)
	}
	if g.Owner == nil && c.Snap != nil && g.TokenSHA != "" {
		for t := range tokensOf(c.Snap.LockNamed(g.Lock.Raw())) {
			if strings.HasPrefix(tokenSHA(t), g.TokenSHA) {
				return c.Token(t)
			}
		}
	}
	return c.Whole(g.Who())
}

// tokensOf are the tokens of a lock: its holder's, those of its copies, and that of a client that may rely on it too.
func tokensOf(l *monitor.Lock) iter.Seq[safetext.Text] {
	return func(yield func(safetext.Text) bool) {
		if l == nil || !yield(l.Holder) || l.Earlier != nil && !yield(l.Earlier.Token) {
			return
		}
		for i := range l.Copies.Len() {
			if t := l.Copies.At(i).Token; t != l.Holder && !t.Empty() && !yield(t) {
				return
			}
		}
	}
}

// GrantColumns are the columns of the holders of a lock.
func GrantColumns(utc bool) []Column[*GrantDoc] {
	at := func(t func(*GrantDoc) time.Time) (func(*Context, *GrantDoc) Cell, func(a, b *GrantDoc) int) {
		return func(c *Context, g *GrantDoc) Cell { return c.orNone(Stamp(t(g), utc)) },
			func(a, b *GrantDoc) int { return t(a).Compare(t(b)) }
	}
	began, byBegan := at(func(g *GrantDoc) time.Time { return g.Began })
	ended, byEnded := at(func(g *GrantDoc) time.Time { return g.Ended })
	extended, byExtended := at(func(g *GrantDoc) time.Time { return g.Extended })
	until, byUntil := at(func(g *GrantDoc) time.Time { return g.Until })
	return []Column[*GrantDoc]{{
		Name: "LOCK", Help: "key of the lock", Compare: byText(func(g *GrantDoc) string { return g.Lock.Raw() }), Fields: []string{"lock"}, Wide: true,
		Cell: func(c *Context, g *GrantDoc) Cell { return Cell{Text: c.Name(g.Lock.Raw())} },
	}, {
		Name: "BEGAN", Help: "when it was granted, or first seen (then with `≥` before HELD)", Fields: []string{"began", "partly"}, Cell: began, Compare: byBegan,
	}, {
		Name: "ENDED", Help: "when it ended; `–`: not before the end of the record", Fields: []string{"ended"}, Cell: ended, Compare: byEnded,
	}, {
		Name: "HELD", Help: "how long; `≥` (`>=` with `--ascii`) if it began before it was recorded", Right: true,
		Compare: compareBy(func(g *GrantDoc) time.Duration { return g.held(g.Began) }),
		Cell: func(c *Context, g *GrantDoc) Cell {
			text := Span(g.held(c.Now))
			if g.Partly {
				text = c.Our("≥") + " " + text
			}
			return Cell{Text: text}
		},
	}, {
		Name: "HOW", Help: "how it ended: `released` (also if another machine force-released it, or somebody deleted it), `expired`, `revoked`, `force-released`, `lost majority`; `not seen`: nobody recorded then, or its nodes did not answer", Fields: []string{"how"},
		Compare: compareBy(func(g *GrantDoc) string { return g.How }),
		Cell: func(c *Context, g *GrantDoc) Cell {
			cell := c.orNone(c.Whole(g.How))
			if g.How == lostMajority {
				cell.Tone = Bad
			}
			return cell
		},
	}, {
		Name: "EXTENDED", Help: "number of extensions", Fields: []string{"extensions"}, Right: true, Compare: compareBy(func(g *GrantDoc) int { return g.Extensions }),
		Cell: func(c *Context, g *GrantDoc) Cell { return Cell{Text: strconv.Itoa(g.Extensions) + " " + c.Our("×")} },
	}, {
		Name: "LAST EXTENDED", Help: "time of the last extension", Compare: byExtended, Fields: []string{"last_extended"}, Wide: true, Cell: extended,
	}, {
		Name: "UNTIL", Help: "when its TTL would have expired, as last seen; `–`: no TTL", Compare: byUntil, Fields: []string{"until"}, Wide: true, Cell: until,
	}, {
		Name: "TOKEN SHA-256", Help: "beginning of the hash of its token, as in the audit log", Compare: compareBy(func(g *GrantDoc) string { return g.TokenSHA }), Fields: []string{"token_sha256"},
		Cell: func(c *Context, g *GrantDoc) Cell { return Cell{Text: c.Whole(g.TokenSHA)} },
	}, {
		Name: "OWNER", Help: "owner, if the token tells", Fields: []string{"owner"}, Cut: 48,
		Compare: compareBy(func(g *GrantDoc) string { return g.Who() }),
		Cell:    textOf(func(g *GrantDoc) string { return rawOf(g.Owner) }),
	}, {
		Name: "LIBRARY", Help: "library, guessed from the form of its token", Compare: compareBy(func(g *GrantDoc) string { return g.Library }), Fields: []string{"library"}, Wide: true,
		Cell: textOf(func(g *GrantDoc) string { return g.Library }),
	}, {
		Name: "NOTE", Help: "`OVERLAP`: it began before another grant ended, or a force-released one would have: two clients may have relied on the lock; or until when the holder of a revoked or force-released one, or of one that lost its majority, may rely on it, without end if it had no TTL", Compare: compareBy(func(g *GrantDoc) string { return strconv.FormatBool(!g.Overlaps) }), Fields: []string{"overlaps"},
		Cell: func(_ *Context, g *GrantDoc) Cell {
			var notes []string
			cell := Cell{}
			if g.Overlaps {
				notes, cell.Tone = append(notes, "OVERLAP"), Bad
			}
			relied := g.relied(func(t time.Time) string {
				if utc {
					return t.UTC().Format(time.TimeOnly)
				}
				return t.Local().Format(time.TimeOnly)
			})
			if relied != "" {
				notes = append(notes, relied)
			}
			cell.Text = strings.Join(notes, ", ")
			return cell
		},
	}}
}

// rawOf returns an optional text.
func rawOf(t *safetext.Text) string {
	if t == nil {
		return ""
	}
	return t.Raw()
}

// PastEventColumns are the columns of recorded events.
func PastEventColumns(utc bool) []Column[*PastEventDoc] {
	said := func(c *Context, t *safetext.Text) Cell {
		if t == nil {
			return Cell{}
		}
		return Cell{Text: c.Name(t.Raw())}
	}
	return []Column[*PastEventDoc]{{
		Name: "TIME", Help: "time, with date and zone", Fields: []string{"at"}, Compare: func(a, b *PastEventDoc) int { return a.At.Compare(b.At) },
		Cell: func(_ *Context, e *PastEventDoc) Cell { return Cell{Text: Stamp(e.At, utc)} },
	}, {
		Name: "KIND", Help: "kind of event; `state`: a node's new state, `verdict`: the cluster's new verdict", Fields: []string{"event"}, Compare: compareBy(func(e *PastEventDoc) string { return e.Kind }),
		Cell: func(c *Context, e *PastEventDoc) Cell { return Cell{Text: c.Whole(e.Kind)} },
	}, {
		Name: "NODE", Help: "the node, if it concerns one", Fields: []string{"node"}, Compare: byText(func(e *PastEventDoc) string { return rawOf(e.Node) }),
		Cell: func(c *Context, e *PastEventDoc) Cell { return said(c, e.Node) },
	}, {
		Name: "LOCK", Help: "the lock, if it concerns one", Fields: []string{"lock"}, Compare: byText(func(e *PastEventDoc) string { return rawOf(e.Lock) }), Cut: 48,
		Cell: func(c *Context, e *PastEventDoc) Cell { return said(c, e.Lock) },
	}, {
		Name: "TEXT", Help: "what happened, as a sentence", Compare: byText(func(e *PastEventDoc) string { return e.Text.Raw() }), Fields: []string{"text", "count", "last_at"},
		Cell: func(c *Context, e *PastEventDoc) Cell { return Cell{Text: c.Whole(e.Text.Raw())} },
	}}
}

// NodeTurn is a change of a node in the past: of its state, or a restart.
type NodeTurn struct {
	Node      string
	At        time.Time
	State     monitor.NodeState // unknown: nothing was recorded from then on
	Restarted bool
}

// Band shows the holders of a lock over time, oldest first.
type Band struct {
	From, To time.Time
	Grants   []GrantDoc
	Gaps     []SpanDoc // in which locks were not recorded
}

// AsSeen returns the band with what is seen of the lock now, and is recorded a moment later: the grants of other
// tokens than the holder's have ended, and the holder has one. l may be nil: the lock is not seen.
func (b Band) AsSeen(l *monitor.Lock) Band {
	if l == nil || l.Nobody || l.Contested || l.Holder.Empty() || strings.HasSuffix(l.Holder.Raw(), monitor.TokenCut) {
		return b
	}
	is := func(g *GrantDoc, token safetext.Text) bool {
		return g.TokenSHA == "" || strings.HasPrefix(tokenSHA(token), g.TokenSHA)
	}
	since, known, over := l.Since(), false, false
	if since.IsZero() || since.After(b.To) {
		since = b.To
	}
	grants := slices.Clone(b.Grants)
	for i := range grants {
		g := &grants[i]
		switch {
		case is(g, l.Holder):
			known = true
		case !g.Ended.IsZero(), g.How != "", l.Earlier != nil && is(g, l.Earlier.Token):
		default:
			g.unwritten, g.Ended, over = true, since, true
			if g.Began.After(since) {
				g.Ended = b.To
			}
		}
	}
	if over && !known && l.ReliedOn() {
		g := GrantDoc{Lock: l.Key, TokenSHA: tokenSHA(l.Holder), Began: since, Until: l.HeldUntil(), unwritten: true}
		if owner := ownerOf(l); owner != "" {
			g.Owner = &l.Form.Owner
		}
		grants = append(grants, g)
	}
	b.Grants = grants
	return b
}

// BandLength returns a span that contains these grants until now, within the record.
func BandLength(grants []GrantDoc, recorded, now time.Time) time.Duration {
	length := min(time.Hour, now.Sub(recorded))
	for _, d := range []time.Duration{time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour} {
		if len(grants) == 0 || now.Sub(grants[0].Began) <= d || length <= d {
			return d
		}
	}
	return time.Hour
}

// Line draws the band in w cells: a part for each holder, as long as it held, with its name
// and duration if they fit. Overlapping holders are marked.
func (b *Band) Line(c *Context, w int) (parts []Cell) {
	length := b.To.Sub(b.From)
	if length <= 0 || w < 8 {
		return nil
	}
	cell := func(t time.Time) int {
		if t.IsZero() || t.After(b.To) {
			t = b.To
		}
		return int(float64(w) * float64(max(0, t.Sub(b.From))) / float64(length))
	}
	at := 0
	part := func(why, narrow string, to int) {
		if n := to - at; n > 0 {
			if n < Width(why)+2 {
				why = strings.Repeat(narrow, n)
			}
			parts, at = append(parts, Cell{Text: padded(why, n), Tone: Dim}), to
		}
	}
	// nobody draws the time until a holder: where it was free, and where nothing is known.
	var relied time.Time // until when the last holder may rely on the lock
	nobody := func(to int) {
		if !relied.IsZero() {
			part("may work", "~", min(to, cell(relied)))
		}
		for _, gap := range b.Gaps {
			from, end := cell(gap.Since), cell(gap.Until)
			if end = min(to, max(end, from+1)); end > at && from < to {
				part("free", "", from)
				part("not recorded", "?", end)
			}
		}
		part("free", "", to)
	}
	for i := range b.Grants {
		g := &b.Grants[i]
		from, to := max(at, cell(g.Began)), cell(g.Ended)
		if g.Ended.IsZero() && i+1 < len(b.Grants) { // a lost majority, on which its holder still relies
			to = cell(b.Grants[i+1].Began)
		}
		if to = min(w, max(to, from+1)); from >= w {
			break
		}
		nobody(from)
		n := to - from
		text := c.Edge + c.who(g) + " " + Age(g.held(b.To))
		if Width(text) > n {
			text = c.Edge + c.who(g)
		}
		if Width(text) > n {
			text = c.Edge
		}
		tone := [...]Tone{Good, Info}[i%2]
		if g.Overlaps {
			tone = Bad
			if n >= 3 {
				text = c.Edge + "!" + c.Cut(text[len(c.Edge):], n-2)
			}
		}
		parts, at = append(parts, Cell{Text: c.Cut(padded(text, n), n), Tone: tone}), to
		endless := false
		if relied, endless = g.reliedUntil(); endless || relied.After(b.To) {
			relied = b.To
		}
	}
	nobody(w)
	return parts
}

func padded(s string, w int) string {
	for n := Width(s); n < w; n++ {
		s += " "
	}
	return s
}

// Lines returns the band in words, at most n lines, the latest first.
func (b *Band) Lines(c *Context, n int) (facts []Fact) {
	gaps := slices.Clone(b.Gaps)
	missing := func(after time.Time) {
		for len(gaps) > 0 && gaps[len(gaps)-1].Since.After(after) {
			gap := gaps[len(gaps)-1]
			facts, gaps = append(facts, Fact{Text: Clock(gap.Since) + "  not recorded, " + Age(gap.Until.Sub(gap.Since))}), gaps[:len(gaps)-1]
		}
	}
	for i := len(b.Grants) - 1; i >= 0; i-- {
		g := &b.Grants[i]
		missing(g.Began)
		lasted := Age(g.held(b.To)) + ", " + cmp.Or(c.Whole(g.How), "still")
		switch {
		case g.unwritten && g.Ended.IsZero():
			lasted = "first seen then, still; not recorded yet"
		case g.unwritten:
			lasted = "at most " + Age(g.held(b.To)) + ", no longer the holder; its end is not recorded yet"
		}
		text := Clock(g.Began) + "  " + c.Cut(c.who(g), 40) + ", " + lasted
		if relied := g.relied(Clock); relied != "" {
			text += ", " + relied
		}
		tone := None
		if g.Overlaps {
			text, tone = text+", OVERLAP with the one before", Bad
		}
		facts = append(facts, Fact{Text: text, Tone: tone})
	}
	missing(time.Time{})
	facts = facts[:min(n, len(facts))]
	if len(facts) > 0 {
		facts[0].Label = "Holders"
	}
	return facts
}
