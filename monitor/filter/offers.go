package filter

import (
	"slices"
	"strings"

	"redlockctl/server/safetext"
)

// Offers returns the whole lines that complete the last term of a line: a field, or a
// value of one, also after | and in quotes. there returns the present values of a field;
// nil: unknown.
func (l *Language[T]) Offers(line string, there func(field string) []string) (lines []string) {
	w := word{from: len(line), to: len(line)}
	if words := l.split(line); len(words) > 0 && words[len(words)-1].to == len(line) {
		w = words[len(words)-1]
	}
	said := line[w.from:]
	begun, _ := strings.CutPrefix(said, "!")
	if w.quoted || strings.HasPrefix(begun, "~") {
		return nil
	}
	head := line[:len(line)-len(begun)]
	name, values, ok := strings.Cut(begun, ":")
	about := l.field(name)
	if !ok || about == nil {
		for _, o := range l.beginnings(begun) {
			lines = append(lines, head+o)
		}
		return lines
	}
	// Of several values, the last is completed.
	at, open := 0, false
	for i := range len(values) {
		switch c := values[i]; {
		case c == '"' && (open || i == at):
			open = !open
		case c == '|' && !open:
			at = i + 1
		}
	}
	before, last := values[:at], values[at:]
	last, quote := strings.CutPrefix(last, `"`)
	if quote && !open {
		return nil // it is already closed
	}
	if !quote && strings.ContainsAny(last, blanks) {
		return nil // it is already complete
	}
	head += name + ":" + before
	for _, v := range about.offers(last, there) {
		v = quoteValue(v, quote, about.Is != nil)
		if v != "" && !strings.Contains("|"+before, "|"+v+"|") {
			lines = append(lines, head+v)
		}
	}
	return lines
}

// beginnings returns the starts of field terms that have this prefix.
func (l *Language[T]) beginnings(begun string) (out []string) {
	begun = strings.ToLower(begun)
	for i := range l.Fields {
		f := &l.Fields[i]
		signs := ":"
		switch {
		case f.Span != nil:
			signs = "<>"
		case f.Number != nil && begun == f.Name:
			signs = ":<>"
		}
		for _, c := range signs {
			if o := f.Name + string(c); strings.HasPrefix(o, begun) && o != begun {
				out = append(out, o)
			}
		}
	}
	return out
}

// offers returns the values that start with said, then those that contain it. Of our own
// words, it returns those that are spelled so, or otherwise those that match.
func (f *Field[T]) offers(said string, there func(field string) []string) (begin []string) {
	if f.Is != nil {
		for _, plain := range []func(string) string{hyphened, bare} {
			for _, v := range f.Words {
				if strings.HasPrefix(plain(v), plain(said)) {
					begin = append(begin, v)
				}
			}
			if begin != nil {
				return begin
			}
		}
		return nil
	}
	if there == nil || f.Has == nil {
		return nil
	}
	said = strings.ToLower(said)
	var have []string
	for _, v := range there(f.Name) {
		switch low := strings.ToLower(v); {
		case strings.HasPrefix(low, said):
			begin = append(begin, v)
		case strings.Contains(low, said):
			have = append(have, v)
		}
	}
	return append(begin, have...)
}

// hyphened returns a word in lower case, with hyphens for blanks.
func hyphened(s string) string { return strings.ReplaceAll(strings.ToLower(s), " ", "-") }

// quoteValue returns a value as it is typed: quoted if a quote was opened or if it has a
// blank, except that our own words get a hyphen for the blank; "": it cannot be typed.
func quoteValue(v string, quote, ours bool) string {
	switch {
	case strings.ContainsAny(v, `"|`) || !safetext.New(v).Clean() || strings.Contains(v, `\`):
		return ""
	case quote:
		return `"` + v + `"`
	case ours:
		return strings.ReplaceAll(v, " ", "-")
	case strings.ContainsAny(v, blanks):
		return `"` + v + `"`
	}
	return v
}

// Line returns the part of an offer to show: what follows the text that the line already
// has.
func Line(line, offer string) string {
	i := 0
	for i < len(line) && i < len(offer) && line[i] == offer[i] {
		i++
	}
	return offer[strings.LastIndexAny(offer[:i], " :|!")+1:]
}

// Values is a limited set of texts.
type Values struct {
	most int
	seen map[string]bool
}

// NewValues makes an empty set; most is the limit.
func NewValues(most int) *Values { return &Values{most, map[string]bool{}} }

// Add adds a text.
func (v *Values) Add(s string) {
	if s != "" && len(v.seen) < v.most {
		v.seen[s] = true
	}
}

// Sorted returns the texts in order.
func (v *Values) Sorted() []string {
	all := make([]string, 0, len(v.seen))
	for s := range v.seen {
		all = append(all, s)
	}
	slices.Sort(all)
	return all
}
