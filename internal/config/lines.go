package config

import (
	"strconv"
	"strings"
)

// lines maps the path of each key of a TOML text ("redlock.retries", "nodes[1].addr") to
// its line, from 1. The TOML library has positions only for syntax errors; errors in a
// valid text need them too.
type lines map[string]int

// scanLines finds the keys of a text that the TOML library has accepted. For any other
// text it does not fail, but its result is useless.
func scanLines(text string) lines {
	s := scanner{text: text, line: 1, found: lines{}, tables: map[string]int{}}
	for s.blank(); s.more(); s.blank() {
		if s.peek() == '[' {
			s.header()
		} else {
			s.pair(s.table)
		}
	}
	return s.found
}

// at returns the line of path, or of the nearest enclosing table that has one.
func (l lines) at(path string) int {
	for path != "" {
		if n, ok := l[path]; ok {
			return n
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
	return 0
}

// deepest limits the depth of keys: the configuration needs five levels, and very deep
// paths would fill the memory.
const deepest = 16

type scanner struct {
	text  string
	pos   int
	line  int
	table string // path of the current table
	found lines
	depth int // of nested values
	// tables counts the elements seen of each array of tables.
	tables map[string]int
}

func (s *scanner) more() bool { return s.pos < len(s.text) }

func (s *scanner) peek() byte {
	if s.more() {
		return s.text[s.pos]
	}
	return 0
}

func (s *scanner) next() byte {
	c := s.peek()
	if c == '\n' {
		s.line++
	}
	s.pos++
	return c
}

// skip consumes prefix if the text starts with it.
func (s *scanner) skip(prefix string) bool {
	if s.pos > len(s.text) || !strings.HasPrefix(s.text[s.pos:], prefix) {
		return false
	}
	for range prefix {
		s.next()
	}
	return true
}

func (s *scanner) blank() {
	for s.more() {
		switch s.peek() {
		case ' ', '\t', '\r', '\n':
			s.next()
		case '#':
			for s.more() && s.peek() != '\n' {
				s.next()
			}
		default:
			return
		}
	}
}

func (s *scanner) key(ends string) []string {
	var parts []string
	for s.more() {
		switch c := s.peek(); {
		case strings.IndexByte(ends, c) >= 0 || c == '\n':
			return parts
		case c == '"' || c == '\'':
			parts = append(parts, s.quoted())
		case c == '.' || c == ' ' || c == '\t' || c == '\r':
			s.next()
		default:
			start := s.pos
			for s.more() && !strings.ContainsRune(ends+". \t\r\n\"'", rune(s.peek())) {
				s.next()
			}
			parts = append(parts, s.text[start:s.pos])
		}
		parts = parts[:min(len(parts), deepest)]
	}
	return parts
}

func (s *scanner) header() {
	line := s.line
	s.next()
	array := s.skip("[")
	parts := s.key("]")
	for s.skip("]") {
	}
	path := ""
	for i, part := range parts {
		path = join(path, part)
		if array && i == len(parts)-1 {
			s.tables[path]++
		}
		s.note(path, line)
		if n := s.tables[path]; n > 0 {
			path = element(path, n-1)
		}
	}
	s.table = path
	s.note(path, line)
}

func (s *scanner) pair(table string) {
	line, start := s.line, s.pos
	path := table
	for _, part := range s.key("=,}]") {
		path = join(path, part)
		s.note(path, line)
	}
	if s.skip("=") {
		s.value(path)
	}
	if s.pos == start {
		s.next() // not a key: always make progress
	}
}

func (s *scanner) value(path string) {
	s.depth++
	defer func() { s.depth-- }()
	if s.depth > deepest {
		path = ""
	}
	for s.peek() == ' ' || s.peek() == '\t' {
		s.next()
	}
	switch s.peek() {
	case '"', '\'':
		s.quoted()
	case '[':
		s.next()
		for i := 0; s.inside(']'); i++ {
			s.note(element(path, i), s.line)
			start := s.pos
			s.value(element(path, i))
			if s.pos == start {
				s.next()
			}
		}
	case '{':
		s.next()
		for s.inside('}') {
			s.pair(path)
		}
	default:
		for s.more() && strings.IndexByte(",]}#\n", s.peek()) < 0 {
			s.next()
		}
	}
}

// inside moves to the next element of an array or inline table; it returns false after
// the last one.
func (s *scanner) inside(end byte) bool {
	for s.blank(); s.peek() == ','; s.blank() {
		s.next()
	}
	if s.peek() == end {
		s.next()
		return false
	}
	return s.more()
}

// quoted reads a string of any of the four kinds. It does not decode escapes: no known
// key needs them.
func (s *scanner) quoted() string {
	quote := string(s.peek())
	escapes := quote == `"`
	if s.skip(strings.Repeat(quote, 3)) {
		quote = strings.Repeat(quote, 3)
	} else {
		s.next()
	}
	start := s.pos
	for s.more() {
		end := s.pos
		switch {
		case s.skip(quote):
			// Up to two quotes may precede the closing three.
			for len(quote) == 3 && s.peek() == quote[0] && s.pos-end < 5 {
				s.next()
			}
			return s.text[start:end]
		case s.peek() == '\\' && escapes:
			s.next()
			s.next()
		case s.peek() == '\n' && len(quote) == 1:
			return s.text[start:s.pos]
		default:
			s.next()
		}
	}
	return s.text[min(start, len(s.text)):]
}

func (s *scanner) note(path string, line int) {
	if _, ok := s.found[path]; !ok && s.depth <= deepest {
		s.found[path] = line
	}
}

func join(path, part string) string {
	if path == "" {
		return part
	}
	return path + "." + part
}

func element(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }
