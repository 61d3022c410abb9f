package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"redlockctl/base/private"
	"redlockctl/server/safetext"
)

// Started is one server that lab up left running.
type Started struct {
	Name, Addr string
	Pid        int
	RestartCmd string // what a person types to start it again after a crash
	// Already: it was running before; Up did not touch it.
	Already bool
	// Opened: Up removed its fence. A server that Up started without doing so stays
	// fenced until a guard has waited.
	Opened bool
}

// Up starts n real redis-servers named n1, n2, … in the background on 127.0.0.1:
// firstPort and following. They keep their files in dir/NAME and outlive this process.
// A server that is already running is reported and not touched. Up fails with
// [ErrNoServer], [ErrPortTaken] or [ErrOtherLab] before it has started anything.
//
// Each server starts fenced, whoever starts it: the boot fence is in an included file,
// with the same lines before the include, so that CONFIG REWRITE adds none after it. Up
// removes the fences only if dir had no server of a lab: then this is the first
// incarnation of a new cluster, with no votes to lose. If it had one, a server that is
// not running has ended and lost its votes: Up starts it and leaves it fenced. Up cannot know when the
// loss was, so a guard has to wait; the same is true after a reboot of the host, when
// all servers start fenced. [Down] and then Up make a new cluster at once, which is
// right if the clients of the old one have ended too.
func Up(ctx context.Context, dir, bin string, n, firstPort int) ([]Started, error) {
	if n < 1 || firstPort < 1 || firstPort+n-1 > 65535 {
		return nil, fmt.Errorf("%d servers from port %d on: the ports must be in 1–65535", n, firstPort)
	}
	path, err := lookServer(bin)
	if err != nil {
		return nil, err
	}
	if dir, err = labDir(dir); err != nil {
		return nil, err
	}
	if !strings.ContainsRune(bin, filepath.Separator) {
		bin = filepath.Base(path) // it was found by its name, and a person can start it by its name too
	} else {
		bin = path
	}
	nodes := make([]*daemon, n)
	for i := range nodes {
		name := "n" + strconv.Itoa(i+1)
		nodes[i] = &daemon{name: name, dir: filepath.Join(dir, name), port: firstPort + i}
	}
	// Check all before changing any.
	for _, d := range nodes {
		if err := d.look(ctx); err != nil {
			return nil, err
		}
	}
	fresh, err := makeDir(dir, nodes[0])
	if err != nil {
		return nil, err
	}
	started, err := upAll(ctx, nodes, path, bin, fresh)
	if err != nil && fresh {
		// Nobody uses this cluster yet: leave nothing behind.
		_, down := Down(context.WithoutCancel(ctx), dir)
		return nil, errors.Join(err, down)
	}
	return started, err
}

func upAll(ctx context.Context, nodes []*daemon, path, bin string, fresh bool) ([]Started, error) {
	var started []Started
	for _, d := range nodes {
		s := Started{Name: d.name, Addr: d.addr(), Pid: d.pid, Already: d.pid != 0}
		s.RestartCmd = safetext.New(bin).Word() + " " + safetext.New(d.conf()).Word()
		if !s.Already {
			if err := d.start(ctx, path); err != nil {
				return started, fmt.Errorf("start %s: %w", d.name, err)
			}
			s.Pid = d.pid
		}
		started = append(started, s)
	}
	if !fresh {
		return started, nil
	}
	for i, d := range nodes {
		if err := d.removeFence(ctx); err != nil {
			return started, fmt.Errorf("remove the fence of %s: %w", d.name, err)
		}
		started[i].Opened = true
	}
	return started, nil
}

// ConfigPath is the path of the configuration that [WriteConfig] writes for a lab.
func ConfigPath(dir string) string { return filepath.Join(dir, "config.toml") }

// configHead is the first line of a configuration that Down may remove.
const configHead = "# Written by redlockctl lab up, and removed by lab down.\n"

// WriteConfig writes a configuration with the servers of a lab into dir.
func WriteConfig(dir string, servers []Started) error {
	var b strings.Builder
	b.WriteString(configHead + "[cluster]\nname = \"lab\"\nmax_ttl = \"30s\"\n\n" +
		"# New masters have lost no lock. Others that started less than max TTL ago are fenced at first contact.\n" +
		"[guard]\nfirst_contact = \"adopt-young\"\n")
	for _, s := range servers {
		fmt.Fprintf(&b, "\n[[nodes]]\nname = %q\naddr = %q\n", s.Name, s.Addr)
	}
	return private.Replace(ConfigPath(dir), []byte(b.String()))
}

// LeftConfig reports whether this is a configuration that [WriteConfig] wrote for the lab in its
// directory.
func LeftConfig(path string) bool {
	b, err := os.ReadFile(path)
	return err == nil && filepath.Base(path) == filepath.Base(ConfigPath("")) && strings.HasPrefix(string(b), configHead)
}

// Ports returns the ports of the servers of the lab in dir, running or not.
func Ports(dir string) (ports []int, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if d := (&daemon{dir: filepath.Join(dir, e.Name())}); d.readPort() == nil {
			ports = append(ports, d.port)
		}
	}
	return ports, err
}

// Down ends the servers that [Up] started in dir, and returns their names; servers that
// have already ended are no error. It removes their files, so that the next Up makes a
// new cluster: end the clients of the old one too. It ends a process only if that is
// certainly the server of that directory: the server itself says so, or, if it does not
// answer, its pid file and working directory do.
func Down(ctx context.Context, dir string) ([]string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var stopped []string
	var errs []error
	for _, e := range entries {
		d := &daemon{name: e.Name(), dir: filepath.Join(dir, e.Name())}
		if err := d.readPort(); err != nil {
			continue // not made by Up: do not touch it
		}
		ended, err := d.stop(ctx)
		if ended {
			stopped = append(stopped, d.name)
		}
		if err == nil {
			err = os.RemoveAll(d.dir)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("stop %s: %w", d.name, err))
		}
	}
	slices.SortFunc(stopped, func(a, b string) int { // n2 before n10
		return 2*(len(a)-len(b)) + strings.Compare(a, b)
	})
	if b, err := os.ReadFile(ConfigPath(dir)); err == nil && strings.HasPrefix(string(b), configHead) {
		errs = append(errs, os.Remove(ConfigPath(dir)))
	}
	if errors.Join(errs...) == nil {
		// Fails if the directory has other files.
		errs = append(errs, os.Remove(dir))
	}
	return stopped, errors.Join(errs...)
}

// labDir returns dir as an absolute path that a redis.conf can contain.
func labDir(dir string) (string, error) {
	if dir == "" {
		return "", errors.New("no directory for the lab: neither XDG_STATE_HOME nor HOME is set")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if strings.ContainsAny(dir, "*?[]\n\r\x00") {
		// An include whose wildcards match nothing is no error for the server: it would
		// start unfenced.
		return "", fmt.Errorf("the directory %q of the lab must not contain any of *?[] or line ends", dir)
	}
	return dir, nil
}

// makeDir makes dir with the directory of the first server, and reports whether this lab
// is new: of two concurrent callers, one gets true. It refuses a directory that others
// may write.
func makeDir(dir string, first *daemon) (fresh bool, err error) {
	// Files that are executed or obeyed from there must belong to this user.
	if err := private.Dir(dir, private.Nobody); err != nil {
		return false, err
	}
	if there, err := hasServer(dir); there || err != nil {
		return false, err
	}
	if err = os.Mkdir(first.dir, 0o700); errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	return err == nil, err
}

// hasServer reports whether dir has a server of a lab, running or not.
func hasServer(dir string) (bool, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		d := &daemon{dir: filepath.Join(dir, e.Name())}
		return d.readPort() == nil
	}), err
}
