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
	// Already tells that it ran before; Up left it as it was.
	Already bool
	// Opened tells that Up removed its fence. A server that Up started and did not
	// open stays fenced until a guard has waited.
	Opened bool
}

// Up starts n real redis-servers named n1, n2, … in the background on 127.0.0.1:
// firstPort and following. They keep their files in dir/NAME and outlive this
// process. A server that runs already is left as it is and reported. Up fails
// with [ErrNoServer], [ErrPortTaken] or [ErrOtherLab] before it has started
// anything.
//
// Each server starts fenced, whoever starts it, and however: the boot fence is
// in an included file, with the same lines before the include, so that CONFIG
// REWRITE adds none behind it. Up opens the
// servers only if it has made dir, which is the first incarnation of a new cluster, with
// no vote to forget. Where dir was there before, a server that is not running has
// ended, and with it went the votes that it had cast: Up starts it, and leaves
// it closed. Up cannot know when the loss was, so the wait is for a guard to keep;
// so it is after a reboot of the host, when all of them start fenced. [Down] and
// Up again make a new cluster at once, which is right when the clients of the
// old one have ended too.
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
		bin = filepath.Base(path) // found by name, and so it will be by a person
	} else {
		bin = path
	}
	nodes := make([]*daemon, n)
	for i := range nodes {
		name := "n" + strconv.Itoa(i+1)
		nodes[i] = &daemon{name: name, dir: filepath.Join(dir, name), port: firstPort + i}
	}
	// Look at all before touching any.
	for _, d := range nodes {
		if err := d.look(ctx); err != nil {
			return nil, err
		}
	}
	fresh, err := makeDir(dir)
	if err != nil {
		return nil, err
	}
	started, err := upAll(ctx, nodes, path, bin, fresh)
	if err != nil && fresh {
		// Nobody has been told of this cluster: leave nothing behind.
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

// ConfigPath is the configuration that [WriteConfig] leaves in the directory of a lab.
func ConfigPath(dir string) string { return filepath.Join(dir, "config.toml") }

// configHead is the first line of a configuration that is ours to remove.
const configHead = "# Written by redlockctl lab up, and removed by lab down.\n"

// WriteConfig leaves a configuration in dir that names the servers of a lab.
func WriteConfig(dir string, servers []Started) error {
	var b strings.Builder
	b.WriteString(configHead + "[cluster]\nname = \"lab\"\nmax_ttl = \"30s\"\n")
	for _, s := range servers {
		fmt.Fprintf(&b, "\n[[nodes]]\nname = %q\naddr = %q\n", s.Name, s.Addr)
	}
	return private.Replace(ConfigPath(dir), []byte(b.String()))
}

// Down ends the servers that [Up] started in dir, and names those that it
// ended; servers that are dead already are no error. It removes their files, so
// that the next Up makes a new cluster: end the clients of the old one too. A
// process is ended only when it is certain that it is the server of that
// directory: the server says so itself, or where it does not answer any more,
// its pid file and working directory do.
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
			continue // not made by Up: not ours to touch
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
		// Fails if somebody has put files of their own there.
		errs = append(errs, os.Remove(dir))
	}
	return stopped, errors.Join(errs...)
}

// labDir is dir as an absolute path that can stand in a redis.conf.
func labDir(dir string) (string, error) {
	if dir == "" {
		return "", errors.New("no directory for the lab: neither XDG_STATE_HOME nor HOME is set")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if strings.ContainsAny(dir, "*?[]\n\r\x00") {
		// An include with wildcards that matches nothing is no error to the server:
		// it would start unfenced.
		return "", fmt.Errorf("the directory %q of the lab must not contain any of *?[] or line ends", dir)
	}
	return dir, nil
}

// makeDir makes dir and reports whether it was not there before: of two at the same
// time, one is told so. One that others may write is refused.
func makeDir(dir string) (fresh bool, err error) {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return false, err
	}
	err = os.Mkdir(dir, 0o700)
	if errors.Is(err, fs.ErrExist) {
		// What is executed and obeyed from there must be nobody else's.
		return false, private.Dir(dir, private.Nobody)
	}
	return err == nil, err
}
