// Package private opens and replaces files that nobody else may prepare or change, such as
// a guard's state and the audit log. Somebody who can put a symbolic link or a file in such
// a place could have another file overwritten, or make a node rejoin too early.
//
// A directory may be a symbolic link, as systemd's DynamicUser makes one; the file itself
// may not.
package private

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// ErrUnsafe is returned for a file or directory that others may have prepared or
// can change.
var ErrUnsafe = errors.New("not safe from other users")

// ErrLocked is returned by [TryLock] when another process has the lock.
var ErrLocked = errors.New("locked")

// Shared says who besides its owner may write a file or a directory.
type Shared fs.FileMode

const (
	Nobody Shared = 0o022 // neither the group nor others
	Group  Shared = 0o002 // the group, but no others
)

// Dir creates a missing directory with mode 0700. It returns [ErrUnsafe] if the directory
// belongs to a user other than this one or root, or if more users than shared may write it.
// With [Group] the sticky bit makes such a directory acceptable: others cannot replace
// files in it.
func Dir(path string, shared Shared) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s: %w", path, syscall.ENOTDIR)
	}
	if shared == Group && info.Mode()&fs.ModeSticky != 0 {
		return nil
	}
	if err := checkMode(path, info, shared); err != nil || shared == Group && info.Mode().Perm()&0o020 != 0 {
		return err
	}
	return checkOwner(path, info)
}

// Open opens a regular file, and creates it with this mode if flags have [os.O_CREATE]. It
// does not follow a symbolic link and does not block on a named pipe. It returns
// [ErrUnsafe] if more users than shared may write the file, or if the file is opened for
// writing and belongs to a user other than this one or root. With [Group], a file that its
// group may write can have any owner.
func Open(path string, flags int, mode fs.FileMode, shared Shared) (*os.File, error) {
	f, err := open(path, flags, mode)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not an ordinary file", path)
	}
	if err == nil {
		err = checkMode(path, info, shared)
	}
	if err == nil && flags&(os.O_WRONLY|os.O_RDWR) != 0 && !(shared == Group && info.Mode().Perm()&0o020 != 0) {
		err = checkOwner(path, info)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

func errLink(path string) error {
	return fmt.Errorf("%s is a symbolic link, name the file itself: %w", path, ErrUnsafe)
}

// Lock locks an open file like [TryLock], but waits up to wait for another process. Then it
// fails with [ErrLocked].
func Lock(f *os.File, share bool, wait time.Duration) error {
	for deadline := time.Now().Add(wait); ; time.Sleep(2 * time.Millisecond) {
		err := TryLock(f, share)
		if !errors.Is(err, ErrLocked) || time.Now().After(deadline) {
			return err
		}
	}
}

// temporary is the suffix of the files that [Replace] writes.
const temporary = ".tmp"

// Replace replaces a whole file, with mode 0600. At any moment, also after a power failure,
// there is either the old or the new content.
func Replace(path string, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*"+temporary)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// Sweep removes temporary files that killed processes left in [Replace]. No other process
// may replace path at the same time.
func Sweep(path string) {
	dir, begins := filepath.Dir(path), filepath.Base(path)+"."
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if rest, ok := strings.CutPrefix(e.Name(), begins); ok && strings.HasSuffix(rest, temporary) {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

// open opens a file. It refuses a symbolic link and does not block on a named pipe.
func open(path string, flags int, mode fs.FileMode) (*os.File, error) {
	f, err := os.OpenFile(path, flags|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, mode)
	if errors.Is(err, syscall.ELOOP) {
		return nil, errLink(path)
	}
	return f, err
}

func checkMode(path string, info fs.FileInfo, shared Shared) error {
	if perm := info.Mode().Perm(); perm&fs.FileMode(shared) != 0 {
		return fmt.Errorf("%s has mode %04o, so that others can write it (chmod %04o): %w", path, perm, perm&^fs.FileMode(shared), ErrUnsafe)
	}
	return nil
}

func checkOwner(path string, info fs.FileInfo) error {
	if uid, _, ok := Owner(info); ok && int(uid) != os.Geteuid() && uid != 0 {
		return fmt.Errorf("%s belongs to user %d, not to %d or root: %w", path, uid, os.Geteuid(), ErrUnsafe)
	}
	return nil
}

// Owner returns the owner and group of a file; ok is false if they are unknown.
func Owner(info fs.FileInfo) (uid, gid uint32, ok bool) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Uid, st.Gid, true
	}
	return 0, 0, false
}

// TryLock locks an open file until [Unlock], or until the last process that inherited it
// has closed it. With share, other processes may hold a shared lock too. It does not wait:
// it fails with [ErrLocked].
func TryLock(f *os.File, share bool) error {
	how := syscall.LOCK_EX | syscall.LOCK_NB
	if share {
		how = syscall.LOCK_SH | syscall.LOCK_NB
	}
	for {
		switch err := syscall.Flock(int(f.Fd()), how); err {
		case syscall.EINTR:
		case syscall.EWOULDBLOCK:
			return ErrLocked
		default:
			return err
		}
	}
}

// Unlock unlocks a file.
func Unlock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }

// SyncDir makes created, renamed and removed entries of a directory durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
