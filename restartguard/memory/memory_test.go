package memory

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"redlockctl/base/boottime"
	"redlockctl/base/private"
	"redlockctl/restartguard"
	"redlockctl/server/fences"
	"redlockctl/server/minreplicas"
)

const longD = 10 * time.Second

// waits is a node that waits for all of D.
func waits() Node {
	b := restartguard.Basis{Phase: restartguard.PhaseFenced, Incarnation: restartguard.Incarnation{RunID: "b", Role: "master"}}
	b.Duty = restartguard.Duty{Kind: restartguard.DutyWait, Deadline: time.Now().Add(longD), Holds: true}
	b.Delay = longD
	return Node{Name: "n1", Addr: "h:1", Fence: fences.Method{}.ID(), State: restartguard.State{Basis: b}}
}

func openMemory(t *testing.T, dir string) *Store {
	t.Helper()
	m, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

func TestMemoryOnDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "guard")
	path := filepath.Join(dir, memoryFile)
	m := openMemory(t, dir)
	if _, err := Read(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("an empty directory: %v", err)
	}
	now, boot := time.Now(), boottime.Now()
	n := waits()
	if _, err := m.Put(n, now, boot); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path string
		mode fs.FileMode
	}{{dir, 0o700}, {path, 0o600}} {
		if st, err := os.Stat(c.path); err != nil || st.Mode().Perm() != c.mode {
			t.Errorf("%s: %v, %v", c.path, st.Mode(), err)
		}
	}
	if files, _ := os.ReadDir(dir); len(files) != 3 { // and the lock, and the id
		t.Errorf("%v", files)
	}
	if _, err := Open(dir); !errors.Is(err, ErrInUse) {
		t.Fatalf("a second guard: %v", err)
	}
	if running, err := Running(dir); err != nil || !running {
		t.Errorf("a guard runs: %v, %v", running, err)
	}
	known, err := Read(dir)
	if err != nil || known["n1"].RunID != "b" || known["n1"].Wait <= 0 || known["n1"].Wait > longD {
		t.Fatalf("%+v, %v", known, err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{dir, filepath.Join(dir, "none")} {
		if running, err := Running(dir); err != nil || running {
			t.Errorf("%s: no guard runs: %v, %v", dir, running, err)
		}
	}
	t.Run("is read again", func(t *testing.T) {
		m := openMemory(t, dir)
		defer m.Close()
		got, ok := m.Past(longD).At("n1", "h:1", fences.Method{}.ID())
		if wait := time.Until(got.Basis.Deadline); !ok || m.Damaged() != nil || wait <= 0 || wait > longD {
			t.Fatalf("%v, %+v", ok, got)
		}
		if got.Basis.Owed() != minreplicas.FenceNone {
			t.Fatalf("owes a fence that is up: %+v", got)
		}
		if got, _ := m.Past(longD).At("n1", "h:1", fences.Method{Kind: fences.ACL, User: "locks"}.ID()); got.Basis.Owed() != minreplicas.FenceUp {
			t.Fatalf("believes that another method has closed it: %+v", got)
		}
		if _, ok := m.Past(longD).At("n1", "h:2", fences.Method{}.ID()); ok {
			t.Fatal("knows a node at another address")
		}
	})
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	damages := map[string]func() error{
		"cut off":     func() error { return os.WriteFile(path, good[:len(good)-10], 0o600) },
		"one bit off": func() error { b := append([]byte{}, good...); b[len(b)/2] ^= 1; return os.WriteFile(path, b, 0o600) },
		"empty":       func() error { return os.WriteFile(path, nil, 0o600) },
		"a link":      func() error { _ = os.Remove(path); return os.Symlink("/dev/zero", path) },
		"others' too": func() error {
			_ = os.Remove(path)
			return errors.Join(os.WriteFile(path, good, 0o600), os.Chmod(path, 0o666))
		},
	}
	for name, damage := range damages {
		t.Run("is as good as none if it is "+name, func(t *testing.T) {
			if err := damage(); err != nil {
				t.Fatal(err)
			}
			m := openMemory(t, dir)
			defer m.Close()
			if _, ok := m.Past(longD).At("n1", "h:1", fences.Method{}.ID()); ok || !errors.Is(m.Damaged(), ErrDamaged) {
				t.Fatalf("%v, %v", ok, m.Damaged())
			}
			if _, err := Read(dir); !errors.Is(err, ErrDamaged) {
				t.Fatalf("%v", err)
			}
		})
	}
	t.Run("in a directory that others may write is refused", func(t *testing.T) {
		open := filepath.Join(t.TempDir(), "state")
		if err := errors.Join(os.Mkdir(open, 0o700), os.Chmod(open, 0o777)); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(open); err == nil || !strings.Contains(err.Error(), "mode 0777") {
			t.Fatalf("error %v", err)
		}
	})
	t.Run("that cannot be written is removed, so that nothing old is believed", func(t *testing.T) {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(path, 0o700); err != nil { // no file replaces a directory
			t.Fatal(err)
		}
		m := openMemory(t, dir)
		defer m.Close()
		if _, err := m.Put(n, now, boot); err == nil {
			t.Fatal("no error")
		}
		if files, _ := os.ReadDir(dir); len(files) != 2 { // the lock and the id
			t.Fatalf("left: %v", files)
		}
		if _, err := m.Put(n, now, boot); err != nil {
			t.Fatal(err)
		}
	})
}

// TestStateDirectoryIsRemoved: under a guard that runs. What it writes next makes it again,
// as its start would have made it, and no other guard can be started there.
func TestStateDirectoryIsRemoved(t *testing.T) {
	n1, now, boot := waits(), time.Now(), boottime.Now()
	n2 := n1
	n2.Name = "n2"
	for _, c := range []struct {
		name   string
		remove func(dir string) error
		err    error
	}{
		{"with all in it", os.RemoveAll, nil},
		{"and its parent", func(dir string) error { return os.RemoveAll(filepath.Dir(dir)) }, nil},
		{"and made again by somebody", func(dir string) error { return errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o755)) }, nil},
		{"and made again for all to write", func(dir string) error {
			return errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o777), os.Chmod(dir, 0o777))
		}, private.ErrUnsafe},
		{"the lock alone", func(dir string) error { return os.Remove(filepath.Join(dir, lockFile)) }, nil},
		{"and another guard is in it", func(dir string) error {
			if err := os.RemoveAll(dir); err != nil {
				return err
			}
			other, err := Open(dir)
			if err == nil {
				t.Cleanup(func() { _ = other.Close() })
			}
			return err
		}, ErrInUse},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "parent", "guard")
			m := openMemory(t, dir)
			defer m.Close()
			for range 2 {
				if remade, err := m.Put(n1, now, boot); remade || err != nil || m.Removed() {
					t.Fatalf("before: %v, %v", remade, err)
				}
			}
			if err := c.remove(dir); err != nil || !m.Removed() {
				t.Fatalf("not noticed: %v", err)
			}
			remade, err := m.Put(n2, now, boot)
			if c.err != nil {
				if remade || !errors.Is(err, c.err) {
					t.Errorf("%v, %v; want %v", remade, err, c.err)
				}
				return
			}
			if !remade || err != nil {
				t.Fatalf("%v, %v", remade, err)
			}
			if remade, err := m.Put(n2, now, boot); remade || err != nil || m.Removed() {
				t.Errorf("again: %v, %v", remade, err)
			}
			info, err := os.Stat(dir)
			if err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("%v, %v", info, err)
			}
			if nodes, err := Read(dir); err != nil || len(nodes) != 2 {
				t.Errorf("remembered: %v, %v", nodes, err)
			}
			if _, err := Open(dir); !errors.Is(err, ErrInUse) {
				t.Errorf("a second guard: %v", err)
			}
			if id, noted, err := guardID(dir); id != m.ID() || !noted || err != nil {
				t.Errorf("the id is %s, not %s: %v", id, m.ID(), err)
			}
		})
	}
}

// Who only looks whether a guard runs does not keep one from starting.
func TestLookingAtTheLockIsNoGuard(t *testing.T) {
	dir := t.TempDir()
	openMemory(t, dir).Close()
	synctest.Test(t, func(t *testing.T) {
		look, err := os.Open(filepath.Join(dir, lockFile))
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.Flock(int(look.Fd()), unix.LOCK_SH|unix.LOCK_NB); err != nil {
			t.Fatal(err)
		}
		if running, err := Running(dir); err != nil || running {
			t.Errorf("another look is taken for a guard: %v, %v", running, err)
		}
		time.AfterFunc(lockAgain*3/2, func() { look.Close() })
		m, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		m.Close()
	})
}
