package monitor

import (
	"iter"
	"slices"
	"strings"
	"time"

	"redlockctl/monitor/filter"
	"redlockctl/server/safetext"
)

// Filter selects locks, in the language of package filter, for screen and commands. The
// zero value selects all.
type Filter struct {
	rows filter.Filter[lockRow]
	at   time.Time
}

// ErrFilter is returned by [Filter.Check] for a filter with an invalid term.
var ErrFilter = filter.Err

// lockRow is a lock with the nodes that its copies belong to.
type lockRow struct {
	*Lock
	nodes []Node
}

// lockLanguage has the fields of a lock filter.
var lockLanguage = filter.Language[lockRow]{Text: "the name", Texts: lockTexts, Fields: []filter.Field[lockRow]{{
	Name: "state", Example: "state:split|orphaned", Help: "in this state: held, bare, lost, may, over, no-ttl, not-a-lock",
	Is: func(l lockRow) string { return l.State.String() }, Words: lockStateNames[:],
}, {
	Name: "node", Example: "node:n2", Help: "with a copy on this node", Has: onNode,
}, {
	Name: "holder", Example: "holder:web", Help: "whose token or owner contains this",
	Has: func(l lockRow, text string) bool { return filter.HasFold(l.Holder, text) || ownerHas(l, text) },
}, {
	Name: "owner", Example: "owner:web-7", Help: "whose owner, as told by the token, contains this", Has: ownerHas,
}, {
	Name: "lib", Also: "library", Example: "lib:redsync", Help: "made by this library; lib:unknown: by no known one", Has: libraryHas,
}, {
	Name: "ttl", Example: "ttl<5s  ttl>1m", Help: "that end within, or later; without a TTL: later",
	Span: func(l lockRow, now time.Time) (time.Duration, bool) {
		end, forever := l.End()
		if forever {
			return 1<<63 - 1, true
		}
		return end.Sub(now), !end.IsZero()
	},
}, {
	Name: "age", Example: "age<1h", Help: "how long this holder has been seen",
	Span: func(l lockRow, now time.Time) (time.Duration, bool) { return now.Sub(l.Since()), !l.Since().IsZero() },
}, {
	Name: "margin", Example: "margin:0  margin<2", Help: "nodes with a copy that may be lost while it can be extended",
	Number: func(l lockRow) (int, bool) {
		n := l.spare(l.nodes)
		return n, l.ReliedOn() && n >= 0
	},
}, {
	Name: "copies", Example: "copies<3", Help: "copies of the holder; also <=, >, >=",
	Number: func(l lockRow) (int, bool) { return l.Held, true },
}}}

// lockTexts matches the names of a lock.
func lockTexts(l lockRow, such func(safetext.Text) bool) bool {
	return such(l.Key) || slices.ContainsFunc(l.Keys(), such)
}

func onNode(l lockRow, name string) bool {
	for i, c := range l.Copies.All() {
		if i < len(l.nodes) && c.State == CopyPresent && strings.EqualFold(l.nodes[i].Name, name) {
			return true
		}
	}
	return false
}

func ownerHas(l lockRow, text string) bool {
	return l.Form != nil && filter.HasFold(l.Form.Owner, text)
}

func libraryHas(l lockRow, text string) bool {
	if l.Form == nil {
		return strings.HasPrefix("unknown", text)
	}
	return strings.Contains(strings.ToLower(l.Form.Library), text)
}

// ParseFilter reads a filter. An invalid term excludes nothing and is reported by
// [Filter.Check]: while typing, a term is incomplete.
func ParseFilter(s string) Filter { return Filter{rows: lockLanguage.Parse(s)} }

// At returns the filter with ttl and age counted from now; otherwise they count from the
// moment of each Match.
func (f Filter) At(now time.Time) Filter {
	f.at = now
	return f
}

// Unclosed reports whether a double quote is not closed: on a screen it is still being
// typed, in a command it is a mistake.
func (f Filter) Unclosed() bool { return f.rows.Unclosed() }

// Empty reports whether the filter selects all.
func (f Filter) Empty() bool { return f.rows.Empty() }

// Timed reports whether its selection changes with time alone.
func (f Filter) Timed() bool { return f.rows.Timed() }

// Check returns what is wrong with the filter for a cluster of these nodes: an
// [ErrFilter] with a sentence for each bad term. Without nodes, node names are not
// checked.
func (f Filter) Check(nodes []Node) error {
	return f.rows.Check(func(field string) (names []string) {
		for i := range nodes {
			if field == "node" {
				names = append(names, nodes[i].Name)
			}
		}
		return names
	})
}

// Hint helps if nothing is selected: a term looks like a field but is none.
func (f Filter) Hint() string { return f.rows.Hint() }

// Match reports whether the lock is selected; nodes are those that its copies belong to.
func (f Filter) Match(l *Lock, nodes []Node) bool {
	if f.Empty() {
		return true
	}
	now := f.at
	if now.IsZero() && f.Timed() {
		now = time.Now()
	}
	return f.rows.Match(lockRow{l, nodes}, now)
}

// FilterTerms returns examples of the terms of a lock filter, and what each selects.
func FilterTerms() [][2]string { return lockLanguage.Terms() }

// FilterOffers returns the completions of the last term of a lock filter, as whole lines;
// there returns the values that a field has at present.
func FilterOffers(line string, there func(field string) []string) []string {
	return lockLanguage.Offers(line, there)
}

// mostFilterValues limits the offered values of a field.
const mostFilterValues = 2000

// FilterValues returns the values that the fields of a filter have in these locks and
// nodes. It reads all of them, which may take long.
func FilterValues(locks iter.Seq[*Lock], nodes []Node) func(field string) []string {
	owners, libraries := filter.NewValues(mostFilterValues), filter.NewValues(mostFilterValues)
	for l := range locks {
		if l.Form == nil {
			libraries.Add("unknown")
			continue
		}
		owners.Add(l.Form.Owner.Raw())
		libraries.Add(l.Form.Library)
	}
	var names []string
	for i := range nodes {
		names = append(names, nodes[i].Name)
	}
	values := map[string][]string{"node": names, "owner": owners.Sorted(), "holder": owners.Sorted(), "lib": libraries.Sorted()}
	return func(field string) []string { return values[field] }
}

// Pattern returns a SCAN pattern that matches every name that the filter may select;
// empty if names alone do not decide. If a lock has several keys, only some may match.
func (f Filter) Pattern() string {
	longest := ""
	f.rows.Texts(func(text string, stars bool) {
		p := anyCase(text, stars)
		if !stars {
			if p = anyCase(afterEscape(text), false); p != "" {
				p = "*" + p + "*"
			}
		}
		if len(p) > len(longest) {
			longest = p
		}
	})
	return longest
}

// anyCase returns a pattern for all names that contain text in any case; empty if there
// is none. With stars, * and ? keep their meaning.
func anyCase(text string, stars bool) string {
	var b strings.Builder
	for i := range len(text) {
		switch c := text[i]; {
		case c < ' ', c >= 0x7f, c == '\\':
			return ""
		case c == 'i', c == 'k', c == '?' && stars:
			b.WriteByte('*') // also for İ and the kelvin sign, whose lower-case letter is ASCII; ? would be one of their bytes
		case c >= 'a' && c <= 'z':
			b.WriteString("[" + string(c) + string(c-'a'+'A') + "]")
		case c == '[', c == ']', !stars && (c == '*' || c == '?'):
			b.WriteString(`\` + string(c))
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// afterEscape returns text without a possible end of an escape, as names are shown: the
// name itself contains only the rest.
func afterEscape(text string) string {
	rest := text
	if text != "" && strings.IndexByte("xu", text[0]) >= 0 {
		rest = text[1:]
	}
	if rest = strings.TrimLeft(rest, "0123456789abcdef"); rest == text && text != "" && strings.IndexByte("nrtv", text[0]) >= 0 {
		rest = text[1:]
	}
	return rest
}
