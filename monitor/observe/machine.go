package observe

import (
	"math"
	"os"
	"strconv"
	"strings"
)

const (
	// memoryShare is which part of the machine's memory a monitor may use.
	memoryShare = 4
	leastMemory = 32 << 20
	// unknownMemory is taken for the machine's memory where that cannot be read.
	unknownMemory = 2 << 30
)

// DefaultMaxMemory is a quarter of the memory that this process may use: the
// machine's, or that of its control group, if that is less.
func DefaultMaxMemory() int64 { return max(machineMemory(os.ReadFile)/memoryShare, leastMemory) }

// machineMemory is how much memory there is for this process, in bytes.
func machineMemory(read func(string) ([]byte, error)) int64 {
	least := int64(math.MaxInt64)
	if text, err := read("/proc/meminfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if rest, ok := strings.CutPrefix(line, "MemTotal:"); ok {
				if kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64); err == nil && kb > 0 {
					least = kb << 10
				}
			}
		}
	}
	groups := []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}
	if text, err := read("/proc/self/cgroup"); err == nil {
		// Of a service: the limit of each group that it is in.
		for line := range strings.Lines(string(text)) {
			path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::/")
			for ; ok && path != ""; path = path[:max(0, strings.LastIndexByte(path, '/'))] {
				groups = append(groups, "/sys/fs/cgroup/"+path+"/memory.max")
			}
		}
	}
	for _, file := range groups {
		if text, err := read(file); err == nil {
			if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && n > 0 {
				least = min(least, n)
			}
		}
	}
	if least == math.MaxInt64 {
		return unknownMemory
	}
	return least
}
