package labtest

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// FullDisk returns a directory on a full disk of its own: no room for a byte, and if
// files is 0 not for a file or directory either. room makes room. It skips the test
// without root.
func FullDisk(t testing.TB, files bool) (dir string, room func()) {
	t.Helper()
	dir = t.TempDir()
	options := "size=4k,nr_inodes=100"
	if !files {
		options = "size=4k,nr_inodes=2"
	}
	if err := syscall.Mount("none", dir, "tmpfs", 0, options+",mode=0755"); errors.Is(err, syscall.EPERM) {
		t.Skip("only root may mount a disk of its own")
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	if err := os.WriteFile(filepath.Join(dir, "filler"), make([]byte, 4<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, func() {
		t.Helper()
		if err := syscall.Mount("none", dir, "tmpfs", syscall.MS_REMOUNT, "size=1m,nr_inodes=100"); err != nil {
			t.Fatal(err)
		}
	}
}
