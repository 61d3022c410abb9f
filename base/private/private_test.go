package private

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestOpenRefusesWhatOthersMayHavePrepared(t *testing.T) {
	write := func(t *testing.T, path string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name    string
		shared  Shared
		prepare func(t *testing.T, path string)
		says    string // "": it is opened
	}{
		{"a file of ours", Nobody, func(t *testing.T, path string) { write(t, path, 0o600) }, ""},
		{"no file yet", Nobody, func(*testing.T, string) {}, ""},
		{"a link to another file", Nobody, func(t *testing.T, path string) {
			write(t, path+".target", 0o600)
			if err := os.Symlink(path+".target", path); err != nil {
				t.Fatal(err)
			}
		}, "symbolic link"},
		{"a link to nothing", Nobody, func(t *testing.T, path string) {
			if err := os.Symlink(path+".target", path); err != nil {
				t.Fatal(err)
			}
		}, "symbolic link"},
		{"one that all may write", Nobody, func(t *testing.T, path string) { write(t, path, 0o666) }, "mode 0666"},
		{"one that the group may write", Nobody, func(t *testing.T, path string) { write(t, path, 0o660) }, "mode 0660"},
		{"one that is shared with a group", Group, func(t *testing.T, path string) { write(t, path, 0o660) }, ""},
		{"a shared one that all may write", Group, func(t *testing.T, path string) { write(t, path, 0o662) }, "mode 0662"},
		{"a pipe", Nobody, func(t *testing.T, path string) {
			if err := syscall.Mkfifo(path, 0o600); err != nil {
				t.Fatal(err)
			}
		}, "not an ordinary file"},
		{"another user's", Nobody, func(t *testing.T, path string) {
			write(t, path, 0o600)
			chown(t, path)
		}, "belongs to user"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "file")
			tt.prepare(t, path)
			f, err := Open(path, os.O_RDWR|os.O_CREATE, 0o600, tt.shared)
			if err == nil {
				f.Close()
			}
			if tt.says == "" && err != nil || tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says)) {
				t.Fatalf("error %v; want %q", err, tt.says)
			}
			if b, err := os.ReadFile(path + ".target"); err == nil && string(b) != "precious" {
				t.Errorf("what the link points at holds %q", b)
			}
		})
	}
}

// chown changes the owner of a file; the test must run as root.
func chown(t *testing.T, path string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file away")
	}
	if err := os.Lchown(path, 12345, 12345); err != nil {
		t.Fatal(err)
	}
}

func TestDir(t *testing.T) {
	for _, tt := range []struct {
		name   string
		mode   os.FileMode
		away   bool // owned by another user
		shared Shared
		ok     bool
	}{
		{"ours alone", 0o700, false, Nobody, true},
		{"that others may read", 0o755, false, Nobody, true},
		{"that all may write", 0o777, false, Nobody, false},
		{"that the group may write", 0o770, false, Nobody, false},
		{"shared with the group", 0o770, false, Group, true},
		{"shared, that all may write", 0o777, false, Group, false},
		{"shared, sticky", 0o777 | os.ModeSticky, false, Group, true},
		{"another user's", 0o755, true, Nobody, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(dir, tt.mode); err != nil {
				t.Fatal(err)
			}
			if tt.away {
				chown(t, dir)
			}
			if err := Dir(dir, tt.shared); (err == nil) != tt.ok || err != nil && !errors.Is(err, ErrUnsafe) {
				t.Errorf("error %v", err)
			}
		})
	}
	// systemd's DynamicUser makes such a link.
	dir, link := t.TempDir(), filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if err := Dir(link, Nobody); err != nil {
		t.Errorf("by a link: %v", err)
	}
}

func TestReplaceAndSweep(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "guard[1].json")
	for _, text := range []string{"one", "two"} {
		if err := Replace(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(path); err != nil || string(b) != text {
			t.Fatalf("it holds %q (%v)", b, err)
		}
	}
	killed, other := path+".123.tmp", filepath.Join(dir, "guard1.json.9.tmp")
	for _, p := range []string{killed, other} {
		if err := os.WriteFile(p, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	Sweep(path)
	if _, err := os.Stat(killed); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what a killed process left is there: %v", err)
	}
	for _, p := range []string{path, other} {
		if _, err := os.Stat(p); err != nil {
			t.Error(err)
		}
	}
}
