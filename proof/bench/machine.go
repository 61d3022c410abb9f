package main

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"

	"redlockctl/internal/lab"
)

// machine is what is to be known of the machine, and more.
func machine(servers lab.Servers, more ...fact) []fact {
	return append([]fact{
		{"date", time.Now().UTC().Format(time.DateOnly)},
		{"CPU", fmt.Sprintf("%d × %s", runtime.NumCPU(), cpuModel())},
		{"system", runtime.GOOS + "/" + runtime.GOARCH + ", load " + load()},
		{"Go", strings.TrimPrefix(runtime.Version(), "go")},
		{"redis-server", redisVersion(servers)},
	}, more...)
}

// cpuModel is the name of the processor, where the system tells it.
func cpuModel() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

// load tells how busy the machine is: about as much as the benchmark itself
// makes it, unless others run on it.
func load() string {
	text, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(text), " ")
	return first
}

// processCPU is the processor time that this process has used.
func processCPU() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// rss is the resident memory of this process in MiB.
func rss() float64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return math.NaN()
	}
	var size, resident float64
	_, _ = fmt.Sscan(string(text), &size, &resident)
	return resident * float64(os.Getpagesize()) / (1 << 20)
}
