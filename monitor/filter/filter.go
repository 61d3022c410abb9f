// Package filter is the language in which a person chooses rows of a table, on the screen
// and in --filter alike: plain text, * globs, ~regular expressions, and fields. Which fields
// there are a [Language] declares, for each kind of row once.
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

// Err is returned by [Filter.Check] for a filter with a term that cannot be understood.
var Err = errors.New("bad filter")

// mostRegexp bounds a regular expression: nobody types a longer one.
const mostRegexp = 200

// Field is what a term may be about, beside the texts of a row. One of Is, Has, Number and
// Span says how it is compared.
type Field[T any] struct {
	Name string
	Also string // another name that is understood; "": none
	Help string // which rows a term chooses, for a person
	// Example is a term of it, or two.
	Example string

	// Is returns the row's value, one of Words; a term may be the beginning of one.
	Is    func(T) string
	Words []string
	// Has reports whether the row contains text, which is in lower case.
	Has func(row T, text string) bool
	// Number returns the row's number, if it has one: margin:0, margin<2.
	Number func(T) (n int, ok bool)
	// Span returns a duration from or until now, if the row has one: ttl<5s, age>1h.
	Span func(row T, now time.Time) (d time.Duration, ok bool)
}

// Language has the fields of a kind of row, and the texts in which a term without a field is
// searched.
type Language[T any] struct {
	Fields []Field[T]
	// Texts reports whether such is true for one of the row's texts.
	Texts func(row T, such func(safetext.Text) bool) bool
	// Text names these texts: "the name".
	Text string
}

// field is the one of this name; nil: there is none.
func (l *Language[T]) field(name string) *Field[T] {
	name = strings.ToLower(name)
	for i := range l.Fields {
		if f := &l.Fields[i]; name != "" && (f.Name == name || f.Also == name) {
			return f
		}
	}
	return nil
}

// names are those of all fields.
func (l *Language[T]) names() (names []string) {
	for i := range l.Fields {
		names = append(names, l.Fields[i].Name)
	}
	return names
}

// Terms are examples of the terms of fields, and what each chooses, for a page of help.
func (l *Language[T]) Terms() (terms [][2]string) {
	for i := range l.Fields {
		terms = append(terms, [2]string{l.Fields[i].Example, l.Fields[i].Help})
	}
	return terms
}

// Filter chooses rows; all of its terms must hold:
//
//	orders          a text has this in it
//	orders:*        with * or ?: the whole text is so
//	~^job:[0-9]+$   a text matches this regular expression
//	"a b"           the same, with blanks; what is quoted is never a field
//	state:a|b       the field is one of these; "a b" for what has blanks, which one of
//	                our own words may also do without: state:no TTL
//	ttl<5s margin:0 a number or a time is compared
//	!…              the opposite
//
// Letters match without regard to their case. The zero value chooses all.
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
	kind  kind      // of one about the texts
	such  func(safetext.Text) bool
	fits  []string // of Is: the words that begin so
	op    string   // of Number and Span: ":", "<", "<=", ">", ">="
	n     int64
	any   []term[T] // one of them holds
}

// kind is how a term is looked for in the texts.
type kind uint8

const (
	part   kind = iota // it is a part of one
	quoted             // the same, and was in quotes
	whole              // it is all of one, with * and ?
	expr               // it is a regular expression
)

// Parse reads a filter. A term that cannot be understood chooses nothing out and is told
// by [Filter.Check]: while it is typed it is only half there.
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

// Empty reports whether it chooses all.
func (f *Filter[T]) Empty() bool { return len(f.terms) == 0 }

// Timed reports whether what it chooses changes with time alone.
func (f *Filter[T]) Timed() bool {
	return slices.ContainsFunc(f.terms, func(t term[T]) bool { return t.about != nil && t.about.Span != nil })
}

// Check is what is wrong with the filter: an error that is [Err], a sentence for each bad
// term. there are the values of a field where all are known; nil: they are not.
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

// Match reports whether the row is chosen, as of now.
func (f *Filter[T]) Match(row T, now time.Time) bool {
	for i := range f.terms {
		if f.terms[i].match(f.language, row, now) == f.terms[i].not {
			return false
		}
	}
	return true
}

// Texts calls yield for each text that a chosen row must have; stars: it is all of one,
// with * and ?.
func (f *Filter[T]) Texts(yield func(text string, stars bool)) {
	for i := range f.terms {
		if t := &f.terms[i]; !t.not && t.about == nil && t.any == nil && t.kind != expr {
			yield(t.text, t.kind == whole)
		}
	}
}

// Hint explains a filter that chooses nothing: it lists the fields if a term looks like one and
// is not, and it says how to choose by a value that was typed without its field.
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

// spelled is the field one of whose words the first terms are, and that word; nil: there is none.
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

// term reads a word.
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

// take reads the value of a field.
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

// named makes a term about the texts of one that is a part of them: with * or ? it is all
// of one, if it is not in quotes.
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

// unspaced is the name of a word as it may be typed: without blanks and hyphens.
var unspaced = strings.NewReplacer(" ", "", "-", "", "_", "")

// bare is a word without blanks, hyphens and capitals.
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
