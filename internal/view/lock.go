package view

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"redlockctl/internal/who"
	"redlockctl/monitor"
	"redlockctl/redlock"
	"redlockctl/server/safetext"
)

// ownLibrary is the name of the form of this program's own locks.
const ownLibrary = "redlockctl"

// LockColumns are the columns of locks over these nodes.
func LockColumns(nodes []monitor.Node) []Column[*monitor.Lock] {
	many := len(nodes) > MostCharted
	type column = Column[*monitor.Lock]
	columns := []column{{
		Name: "NAME", Help: "the key; control and hidden characters are escaped (`\\x1b`, `\\u202e`)",
		Fields: []string{"key"}, Compare: compareBy(func(l *monitor.Lock) string { return l.Key.Raw() }),
		Cell: lockName, Cut: 60, Rank: 1, Width: 14, Good: 24, Most: 60, Middle: true,
	}, {
		Name: "STATE", Help: "one of the [states](#states-of-locks); sorted by it, locks that need a person come first",
		Fields: []string{"state"}, Key: lockNeeds, First: "needs you first",
		Cell: func(c *Context, l *monitor.Lock) Cell {
			cell := c.LockStateOf(l)
			if c.Short {
				cell.Text = strings.NewReplacer("bare majority", "bare maj.", "may be held", "maybe held", "lost majority", "lost maj.", "over max TTL", "over max").Replace(cell.Text)
			}
			return cell
		}, Rank: 2, Width: 12,
	}, {
		Name: "COPIES", Help: "how many of the N nodes have the holder's copy; `2+1/5`: one more copy has another token",
		Fields: []string{"copies", "n"}, Key: func(l *monitor.Lock) int64 { return int64(l.Held) }, First: "fewest copies",
		Cell: func(_ *Context, l *monitor.Lock) Cell { return Cell{Text: Copies(l)} }, Right: true, Rank: 3, Width: max(6, 2+3*len(strconv.Itoa(len(nodes)))),
	}, {
		Name: "TTLS", Help: "a bar for the copy on each node: its remaining time relative to the longest; all full if they agree within a second. `·` no copy, `×` a lost one, `◇` another token's copy, `–` a copy whose end was not recorded, `?` not known (`.`, `x`, `Y`, `-` and `?` with `--ascii`). `W` shows a column for each node instead. Of more than 12 nodes: which part of the copies is of each kind",
		SortAs: "ends", Cell: lockChart, Wide: !many, InsteadOf: "nodes", Rank: 9, Width: max(4, min(len(nodes), MostCharted)),
	}}
	for i := range nodes {
		at := "nodes." + strconv.Itoa(i) + "."
		columns = append(columns, column{
			Name: nodes[i].Name, Group: "nodes",
			Help: "remaining TTL of the copy on that node. `–` no copy; `lost` the copy was lost with a restart or a wipe, and its TTL still runs; `?` the node does not answer (`?~8s`: its copy as last seen); `…` its keys are still being read (`..` with `--ascii`); " +
				"`∞` or `no TTL` never expires. `'` marks another token's copy; a value that is not a lock shows its type",
			Fields: []string{at + "state", at + "ttl_ms"}, Key: copyEnd(i),
			Cell: func(c *Context, l *monitor.Lock) Cell { return copyCell(c, l, i) }, Right: true, Folded: true, Wide: many, Rank: 7, Width: min(6, max(4, Width(nodes[i].Name))),
		})
	}
	return append(columns, column{
		Name: "ENDS", Help: "time until the holder cannot rely on the lock any more: when the Q-th last of its copies expires, lost ones included; `never` (on the screen `∞`): in more than ten years. On a screen without room for AT, an end that is ten minutes to a day away is a time of day: `14:03`",
		Fields: []string{"majority_ends_ms", "held_until"}, Key: lockEnd, First: "ends soonest", Cell: lockEnds, Right: true, Rank: 4, Width: 4, Good: len("14:03"),
	}, column{
		Name: "AT", Help: "ENDS as a time of day", SortAs: "ends", Wide: true, Rank: 11, Width: 8,
		Cell: func(c *Context, l *monitor.Lock) Cell {
			if l.HeldUntil().IsZero() {
				return Cell{}
			}
			return Cell{Text: endClock(l.HeldUntil(), c.Now), Tone: Dim}
		},
	}, column{
		Name: "MARGIN", Help: "how many more nodes with a copy may be lost while the holder can still extend the lock ([definition](#margin)); `–`: it cannot be extended",
		Fields: []string{"margin"}, Key: func(l *monitor.Lock) int64 { return int64(l.Held) }, Cell: lockMargin, Right: true, Rank: 6, Width: 6,
	}, column{
		Name: "WHO CAN GET IN", Help: "when another client can get the lock before its holder's end: `now`; `may now`: nodes that are not seen could let one in, or an earlier client may still rely on the lock; `from 22:17:40` (on the screen `from :40`): when nodes rejoin; `after 1 restart` of a node that is not verified to start fenced or, where the lock outlasts a fence, of any with a copy; `not before 22:17:43`: not before the holder's end; `never`: there is no end",
		Fields: []string{"can_get_in.when", "can_get_in.at", "can_get_in.restarts"}, Cell: lockAccess, SortAs: "margin", Wide: true, Rank: 13, Width: 14, Most: 19,
	}, column{
		Name: "OWNER", Help: "who holds it, and how that is known: `told` by the token, or, while this token holds it, by `w` (`redlockctl who`): `seen`, or inferred: `?` and its p after the name. Then `alive`, `silent` or `gone`, and for how long nothing was seen of the holder; or when it last extended the lock, or when `w` asked. `– 77c0…1e`: only the token is known, and HOLDER has no room",
		Fields: []string{"owner", "owner_method"}, Compare: compareBy(ownerOf), Cell: lockOwner, Idle: "–", Cut: 48, Rank: 5, Width: 12, Good: 21, Most: 44, Shorten: shortOwner,
	}, column{
		Name: "LIBRARY", Help: "which library made the lock, guessed from its key and value ([forms.md](forms.md)), and whether it has several keys or a deadline in its value",
		Fields: []string{"library"}, Compare: compareBy(func(l *monitor.Lock) string { return libraryOf(l) }),
		Cell: lockLibrary, Idle: ownLibrary, Cut: 48, Rank: 10, Width: 10, Most: 16,
	}, column{
		Name: "TOKENS", Help: "how many different tokens have copies", Fields: []string{"tokens"}, Key: func(l *monitor.Lock) int64 { return int64(l.Tokens) }, Right: true, Wide: true,
		Cell: func(_ *Context, l *monitor.Lock) Cell { return Cell{Text: strconv.Itoa(l.Tokens)} },
	}, column{
		Name: "KEYS", Help: "the keys of a lock that has several", Key: func(l *monitor.Lock) int64 { return int64(len(l.Keys())) }, Wide: true,
		Cell: func(c *Context, l *monitor.Lock) Cell { return c.orNone(lockKeys(c, l, " ")) },
	}, column{
		Name: "SEEN FOR", Help: "how long this process has seen this holder; `≥` (`>=` with `--ascii`) if the lock was there before",
		Fields: []string{"seen_for_ms"}, Key: func(l *monitor.Lock) int64 { return -l.Since().UnixMicro() }, Cell: lockSeen, Right: true, Wide: true, Folded: true, Rank: 12, Width: 8,
	}, column{
		Name: "HOLDER", Help: "the token with the most copies, shortened on the screen; `here`: acquired in this console; `+1`: one other token. `nobody: 2 + 2 of 5`: no token can reach a quorum; `not known`: one may have it unseen",
		Fields: []string{"holder"}, Compare: compareBy(func(l *monitor.Lock) string { return l.Holder.Raw() }),
		Cell: func(c *Context, l *monitor.Lock) Cell { return c.holder(l, c.Token(l.Holder)) }, Cut: 48, Rank: 14, Width: 11, Most: 20,
	})
}

func lockName(c *Context, l *monitor.Lock) Cell {
	cell := Cell{Text: c.Name(l.Key.Raw())}
	if l.State > monitor.LockExpiring {
		cell.Tone = Strong
	}
	return cell
}

// Copies returns k/N, with the copies of other tokens after a +: 2+1/5.
func Copies(l *monitor.Lock) string {
	present := 0
	for _, one := range l.Copies.All() {
		if one.State == monitor.CopyPresent || one.State == monitor.CopySeen {
			present++
		}
	}
	s := strconv.Itoa(l.Held)
	if l.Held < 0 {
		s = "?"
	}
	if l.Tokens > 1 && present > l.Held {
		s += "+" + strconv.Itoa(present-l.Held)
	}
	return s + "/" + strconv.Itoa(l.Copies.Len())
}

func copyCell(c *Context, l *monitor.Lock, i int) Cell {
	if i >= l.Copies.Len() {
		return Cell{Text: c.Unknown, Tone: Dim}
	}
	one := l.Copies.At(i)
	unknown := ""
	switch one.State {
	case monitor.CopyAbsent:
		return Cell{Text: c.None, Tone: Dim}
	case monitor.CopyLost:
		return Cell{Text: "lost", Tone: Warn}
	case monitor.CopyUnknown:
		unknown = "?"
	case monitor.CopyUnread:
		unknown = c.Ellipsis
	}
	if unknown != "" && (one.Type == "" || c.Short) {
		return Cell{Text: unknown, Tone: Dim}
	}
	cell := Cell{Text: c.Endless}
	switch {
	case one.Type != "" && one.Type != "string" && one.Token.Empty():
		cell.Text = safetext.Escape(one.Type)
	case one.State == monitor.CopySeen:
		cell.Text = "copy"
	case !one.Expires.IsZero():
		cell.Text = c.remaining(one.Expires)
	}
	switch {
	case unknown != "":
		return Cell{Text: unknown + "~" + cell.Text, Tone: Dim}
	case one.Token != l.Holder && (one.Type == "" || one.Type == "string" || !one.Token.Empty()):
		return Cell{Text: cell.Text + "'", Tone: Bad}
	}
	return cell
}

// MostCharted is up to how many nodes the chart of a lock has a cell for each, and a table a
// column.
const MostCharted = 12

// agree is how far the ends of copies may be apart that one command set.
const agree = time.Second

// lockChart draws each copy of a lock in one cell; many of them in their proportions.
func lockChart(c *Context, l *monitor.Lock) Cell {
	var longest time.Time
	own := func(one monitor.Copy) bool {
		return one.State == monitor.CopyPresent && one.Token == l.Holder
	}
	for _, one := range l.Copies.All() {
		if own(one) && !one.Expires.IsZero() {
			if one.Expires.After(longest) {
				longest = one.Expires
			}
		}
	}
	var cells []string
	top := len(c.spark) - 2
	for _, one := range l.Copies.All() {
		switch {
		case one.State == monitor.CopyAbsent:
			cells = append(cells, c.noCopy)
		case one.State == monitor.CopyLost:
			cells = append(cells, c.lostCopy)
		case (one.State == monitor.CopyPresent || one.State == monitor.CopySeen) && one.Token != l.Holder:
			cells = append(cells, c.split)
		case one.State == monitor.CopySeen:
			cells = append(cells, c.None)
		case one.State != monitor.CopyPresent:
			cells = append(cells, "?")
		case one.Expires.IsZero() || longest.Sub(one.Expires) <= agree:
			cells = append(cells, c.spark[top])
		default: // the height shows the remaining time
			cells = append(cells, c.spark[c.seconds(one.Expires)*top/max(1, c.seconds(longest))])
		}
	}
	if len(cells) > MostCharted {
		kinds := slices.Clone(c.spark)
		slices.Reverse(kinds)
		cells = proportions(cells, append(kinds, c.split, c.lostCopy, "?", c.None, c.noCopy), MostCharted)
	}
	return Cell{Text: strings.Join(cells, ""), Tone: c.LockStateOf(l).Tone}
}

// proportions draws many cells in w: kind by kind, each kind in at least one cell.
func proportions(cells, kinds []string, w int) (out []string) {
	var counts []int
	var there []string
	for _, k := range kinds {
		n := 0
		for _, one := range cells {
			if one == k {
				n++
			}
		}
		if n > 0 && !slices.Contains(there, k) {
			there, counts = append(there, k), append(counts, n)
		}
	}
	took := make([]int, len(there))
	for range w { // the next cell is of the kind with the fewest for its number
		next := 0
		for i := range there {
			if counts[i]*took[next] > counts[next]*took[i] {
				next = i
			}
		}
		took[next]++
	}
	for i, k := range there {
		for range took[i] {
			out = append(out, k)
		}
	}
	return out
}

// copyEnd sorts by the remaining time of the copies on a node, the shortest first and
// missing copies last.
func copyEnd(node int) func(*monitor.Lock) int64 {
	return func(l *monitor.Lock) int64 {
		if node >= l.Copies.Len() {
			return math.MaxInt64
		}
		switch c := l.Copies.At(node); {
		case c.State != monitor.CopyPresent && c.State != monitor.CopySeen:
			return math.MaxInt64 - 1
		case c.Expires.IsZero():
			return math.MaxInt64 - 2
		default:
			return c.Expires.UnixMilli()
		}
	}
}

// lockEnd sorts by expiry, locks that never expire last.
func lockEnd(l *monitor.Lock) int64 {
	end, forever := l.End()
	if forever {
		return math.MaxInt64
	}
	return end.UnixMilli()
}

// clockFrom is from which remaining time on a time of day says more.
const clockFrom = 10 * time.Minute

func lockEnds(c *Context, l *monitor.Lock) Cell {
	switch end := l.HeldUntil(); {
	case !end.IsZero() && c.NoAt && end.Sub(c.Now) >= clockFrom && end.Sub(c.Now) < 24*time.Hour:
		c.changes(end.Add(1 - clockFrom))
		return Cell{Text: end.Format("15:04")}
	case !end.IsZero():
		return Cell{Text: c.remaining(end)}
	case l.State == monitor.LockNoTTL, l.Unending:
		return Cell{Text: c.Endless}
	case l.Held < 0, hasMajority(l, c.Snap.Cluster.Quorum):
		return Cell{Text: c.None, Tone: Dim} // a record may not know the time of an extension
	}
	return Cell{Text: c.None}
}

// hasMajority reports whether a lock's holder has a quorum.
func hasMajority(l *monitor.Lock, quorum int) bool { return l.Held > 0 && l.Held >= quorum }

func lockMargin(c *Context, l *monitor.Lock) Cell {
	cell := Cell{Text: c.None}
	if l.Held < 0 {
		return Cell{Text: "?", Tone: Dim}
	}
	if a := c.access(l); l.ReliedOn() && a.Spare >= 0 {
		if cell.Text = strconv.Itoa(a.Spare); a.Spare == 0 {
			cell.Tone = Warn
		}
	}
	return cell
}

// access returns who else can get a lock before its holder's end.
func (c *Context) access(l *monitor.Lock) monitor.Access {
	return c.Snap.Access(l)
}

func lockAccess(c *Context, l *monitor.Lock) Cell {
	if !l.ReliedOn() {
		return Cell{Text: c.None, Tone: Dim}
	}
	a, end := c.access(l), l.HeldUntil()
	switch {
	case a.Now:
		return Cell{Text: "now", Tone: Bad}
	case a.Perhaps:
		return Cell{Text: "may now", Tone: Warn}
	case !a.From.IsZero():
		return Cell{Text: "from " + c.brief(a.From), Tone: Warn}
	case a.Restarts == 1:
		return Cell{Text: "after 1 restart", Tone: Warn}
	case a.Restarts > 1:
		return Cell{Text: "after " + strconv.Itoa(a.Restarts) + " restarts"}
	case end.IsZero(), farAway(end, c.Now):
		return Cell{Text: "never"}
	}
	return Cell{Text: "not before " + c.brief(end)}
}

// brief formats a time of day; on the screen only its seconds if it is less than a minute
// away.
func (c *Context) brief(t time.Time) string {
	if soon := t.Add(-time.Minute); !c.Short {
		return endClock(t, c.Now)
	} else if c.Now.Before(soon) {
		c.changes(soon)
		return endClock(t, c.Now)
	}
	return t.Format(":05")
}

// ownerClauses are the name in OWNER, how it is known, and whether the holder is alive.
var ownerClauses = regexp.MustCompile(`^(.*?)(\? p 0\.\d+|, told|, seen)(, [^,]*)?$`)

// shortOwner shortens a text of OWNER. What says how the name is known stays longest.
func shortOwner(g *Glyphs, s string, w int) string {
	clause := ownerClauses.FindStringSubmatch(s)
	if clause == nil || Width(s) <= w {
		return s
	}
	return g.Cut(clause[1], max(1, w-Width(clause[2]))) + clause[2]
}

// owner returns who holds a lock, how that is known, and whether the holder is alive;
// empty if unknown. An inferred name is never without its odds.
func (c *Context) owner(l *monitor.Lock) string {
	var w *who.Answer
	if c.Known != nil {
		w = c.Known(l.Holder.Raw())
	}
	text := c.Whole(ownerOf(l))
	switch {
	case text != "":
		text += ", " + string(who.Told)
	case w == nil || w.Group == nil:
		return ""
	case w.Method == who.Inferred:
		text = w.Group.String() + "? " + whoOdds(w)
	default:
		text = w.Group.String() + ", " + string(w.Method)
	}
	if w != nil {
		if life := c.holderLife(l, w); life != "" {
			text += ", " + life
		}
	}
	return text
}

// holderLife says whether the holder of an earlier answer is alive, and since when that is
// known, or how old is what is known of it: "alive", "alive 7s ago", "silent 9s",
// "gone 12s", "extended 9s ago", "asked 20s ago". What the monitor has seen of extensions
// since counts.
func (c *Context) holderLife(l *monitor.Lock, w *who.Answer) string {
	seen := c.watched(l)
	now, since := w.AsOf(c.Now, seen)
	if since < 0 {
		return ""
	}
	age := c.age(c.Now.Add(-since))
	switch {
	case now.Liveness != "":
		return aged(now.Liveness, since)
	case seen != nil && now.Extends > 0:
		return "extended " + age + " ago"
	}
	return "asked " + age + " ago"
}

func lockOwner(c *Context, l *monitor.Lock) Cell {
	switch {
	case l.Nobody, l.Contested, l.State == monitor.LockRevoked, redlock.IsTombstone(l.Holder.Raw()): // a tombstone does not name who had it
		return c.orNone("")
	}
	switch text := c.owner(l); {
	case text != "", !c.NoHolder, l.Holder.Empty():
		return c.orNone(text)
	case c.owns(l):
		return c.holder(l, c.Token(l.Holder))
	}
	token := c.Whole(l.Holder.Raw())
	if c.Short && len(l.Holder.Raw()) > 7 {
		token = c.Escape(l.Holder.Raw(), 7)
	}
	cell := c.holder(l, c.None+" "+token)
	cell.Tone = Dim
	return cell
}

// lockLibrary returns the library that made a lock, and further details of its form.
func lockLibrary(c *Context, l *monitor.Lock) Cell {
	return formCell(c, l, libraryOf(l))
}

// formCell returns library, as it is to be called, and further details of the lock's form.
func formCell(c *Context, l *monitor.Lock, library string) Cell {
	text := c.Whole(library)
	add := func(s string) {
		if text != "" {
			text += ", "
		}
		text += s
	}
	if d := Deadline(l); !d.IsZero() {
		// The time is from another wall clock: compare it with ours, in whole seconds.
		c.changes(c.Now.Add(time.Second))
		if over := c.Now.Sub(d).Truncate(time.Second); over > 0 {
			add("stale for " + Age(over))
		} else {
			add("ends in " + Age(-over))
		}
	}
	if l.Form != nil && l.Form.Companion {
		add("kept beside a lock")
	}
	if len(l.Keys()) > 1 {
		add(Plural(len(l.Keys()), "key"))
	}
	return c.orNone(text)
}

func lockSeen(c *Context, l *monitor.Lock) Cell {
	since, partly, recorded := c.heldSince(l)
	if since.IsZero() || c.Began && !recorded && !since.After(c.Snap.Settled) {
		return Cell{Text: c.None, Tone: Dim}
	}
	text := c.age(since)
	if partly {
		text = c.Our("≥") + text
	}
	return Cell{Text: text}
}

// heldSince returns since when a lock is held, by the record if that knows of an earlier time; partly: it
// may have been before that.
func (c *Context) heldSince(l *monitor.Lock) (since time.Time, partly, recorded bool) {
	since = l.Since()
	partly = !c.Snap.Settled.IsZero() && !since.After(c.Snap.Settled) || c.Snap.Pause.Includes(since)
	for i := range c.Holders {
		g := &c.Holders[i]
		if g.Ended.IsZero() && g.Lock == l.Key && g.TokenSHA != "" && strings.HasPrefix(tokenSHA(l.Holder), g.TokenSHA) && (since.IsZero() || g.Began.Before(since)) {
			return g.Began, g.Partly, true
		}
	}
	return since, partly, false
}

func lockKeys(c *Context, l *monitor.Lock, between string) string {
	if len(l.Keys()) < 2 {
		return ""
	}
	names := make([]string, len(l.Keys()))
	for i, k := range l.Keys() {
		names[i] = c.Name(k.Raw())
	}
	return strings.Join(names, between)
}

// Token renders a token, shortened to its beginning and end if there is little room.
func (c *Context) Token(t safetext.Text) string {
	switch {
	case t.Empty():
		return c.None
	case c.Short && len(t.Raw()) > wholeToken && strings.HasPrefix(t.Raw(), hashed):
		return c.Whole(t.Raw()[:shortToken]) // a hash is looked for by its beginning
	case c.Short && len(t.Raw()) > wholeToken:
		return c.Escape(t.Raw(), shortToken)
	}
	return c.Whole(t.Raw())
}

// On the screen a token of more than wholeToken bytes has shortToken cells: its beginning and
// its end, which may name the owner.
const (
	wholeToken = 16
	shortToken = 11
)

// LockHolder returns who holds a lock: its owner, or its token, marked as one.
func LockHolder(c *Context, l *monitor.Lock) Cell {
	if text := c.owner(l); text != "" {
		return c.holder(l, text)
	}
	token := l.Holder.Raw()
	switch {
	case token == "" || c.owns(l):
		return c.holder(l, c.Token(l.Holder))
	case c.Short && len(token) > 7:
		return c.holder(l, "token "+c.Escape(token, 7))
	}
	return c.holder(l, "token "+c.Whole(token))
}

// owns reports whether this console acquired the lock.
func (c *Context) owns(l *monitor.Lock) bool {
	return c.Own != nil && c.Own(l.Key.Raw(), l.Holder.Raw())
}

// holder returns a cell with text, a name for the lock's holder, and what else is known
// of the holder.
func (c *Context) holder(l *monitor.Lock, text string) Cell {
	if l.Nobody || l.Contested {
		return Cell{Text: l.NobodyText(), Tone: Bad}
	}
	switch others := l.Tokens - 1; {
	case c.owns(l):
		text = "here " + text
	case others > 0 && c.Short:
		text += " +" + strconv.Itoa(others)
	}
	return Cell{Text: text}
}
