package record

import (
	"database/sql"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A recorder that cannot record says why, and so does what looks at its file.
func TestARecordThatFailsSaysWhy(t *testing.T) {
	for name, c := range map[string]struct {
		before func(t *testing.T, path string)
		tells  string
	}{
		"a symbolic link": {func(t *testing.T, path string) {
			if err := os.Symlink("/dev/null", path); err != nil {
				t.Fatal(err)
			}
		}, "symbolic link"},
		"a directory that others can write": {func(t *testing.T, path string) {
			if err := os.Chmod(filepath.Dir(path), 0o777); err != nil {
				t.Fatal(err)
			}
		}, "others can write"},
		"no directory": {func(t *testing.T, path string) {
			dir := filepath.Dir(path)
			if err := os.Remove(dir); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(dir, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, "not a directory"},
		"locked": {func(t *testing.T, path string) {
			db, err := sql.Open("sqlite", source(path, url.Values{}))
			if err != nil {
				t.Fatal(err)
			}
			db.SetMaxOpenConns(1)
			t.Cleanup(func() { _ = db.Close() })
			if _, err := db.Exec(`BEGIN EXCLUSIVE; CREATE TABLE other (x)`); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, 0o600); err != nil {
				t.Fatal(err)
			}
		}, "locked"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "record")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, "c.db")
			c.before(t, path)
			r, told := recording(t, path)
			waitFor(t, "it says why", func() bool { return told(c.tells) && r.Problem() != nil })
			if _, wrote := r.Lag(); wrote {
				t.Error("it has written")
			}
			if err := Condition(path, "", time.Now()); err == nil {
				t.Error("the file looks well")
			}
		})
	}
}

// The condition of a file that is written is good, until nothing is written any more.
func TestTheConditionOfAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record.db")
	r, _ := recording(t, path)
	waitFor(t, "it records", func() bool { _, wrote := r.Lag(); return wrote })
	if err := Condition(path, "", time.Now()); err != nil {
		t.Error(err)
	}
	if err := Condition(path, "", time.Now().Add(2*staleAfter)); err == nil || !strings.Contains(err.Error(), "nothing was written to") {
		t.Error(err)
	}
}
