package private

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
)

// keeps says why others may prepare or change what is in a directory. Modes tell nothing
// here: it must lie in what Windows keeps for this user, and what it is a link to too.
func keeps(dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	places := []string{dir}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		places = append(places, real)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, place := range places {
		if !ours(place) {
			return fmt.Errorf("%s is not below the AppData of your profile, where others cannot write: %w", place, ErrUnsafe)
		}
	}
	return nil
}

// ours reports whether a path lies in what Windows keeps for this user's programs.
func ours(path string) bool {
	for _, base := range []func() (string, error){os.UserCacheDir, os.UserConfigDir} {
		dir, err := base()
		if err != nil || !filepath.IsAbs(dir) {
			continue
		}
		if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
			return true
		}
		if dir, err = filepath.EvalSymlinks(dir); err != nil {
			continue
		}
		if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
			return true
		}
	}
	return false
}

// open opens a file where others cannot write. A symbolic link is opened itself, and
// refused.
func open(path string, flags int, mode fs.FileMode) (*os.File, error) {
	if err := keeps(filepath.Dir(path)); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, flags|windows.FILE_FLAG_OPEN_REPARSE_POINT, mode)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err == nil && info.Mode()&(fs.ModeSymlink|fs.ModeIrregular) != 0 {
		_ = f.Close()
		return nil, errLink(path)
	}
	return f, nil
}

// checkMode is nil: see keeps.
func checkMode(string, fs.FileInfo, Shared) error { return nil }

// checkOwner is nil: see keeps.
func checkOwner(string, fs.FileInfo) error { return nil }

// Owner is not known here.
func Owner(fs.FileInfo) (uid, gid uint32, ok bool) { return 0, 0, false }

// lockAt is the byte that is locked. It lies behind the end of any file: unlike the locks
// of Unix these keep others from reading and writing what they lie on.
func lockAt() *windows.Overlapped { return &windows.Overlapped{OffsetHigh: 0x7fffffff} }

// TryLock takes the lock of an open file, which other processes may hold as well if all
// share it, and keeps it until [Unlock], or until the file is closed. It does not wait:
// it fails with [ErrLocked].
func TryLock(f *os.File, share bool) error {
	how := uint32(windows.LOCKFILE_FAIL_IMMEDIATELY)
	if !share {
		how |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	err := windows.LockFileEx(windows.Handle(f.Fd()), how, 0, 1, 0, lockAt())
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return ErrLocked
	}
	return err
}

// Unlock gives the lock of a file back.
func Unlock(f *os.File) error {
	return windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, lockAt())
}

// SyncDir has nothing to do: a directory cannot be synced here, and NTFS journals names.
func SyncDir(string) error { return nil }
