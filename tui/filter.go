package tui

import (
	"strings"

	"redlockctl/monitor"
)

// filter chooses locks. All of its terms must hold. A term is a part of the
// name; or state:WORD, node:NAME (has a copy there), holder:PART; with ! before
// it, the opposite. Letters match without regard to their case.
type filter struct {
	source string
	terms  []term
}

type term struct {
	not   bool
	field string // "", "state", "node", "holder"
	text  string // lower case
}

func parseFilter(s string) filter {
	f := filter{source: s}
	for _, word := range strings.Fields(s) {
		var t term
		word, t.not = strings.CutPrefix(word, "!")
		t.text = strings.ToLower(word)
		if field, text, ok := strings.Cut(t.text, ":"); ok {
			switch field {
			case "state", "node", "holder":
				t.field, t.text = field, text
			}
		}
		if t.text != "" { // half typed: chooses nothing yet
			f.terms = append(f.terms, t)
		}
	}
	return f
}

func (f filter) empty() bool { return len(f.terms) == 0 }

// match tells if the lock is chosen; nodes are those that its copies belong to.
func (f filter) match(l *monitor.Lock, nodes []monitor.Node) bool {
	for _, t := range f.terms {
		if t.match(l, nodes) == t.not {
			return false
		}
	}
	return true
}

func (t term) match(l *monitor.Lock, nodes []monitor.Node) bool {
	switch t.field {
	case "state":
		return strings.HasPrefix(strings.ToLower(l.State.String()), t.text)
	case "holder":
		return strings.Contains(strings.ToLower(l.Holder.String()), t.text)
	case "node":
		for i, c := range l.Copies {
			if i < len(nodes) && c.State == monitor.CopyPresent && strings.EqualFold(nodes[i].Name, t.text) {
				return true
			}
		}
		return false
	default:
		return strings.Contains(strings.ToLower(l.Key.String()), t.text)
	}
}
