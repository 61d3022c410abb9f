package docs

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// floors are the rooms of the house, the highest first; those of one floor do not know each other.
var floors = [][]string{{"cli"}, {"tui"}, {"internal"}, {"monitor", "restartguard"}, {"redlock"}, {"server"}, {"base"}}

// TestArrowsPointDown: each room imports only rooms below it. Tests, what only tests import, and
// the modules beside the program are free.
func TestArrowsPointDown(t *testing.T) {
	floor := map[string]int{}
	for i, rooms := range floors {
		for _, r := range rooms {
			floor[r] = i
		}
	}
	seen := 0
	for room := range floor {
		err := filepath.WalkDir(filepath.Join("..", room), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "../redlock/redlocktest/") {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.ImportsOnly)
			if err != nil {
				return err
			}
			for _, spec := range file.Imports {
				imported, err := strconv.Unquote(spec.Path.Value)
				if err != nil {
					return err
				}
				inside, ok := strings.CutPrefix(imported, "redlockctl/")
				if !ok {
					continue
				}
				to, _, _ := strings.Cut(inside, "/")
				if to == "deploy" { // texts only
					continue
				}
				if f, ok := floor[to]; !ok || to != room && f <= floor[room] {
					t.Errorf("%s imports %s", path, imported)
				}
				seen++
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if seen < 100 {
		t.Errorf("only %d imports seen", seen)
	}
}
