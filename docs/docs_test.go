// Package docs holds the documents to what a reader is promised: the words of the
// field, pages that are read to the end, and no string that changes unseen.
package docs

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

var update = flag.Bool("update", false, "write testdata/strings.txt anew")

// oddWords are words that make people stop, and what to say instead. They are
// looked for in documents and in strings that people see.
var oddWords = []struct{ odd, instead string }{
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

// visibleStrings lists every string that a person can see.
const visibleStrings = "testdata/strings.txt"

// pages calls do for each file of the repository with one of the endings.
func pages(t *testing.T, do func(path string, text []byte), endings ...string) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && (name == "testdata" || name == ".git" || name == "node_modules") {
			return filepath.SkipDir
		}
		if !slices.Contains(endings, filepath.Ext(path)) || d.IsDir() || path == "../CHANGELOG.md" || path == "docs_test.go" || strings.HasSuffix(path, "/docs/docs_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err == nil {
			do(path, text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestWordsOfTheField(t *testing.T) {
	strings, err := os.ReadFile(visibleStrings)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range oddWords {
		re := regexp.MustCompile(`(?i)\b` + w.odd + `\b`)
		check := func(path string, text []byte) {
			for i, line := range bytes.Split(text, []byte("\n")) {
				if m := re.Find(line); m != nil && !bytes.Contains(line, []byte("--json-schema v1")) {
					t.Errorf("%s:%d: «%s»: say %s", path, i+1, m, w.instead)
				}
			}
		}
		check(visibleStrings, strings)
		pages(t, check, ".md", ".toml", ".yaml", ".yml")
	}
}

// longPages are reference and proof, which are looked things up in: they may be
// longer than a page that is read from its beginning to its end.
var longPages = []string{"columns.md", "findings.md", "forms.md", "guard-proof.md", "json.md", "measurements.md"}

func TestPagesAreReadToTheEnd(t *testing.T) {
	const most = 1500
	pages(t, func(path string, text []byte) {
		if n := len(bytes.Fields(text)); n > most && !slices.Contains(longPages, filepath.Base(path)) {
			t.Errorf("%s has %d words, more than %d: split it", path, n, most)
		}
	}, ".md")
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(readme, []byte("\n")); n > 120 {
		t.Errorf("README.md has %d lines, more than 120", n)
	}
}

// TestAnchorsLeadSomewhere: a link into a page leads to a heading of it.
func TestAnchorsLeadSomewhere(t *testing.T) {
	headings := map[string]map[string]bool{}
	pages(t, func(path string, text []byte) {
		headings[path] = map[string]bool{}
		for line := range strings.Lines(string(text)) {
			if title := strings.TrimLeft(line, "#"); title != line && strings.HasPrefix(title, " ") {
				headings[path][anchor(title)] = true
			}
		}
	}, ".md")
	link := regexp.MustCompile(`\]\(([^)#\s:]*)#([^)\s]+)\)`)
	pages(t, func(path string, text []byte) {
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			to := path
			if m[1] != "" {
				to = filepath.Join(filepath.Dir(path), m[1])
			}
			if !headings[to][m[2]] {
				t.Errorf("%s: %s has no heading «%s»", path, to, m[2])
			}
		}
	}, ".md")
}

// anchor is how a heading is linked to.
func anchor(title string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return unicode.ToLower(r)
		case r == ' ':
			return '-'
		}
		return -1
	}, strings.TrimSpace(title))
}

// TestStringsAreReviewed lists every string that a person can see, so that a change
// of words is seen as such.
func TestStringsAreReviewed(t *testing.T) {
	seen := map[string][]string{} // by package
	pages(t, func(path string, text []byte) {
		dir := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), "../")
		if strings.HasSuffix(path, "_test.go") || !visible(dir) {
			return
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ImportSpec, *ast.Field:
				return false // paths and struct tags
			case *ast.BasicLit:
				if s, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING && isSentence(s) {
					seen[dir] = append(seen[dir], s)
				}
			}
			return true
		})
	}, ".go")
	var out strings.Builder
	dirs := make([]string, 0, len(seen))
	for dir := range seen {
		dirs = append(dirs, dir)
	}
	slices.Sort(dirs)
	for _, dir := range dirs {
		fmt.Fprintf(&out, "# %s\n", dir)
		slices.Sort(seen[dir])
		for _, s := range slices.Compact(seen[dir]) {
			fmt.Fprintf(&out, "%s\n", strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n    "))
		}
		out.WriteByte('\n')
	}
	if *update {
		if err := os.WriteFile(visibleStrings, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(visibleStrings)
	if err != nil {
		t.Fatal(err)
	}
	if out.String() != string(want) {
		t.Errorf("visible strings have changed: run «go test ./docs -update», and read the difference")
	}
}

// visible reports whether what a package says reaches people.
func visible(dir string) bool {
	for _, hidden := range []string{"bench", "docs", "internal/campaign", "internal/soak", "internal/lab/labtest", "internal/lockform/make", "internal/sim", "internal/e2e"} {
		if dir == hidden || strings.HasPrefix(dir, hidden+"/") {
			return false
		}
	}
	return true
}

// isSentence reports whether a string looks like words for people: two words at
// least, of letters.
func isSentence(s string) bool {
	words := 0
	for f := range strings.FieldsSeq(s) {
		letters := strings.Count(strings.Map(func(r rune) rune {
			if unicode.IsLetter(r) {
				return 'a'
			}
			return -1
		}, f), "a")
		if letters > 1 {
			words++
		}
	}
	return words >= 2
}
