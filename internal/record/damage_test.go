package record

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"redlockctl/monitor/monitortest"
)

// A file that is removed while it is written, or that is damaged, is made anew, and that is
// told. The damaged one is kept.
func TestAFileThatIsGoneOrDamagedIsMadeAnew(t *testing.T) {
	for name, c := range map[string]struct {
		harm  func(path string) error
		tells string
	}{
		"removed":                  {func(path string) error { return os.Remove(path) }, "removed or replaced"},
		"the directory is removed": {func(path string) error { return os.RemoveAll(filepath.Dir(path)) }, "removed or replaced"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "dir", "record.db")
			r, told := recording(t, path)
			waitFor(t, "it records", func() bool { return recorded(path) })
			if err := c.harm(path); err != nil {
				t.Fatal(err)
			}
			waitFor(t, "it records again", func() bool { return told(c.tells) && recorded(path) && r.Err() == nil })
		})
	}
	t.Run("damaged", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "record.db")
		if err := os.WriteFile(path, []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
			t.Fatal(err)
		}
		r, told := recording(t, path)
		waitFor(t, "it records", func() bool { return told("it is kept as record.db.damaged-") && recorded(path) && r.Err() == nil })
		if kept, err := filepath.Glob(path + ".damaged-*"); err != nil || len(kept) == 0 {
			t.Error(kept, err)
		}
	})
}

// recording starts a recorder; said reports whether it told something.
func recording(t *testing.T, path string) (r *Recorder, said func(string) bool) {
	var mu sync.Mutex
	var errs []string
	r = New(Options{Path: path, By: "test", Tell: func(err error) {
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			errs = append(errs, err.Error())
		}
	}})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); r.Run(ctx, &told{s: *monitortest.Safe(time.Now())}) }()
	t.Cleanup(func() { stop(); <-done })
	t.Cleanup(func() {
		if t.Failed() {
			there, _ := filepath.Glob(path + "*")
			t.Log(errs, r.Err(), there)
		}
	})
	return r, func(part string) bool {
		mu.Lock()
		defer mu.Unlock()
		return slices.ContainsFunc(errs, func(e string) bool { return strings.Contains(e, part) })
	}
}

func recorded(path string) bool {
	r, err := OpenReader(path, "")
	if err != nil {
		return false
	}
	_ = r.Close()
	return true
}

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not: " + what)
		}
	}
}
