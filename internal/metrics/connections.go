package metrics

import "syscall"

// connections returns how many connections may be open at a time: at most a quarter of
// the file descriptors of this process.
func connections() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return mostConns
	}
	return int(min(mostConns, max(4, limit.Cur/4)))
}
