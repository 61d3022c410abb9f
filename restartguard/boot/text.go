// Package boot finds out how a server starts, fenced or not, by its configuration files, its
// command line and its systemd unit, and says how to start it fenced.
package boot

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"redlockctl/server/fences"
	"redlockctl/server/safetext"
)

// source is where a line of a server's configuration comes from.
type source uint8

const (
	inMain source = iota
	inIncluded
	inArgs
)

// directive is a line of a server's configuration.
type directive struct {
	words  []string
	file   string
	line   int
	source source
}

// place returns where the line is, safe to print.
func (d directive) place() string {
	if d.file == "" {
		return "the command line"
	}
	return fmt.Sprintf("%s:%d", safetext.Escape(d.file), d.line)
}

// Bounds of what is read of a server's configuration.
const (
	mostDirectives = 100_000
	mostFiles      = 1000
	mostIncludes   = 16 // in each other
)

// reader collects the lines of a configuration in the order in which they take effect.
type reader struct {
	text  Text
	dir   string
	users bool // the file is an ACL file, which has neither quotes nor includes
	files int
	lines []directive
}

// add adds one line.
func (r *reader) add(d directive, depth int) error {
	d.words[0] = strings.ToLower(d.words[0])
	switch {
	case r.users:
	case d.words[0] == "include" && len(d.words) == 2:
		from := inIncluded
		if d.source == inArgs {
			from = inArgs
		}
		return r.include(d.words[1], depth+1, from)
	case d.words[0] == "dir" && len(d.words) == 2:
		r.dir = absolute(d.words[1], r.dir) // the server goes there at once
	}
	if len(r.lines) >= mostDirectives {
		return fmt.Errorf("%s: more than %d lines", d.place(), mostDirectives)
	}
	r.lines = append(r.lines, d)
	return nil
}

// include adds the files of a pattern.
func (r *reader) include(pattern string, depth int, from source) error {
	if depth > mostIncludes {
		return fmt.Errorf("%s: too many includes in each other", safetext.Escape(pattern))
	}
	files, err := r.text.Read(absolute(pattern, r.dir))
	if err != nil {
		return err
	}
	for _, f := range files {
		if r.files++; r.files > mostFiles {
			return fmt.Errorf("%s: more than %d files", safetext.Escape(f.Path), mostFiles)
		}
		n := 0
		for line := range strings.Lines(f.Text) {
			n++
			line = strings.Trim(line, " \t\r\n")
			if line == "" || line[0] == '#' {
				continue
			}
			words, ok := splitWords(line)
			if r.users {
				words, ok = strings.Fields(line), true
			}
			if !ok {
				return fmt.Errorf("%s:%d: its quotes are not balanced: the server does not start with it", safetext.Escape(f.Path), n)
			}
			if len(words) == 0 {
				continue
			}
			if err := r.add(directive{words: words, file: f.Path, line: n, source: from}, depth); err != nil {
				return err
			}
		}
	}
	return nil
}

func absolute(p, dir string) string {
	if filepath.IsAbs(p) || dir == "" {
		return p
	}
	return filepath.Join(dir, p)
}

// readAll returns the lines of a configuration in the order in which they take effect, and the main
// file. Of two lines for one setting the later one is effective.
func (t Text) readAll() (lines []directive, main string, err error) {
	r := &reader{text: t, dir: t.Dir}
	args := t.Args
	main = t.Main
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		if main == "" {
			main = args[0]
		}
		args = args[1:]
	}
	if main != "" {
		if err := r.include(main, 0, inMain); err != nil {
			return nil, main, err
		}
	}
	for _, words := range splitArgs(args) {
		if err := r.add(directive{words: words, source: inArgs}, 0); err != nil {
			return nil, main, err
		}
	}
	return r.lines, main, nil
}

// splitArgs turns the options of a command line into lines, as the server does.
func splitArgs(args []string) [][]string {
	var lines [][]string
	bare := false // the last word is a name whose value must follow
	for _, a := range args {
		name, option := strings.CutPrefix(a, "--")
		if option && (!bare || strings.EqualFold(lines[len(lines)-1][0], "save")) {
			words, ok := splitWords(name)
			if !ok || len(words) == 0 {
				words = []string{name}
			}
			lines = append(lines, words)
			bare = len(words) == 1
			continue
		}
		bare = false
		if len(lines) > 0 {
			lines[len(lines)-1] = append(lines[len(lines)-1], a)
		}
	}
	return lines
}

// splitWords splits a line as the server does, and reports whether its quotes are balanced.
func splitWords(line string) (words []string, ok bool) {
	for i := 0; ; {
		for i < len(line) && isSpace(line[i]) {
			i++
		}
		if i == len(line) {
			return words, true
		}
		var word []byte
		quote := byte(0)
		for {
			if i == len(line) {
				if quote != 0 {
					return nil, false
				}
				break
			}
			c := line[i]
			i++
			switch {
			case quote == 0 && isSpace(c):
				i--
			case quote == 0 && (c == '"' || c == '\''):
				quote = c
				continue
			case quote != 0 && c == quote:
				if i < len(line) && !isSpace(line[i]) {
					return nil, false
				}
			case quote == '\'' && c == '\\' && i < len(line) && line[i] == '\'':
				word = append(word, '\'')
				i++
				continue
			case quote == '"' && c == '\\' && i < len(line):
				i, word = unescape(line, i, word)
				continue
			default:
				word = append(word, c)
				continue
			}
			break
		}
		words = append(words, string(word))
	}
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// unescape reads the character after a backslash at i within double quotes.
func unescape(line string, i int, word []byte) (int, []byte) {
	if line[i] == 'x' && i+2 < len(line) {
		if b, err := strconv.ParseUint(line[i+1:i+3], 16, 8); err == nil {
			return i + 3, append(word, byte(b))
		}
	}
	c := line[i]
	if j := strings.IndexByte("nrtba", c); j >= 0 {
		c = "\n\r\t\b\a"[j]
	}
	return i + 1, append(word, c)
}

// State is how a server starts.
type State uint8

const (
	Unknown  State = iota // it cannot be told from here
	Fenced                // fenced, after any number of CONFIG REWRITE and ACL SAVE
	Fragile               // fenced, until the server itself rewrites its files
	Unfenced              // unfenced
)

func (b State) String() string { return [...]string{"unknown", "fenced", "fragile", "unfenced"}[b] }

// Form is how the fence of a server's start is configured.
type Form uint8

const (
	FormUnknown     Form = iota // it cannot be seen
	FormNone                    // nowhere
	FormCommandLine             // options on the command line
	FormAnchors                 // an included file, and the same lines in the main file before the include
	FormInclude                 // an included file only
	FormMainFile                // the main file only
	FormFixedACL                // an ACL file that the server cannot write
	FormACLFile                 // an ACL file that the server can write
	FormUserLine                // a user line in the configuration
)

// String returns the form as in JSON and for people.
func (f Form) String() string {
	return [...]string{"unknown", "none", "command line", "anchors", "include without anchors", "main file",
		"read-only ACL file", "writable ACL file", "user line"}[f]
}

// Writable is whether a server can write one of its files.
type Writable uint8

const (
	WritableUnknown Writable = iota
	WritableYes
	WritableNo
)

// Text is everything that a server is started with.
type Text struct {
	// Args are the words of its command line after the program, where ArgsKnown.
	Args      []string
	ArgsKnown bool
	// Main is the path of its configuration file; empty: the one in Args, if any.
	Main string
	// Dir is the directory of its relative paths.
	Dir string
	// Read returns the files of a path, or of a pattern of paths, in the order in
	// which the server reads them.
	Read func(pattern string) ([]File, error)
	// Write are the names of the server's write commands, with [fences.ACL].
	Write []string
	// Writes returns whether the server can write the ACL file at a path; nil: not known.
	Writes func(path string) Writable
}

// BootFile is one file of a server's configuration.
type File struct{ Path, Text string }

// Verdict is the result of assessing a [Text].
type Verdict struct {
	Boot State
	Form Form
	// Because are the reasons, and Do what has to be done: sentences that are safe to print and
	// contain no secrets.
	Because, Do []string
}

func (v *Verdict) because(format string, args ...any) {
	v.Because = append(v.Because, fmt.Sprintf(format, args...))
}

func (v *Verdict) do(format string, args ...any) {
	v.Do = append(v.Do, fmt.Sprintf(format, args...))
}

// nameOf returns a file's name, safe to print.
func nameOf(main string) string {
	if main == "" {
		return "no file"
	}
	return safetext.Escape(main)
}

// Assess finds out whether a server that is started with these texts starts fenced, and whether
// that outlives everything that CONFIG REWRITE and ACL SAVE write into its files.
func Assess(t Text, method fences.Method) Verdict {
	var v Verdict
	switch method.Kind {
	case fences.ACL:
		v.assessUser(t, method.User)
	case fences.None:
		v.Boot, v.Form = Unfenced, FormNone
		v.because(`its fence is "none": nothing starts it fenced`)
	default:
		v.assessParams(t)
	}
	return v
}
