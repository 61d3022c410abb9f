package config

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// configFile is a configuration while it is read: its tables, the lines of its keys, and
// all problems so far.
type configFile struct {
	path string
	Options
	unlimited bool // max_ttl may be left out
	lines     lines
	problems  []Problem
	settings  []*Setting
	// sections are the tables that were asked for, with the keys that were asked for in
	// them. These are the known keys, so no second list of keys is needed.
	sections []*table
	// passwordEnv are the environment variables with passwords.
	passwordEnv []string
	asked       map[string]answer // answer of each password_command
}

// Setting is one key of the configuration, with its value.
type Setting struct {
	Key   string `json:"key"`   // with its section: "[redlock] node_timeout"
	Value string `json:"value"` // of a secret: the name of its variable or file
	// Source is [FromDefault], [FromFile], or the environment variable that overrides
	// both.
	Source string `json:"source"`
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"` // if Source is FromFile
}

// Options say how a configuration is read.
type Options struct {
	// Secretless is for commands that contact nothing: passwords and certificates are not
	// read and may be missing. The result cannot be used to connect to a node.
	Secretless bool
	// Found says that nobody named the file explicitly: its password_command is not run.
	Found bool
}

// Sources of a setting other than a variable.
const (
	FromDefault = "default"
	FromFile    = "file"
)

// answer is the result of a command.
type answer struct{ secret, why string }

// table is one table of the file, or one that the file could have.
type table struct {
	file  *configFile
	path  string // "redlock", "nodes[1].tls"
	label string // "[redlock]", `[nodes.tls] of "n2"`
	// values is nil if the file does not have the table.
	values map[string]any
	known  []string
	// defaults is the table with values for missing keys; nil: none.
	defaults *table
}

// alternatives are keys of which one in a table prevents all of them from being taken
// from its defaults.
var alternatives = []string{"password_env", "password_file", "password_command"}

// inherits reports whether a key is taken from the table's defaults.
func (t *table) inherits(key string) bool {
	if t.defaults == nil || t.values[key] != nil || t.defaults.values[key] == nil {
		return false
	}
	return !slices.Contains(alternatives, key) || !slices.ContainsFunc(alternatives, func(k string) bool { return t.values[k] != nil })
}

// has reports whether a key is in the table or in its defaults.
func (t *table) has(key string) bool { return t.values[key] != nil || t.inherits(key) }

// setting is a key of a table, and its value if it has one.
type setting struct {
	table  *table
	key    string
	raw    any
	set    bool // the file has it
	secret bool // its value is never shown
}

func (s setting) name() string {
	if s.table.label == "" {
		return s.key
	}
	return s.table.label + " " + s.key
}

func (s setting) line() int { return s.table.file.lines.at(join(s.table.path, s.key)) }

// place returns the line in brackets; empty if no file has the setting.
func (s setting) place() string {
	if line := s.line(); line > 0 {
		return fmt.Sprintf(" (line %d)", line)
	}
	return ""
}

func (s setting) value() string {
	if !s.set || s.secret {
		return ""
	}
	return literal(s.raw)
}

func (s setting) problem(format string, args ...any) {
	s.table.file.report(s.line(), s.name(), s.value(), format, args...)
}

func (s setting) refer(effective string) string {
	if !s.set {
		return fmt.Sprintf("%s = %s (the default)", s.name(), effective)
	}
	if s.secret {
		return fmt.Sprintf("%s (line %d)", s.name(), s.line())
	}
	return fmt.Sprintf("%s = %s (line %d)", s.name(), s.value(), s.line())
}

func (f *configFile) report(line int, key, value, format string, args ...any) {
	p := Problem{File: f.path, Line: line, Key: key, Value: value, Text: fmt.Sprintf(format, args...)}
	if !slices.Contains(f.problems, p) { // each node reads the defaults
		f.problems = append(f.problems, p)
	}
}

func (s setting) takes(value string) {
	f := s.table.file
	made := &Setting{Key: s.name(), Value: value, Source: FromDefault, File: f.path}
	if s.set {
		made.Source, made.Line = FromFile, s.line()
		if slices.ContainsFunc(f.settings, func(was *Setting) bool { return was.Key == made.Key && was.Line == made.Line }) {
			return // one of the defaults, which each node reads
		}
	}
	f.settings = append(f.settings, made)
}

// came corrects the last record of a setting: its value was determined later, or
// something overrides it.
func (s setting) came(value, source string) {
	f := s.table.file
	for i := len(f.settings) - 1; i >= 0; i-- {
		if made := f.settings[i]; made.Key == s.name() {
			made.Value = value
			if source != "" {
				made.Source, made.Line = source, 0
			}
			return
		}
	}
}

// section returns a table of the file; an empty one if the file lacks it.
func (f *configFile) section(path, label string, values map[string]any) *table {
	t := &table{file: f, path: path, label: label, values: values}
	f.sections = append(f.sections, t)
	return t
}

func (t *table) get(key string) setting {
	t.known = append(t.known, key)
	if t.defaults != nil {
		t.defaults.known = append(t.defaults.known, key)
	}
	if t.inherits(key) {
		return t.defaults.get(key)
	}
	raw, ok := t.values[key]
	return setting{table: t, key: key, raw: raw, set: ok, secret: strings.HasPrefix(key, "password")}
}

func (s setting) wrongType(want string) {
	s.problem("is %s; it must be %s", kindOf(s.raw), want)
}

// sub returns the table that is the value of key, with this label.
func (t *table) sub(key, label string) *table {
	s := t.get(key)
	values, ok := s.raw.(map[string]any)
	if s.set && !ok {
		s.wrongType("a table: " + label)
	}
	return t.file.section(join(s.table.path, key), label, values)
}

// subs returns the tables of an array of tables.
func (t *table) subs(key, label string) []*table {
	s := t.get(key)
	var out []*table
	add := func(v any) {
		values, ok := v.(map[string]any)
		if !ok {
			s.wrongType("a list of tables: " + label)
			return
		}
		out = append(out, t.file.section(element(join(t.path, key), len(out)), label, values))
	}
	switch v := s.raw.(type) {
	case nil:
	case []map[string]any:
		for _, m := range v {
			add(m)
		}
	case []any:
		for _, m := range v {
			add(m)
		}
	default:
		s.wrongType("a list of tables: write " + label + " with two brackets")
	}
	return out
}

// text returns a string; def if it is not set or not a string.
func (t *table) text(key, def string) (string, setting) {
	s := t.get(key)
	if !s.set {
		s.takes(def)
		return def, s
	}
	v, ok := s.raw.(string)
	if s.secret {
		s.takes("")
	} else {
		s.takes(v)
	}
	switch {
	case !ok:
		s.wrongType("text in quotes")
	case strings.TrimSpace(v) == "":
		s.problem("is empty; give a value or leave the key out")
	default:
		return v, s
	}
	s.set = false // no usable value
	return def, s
}

func (t *table) choice(key, def string, words ...string) string {
	v, s := t.text(key, def)
	if slices.Contains(words, v) {
		return v
	}
	if s.set {
		s.problem("is none of %s", quoteAll(words))
	}
	return def
}

// texts returns a list of strings; none may be empty or occur twice.
func (t *table) texts(key string, def ...string) []string {
	s := t.get(key)
	if !s.set {
		s.takes(strings.Join(def, " "))
		return def
	}
	list, ok := s.raw.([]any)
	if !ok {
		s.wrongType(`a list of texts, such as ["lock:*"]`)
		return def
	}
	if len(list) == 0 {
		s.problem("is an empty list; give at least one pattern, or leave the key out for %s", quoteAll(def))
		return def
	}
	var out []string
	seen := map[string]bool{}
	for _, e := range list {
		v, ok := e.(string)
		switch {
		case !ok:
			s.problem("%s is %s; each element must be text in quotes", literal(e), kindOf(e))
		case v == "":
			s.problem("an element is empty; remove it")
		case seen[v]:
			s.problem("%q is there twice; remove one", v)
		}
		seen[v] = true
		out = append(out, v)
	}
	s.takes(strings.Join(out, " "))
	return out
}

// list returns a list of strings as it is written; nil if there is none.
func (t *table) list(key string) (out []string, s setting) {
	all, s, ok := valueOf[[]any](t, key, "", `a list of texts, such as ["a", "b"]`)
	for _, e := range all {
		v, text := e.(string)
		if ok = ok && text; !text {
			s.problem("%s is %s; each element must be text in quotes", literal(e), kindOf(e))
		}
		out = append(out, v)
	}
	if ok {
		s.takes(strings.Join(out, " "))
	}
	return out, s
}

// valueOf returns the value of a key that is set and has the wanted type; otherwise ok is
// false, and the default, as shown, is used.
func valueOf[T any](t *table, key, def, want string) (v T, s setting, ok bool) {
	s = t.get(key)
	if !s.set {
		s.takes(def)
		return v, s, false
	}
	if v, ok = s.raw.(T); !ok {
		s.wrongType(want)
		return v, s, false
	}
	s.takes(fmt.Sprint(v))
	return v, s, true
}

func (t *table) boolean(key string, def bool) (bool, setting) {
	v, s, ok := valueOf[bool](t, key, fmt.Sprint(def), "true or false, without quotes")
	if !ok {
		return def, s
	}
	return v, s
}

func (t *table) integer(key string, def, least, most int) int {
	v, s, ok := valueOf[int64](t, key, fmt.Sprint(def), fmt.Sprintf("a whole number from %d to %d", least, most))
	switch {
	case !ok:
		return def
	case v < int64(least) || v > int64(most):
		s.problem("is out of range; it must be from %d to %d", least, most)
		return def
	}
	return int(v)
}

// number returns a number between least and most, both excluded.
func (t *table) number(key string, def, least, most float64) (float64, setting) {
	s := t.get(key)
	if !s.set {
		s.takes(fmt.Sprint(def))
		return def, s
	}
	s.takes(s.value())
	var v float64
	switch raw := s.raw.(type) {
	case float64:
		v = raw
	case int64:
		v = float64(raw)
	default:
		s.wrongType(fmt.Sprintf("a number greater than %g and less than %g", least, most))
		return def, s
	}
	if math.IsNaN(v) || v <= least || v >= most {
		s.problem("is out of range; it must be greater than %g and less than %g", least, most)
		return def, s
	}
	return v, s
}

// bytes returns an amount such as "512MiB". A default of 0 is written "auto": it depends
// on the machine.
func (t *table) bytes(key string, def, least int64) int64 {
	usual := "auto"
	if def > 0 {
		usual = fmt.Sprintf("%dMiB", def>>20)
	}
	text, s, ok := valueOf[string](t, key, usual, `an amount of memory in quotes with its unit, such as "512MiB"`)
	if !ok {
		return def
	}
	if text == "auto" && def == 0 {
		return 0
	}
	for unit, shift := range map[string]int{"KiB": 10, "MiB": 20, "GiB": 30} {
		digits, ok := strings.CutSuffix(text, unit)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		switch {
		case err != nil:
		case n > mostMemory>>shift:
			s.problem("is too much; it must be at most %dGiB", int64(mostMemory)>>30)
			return def
		case n<<shift < least:
			s.problem("is too little; it must be at least %dMiB", least>>20)
			return def
		default:
			return n << shift
		}
	}
	s.problem(`is not an amount of memory; write a whole number with its unit (KiB, MiB, GiB), such as "512MiB", or "auto"`)
	return def
}

// mostMemory is more than any machine has.
const mostMemory = 1 << 50

// Limits of all durations: Redis counts milliseconds, and a year is longer than any lock.
const (
	leastDuration = time.Millisecond
	mostDuration  = 365 * 24 * time.Hour
)

// span is a duration with its setting, for checks against others.
type span struct {
	setting
	time.Duration
	ok bool // false if the file's value cannot be used
}

// refer names the duration in a message about another one.
func (s span) refer() string { return s.setting.refer(show(s.Duration)) }

// duration returns a duration such as "30s"; least is the minimum.
func (t *table) duration(key string, def, least time.Duration) span {
	return t.durationOr(key, def.String(), def, least)
}

// durationOr is duration with a word that means the default.
func (t *table) durationOr(key, word string, def, least time.Duration) span {
	want := `a duration in quotes with its unit, such as "30s" or "500ms"`
	if n, isInt := t.values[key].(int64); isInt {
		want = fmt.Sprintf(`a duration in quotes with its unit: "%ds" or "%dms"?`, n, n)
	}
	text, s, ok := valueOf[string](t, key, word, want)
	switch {
	case !ok:
		return span{s, def, !s.set}
	case text == word:
		s.came(word, "")
		return span{s, def, true}
	}
	v, err := time.ParseDuration(text)
	switch {
	case err != nil:
		s.problem(`is not a duration; write a number with its unit (ms, s, m, h), such as "30s" or "1m30s"`)
	case v < 0:
		s.problem("is negative; it must be at least %s", show(least))
	case v == 0:
		s.problem("is zero; it must be at least %s", show(least))
	case v < least:
		s.problem("is too short; it must be at least %s", show(least))
	case v > mostDuration:
		s.problem("is too long; it must be at most %s", show(mostDuration))
	case v%time.Millisecond != 0 && v < time.Second:
		s.problem("is finer than a millisecond, which is what Redis counts; %s would be right", show(v.Round(time.Millisecond)))
	default:
		s.came(v.String(), "")
		return span{s, v, true}
	}
	return span{setting: s, Duration: def}
}

func (f *configFile) unknown() {
	home := map[string][]string{}
	for _, t := range f.sections {
		for _, k := range t.known {
			home[k] = append(home[k], t.label)
		}
	}
	for _, t := range f.sections {
		for _, k := range slices.Sorted(maps.Keys(t.values)) {
			if slices.Contains(t.known, k) {
				continue
			}
			// Do not show the value: an unknown key may be a secret in the wrong place,
			// "passwd" or "requirepass".
			s := setting{table: t, key: k, raw: t.values[k], set: true, secret: true}
			shown := setting{table: t, key: bare(k)}
			f.report(s.line(), shown.name(), "", "unknown key%s", hint(k, t.label, t.known, home[k]))
		}
	}
}

// bare returns a key as it would be written.
func bare(key string) string {
	if key == "" || strings.ContainsFunc(key, notBare) {
		return strconv.Quote(key)
	}
	return key
}

func notBare(r rune) bool {
	return r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
}

func kindOf(v any) string {
	switch v.(type) {
	case string:
		return "text"
	case int64:
		return "a whole number"
	case float64:
		return "a number"
	case bool:
		return "true or false"
	case time.Time:
		return "a date"
	case []any, []map[string]any:
		return "a list"
	default:
		return "a table"
	}
}

// literal returns a value as short TOML. It does not show tables, which may contain
// secrets.
func literal(v any) string {
	switch v := v.(type) {
	case string:
		return strconv.Quote(v)
	case int64, bool:
		return fmt.Sprint(v)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case time.Time:
		return v.Format(time.RFC3339)
	case []any:
		parts := make([]string, len(v))
		for i, e := range v {
			parts[i] = literal(e)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case []map[string]any:
		return "[{…}]"
	default:
		return "{…}"
	}
}

func show(d time.Duration) string { return strconv.Quote(d.String()) }

func quoteAll(words []string) string {
	q := make([]string, len(words))
	for i, w := range words {
		q[i] = strconv.Quote(w)
	}
	return strings.Join(q, ", ")
}
