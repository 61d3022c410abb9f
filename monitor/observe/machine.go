package observe

import (
	"math"
	"os"
	"strconv"
	"strings"
)

const (
	// memoryShare: a monitor may use this fraction of the machine's memory.
	memoryShare = 4
	leastMemory = 32 << 20
	// unknownMemory is used if the machine's memory cannot be read.
	unknownMemory = 2 << 30
)

// DefaultMaxMemory is a quarter of the memory that this process may use: the machine's or
// its control group's, whichever is less.
func DefaultMaxMemory() int64 { return max(machineMemory(os.ReadFile)/memoryShare, leastMemory) }

// machineMemory returns the memory available to this process, in bytes.
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
		// For a service: the limit of each control group that it is in.
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
