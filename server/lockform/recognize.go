package lockform

import (
	"strconv"
	"strings"
	"time"

	"redlockctl/server/safetext"
)

// PrefixLen is how many bytes of a string are enough to recognise every form.
// Owners whose names are longer than that leaves room for stay unknown.
const PrefixLen = 128

// Recognize tells what made the key: by its name, its type as TYPE says it, the
// beginning of its value, and its length as STRLEN, HLEN and so on say it. now
// is the wall clock, against which times in values are checked for being
// plausible. It returns nil for what looks like no lock that is known.
//
// Of a hash, value is the names of its fields, one after the other with line
// feeds between them, as far as they are known.
//
// Calls with the same arguments return equal forms, and forms that tell nothing
// of one lock only are the same in memory. It is safe for concurrent use, and
// takes time in the length of the key, and of the first [PrefixLen] bytes of a
// string or the names of fields that are given.
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
		if told, ok := row.match(s); ok {
			return row.form(told)
		}
	}
	return nil
}

// form is the row's form with what the key tells; where it tells nothing, the
// row's own, shared by all.
func (r *row) form(t telling) *Form {
	if t == (telling{}) {
		return &r.Form
	}
	f := r.Form
	f.Owner, f.Group = safetext.New(t.owner), safetext.New(t.group)
	f.Created, f.Deadline = t.created, t.deadline
	return &f
}

// PossibleSiblings are the keys that may belong to the same lock as this one by
// their names alone, this one among them: what their values are decides.
func PossibleSiblings(key string) []string {
	return Siblings(key, strings.Repeat("\xff", rueidisLen))
}

// siblingKeys is how many keys of one rueidislock lock are looked for: twice
// the greatest majority that anybody is likely to configure.
const siblingKeys = 16

// Siblings are the keys that may belong to the same lock as the key with this
// value, key included, and that must go together with it: rueidislock spreads a
// lock over PREFIX:0:NAME, PREFIX:1:NAME, …, which bear one token. Under its own
// prefix that does not depend on the value, which a revocation replaces. Of a key
// that is the whole lock, or whose other keys do not follow from its name, it is
// the key alone.
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
