package tui

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// docs/filters.md describes the language of filters.
func TestFilterIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/filters.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := strings.ReplaceAll(string(text), `\|`, "|")
	for _, f := range filterHelp() {
		for term := range strings.SplitSeq(f[0], "  ") {
			if !strings.HasPrefix(f[0], "of ") && !strings.Contains(doc, "`"+term) {
				t.Errorf("docs/filters.md does not explain the filter %s", term)
			}
		}
	}
}

// A letter has one meaning on all pages.
func TestLettersHaveOneMeaning(t *testing.T) {
	means := map[string]string{}
	for _, b := range newKeyMap(&model{}) {
		for _, k := range b.Keys() {
			if utf8.RuneCountInString(k) > 1 {
				continue
			}
			if before, ok := means[k]; ok && before != b.Help().Desc {
				t.Errorf("%s is %q and %q", k, before, b.Help().Desc)
			}
			means[k] = b.Help().Desc
		}
	}
	if len(means) < 40 {
		t.Errorf("only %d letters", len(means))
	}
}

// The keys in the run book exist.
func TestKeysOfTheRunBookExist(t *testing.T) {
	known := map[string]bool{}
	for _, b := range newKeyMap(&model{}) {
		for _, k := range b.Keys() {
			known[k] = true
		}
	}
	n := 0
	for _, doc := range []string{"runbook", "first-five-minutes", "columns"} {
		text, err := os.ReadFile("../docs/" + doc + ".md")
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile("`([a-zA-Z0-9:/]|tab|enter|space|esc)` (?:on|filters|takes|marks|goes|looks|is|overview|guard)").FindAllStringSubmatch(string(text), -1) {
			n++
			if !known[m[1]] {
				t.Errorf("docs/%s.md: there is no key %s", doc, m[1])
			}
		}
	}
	if n < 8 {
		t.Errorf("only %d keys were found", n)
	}
}
