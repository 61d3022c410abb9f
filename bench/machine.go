package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"redlockctl/internal/lab"
	"redlockctl/internal/serverinfo"
)

// fact is a line of what has to be known about a run to compare it.
type fact struct{ Name, Value string }

// about is what is to be known of the machine, and more.
func about(server string, more ...fact) []fact {
	return append([]fact{
		{"date", time.Now().UTC().Format(time.DateOnly)},
		{"CPU", fmt.Sprintf("%d × %s", runtime.NumCPU(), cpuModel())},
		{"system", runtime.GOOS + "/" + runtime.GOARCH + ", load " + load()},
		{"Go", strings.TrimPrefix(runtime.Version(), "go")},
		{"redis-server", redisVersion(server)},
	}, more...)
}

func printFacts(w io.Writer, about []fact) {
	for _, f := range about {
		fmt.Fprintf(w, "%s: %s\n", f.Name, f.Value)
	}
}

// markdownFacts are the facts as a list, behind an empty line.
func markdownFacts(w io.Writer, about []fact) {
	fmt.Fprintln(w)
	for _, f := range about {
		fmt.Fprintf(w, "- %s: `%s`\n", f.Name, f.Value)
	}
}

// writeJSON writes figures to a file; no path: nothing.
func writeJSON(path string, about []fact, figures any) error {
	if path == "" {
		return nil
	}
	head := map[string]string{}
	for _, f := range about {
		head[f.Name] = f.Value
	}
	text, err := json.MarshalIndent(map[string]any{"about": head, "figures": figures}, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// writeMarkdown writes a document to a file; no path: nothing.
func writeMarkdown(path string, document func(w io.Writer)) error {
	if path == "" {
		return nil
	}
	var text strings.Builder
	document(&text)
	return os.WriteFile(path, []byte(text.String()), 0o644)
}

// redisVersion is what the server calls its version.
func redisVersion(server string) string {
	text, _ := exec.Command(server, "--version").Output()
	for word := range strings.FieldsSeq(string(text)) {
		if v, ok := strings.CutPrefix(word, "v="); ok {
			return v
		}
	}
	return strings.TrimSpace(string(text))
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

// cpu is the processor time that this process has used.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// usedCPU is the processor time that a server has used, in seconds, by its INFO cpu.
func usedCPU(info string) (sum float64) {
	for _, name := range []string{"used_cpu_user", "used_cpu_sys"} {
		v, _ := strconv.ParseFloat(serverinfo.Field(info, name), 64)
		sum += v
	}
	return sum
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

// start starts n servers.
func start(bin string, n int) ([]*lab.Server, func(), error) {
	dir, err := os.MkdirTemp("", "redlockctl-bench-")
	if err != nil {
		return nil, nil, err
	}
	var servers []*lab.Server
	stop := func() {
		for _, s := range servers {
			_ = s.Kill()
		}
		_ = os.RemoveAll(dir)
	}
	for i := range n {
		s, err := lab.StartServer(bin, fmt.Sprintf("n%d", i+1), dir)
		if err != nil {
			stop()
			return nil, nil, err
		}
		servers = append(servers, s)
	}
	return servers, stop, nil
}
