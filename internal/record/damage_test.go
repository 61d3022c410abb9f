package record

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"redlockctl/internal/lab/labtest"
	"redlockctl/monitor"
	"redlockctl/monitor/monitortest"
)

// A file that is removed while it is written, or that is damaged, is replaced by a new one, and that is
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

// A record whose disk is full says so, and goes on when there is room; what was written before
// is still there.
func TestAFullDisk(t *testing.T) {
	disk, room := labtest.FullDisk(t, true)
	path := filepath.Join(disk, "record", "record.db")
	r, told := recording(t, path)
	full := func() bool {
		return r.Err() != nil && (told("no space left on device") || told("disk is full"))
	}
	waitFor(t, "it says that the disk is full", full)
	room()
	waitFor(t, "it records", func() bool { return recorded(path) && r.Err() == nil })
	first := read(t, path).Cluster.First

	filler, err := os.Create(filepath.Join(disk, "more"))
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = filler.Write(make([]byte, 4096))
	}
	_ = filler.Close()
	waitFor(t, "it says so again", full)
	if err := os.Remove(filler.Name()); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "it goes on", func() bool { return r.Err() == nil })
	if again := read(t, path).Cluster.First; !again.Equal(first) {
		t.Errorf("the record begins at %s, not at %s", again, first)
	}
	if kept, err := filepath.Glob(path + ".damaged-*"); err != nil || len(kept) > 0 {
		t.Error(kept, err)
	}
}

// Damage to a file while it is written is found by the next check.
func TestDamageWhileItIsWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record.db")
	file, _ := recordOfAnHour(t, path)
	r, told := recording(t, path)
	waitFor(t, "it records", func() bool { return recorded(path) && r.Err() == nil })
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(bytes.Repeat([]byte{0xa5}, 16<<10), int64(len(file)/2)); err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	waitFor(t, "it records again", func() bool { return told("it is kept as record.db.damaged-") && recorded(path) && r.Err() == nil })
	if kept, err := filepath.Glob(path + ".damaged-*Z"); err != nil || len(kept) != 1 {
		t.Error(kept, err)
	}
}

// living is a source whose time goes on: each write writes something.
type living struct{ told }

func (l *living) Snapshot() *monitor.Snapshot {
	s := l.told.Snapshot()
	s.At = time.Now()
	return s
}

// recording starts a recorder that tries and checks often; said reports whether it told something.
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
	r.retry, r.check = 100*time.Millisecond, 200*time.Millisecond
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); r.Run(ctx, &living{told{s: *monitortest.Safe(time.Now())}}) }()
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
