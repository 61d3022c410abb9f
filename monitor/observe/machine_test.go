package observe

import (
	"errors"
	"testing"
)

// The memory of this process is the machine's, or what its control groups leave.
func TestMachineMemory(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"nothing is known": {nil, unknownMemory},
		"a machine":        {map[string]string{"/proc/meminfo": "MemFree: 1 kB\nMemTotal:       1024 kB\n"}, 1 << 20},
		"a container":      {map[string]string{"/proc/meminfo": "MemTotal: 4096 kB\n", "/sys/fs/cgroup/memory.max": "2097152\n"}, 2 << 20},
		"no limit":         {map[string]string{"/proc/meminfo": "MemTotal: 4096 kB\n", "/sys/fs/cgroup/memory.max": "max\n"}, 4 << 20},
		"a service": {map[string]string{"/proc/meminfo": "MemTotal: 4096 kB\n", "/proc/self/cgroup": "0::/system.slice/a.service\n",
			"/sys/fs/cgroup/system.slice/memory.max": "1048576\n", "/sys/fs/cgroup/system.slice/a.service/memory.max": "max\n"}, 1 << 20},
		"an older kernel": {map[string]string{"/proc/meminfo": "MemTotal: 4096 kB\n", "/sys/fs/cgroup/memory/memory.limit_in_bytes": "1048576\n"}, 1 << 20},
	} {
		got := machineMemory(func(path string) ([]byte, error) {
			if text, ok := c.files[path]; ok {
				return []byte(text), nil
			}
			return nil, errors.New("no such file")
		})
		if got != c.want {
			t.Errorf("%s: %d, not %d", name, got, c.want)
		}
	}
}
