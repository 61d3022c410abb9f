package run

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// program is this program, also where its file was replaced meanwhile.
func program() (string, error) { return "/proc/self/exe", nil }

// adopts reports whether processes that lose their parent become the reaper's.
const adopts = true

// adopt makes every process that descends from this one its child when it loses its
// parent, also one in a group or session of its own.
func adopt() {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	_ = os.WriteFile("/proc/self/comm", []byte(reaperName), 0) // it would be "exe"
}

// children are the processes whose parent is this one.
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
		// PID (NAME) STATE PPID: the name may contain anything.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) > 1 && bytes.Equal(fields[1], self) {
			pids = append(pids, pid)
		}
	}
	return pids
}
