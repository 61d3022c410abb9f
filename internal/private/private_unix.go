//go:build unix

package private

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// keeps is nil: any directory can keep others out, by its mode.
func keeps(string) error { return nil }

// open opens a file, no symbolic link, and does not wait for the other end of a pipe.
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

// Owner is the user and the group to whom a file belongs; false where that is not known.
func Owner(info fs.FileInfo) (uid, gid uint32, ok bool) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Uid, st.Gid, true
	}
	return 0, 0, false
}

// TryLock takes the lock of an open file, which other processes may hold as well if all
// share it, and keeps it until [Unlock], or until the last process that has inherited
// the file has closed it. It does not wait: it fails with [ErrLocked].
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

// Unlock gives the lock of a file back.
func Unlock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }

// SyncDir makes it durable that files of a directory were made, renamed or removed.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
