package filter

import (
	"slices"
	"strings"

	"redlockctl/server/safetext"
)

// Offers are whole lines that a line may become when its last term is completed: a field,
// or a value of one, also behind | and in quotes. there are the values of a field that are
// there; nil: they are not known.
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
	// Of several values the last is completed.
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
		return nil // it is closed
	}
	if !quote && strings.ContainsAny(last, blanks) {
		return nil // it is spelled out
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

// beginnings are those of the terms of fields, as far as they begin so.
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

// offers are the values that begin as is said, and then those that have it in them. Of our
// own words those that are spelt so, or else those that are meant by it.
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

// hyphened is a word in small letters, with hyphens for blanks.
func hyphened(s string) string { return strings.ReplaceAll(strings.ToLower(s), " ", "-") }

// quoteValue is a value as it is typed: in quotes where these were begun or it has a
// blank, which one of our own words has as a hyphen else; "": it cannot be typed.
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

// Line is one of [Offers] as far as it is shown: what follows the part that the line has.
func Line(line, offer string) string {
	i := 0
	for i < len(line) && i < len(offer) && line[i] == offer[i] {
		i++
	}
	return offer[strings.LastIndexAny(offer[:i], " :|!")+1:]
}

// Values are texts that are there, in order and each once, at most so many.
type Values struct {
	most int
	seen map[string]bool
}

// NewValues collects at most so many.
func NewValues(most int) *Values { return &Values{most, map[string]bool{}} }

// Add takes in a text.
func (v *Values) Add(s string) {
	if s != "" && len(v.seen) < v.most {
		v.seen[s] = true
	}
}

// Sorted are the texts in order.
func (v *Values) Sorted() []string {
	all := make([]string, 0, len(v.seen))
	for s := range v.seen {
		all = append(all, s)
	}
	slices.Sort(all)
	return all
}
