package boot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"redlockctl/base/private"
	"redlockctl/restartguard/wire"
	"redlockctl/server/minreplicas"
	"redlockctl/server/serverinfo"
)

// Process is how a server of this host is started.
type Process struct {
	PID string
	// Args are the words of its command line after the program, if ArgsKnown: a server replaces
	// them by a title, unless it has set-proc-title no.
	Args      []string
	ArgsKnown bool
	// Unit is its systemd unit, and ExecStart what that unit starts the next time, as written
	// there; empty if they cannot be seen.
	Unit, ExecStart string
	dir             string
}

// Fences reports whether its command line sets the fence.
func (p Process) Fences() bool {
	return slices.ContainsFunc(splitArgs(p.Args), func(words []string) bool { return strings.EqualFold(words[0], minreplicas.Param) })
}

// findProcess finds the process of a server by its INFO. If why is not empty, the server may not
// run on this host: its address must be one of this host's, and the process must exist here under
// its name.
func findProcess(ctx context.Context, addr, info string) (p Process, why string) {
	p.PID = serverinfo.Field(info, "process_id")
	if n, err := strconv.Atoi(p.PID); err != nil || n <= 0 {
		return p, "the server does not name its process"
	}
	if !isOwnAddr(ctx, addr) {
		return p, "the server is on another host"
	}
	cmdline, err := os.ReadFile(filepath.Join("/proc", p.PID, "cmdline"))
	if err != nil {
		return p, "its process " + p.PID + " cannot be seen here (another host, a container, another system)"
	}
	if !isServer(string(cmdline), info) && !startedThen(p.PID, info) {
		// A container may have a process of the same number.
		return p, "process " + p.PID + " of this host is another one"
	}
	p.Args, p.ArgsKnown = argsOf(string(cmdline))
	if p.dir, err = os.Readlink(filepath.Join("/proc", p.PID, "cwd")); err != nil {
		p.dir = ""
	}
	if cgroup, err := os.ReadFile(filepath.Join("/proc", p.PID, "cgroup")); err == nil {
		p.Unit = unitOf(string(cgroup))
	}
	if p.Unit != "" {
		p.ExecStart = execStartOf(catUnit(ctx, p.Unit))
		if words := serverArgs(p.ExecStart); words != nil {
			p.Args, p.ArgsKnown = words, true
		}
	}
	return p, ""
}

// isServer reports whether a command line is that of the server with this INFO.
func isServer(cmdline, info string) bool {
	words := strings.ReplaceAll(cmdline, "\x00", " ")
	port := serverinfo.Field(info, "tcp_port")
	return (strings.Contains(words, "redis") || strings.Contains(words, "valkey")) &&
		(port == "0" || strings.Contains(words, ":"+port) || strings.Contains(words, " "+port+" "))
}

// startedThen reports whether a process is a server that started when INFO says.
func startedThen(pid, info string) bool {
	comm, err := os.ReadFile(filepath.Join("/proc", pid, "comm"))
	if err != nil || !strings.Contains(string(comm), "redis") && !strings.Contains(string(comm), "valkey") {
		return false
	}
	up, err := strconv.ParseFloat(serverinfo.Field(info, "uptime_in_seconds"), 64)
	stat, statErr := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	since, sinceErr := os.ReadFile("/proc/uptime")
	if err != nil || statErr != nil || sinceErr != nil {
		return false
	}
	const ticks = 100 // per second, on every Linux
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	host, _, _ := strings.Cut(string(since), " ")
	age, err := strconv.ParseFloat(host, 64)
	if err != nil || len(fields) < 20 {
		return false
	}
	started, err := strconv.ParseFloat(fields[19], 64)
	diff := age - started/ticks - up
	return err == nil && diff > -2 && diff < 3
}

// argsOf returns the words after the program of a command line in /proc; false if the process has
// replaced it by a title.
func argsOf(cmdline string) ([]string, bool) {
	words := strings.Split(strings.TrimSuffix(cmdline, "\x00"), "\x00")
	for len(words) > 1 && words[len(words)-1] == "" && words[len(words)-2] == "" {
		words = words[:len(words)-1] // what a title left of it
	}
	words = behindLoader(words)
	if len(words) == 2 && words[1] == "" {
		words = words[:1]
	}
	if words[0] == "" || len(words) == 1 && strings.ContainsAny(words[0], " :") {
		return nil, false
	}
	return words[1:], true
}

// behindLoader returns the command line of a program that was started through the dynamic loader:
// ld.so [OPTION]… PROGRAM [ARGUMENT]….
func behindLoader(words []string) []string {
	name := filepath.Base(words[0])
	if !strings.HasPrefix(name, "ld-linux") && !strings.HasPrefix(name, "ld-musl") && !strings.HasPrefix(name, "ld.so") && !strings.HasPrefix(name, "ld64.so") {
		return words
	}
	rest := words[1:]
	for len(rest) > 0 && strings.HasPrefix(rest[0], "--") {
		takes := 1
		switch rest[0] {
		case "--library-path", "--inhibit-rpath", "--audit", "--preload", "--argv0", "--glibc-hwcaps-prepend", "--glibc-hwcaps-mask":
			takes = 2
		}
		rest = rest[min(takes, len(rest)):]
	}
	if len(rest) == 0 {
		return words
	}
	return rest
}

// unitOf returns the systemd unit of a process by its /proc/PID/cgroup; empty if it has no system
// unit.
func unitOf(cgroup string) string {
	for line := range strings.Lines(cgroup) {
		_, path, ok := strings.Cut(strings.TrimSpace(line), ":/")
		if !ok || strings.Contains(path, "user@") || strings.Contains(path, "docker") || strings.Contains(path, "kubepods") {
			continue
		}
		parts := strings.Split(path, "/")
		slices.Reverse(parts)
		for _, p := range parts {
			if strings.HasSuffix(p, ".service") && isUnitName(p) {
				return p
			}
		}
	}
	return ""
}

func isUnitName(name string) bool {
	return name[0] != '-' && !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune(`:_.\@-`, r)
	})
}

// mostUnit bounds how much of a unit and its drop-ins is read.
const mostUnit = 1 << 20

// catUnit returns the text of a unit with its drop-ins; empty if systemd does not tell.
func catUnit(ctx context.Context, unit string) string {
	ctx, cancel := context.WithTimeout(ctx, wire.HandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "systemctl", "cat", "--no-pager", "--", unit)
	cmd.WaitDelay = time.Second
	out, err := cmd.StdoutPipe()
	if err != nil || cmd.Start() != nil {
		return ""
	}
	text, readErr := io.ReadAll(io.LimitReader(out, mostUnit))
	if cmd.Wait() != nil || readErr != nil {
		return ""
	}
	return string(text)
}

// execStartOf returns the command of a unit with its drop-ins, on one line; empty if there is none,
// or more than one.
func execStartOf(unit string) string {
	var commands []string
	section, pending, going := "", "", false
	for line := range strings.Lines(unit) {
		line = strings.TrimSpace(line)
		if line != "" && (line[0] == '#' || line[0] == ';') {
			continue // also between the lines of one setting
		}
		if going {
			line = pending + " " + line
		}
		if pending, going = strings.CutSuffix(line, `\`); going {
			pending = strings.TrimSpace(pending)
			continue
		}
		if strings.HasPrefix(line, "[") {
			section = line
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok || section != "[Service]" || strings.TrimSpace(key) != "ExecStart" {
			continue
		}
		if value = strings.TrimSpace(value); value == "" {
			commands = nil
		} else {
			commands = append(commands, value)
		}
	}
	if len(commands) != 1 {
		return ""
	}
	return commands[0]
}

// serverArgs returns the words after the server's program in an ExecStart; nil if that starts no
// known server, or if a variable follows the fence.
func serverArgs(execStart string) []string {
	words, ok := splitWords(strings.TrimLeft(execStart, "@-:+!|"))
	if !ok {
		return nil
	}
	i := slices.IndexFunc(words, func(w string) bool {
		return slices.Contains([]string{"redis-server", "valkey-server", "keydb-server"}, filepath.Base(w))
	})
	if i < 0 {
		return nil
	}
	args := append([]string{}, words[i+1:]...)
	fence := max(slices.Index(args, minreplicas.FenceArgs[0]), slices.Index(args, minreplicas.FenceArgs[2]))
	for j, w := range args {
		// A variable may stand for any options, as may one that comes later.
		if strings.Contains(w, "$") && (fence < 0 || j > fence) {
			return nil
		}
	}
	return args
}

// isOwnAddr reports whether an address is one of this host: a socket, one of its names, or an
// address of its interfaces.
func isOwnAddr(ctx context.Context, addr string) bool {
	if strings.HasPrefix(addr, "/") {
		return true
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return isOwnIP(ip)
	}
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	if own, err := os.Hostname(); name == "localhost" || err == nil && name == strings.ToLower(strings.TrimSuffix(own, ".")) {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, wire.HandTimeout)
	defer cancel()
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	return err == nil && slices.ContainsFunc(found, isOwnIP)
}

// isOwnIP reports whether an address is one of this host's interfaces.
func isOwnIP(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	if ip.IsLoopback() {
		return true
	}
	all, err := net.InterfaceAddrs()
	return err == nil && slices.ContainsFunc(all, func(a net.Addr) bool {
		n, ok := a.(*net.IPNet)
		return ok && n.IP.Equal(ip.AsSlice())
	})
}

// mostFileBytes bounds the size of one configuration file.
const mostFileBytes = 16 << 20

// readFiles reads the files of a path or a pattern on this host.
func readFiles(pattern string) ([]File, error) {
	paths := []string{pattern}
	if strings.ContainsAny(pattern, "*?[") {
		var err error
		if paths, err = filepath.Glob(pattern); err != nil {
			return nil, err
		}
	}
	var files []File
	for _, p := range paths {
		f, err := readFile(p)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

func readFile(path string) (File, error) {
	// O_NONBLOCK, because a named pipe would wait for a writer.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return File{}, err
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return File{}, errors.Join(fmt.Errorf("%s is not a file", path), err)
	}
	text, err := io.ReadAll(io.LimitReader(f, mostFileBytes+1))
	if err == nil && len(text) > mostFileBytes {
		err = fmt.Errorf("%s has more than %d MiB", path, mostFileBytes>>20)
	}
	return File{path, string(text)}, err
}

// readCopies reads the files of a configuration that was copied from another host: each include by
// its name, beside the main file.
func readCopies(main string) func(string) ([]File, error) {
	return func(pattern string) ([]File, error) {
		if pattern == main {
			return readFiles(main)
		}
		if strings.ContainsAny(pattern, "*?[") {
			return nil, fmt.Errorf("%s: which files that is on the server's host cannot be told from a copy", pattern)
		}
		beside := filepath.Join(filepath.Dir(main), filepath.Base(pattern))
		f, err := readFile(beside)
		if err != nil {
			return nil, fmt.Errorf("%s, which it includes: put a copy of it beside the file: %w", pattern, err)
		}
		return []File{f}, nil
	}
}

// writesACLFile returns whether a process can replace an ACL file, which needs write access to its
// directory.
func writesACLFile(pid string) func(string) Writable {
	return func(path string) Writable {
		status, err := os.ReadFile(filepath.Join("/proc", pid, "status"))
		if err != nil {
			return WritableUnknown
		}
		var uid uint32
		groups := map[uint32]bool{}
		for line := range strings.Lines(string(status)) {
			name, rest, _ := strings.Cut(line, ":")
			numbers := strings.Fields(rest)
			if name != "Uid" && name != "Gid" && name != "Groups" || len(numbers) < 2 && name != "Groups" {
				continue
			}
			if name != "Groups" {
				numbers = numbers[1:2] // the effective one
			}
			for _, n := range numbers {
				id, err := strconv.ParseUint(n, 10, 32)
				if err != nil {
					return WritableUnknown
				}
				if name == "Uid" {
					uid = uint32(id)
				} else {
					groups[uint32(id)] = true
				}
			}
		}
		info, err := os.Stat(filepath.Dir(path))
		if err != nil {
			return WritableUnknown
		}
		owner, group, ok := private.Owner(info)
		if !ok || len(groups) == 0 {
			return WritableUnknown
		}
		bit := os.FileMode(0o002)
		switch {
		case uid == 0:
			return WritableYes
		case owner == uid:
			bit = 0o200
		case groups[group]:
			bit = 0o020
		}
		if info.Mode().Perm()&bit != 0 {
			return WritableYes
		}
		return WritableNo
	}
}
