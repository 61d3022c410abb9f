// Package filter is the language for selecting rows of a table, on the screen and in
// --filter: plain text, * globs, ~regular expressions, and fields. A [Language] declares
// the fields of a kind of row.
package filter

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"time"

	"redlockctl/server/safetext"
)

// Err is returned by [Filter.Check] for a filter with an invalid term.
var Err = errors.New("bad filter")

// mostRegexp limits the length of a regular expression.
const mostRegexp = 200

// Field is a field that a term may name. It has one of Is, Has, Number and Span, which
// says how it is compared.
type Field[T any] struct {
	Name string
	Also string // another accepted name; "": none
	Help string // which rows a term selects, for the help
	// Example is one term of it, or two.
	Example string

	// Is returns the row's value, one of Words; a term may abbreviate it.
	Is    func(T) string
	Words []string
	// Has reports whether the row contains text, which is in lower case.
	Has func(row T, text string) bool
	// Number returns the row's number, if it has one: margin:0, margin<2.
	Number func(T) (n int, ok bool)
	// Span returns a duration from or until now, if the row has one: ttl<5s, age>1h.
	Span func(row T, now time.Time) (d time.Duration, ok bool)
}

// Language has the fields of a kind of row, and the texts that a term without a field
// searches.
type Language[T any] struct {
	Fields []Field[T]
	// Texts reports whether such is true for one of the row's texts.
	Texts func(row T, such func(safetext.Text) bool) bool
	// Text names these texts: "the name".
	Text string
}

// field returns the field with this name; nil: none.
func (l *Language[T]) field(name string) *Field[T] {
	name = strings.ToLower(name)
	for i := range l.Fields {
		if f := &l.Fields[i]; name != "" && (f.Name == name || f.Also == name) {
			return f
		}
	}
	return nil
}

// names returns the names of all fields.
func (l *Language[T]) names() (names []string) {
	for i := range l.Fields {
		names = append(names, l.Fields[i].Name)
	}
	return names
}

// Terms returns examples of the terms of fields and what each selects, for a help page.
func (l *Language[T]) Terms() (terms [][2]string) {
	for i := range l.Fields {
		terms = append(terms, [2]string{l.Fields[i].Example, l.Fields[i].Help})
	}
	return terms
}

// Filter selects rows; all of its terms must match:
//
//	orders          a text contains this
//	orders:*        with * or ?: the whole text matches
//	~^job:[0-9]+$   a text matches this regular expression
//	"a b"           the same, with blanks; a quoted term is never a field
//	state:a|b       the field is one of these; "a b" for a value with blanks, which
//	                may be left unquoted for our own words: state:no TTL
//	ttl<5s margin:0 a number or a time is compared
//	!…              the opposite
//
// Case is ignored. The zero value selects all.
type Filter[T any] struct {
	language *Language[T]
	terms    []term[T]
	problems []error
	unclosed bool
}

// term is one condition.
type term[T any] struct {
	not   bool
	about *Field[T] // nil: the texts
	text  string    // lower case
	kind  kind      // of a term for the texts
	such  func(safetext.Text) bool
	fits  []string // of Is: the words with this beginning
	op    string   // of Number and Span: ":", "<", "<=", ">", ">="
	n     int64
	any   []term[T] // one of them must match
}

// kind is how a term is compared with the texts.
type kind uint8

const (
	part   kind = iota // part of a text
	quoted             // the same, in quotes
	whole              // a whole text, with * and ?
	expr               // a regular expression
)

// Parse reads a filter. An invalid term excludes nothing and is reported by
// [Filter.Check]: while typing, a term is incomplete.
func (l *Language[T]) Parse(s string) Filter[T] {
	f := Filter[T]{language: l}
	for _, w := range l.split(s) {
		f.unclosed = f.unclosed || w.unclosed
		t, err := l.term(w)
		switch {
		case err != nil:
			f.problems = append(f.problems, fmt.Errorf("%w: %s: %w", Err, safetext.Escape(w.text), err))
		case t.about != nil || t.any != nil || t.text != "":
			f.terms = append(f.terms, t)
		}
	}
	return f
}

// Unclosed reports whether a double quote is not closed: on a screen it is still being
// typed, in a command it is a mistake.
func (f *Filter[T]) Unclosed() bool { return f.unclosed }

// Empty reports whether the filter selects all.
func (f *Filter[T]) Empty() bool { return len(f.terms) == 0 }

// Timed reports whether its selection changes with time alone.
func (f *Filter[T]) Timed() bool {
	return slices.ContainsFunc(f.terms, func(t term[T]) bool { return t.about != nil && t.about.Span != nil })
}

// Check returns what is wrong with the filter: an [Err] with a sentence for each bad
// term. there returns all values of a field; nil: unknown.
func (f *Filter[T]) Check(there func(field string) []string) error {
	problems := slices.Clone(f.problems)
	var all []term[T]
	for _, t := range f.terms {
		all = append(append(all, t), t.any...)
	}
	for _, t := range all {
		if t.about == nil || t.about.Has == nil || there == nil {
			continue
		}
		values := there(t.about.Name)
		if len(values) > 0 && !slices.ContainsFunc(values, func(v string) bool { return strings.EqualFold(v, t.text) }) {
			problems = append(problems, fmt.Errorf("%w: %s:%s: there is no such %s (have: %s)", Err, t.about.Name,
				safetext.Escape(t.text), t.about.Name, safetext.Escape(strings.Join(values, ", "))))
		}
	}
	return errors.Join(problems...)
}

// Match reports whether the row is selected at this time.
func (f *Filter[T]) Match(row T, now time.Time) bool {
	for i := range f.terms {
		if f.terms[i].match(f.language, row, now) == f.terms[i].not {
			return false
		}
	}
	return true
}

// Texts calls yield for each text that a selected row must contain; with stars, it is the
// whole text, with * and ?.
func (f *Filter[T]) Texts(yield func(text string, stars bool)) {
	for i := range f.terms {
		if t := &f.terms[i]; !t.not && t.about == nil && t.any == nil && t.kind != expr {
			yield(t.text, t.kind == whole)
		}
	}
}

// Hint explains a filter that selects nothing: it lists the fields if a term looks like
// one and is none, and says how to select by a value that was typed without its field.
func (f *Filter[T]) Hint() string {
	for i := range f.terms {
		if about, said := f.spelled(f.terms[i:]); about != nil {
			return fmt.Sprintf("%q is searched as text in %s: %s:%s chooses by %s", said, f.language.Text, about.Name, strings.ReplaceAll(said, " ", "-"), about.Name)
		}
	}
	for i := range f.terms {
		t := &f.terms[i]
		word, _, ok := cutAny(t.text, ":<>")
		if t.about != nil || t.any != nil || t.kind != part || !ok || word == "" || strings.Trim(word, "abcdefghijklmnopqrstuvwxyz-") != "" {
			continue
		}
		return fmt.Sprintf("%q is not a field: searched as text in %s (fields: %s)", word, f.language.Text, strings.Join(f.language.names(), ", "))
	}
	return ""
}

// spelled returns the field and the word of it that the first terms spell; nil: none.
func (f *Filter[T]) spelled(terms []term[T]) (about *Field[T], word string) {
	said := ""
	for i := range terms {
		if t := &terms[i]; t.about != nil || t.any != nil || t.kind != part || i > 0 && t.not {
			break
		}
		said += bare(terms[i].text)
		for k := range f.language.Fields {
			about := &f.language.Fields[k]
			for _, word := range about.Words {
				if bare(word) == said {
					return about, word
				}
			}
		}
	}
	return nil, ""
}

func cutAny(s, signs string) (before, after string, ok bool) {
	if i := strings.IndexAny(s, signs); i >= 0 {
		return s[:i], s[i+1:], true
	}
	return s, "", false
}

// term parses a word.
func (l *Language[T]) term(w word) (term[T], error) {
	t := term[T]{not: w.not, text: strings.ToLower(w.text)}
	if w.quoted {
		return t.named(quoted), nil
	}
	if said, ok := strings.CutPrefix(w.text, "~"); ok {
		re, err := regexp.Compile("(?i)" + said)
		switch why := (*syntax.Error)(nil); {
		case errors.As(err, &why):
			return t, fmt.Errorf("no regular expression: %s", why.Code)
		case len(said) > mostRegexp:
			return t, fmt.Errorf("a regular expression of more than %d characters", mostRegexp)
		case err != nil:
			return t, errors.New("no regular expression")
		}
		t.kind, t.such = expr, func(x safetext.Text) bool { return re.MatchString(x.Raw()) }
		return t, nil
	}
	i := strings.IndexAny(t.text, ":<>=")
	if i <= 0 {
		return t.named(part), nil
	}
	about, rest := l.field(t.text[:i]), t.text[i:]
	if about == nil {
		return t.named(part), nil
	}
	op := rest[:1]
	if len(rest) > 1 && rest[1] == '=' && op != ":" {
		op = rest[:2]
	}
	value := rest[len(op):]
	if op == ":" && strings.Contains(value, "|") {
		for one := range strings.SplitSeq(value, "|") {
			alternative, err := l.term(word{text: about.Name + ":" + one})
			if err != nil {
				return t, err
			}
			t.any = append(t.any, alternative)
		}
		return t, nil
	}
	t.about, t.op = about, op
	return t, t.take(value)
}

// take parses the value of a field.
func (t *term[T]) take(value string) error {
	name := t.about.Name
	switch f := t.about; {
	case f.Span != nil:
		if t.op == ":" || t.op == "=" {
			return fmt.Errorf("%s is compared: %s<5s, %s>1m", name, name, name)
		}
		d, err := time.ParseDuration(value)
		if err != nil || d < 0 {
			return errors.New("a number with a unit is wanted: 500ms, 5s, 1m30s")
		}
		t.n = int64(d)
	case f.Number != nil:
		n, err := strconv.Atoi(value)
		if err != nil {
			return errors.New("a number is wanted")
		}
		t.n = int64(n)
	case t.op != ":":
		return fmt.Errorf("%s takes a colon: %s:…", name, name)
	case value == "":
		return errors.New("what follows the colon?")
	case f.Is != nil:
		for _, w := range f.Words {
			if strings.HasPrefix(bare(w), bare(value)) {
				t.fits = append(t.fits, w)
			}
		}
		if t.fits == nil {
			return fmt.Errorf("no %s begins so (have: %s)", name, strings.Join(f.Words, ", "))
		}
	}
	t.text = value
	return nil
}

// named makes a term for the texts from one for a part of them: unless quoted, with * or
// ? it must match the whole text.
func (t term[T]) named(k kind) term[T] {
	text := t.text
	if t.kind = k; k == part && strings.ContainsAny(text, "*?") {
		t.kind = whole
		t.such = func(x safetext.Text) bool { return starred(text, strings.ToLower(x.Raw())) }
	} else {
		t.such = func(x safetext.Text) bool { return HasFold(x, text) }
	}
	return t
}

// unspaced removes what may be left out when a word is typed: blanks, hyphens and
// underscores.
var unspaced = strings.NewReplacer(" ", "", "-", "", "_", "")

// bare returns a word in lower case without blanks, hyphens and underscores.
func bare(s string) string { return unspaced.Replace(strings.ToLower(s)) }

func (t *term[T]) match(l *Language[T], row T, now time.Time) bool {
	switch {
	case t.any != nil:
		return slices.ContainsFunc(t.any, func(one term[T]) bool { return one.match(l, row, now) })
	case t.about == nil:
		return l.Texts(row, t.such)
	case t.about.Is != nil:
		return slices.Contains(t.fits, t.about.Is(row))
	case t.about.Has != nil:
		return t.about.Has(row, t.text)
	case t.about.Number != nil:
		n, ok := t.about.Number(row)
		return ok && compare(int64(n), t.op, t.n)
	}
	d, ok := t.about.Span(row, now)
	return ok && compare(int64(d), t.op, t.n)
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
