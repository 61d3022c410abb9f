package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// replaced are words that the vocabulary replaces. No document and no string that
// people see may use them.
var replaced = []struct{ odd, instead string }{
	{`c[ao]me up (closed|open)`, "started fenced, started unfenced"},
	{`comes up (closed|open)`, "starts fenced, starts unfenced"},
	{`tak(e|es|en|ing|ow) (it |them )?away`, "force-release, revoke"},
	{`takeaway`, "force-release, revoke"},
	{`immortal`, "no TTL"},
	{`stands? in a line`, "queues"},
	{`astray`, "in flight"},
	{`the tilt`, "clock discontinuity"},
	{`lift(s|ed|ing)?`, "rejoin, remove the fence"},
	{`(node|master|it) (is|was|has been) closed`, "fenced"},
	{`its (new|next|last) life`, "incarnation"},
	{`held (closed|by hand)`, "cordoned"},
	{`before its time`, "early"},
	{`mend(s|ed|ing)?`, "fix"},
	{`voting nodes?`, "serving"},
}

// most is how many phrases of testdata/odd.txt each kind of text may have per 1,000
// lines. Never raise it.
const most = 5

// line is one line of text that people read.
type line struct {
	path   string
	number int
	text   string
}

func TestReplacedWords(t *testing.T) {
	lines := readLines(t)
	for _, w := range replaced {
		re := regexp.MustCompile(`(?i)\b` + w.odd + `\b`)
		for _, l := range append(lines["documents"], lines["visible strings"]...) {
			if m := re.FindString(l.text); m != "" {
				t.Errorf("%s:%d: «%s»: say %s", l.path, l.number, m, w.instead)
			}
		}
	}
}

// TestOddPhrases: phrases that make a reader stop stay rare. The list is a
// thermometer: read the sentence and rewrite it, do not only avoid the pattern.
func TestOddPhrases(t *testing.T) {
	list, err := os.ReadFile("testdata/odd.txt")
	if err != nil {
		t.Fatal(err)
	}
	odd := regexp.MustCompile(`(?i)(` + strings.Join(strings.Split(strings.TrimSpace(string(list)), "\n"), "|") + `)`)
	for kind, lines := range readLines(t) {
		var found strings.Builder
		hits := 0
		for _, l := range lines {
			if m := odd.FindString(l.text); m != "" {
				hits++
				fmt.Fprintf(&found, "%s:%d: «%s»: %s\n", l.path, l.number, m, strings.TrimSpace(l.text))
			}
		}
		rate := 1000 * float64(hits) / float64(len(lines))
		t.Logf("%s: %d odd phrases in %d lines, %.1f per 1,000", kind, hits, len(lines), rate)
		if rate > most {
			t.Errorf("%s: more than %d odd phrases per 1,000 lines:\n%s", kind, most, found.String())
		}
	}
}

// readLines returns the lines of the repository that people read, by kind.
func readLines(t *testing.T) map[string][]line {
	t.Helper()
	all := map[string][]line{}
	pages(t, func(path string, text []byte) {
		number := 0
		for s := range strings.Lines(string(text)) {
			number++
			all["documents"] = append(all["documents"], line{path, number, s})
		}
	}, ".md", ".toml", ".yaml", ".yml")
	pages(t, func(path string, text []byte) {
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		add := func(kind string, pos token.Pos, text string) {
			number := set.Position(pos).Line
			for s := range strings.Lines(text) {
				all[kind] = append(all[kind], line{path, number, s})
				number++
			}
		}
		kind := "comments"
		if strings.HasSuffix(path, "_test.go") {
			kind = "comments in tests"
		}
		for _, group := range file.Comments {
			for _, c := range group.List {
				if !strings.HasPrefix(c.Text, "//go:") {
					add(kind, c.Pos(), c.Text)
				}
			}
		}
		if !strings.HasSuffix(path, "_test.go") && visible(path) {
			sentences(file, func(pos token.Pos, text string) { add("visible strings", pos, text) })
		}
	}, ".go")
	return all
}

// sentences calls do for each string literal of a file that looks like words for
// people.
func sentences(file *ast.File, do func(pos token.Pos, text string)) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec, *ast.Field:
			return false // paths and struct tags
		case *ast.BasicLit:
			if s, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING && isSentence(s) {
				do(n.Pos(), s)
			}
		}
		return true
	})
}

// in reports whether a file is in a folder of the repository, or below it.
func in(path, folder string) bool {
	return strings.HasPrefix(filepath.ToSlash(path), "../"+folder+"/")
}

// visible reports whether people see the strings of a file.
func visible(path string) bool {
	for _, hidden := range []string{"docs", "proof", "internal/lab/labtest", "internal/e2e"} {
		if in(path, hidden) {
			return false
		}
	}
	return true
}

// isSentence reports whether a string has at least two words of letters.
func isSentence(s string) bool {
	words := 0
	for f := range strings.FieldsSeq(s) {
		letters := 0
		for _, r := range f {
			if unicode.IsLetter(r) {
				letters++
			}
		}
		if letters > 1 {
			words++
		}
	}
	return words >= 2
}
