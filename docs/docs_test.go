// Package docs tests what a reader is promised: plain words, short pages and links
// that work.
package docs

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

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
		if !slices.Contains(endings, filepath.Ext(path)) || d.IsDir() || path == "../CHANGELOG.md" || path == "../docs/words_test.go" {
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

// longPages are reference and proof, in which readers look things up: they may be
// longer than a page that is read from its beginning to its end.
var longPages = []string{"columns.md", "commands.md", "findings.md", "forms.md", "guard-proof.md", "json.md", "measurements.md"}

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
