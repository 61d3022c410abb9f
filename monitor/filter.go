package monitor

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"redlockctl/internal/safetext"
	"redlockctl/redlock"
)

// Filter chooses locks; it is the one language for that, of the screen and of
// the commands. All of its terms must hold:
//
//	orders          the name has this in it
//	orders:*        with * or ?: the whole name is so
//	~^job:[0-9]+$   the name matches this regular expression
//	"a b"           the same, with blanks; what is quoted is never a field
//	state:a|b       one of these; so with node, holder, lib, margin and copies
//	state:orphaned    in a state that begins so: state:over, state:not-a-lock
//	node:n2         has a copy on this node
//	holder:web-7    its token, or the owner that the token names, has this in it
//	lib:redsync     made by this library; lib:unknown by none that is known
//	ttl<5s ttl>1m   time until it ends, also <= and >=; what never ends is longer
//	age>1h          time since this holder was first seen
//	margin:0        copies that may be lost; also margin<2, margin>=1
//	copies<3        copies that the holder has
//	!…              the opposite
//
// Letters match without regard to their case. The zero value chooses all.
type Filter struct {
	terms    []term
	problems []error
	at       time.Time
	unclosed bool
}

// ErrFilter is returned by [Filter.Check] for a filter with a term that cannot
// be understood.
var ErrFilter = errors.New("bad filter")

// FilterFields are the beginnings of the terms that are more than a part of the
// name, for completion.
func FilterFields() []string {
	return []string{"state:", "node:", "holder:", "lib:", "ttl<", "ttl>", "age<", "age>", "margin:", "copies:"}
}

// mostRegexp bounds a regular expression: nobody types a longer one.
const mostRegexp = 200

// term is one condition.
type term struct {
	not   bool
	field string // "" is the name
	text  string // lower case
	op    string // of ttl, age, margin, copies: ":", "<", "<=", ">", ">="
	span  time.Duration
	n     int
	re    *regexp.Regexp // of the name
	any   []term         // one of them holds
}

// ParseFilter reads a filter. A term that cannot be understood chooses nothing
// out and is told by [Filter.Check]: while it is typed it is only half there.
func ParseFilter(s string) Filter {
	var f Filter
	for _, w := range filterWords(s) {
		f.unclosed = f.unclosed || w.unclosed
		t, err := parseTerm(w)
		switch {
		case err != nil:
			f.problems = append(f.problems, fmt.Errorf("%w: %s: %w", ErrFilter, safetext.Escape(w.text), err))
		case t.field != "" || t.text != "":
			f.terms = append(f.terms, t)
		}
	}
	return f
}

// At is the filter with now as the moment from which ttl and age are counted;
// without it that is the moment of each Match.
func (f Filter) At(now time.Time) Filter {
	f.at = now
	return f
}

// Unclosed reports whether a double quote is not closed: on a screen it is still being
// typed, in a command it is a mistake.
func (f Filter) Unclosed() bool { return f.unclosed }

// Empty reports whether it chooses all.
func (f Filter) Empty() bool { return len(f.terms) == 0 }

// Timed reports whether what it chooses changes with time alone.
func (f Filter) Timed() bool {
	return slices.ContainsFunc(f.terms, func(t term) bool { return t.field == "ttl" || t.field == "age" })
}

// Check is what is wrong with the filter for a cluster of these nodes: an error
// that is [ErrFilter], a sentence for each bad term. Without nodes their names
// are not checked.
func (f Filter) Check(nodes []Node) error {
	problems := slices.Clone(f.problems)
	var named []term
	for _, t := range f.terms {
		named = append(append(named, t), t.any...)
	}
	for _, t := range named {
		if t.field != "node" || len(nodes) == 0 {
			continue
		}
		if !slices.ContainsFunc(nodes, func(n Node) bool { return strings.EqualFold(n.Name, t.text) }) {
			problems = append(problems, fmt.Errorf("%w: node:%s: there is no such node", ErrFilter, safetext.Escape(t.text)))
		}
	}
	return errors.Join(problems...)
}

// Match reports whether the lock is chosen; nodes are those that its copies belong to.
func (f Filter) Match(l *Lock, nodes []Node) bool {
	if len(f.terms) == 0 {
		return true
	}
	now := f.at
	if now.IsZero() && f.Timed() {
		now = time.Now()
	}
	for i := range f.terms {
		if f.terms[i].match(l, nodes, now) == f.terms[i].not {
			return false
		}
	}
	return true
}

// word is a word of a filter as it was typed.
type word struct {
	text     string
	not      bool
	quoted   bool // the whole of it
	unclosed bool // a double quote in it has no other
}

// filterWords splits a filter at blanks outside of double quotes. A quote that is not
// closed yet reaches to the end. Values of a field may be quoted: state:"no TTL"|split.
func filterWords(s string) []word {
	var out []word
	for {
		s = strings.TrimLeft(s, " \t\r\n")
		if s == "" {
			return out
		}
		var w word
		s, w.not = strings.CutPrefix(s, "!")
		field, _, _ := strings.Cut(s, ":")
		if rest, ok := strings.CutPrefix(s, `"`); ok {
			w.quoted = true
			w.text, s, ok = strings.Cut(rest, `"`)
			w.unclosed = !ok
		} else if slices.Contains(FilterFields(), strings.ToLower(field)+":") {
			s = w.values(s)
		} else if i := strings.IndexAny(s, " \t\r\n"); i >= 0 {
			w.text, s = s[:i], s[i:]
		} else {
			w.text, s = s, ""
		}
		out = append(out, w)
	}
}

// values takes a field and its values, each of which may be quoted, off the front of s.
func (w *word) values(s string) (rest string) {
	var text strings.Builder
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' && (w.unclosed || i > 0 && (s[i-1] == ':' || s[i-1] == '|')):
			w.unclosed = !w.unclosed
		case !w.unclosed && strings.IndexByte(" \t\r\n", c) >= 0:
			w.text = text.String()
			return s[i:]
		default:
			text.WriteByte(c)
		}
	}
	w.text = text.String()
	return ""
}

func parseTerm(w word) (term, error) {
	t := term{not: w.not, text: strings.ToLower(w.text)}
	if w.quoted {
		return t, nil
	}
	if expr, ok := strings.CutPrefix(w.text, "~"); ok {
		re, err := regexp.Compile("(?i)" + expr)
		if err != nil || len(expr) > mostRegexp {
			return t, errors.New("no regular expression that is understood here")
		}
		t.field, t.re = "regexp", re
		return t, nil
	}
	i := strings.IndexAny(t.text, ":<>=")
	if i <= 0 {
		return t.named(), nil
	}
	field, rest := t.text[:i], t.text[i:]
	op := rest[:1]
	if len(rest) > 1 && rest[1] == '=' && op != ":" {
		op = rest[:2]
	}
	value := rest[len(op):]
	if first, more, ok := strings.Cut(value, "|"); ok && op == ":" && slices.Contains(FilterFields(), field+":") {
		t.field = "any"
		for _, one := range append([]string{first}, strings.Split(more, "|")...) {
			alternative, err := parseTerm(word{text: field + ":" + one})
			if err != nil {
				return t, err
			}
			t.any = append(t.any, alternative)
		}
		return t, nil
	}
	switch field {
	case "state", "node", "holder", "lib":
		if op != ":" {
			return t, fmt.Errorf("%s takes a colon: %s:…", field, field)
		}
		if value == "" {
			return t, errors.New("what follows the colon?")
		}
		t.field, t.text = field, value
		if field == "state" {
			t.text = plainState(value)
			for s := range LockStates() {
				if strings.HasPrefix(plainState(s.String()), t.text) {
					return t, nil
				}
			}
			return t, errors.New("no state begins so")
		}
	case "ttl", "age":
		if op == ":" || op == "=" {
			return t, fmt.Errorf("%s is compared: %s<5s, %s>1m", field, field, field)
		}
		d, err := time.ParseDuration(value)
		if err != nil || d < 0 {
			return t, errors.New("a number with a unit is wanted: 500ms, 5s, 1m30s")
		}
		t.field, t.op, t.span = field, op, d
	case "margin", "copies":
		n, err := strconv.Atoi(value)
		if err != nil {
			return t, errors.New("a number is wanted")
		}
		t.field, t.op, t.n = field, op, n
	default:
		return t.named(), nil
	}
	return t, nil
}

// named makes a term about the name one that fixes all of it, where it has stars.
func (t term) named() term {
	if strings.ContainsAny(t.text, "*?") {
		t.field = "name"
	}
	return t
}

var (
	unspaced = strings.NewReplacer(" ", "", "-", "", "_", "")
	brackets = strings.NewReplacer(`\`, `\\`, `[`, `\[`, `]`, `\]`)
)

// plainState is the name of a state as it may be typed: without blanks, hyphens
// and capitals.
func plainState(s string) string {
	return unspaced.Replace(strings.ToLower(s))
}

func (t *term) match(l *Lock, nodes []Node, now time.Time) bool {
	switch t.field {
	case "any":
		return slices.ContainsFunc(t.any, func(one term) bool { return one.match(l, nodes, now) })
	case "regexp":
		return t.re.MatchString(l.Key.Raw()) || slices.ContainsFunc(l.Keys(), func(k safetext.Text) bool { return t.re.MatchString(k.Raw()) })
	case "state":
		return strings.HasPrefix(plainState(l.State.String()), t.text)
	case "holder":
		return hasFold(l.Holder, t.text) || l.Form != nil && hasFold(l.Form.Owner, t.text)
	case "lib":
		if l.Form == nil {
			return strings.HasPrefix("unknown", t.text)
		}
		return strings.Contains(strings.ToLower(l.Form.Library), t.text)
	case "node":
		for i, c := range l.Copies.All() {
			if i < len(nodes) && c.State == CopyPresent && strings.EqualFold(nodes[i].Name, t.text) {
				return true
			}
		}
		return false
	case "ttl":
		end, forever := l.End()
		if forever {
			return t.op[0] == '>'
		}
		return !end.IsZero() && compare(int64(end.Sub(now)), t.op, int64(t.span))
	case "age":
		return !l.Since().IsZero() && compare(int64(now.Sub(l.Since())), t.op, int64(t.span))
	case "margin":
		return l.Held >= redlock.Quorum(l.Copies.Len()) && compare(int64(l.Margin()), t.op, int64(t.n))
	case "copies":
		return compare(int64(l.Held), t.op, int64(t.n))
	case "name":
		fits := func(k safetext.Text) bool { return starred(t.text).match([]byte(strings.ToLower(k.Raw()))) }
		return fits(l.Key) || slices.ContainsFunc(l.Keys(), fits)
	default:
		if hasFold(l.Key, t.text) {
			return true
		}
		return slices.ContainsFunc(l.Keys(), func(k safetext.Text) bool { return hasFold(k, t.text) })
	}
}

// starred is the pattern in which nothing but * and ? has a meaning.
func starred(text string) glob {
	return glob(brackets.Replace(text))
}

// Pattern is one of SCAN that all names match which the filter may choose; empty
// where the name alone does not tell. Of a lock of several keys only some may match.
func (f Filter) Pattern() string {
	longest := ""
	for _, t := range f.terms {
		if t.not || t.field != "" && t.field != "name" {
			continue
		}
		p := anyCase(t.text, t.field == "name")
		if t.field == "" {
			if p = anyCase(afterEscape(t.text), false); p != "" {
				p = "*" + p + "*"
			}
		}
		if len(p) > len(longest) {
			longest = p
		}
	}
	return longest
}

// anyCase is a pattern of all names that hold a text in letters of any case; with
// stars, * and ? keep their meaning. It is empty where the text does not tell.
func anyCase(text string, stars bool) string {
	var b strings.Builder
	for i := range len(text) {
		switch c := text[i]; {
		case c < ' ', c >= 0x7f, c == '\\':
			return ""
		case c == 'i', c == 'k', c == '?' && stars:
			b.WriteByte('*') // also İ and the kelvin sign in small letters; ? is one byte of these
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

// afterEscape is text without what may be the end of an escape in a name as it is
// shown: the name itself has only the rest.
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

func compare(a int64, op string, b int64) bool {
	switch op {
	case "<":
		return a < b
	case "<=":
		return a <= b
	case ">":
		return a > b
	case ">=":
		return a >= b
	default:
		return a == b
	}
}

// hasFold reports whether the text as it is shown has a lower-case part in it. Most
// text is plain ASCII, and is searched without a copy of it.
func hasFold(t safetext.Text, part string) bool {
	raw := t.Raw()
	for i := range len(raw) {
		if raw[i] < ' ' || raw[i] >= 0x7f || raw[i] == '\\' {
			return strings.Contains(strings.ToLower(t.String()), part)
		}
	}
	for i := range len(part) {
		if part[i] >= utf8.RuneSelf {
			return false
		}
	}
	for i := 0; i+len(part) <= len(raw); i++ {
		k := 0
		for k < len(part) && lower(raw[i+k]) == part[k] {
			k++
		}
		if k == len(part) {
			return true
		}
	}
	return false
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
