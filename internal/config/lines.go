package config

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// lines maps the path of each key of a TOML text ("redlock.retries",
// "nodes[1].addr") to the line on which it stands, from 1: a configuration that
// parses and is wrong all the same needs that as much as one that does not.
type lines map[string]int

// at is the line of path, or of the nearest thing around it that has one.
func (l lines) at(path string) int {
	for path != "" {
		if n, ok := l[path]; ok {
			return n
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
	return 0
}

// deepest is how deep keys are followed: the configuration needs five levels,
// and paths of a text made to be deep would fill the memory.
const deepest = 16

// scanLines reads the keys of a text that the TOML library has accepted; of any
// other text those before its mistake.
func scanLines(text string) lines {
	s := scanner{found: lines{}, tables: map[string]int{}}
	for i, c := range text {
		if c == '\n' {
			s.ends = append(s.ends, i)
		}
	}
	s.parser.Reset([]byte(text))
	table := ""
	for s.parser.NextExpression() {
		if e := s.parser.Expression(); e.Kind == unstable.KeyValue {
			s.pair(table, e, 0)
		} else {
			table = s.header(e)
		}
	}
	return s.found
}

type scanner struct {
	parser unstable.Parser
	ends   []int // of the lines
	found  lines
	// tables counts the elements of each array of tables so far.
	tables map[string]int
}

// note takes down where a path is named first.
func (s *scanner) note(path string, at *unstable.Node) {
	if _, ok := s.found[path]; !ok {
		line, _ := slices.BinarySearch(s.ends, int(at.Raw.Offset))
		s.found[path] = line + 1
	}
}

// header reads [table] or [[array of tables]], and is the path of what stands below it.
func (s *scanner) header(e *unstable.Node) (path string) {
	parts := e.Key()
	for depth := 0; depth < deepest && parts.Next(); depth++ {
		part := parts.Node()
		path = join(path, string(part.Data))
		if e.Kind == unstable.ArrayTable && parts.IsLast() {
			s.tables[path]++
		}
		s.note(path, part)
		if n := s.tables[path]; n > 0 {
			path = element(path, n-1)
			s.note(path, part)
		}
	}
	return path
}

// pair reads key = value below the path of its table.
func (s *scanner) pair(path string, e *unstable.Node, depth int) {
	for parts := e.Key(); depth < deepest && parts.Next(); depth++ {
		path = join(path, string(parts.Node().Data))
		s.note(path, parts.Node())
	}
	s.value(path, e.Value(), depth)
}

// value reads the values within a value.
func (s *scanner) value(path string, v *unstable.Node, depth int) {
	if depth == deepest || v.Kind != unstable.Array && v.Kind != unstable.InlineTable {
		return
	}
	inner := v.Children()
	for i := 0; inner.Next(); i++ {
		if v.Kind == unstable.InlineTable {
			s.pair(path, inner.Node(), depth)
			continue
		}
		if inner.Node().Raw.Length > 0 {
			s.note(element(path, i), inner.Node())
		}
		s.value(element(path, i), inner.Node(), depth+1)
	}
}

func join(path, part string) string {
	if path == "" {
		return part
	}
	return path + "." + part
}

func element(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }
