package run

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// program returns the path of this program, which works even if its file was replaced.
func program() (string, error) { return "/proc/self/exe", nil }

// adopts reports whether orphaned processes become the reaper's children.
const adopts = true

// adopt makes every orphaned descendant a child of this process, even one in another group
// or session.
func adopt() {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	_ = os.WriteFile("/proc/self/comm", []byte(reaperName), 0) // it would be "exe"
}

// children returns the pids of this process's children.
func children() (pids []int) {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer proc.Close()
	names, _ := proc.Readdirnames(-1)
	self := []byte(strconv.Itoa(os.Getpid()))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		stat, _ := os.ReadFile("/proc/" + name + "/stat")
		// PID (NAME) STATE PPID: the name may contain any character.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) > 1 && bytes.Equal(fields[1], self) {
			pids = append(pids, pid)
		}
	}
	return pids
}
