package docs

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// floors are the rooms of the house, the highest first; those of one floor do not know each other.
var floors = [][]string{{"cli"}, {"tui"}, {"internal"}, {"monitor", "restartguard"}, {"redlock"}, {"server"}, {"base"}}

// inGuard are the rooms of restartguard, likewise; "" is the pure step machine.
var inGuard = [][]string{{"watch", "oneshot", "boot"}, {"wire", "memory"}, {"fence"}, {""}}

// TestTheGuardDecidesWithoutIO: the rooms of restartguard import only those below them, and its
// step machine imports nothing that talks to servers.
func TestTheGuardDecidesWithoutIO(t *testing.T) {
	floor := map[string]int{}
	for i, rooms := range inGuard {
		for _, r := range rooms {
			floor[r] = i
		}
	}
	seen := 0
	for room, at := range floor {
		files, err := filepath.Glob(filepath.Join("../restartguard", room, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			for _, imported := range importsOf(t, path) {
				to, inside := strings.CutPrefix(imported, "redlockctl/restartguard")
				to = strings.TrimPrefix(to, "/")
				if f, ok := floor[to]; inside && (!ok || to != room && f <= at) || room == "" && (imported == "net" || imported == "os" || strings.Contains(imported, "go-redis")) {
					t.Errorf("%s imports %s", path, imported)
				}
				seen++
			}
		}
	}
	if seen < 100 {
		t.Errorf("only %d imports seen", seen)
	}
}

// importsOf returns the paths that a file imports.
func importsOf(t *testing.T, path string) (paths []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, imported)
	}
	return paths
}

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
			for _, imported := range importsOf(t, path) {
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
