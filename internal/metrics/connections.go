package metrics

import "syscall"

// connections is how many connections may be open at a time: a quarter of the
// descriptors of this process at most.
func connections() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return mostConns
	}
	return int(min(mostConns, max(4, limit.Cur/4)))
}
