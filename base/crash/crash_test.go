package crash

import (
	"bufio"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A panic in a goroutine runs the function set by Before, and ends the process as usual,
// even if that function hangs.
func TestPanic(t *testing.T) {
	if how := os.Getenv("CRASH"); how != "" {
		defer Before(func() { fmt.Fprintln(os.Stderr, "taken back") })()
		Before(func() {
			fmt.Fprintln(os.Stderr, "before")
			if how == "hangs" {
				select {}
			}
		})
		Go(func() {})
		Go(func() { panic("planted") })
		time.Sleep(time.Minute)
	}
	for _, how := range []string{"at once", "hangs"} {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestPanic$")
		cmd.Env = append(os.Environ(), "CRASH="+how)
		out, _ := cmd.CombinedOutput()
		first, _, _ := bufio.NewReader(strings.NewReader(string(out))).ReadLine()
		if code := cmd.ProcessState.ExitCode(); code != 2 || string(first) != "before" || !strings.Contains(string(out), "panic: planted\n") || strings.Contains(string(out), "taken back") {
			t.Errorf("%s: exit code %d\n%s", how, code, out)
		}
	}
}

func TestTakenBack(t *testing.T) {
	Before(func() {})()
	if before.Load() != nil {
		t.Error("it is still there")
	}
	took := Before(func() {})
	later := Before(func() {})
	took() // of the previous function
	if before.Load() == nil {
		t.Error("the later one is gone")
	}
	later()
}

// Every goroutine of the program is started by this package.
func TestEveryGoroutineGivesTheTerminalBack(t *testing.T) {
	// These do not use a terminal.
	other := []string{"docs", "deploy", "scripts", "base/crash", "proof", "internal/lab/labtest", "redlock/redlocktest"}
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (slices.Contains(other, filepath.ToSlash(name)) || strings.HasPrefix(d.Name(), ".") && name != "."):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%s: use crash.Go", files.Position(n.Pos()))
			case *ast.CallExpr:
				if of, ok := n.Fun.(*ast.SelectorExpr); ok && of.Sel.Name == "Go" && len(n.Args) == 1 && !isOurs(of) {
					if safe, ok := n.Args[0].(*ast.CallExpr); !ok || !isOurs(safe.Fun) {
						t.Errorf("%s: use crash.Safe", files.Position(n.Pos()))
					}
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// isOurs reports whether a function belongs to this package.
func isOurs(f ast.Expr) bool {
	of, ok := f.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	name, ok := of.X.(*ast.Ident)
	return ok && name.Name == "crash"
}
