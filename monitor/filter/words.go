package filter

import (
	"slices"
	"strings"
	"unicode/utf8"

	"redlockctl/server/safetext"
)

// word is a word of a filter, as typed.
type word struct {
	text     string
	not      bool
	quoted   bool // the whole of it
	unclosed bool // it has an unclosed double quote
	from, to int  // its position
}

// blanks separate words.
const blanks = " \t\r\n"

// split splits a filter at blanks outside of double quotes. An open quote reaches to the
// end. Values of a field may be quoted: state:"no TTL"|split.
func (l *Language[T]) split(line string) []word {
	var out []word
	s := line
	for {
		s = strings.TrimLeft(s, blanks)
		if s == "" {
			return out
		}
		w := word{from: len(line) - len(s)}
		s, w.not = strings.CutPrefix(s, "!")
		field, _, _ := strings.Cut(s, ":")
		if rest, ok := strings.CutPrefix(s, `"`); ok {
			w.quoted = true
			w.text, s, ok = strings.Cut(rest, `"`)
			w.unclosed = !ok
		} else if f := l.field(field); f != nil && f.Span == nil && strings.Contains(s, ":") {
			s = w.spelled(f.Words, w.values(s))
		} else if i := strings.IndexAny(s, blanks); i >= 0 {
			w.text, s = s[:i], s[i:]
		} else {
			w.text, s = s, ""
		}
		w.to = len(line) - len(s)
		out = append(out, w)
	}
}

// values consumes a field and its values, each of which may be quoted, from the start of
// s.
func (w *word) values(s string) (rest string) {
	var text strings.Builder
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' && (w.unclosed || i > 0 && (s[i-1] == ':' || s[i-1] == '|')):
			w.unclosed = !w.unclosed
		case !w.unclosed && strings.IndexByte(blanks, c) >= 0:
			w.text = text.String()
			return s[i:]
		default:
			text.WriteByte(c)
		}
	}
	w.text = text.String()
	return ""
}

// spelled consumes the words at the start of s that continue the last value to one of a
// field's words: state:no TTL.
func (w *word) spelled(words []string, s string) (rest string) {
	for !w.unclosed {
		var more word
		after := more.values(strings.TrimLeft(s, blanks))
		value := w.text[strings.LastIndexAny(w.text, ":|")+1:]
		next, _, _ := strings.Cut(more.text, "|")
		said := strings.ToLower(value + " " + next + " ")
		begins := func(one string) bool { return strings.HasPrefix(strings.ToLower(one)+" ", said) }
		if next == "" || !slices.ContainsFunc(words, begins) {
			return s
		}
		w.text, w.unclosed, s = w.text+" "+more.text, more.unclosed, after
	}
	return s
}

// starred reports whether a whole text matches a pattern, in which * is any text and ?
// any byte.
func starred(pattern, text string) bool {
	p, k := 0, 0
	star, from := -1, 0 // the last *, and where the rest was tried
	for k < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, from = p, k
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == text[k]):
			p, k = p+1, k+1
		case star >= 0:
			from++
			p, k = star+1, from
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// HasFold reports whether the text, as shown, contains a lower-case part, ignoring case.
// Most text is plain ASCII and is searched without a copy.
func HasFold(t safetext.Text, part string) bool {
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
