package lockform

import (
	"strconv"
	"strings"
	"time"

	"redlockctl/server/safetext"
)

// PrefixLen is how many bytes of a string are enough to recognise every form. An owner
// whose name does not fit stays unknown.
const PrefixLen = 128

// Recognize returns the form of a key, or nil if the key does not look like a known lock.
// typ is its type as TYPE returns it. value is the beginning of its value; for a hash, the
// known names of its fields, separated by line feeds. length is the whole length from
// STRLEN, HLEN and so on. now is the wall clock, with which times in values are checked for
// plausibility.
//
// Calls with the same arguments return equal forms. Forms without details of one lock are
// shared. Recognize is safe for concurrent use. Its cost grows with the length of the key
// and of value, of which at most [PrefixLen] bytes are read for a string.
func Recognize(key, typ, value string, length int64, now time.Time) *Form {
	s := sight{key: key, value: value, length: length, now: now}
	if len(s.value) > PrefixLen && typ == "string" {
		s.value = s.value[:PrefixLen]
	}
	s.whole = int64(len(s.value)) == length
	for i := range forms {
		row := &forms[i]
		if !row.fits(typ, s) {
			continue
		}
		if details, ok := row.match(s); ok {
			return row.form(details)
		}
	}
	return nil
}

// form returns the row's form with the details of the key. Without details it returns the
// row's own, shared form.
func (r *row) form(t telling) *Form {
	if t == (telling{}) {
		return &r.Form
	}
	f := r.Form
	f.Owner, f.Group = safetext.New(t.owner), safetext.New(t.group)
	f.Created, f.Deadline = t.created, t.deadline
	return &f
}

// PossibleSiblings returns the keys that may belong to the same lock as this one by their
// names, this one included. Their values decide.
func PossibleSiblings(key string) []string {
	return Siblings(key, strings.Repeat("\xff", rueidisLen))
}

// siblingKeys is how many keys of one rueidislock lock are looked for: twice the largest
// majority that anybody is likely to configure.
const siblingKeys = 16

// Siblings returns the keys that may belong to the same lock and must be deleted together
// with key, which is included. rueidislock spreads a lock over PREFIX:0:NAME,
// PREFIX:1:NAME, … with one token. Under its default prefix the value does not matter,
// because a revocation replaces it. If key is the whole lock, or the names of its other
// keys cannot be derived, Siblings returns only key.
func Siblings(key, value string) []string {
	prefix, rest, ok := strings.Cut(key, ":")
	index, name, ok2 := strings.Cut(rest, ":")
	if !ok || !ok2 || index == "" || len(index) > 3 || !all(index, digits) {
		return []string{key}
	}
	if prefix != rueidisPrefix {
		s := sight{key: key, value: value, length: int64(len(value)), whole: true}
		if _, ok := rueidisLock(s); !ok || len(value) != rueidisLen {
			return []string{key}
		}
	}
	keys := make([]string, siblingKeys)
	for i := range keys {
		keys[i] = prefix + ":" + strconv.Itoa(i) + ":" + name
	}
	return keys
}
