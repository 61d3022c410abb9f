// Package command parses the command line of the screen: which command a line starts
// with, its argument, and its completions.
package command

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"redlockctl/server/safetext"
)

// Command is a command of the command line.
type Command struct {
	Name  string
	Takes string // its argument, for help; "": none
	Help  string
	Next  func(string) []string // completions of the argument, for the word being typed
	Do    func(string) tea.Cmd  // runs it with its argument
}

// Values of Takes if more than the last word is completed.
const (
	Names = "NAMES" // several: the last one is completed
	Terms = "TERMS" // a filter, which has its own completion
)

// begins returns how many words of a line are the command's name, in full or abbreviated;
// 0: it is another command. rest is what follows.
func (c *Command) begins(line string) (n int, whole bool, rest string) {
	rest, whole = strings.TrimLeft(line, " "), true
	for i, part := range strings.Fields(c.Name) {
		if rest == "" && i > 0 {
			return n, false, ""
		}
		var word string
		word, rest, _ = strings.Cut(rest, " ")
		if rest = strings.TrimLeft(rest, " "); !strings.HasPrefix(part, word) {
			return 0, false, ""
		}
		n, whole = n+1, whole && part == word
	}
	return n, whole, rest
}

// Find returns the command that a line starts with, or the only one that it abbreviates;
// rest is what follows its name.
func Find(all []Command, line string) (found Command, rest, why string) {
	var names, near []string
	best, wholly := 0, false
	first, _, _ := strings.Cut(line, " ")
	for _, c := range all {
		n, whole, behind := c.begins(line)
		whole = whole || line == "q" && c.Name == "quit" || line == "h" && c.Name == "help"
		switch {
		case whole && (!wholly || n > best), n > best && !wholly:
			found, rest, best, wholly, names = c, behind, n, whole, []string{c.Name}
		case n > 0 && n == best && !wholly:
			names = append(names, c.Name)
		}
		if slices.Contains(strings.Fields(c.Name), first) {
			near = append(near, c.Name)
		}
	}
	word := safetext.Escape(strings.TrimSpace(line))
	switch {
	case len(names) == 1 && found.Takes == "" && rest != "":
		return Command{}, "", found.Name + " takes nothing here, not «" + safetext.Escape(strings.TrimSpace(rest)) + "»; flags are for the CLI"
	case len(names) == 1:
		return found, rest, ""
	case len(names) > 1:
		return Command{}, "", word + " may be " + strings.Join(names, ", ")
	case len(near) > 0:
		return Command{}, "", "there is no command " + word + ": it is " + strings.Join(near, ", ")
	}
	return Command{}, "", "there is no command " + word + "; : and Tab lists all"
}

// Offers returns the completed lines.
func Offers(all []Command, line string) []string {
	line = strings.TrimLeft(line, " ")
	var out []string
	for _, c := range all {
		if strings.HasPrefix(c.Name, line) {
			out = append(out, c.Name)
		}
	}
	c, word, why := Find(all, line)
	if len(out) > 0 || why != "" || c.Next == nil {
		return out
	}
	// A name is the whole rest of the line.
	head := c.Name + " "
	if i := strings.LastIndexByte(word, ' '); i >= 0 && c.Takes == Names {
		head, word = head+word[:i+1], word[i+1:]
	}
	for _, o := range c.Next(word) {
		if c.Takes == Terms || strings.HasPrefix(strings.ToLower(o), strings.ToLower(word)) {
			out = append(out, head+o)
		}
	}
	return out
}
