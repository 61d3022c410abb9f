package restartguard

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/redlock"
)

// Inspect looks at a node once, on a connection of its own, and changes
// nothing. It fails with [ErrUnreachable] or [ErrDenied]. Where the fence cannot
// be read, Blind is set and Err says why.
func Inspect(ctx context.Context, node *redlock.Node, method Method) (Observation, error) {
	l := dial(node, method, handTimeout)
	defer l.close()
	o, err := l.look(ctx)
	if err != nil {
		return o, handError(node, err, ErrUnreachable)
	}
	return o, nil
}

// Shut tells if the node refuses writes because of a fence; hold: an
// operator's.
func (o Observation) Shut() (shut, hold bool) {
	return !o.Blind && (o.Params.closed() || o.Params.held()), !o.Blind && o.Params.held()
}

// Boot says how a server comes up.
type Boot uint8

const (
	BootUnknown Boot = iota // it cannot be told from here
	BootClosed              // closed from its first moment
	BootFragile             // closed, by a setting that the server may drop by itself
	BootOpen                // open
)

// String is the verdict as JSON shows it.
func (b Boot) String() string { return [...]string{"unknown", "closed", "fragile", "open"}[b] }

// BootCheck is what can be told of how a server would come up, without
// restarting it.
type BootCheck struct {
	Boot Boot
	// Because are the reasons, each a sentence that is fit to be shown.
	Because []string
	// File is the server's configuration as it tells it, empty if it has none or
	// does not say.
	File string
}

func (c *BootCheck) because(format string, args ...any) {
	c.Because = append(c.Because, fmt.Sprintf(format, args...))
}

// CheckBoot tells if a server would come up closed by its method. CONFIG GET
// cannot say that: it shows what is set now. The evidence, best first: the
// server's file, if it is on this machine and can be read; and that the present
// life came up closed, which was seen by a guard (remembered), or which the
// server shows by being closed with nothing set since its start. A file that says
// nothing is no proof that the server comes up open, since a command line, which
// the server does not show, may close it.
func CheckBoot(ctx context.Context, node *redlock.Node, method Method, remembered *Remembered) (BootCheck, error) {
	var c BootCheck
	if method.Kind == Advice {
		c.Boot = BootOpen
		c.because(`its fence is "none": nothing closes it`)
		return c, nil
	}
	l := dial(node, method, handTimeout)
	defer l.close()
	o, err := l.look(ctx)
	if err != nil {
		return c, handError(node, err, ErrUnreachable)
	}
	var info *redis.StringCmd
	var write *redis.Cmd
	err = l.send(ctx, func(p redis.Pipeliner) {
		info = p.Info(ctx, "server")
		write = p.Do(ctx, "ACL", "CAT", "write")
	})
	if err != nil {
		return c, handError(node, err, ErrUnreachable)
	}
	c.File = infoField(info.Val(), "config_file")
	names, _ := write.StringSlice()

	fromFile := BootUnknown
	switch pid, why := c.local(node, info.Val()); {
	case why != "":
		c.because("its file cannot be read from here: %s", show(errors.New(why)))
	case c.File == "":
		c.because("it runs without a configuration file")
	default:
		fromFile = c.file(method, names, pid)
	}

	shut, _ := o.Shut()
	seen := false // the present life came up closed
	switch {
	case remembered != nil && remembered.Known && remembered.RunID == o.RunID:
		seen = remembered.Verified
		if seen {
			c.because("a guard saw its present life come up closed")
		} else {
			c.because("a guard saw its present life come up OPEN")
		}
		if !seen && fromFile == BootUnknown {
			fromFile = BootOpen
		}
	case shut && !o.Configured:
		seen = true
		c.because("it is closed, and nothing was set in its present life: it came up closed")
	}
	switch {
	case fromFile == BootUnknown && seen:
		c.Boot = BootClosed
	default:
		c.Boot = fromFile
	}
	return c, nil
}

// local tells if the server's files are those of this machine: its address is
// one of ours, and the process that it names runs here, under its name.
func (c *BootCheck) local(node *redlock.Node, info string) (pid string, why string) {
	pid = infoField(info, "process_id")
	if n, err := strconv.Atoi(pid); err != nil || n <= 0 {
		return "", "the server tells no process"
	}
	if !ours(node.Addr()) {
		return "", "the server is on another machine"
	}
	title, err := os.ReadFile(filepath.Join("/proc", pid, "cmdline"))
	if err != nil {
		return "", "its process " + pid + " is not to be seen here (another machine, a container, another system)"
	}
	// A container may have a process of the same number.
	words := strings.ReplaceAll(string(title), "\x00", " ")
	if port := infoField(info, "tcp_port"); !strings.Contains(words, "redis") && !strings.Contains(words, "valkey") ||
		port != "0" && !strings.Contains(words, port) {
		return "", "process " + pid + " of this machine is another one"
	}
	return pid, ""
}

// ours tells if an address is one of this machine.
func ours(addr string) bool {
	if strings.HasPrefix(addr, "/") {
		return true
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return false // a name is not looked up
	}
	if ip.Unmap().IsLoopback() {
		return true
	}
	all, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.Equal(ip.AsSlice()) {
			return true
		}
	}
	return false
}

// directive is a line of a server's configuration.
type directive struct {
	words []string
	file  string
	line  int
	depth int // of includes
}

// mostDirectives bounds what is read of a server's configuration.
const mostDirectives = 100_000

// readDirectives reads a configuration with what it includes, in the order in
// which the server does. Relative paths are those of the server's working
// directory. Secrets in it go no further than this.
func readDirectives(path, dir string, depth int, out []directive) ([]directive, error) {
	if depth > 16 {
		return out, fmt.Errorf("%s: too many includes in each other", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return out, err
	}
	defer f.Close()
	in := bufio.NewScanner(f)
	in.Buffer(nil, 1<<20)
	for n := 1; in.Scan(); n++ {
		line := strings.TrimSpace(in.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		words := strings.Fields(line)
		for i := range words {
			words[i] = strings.Trim(words[i], `"'`)
		}
		words[0] = strings.ToLower(words[0])
		if words[0] != "include" || len(words) != 2 {
			if len(out) >= mostDirectives {
				return out, fmt.Errorf("%s: more than %d lines", path, mostDirectives)
			}
			out = append(out, directive{words, path, n, depth})
			continue
		}
		pattern := words[1]
		if !filepath.IsAbs(pattern) {
			pattern = filepath.Join(dir, pattern)
		}
		paths := []string{pattern}
		if strings.ContainsAny(pattern, "*?[") {
			if paths, err = filepath.Glob(pattern); err != nil {
				return out, err
			}
		}
		for _, p := range paths {
			if out, err = readDirectives(p, dir, depth+1, out); err != nil {
				return out, err
			}
		}
	}
	return out, in.Err()
}

// file judges by the server's own files.
func (c *BootCheck) file(method Method, write []string, pid string) Boot {
	dir, err := os.Readlink(filepath.Join("/proc", pid, "cwd"))
	if err != nil {
		dir = filepath.Dir(c.File)
	}
	lines, err := readDirectives(c.File, dir, 0, nil)
	if err != nil {
		c.because("its file cannot be read from here: %s", show(err))
		return BootUnknown
	}
	if method.Kind == ACL {
		return c.userFile(method, write, lines, dir)
	}
	var value, lag *directive
	p := Params{MaxLag: setLag}
	for i, d := range lines {
		if len(d.words) != 2 {
			continue
		}
		n, err := strconv.ParseInt(d.words[1], 10, 64)
		if err != nil {
			continue
		}
		switch d.words[0] {
		case paramMinReplicas, "min-slaves-to-write":
			p.MinReplicas, value = n, &lines[i]
		case paramMaxLag, "min-slaves-max-lag":
			p.MaxLag, lag = n, &lines[i]
		}
	}
	switch {
	case value == nil:
		c.because("%s sets no %s; whether its command line does cannot be seen", show(errors.New(c.File)), paramMinReplicas)
		return BootUnknown
	case p.MinReplicas != FenceClosed && p.MinReplicas != FenceHold:
		c.because("%s sets %s %d: no fence", value.place(), paramMinReplicas, p.MinReplicas)
		return BootOpen
	case p.MaxLag <= 0:
		c.because("%s sets %s 0, which switches the fence off", lag.place(), paramMaxLag)
		return BootOpen
	case value.depth == 0:
		c.because("%s sets the fence in the main file, where the next CONFIG REWRITE replaces it; move it into a file that is included", value.place())
		return BootFragile
	}
	c.because("%s sets the fence", value.place())
	return BootClosed
}

// userFile judges by the rules of the user in the server's files.
func (c *BootCheck) userFile(method Method, write []string, lines []directive, dir string) Boot {
	aclFile := ""
	var users []directive
	for _, d := range lines {
		switch {
		case d.words[0] == "aclfile" && len(d.words) == 2:
			aclFile = d.words[1]
		case d.words[0] == "user":
			users = append(users, d)
		}
	}
	if aclFile != "" {
		if !filepath.IsAbs(aclFile) {
			aclFile = filepath.Join(dir, aclFile)
		}
		var err error
		if users, err = readDirectives(aclFile, dir, 0, nil); err != nil {
			c.because("its ACL file cannot be read from here: %s", show(err))
			return BootUnknown
		}
	}
	for _, d := range users {
		if d.words[0] != "user" || len(d.words) < 2 || d.words[1] != method.User {
			continue
		}
		if len(write) == 0 {
			c.because("the server does not tell which commands write (ACL CAT)")
			return BootUnknown
		}
		var rules []string
		for _, w := range d.words[2:] {
			if strings.HasPrefix(w, "(") {
				c.because("%s gives the user a selector of its own, with which this method does not work", d.place())
				return BootOpen
			}
			if CommandRule(w) || w == "allcommands" || w == "nocommands" || w == "reset" {
				rules = append(rules, w)
			}
		}
		if grantsWrite(strings.Join(rules, " "), write) {
			c.because("%s starts the user with commands that write", d.place())
			return BootOpen
		}
		c.because("%s starts the user without commands that write", d.place())
		return BootClosed
	}
	c.because("no file of the server has the user %q; whether its command line does cannot be seen", method.User)
	return BootUnknown
}

// place is where a line stands, fit to be shown.
func (d directive) place() string {
	return show(fmt.Errorf("%s:%d", d.file, d.line))
}

// ErrWait is returned by Wait when the node does not serve in time.
var ErrWait = errors.New("the node does not serve yet")

// Wait returns as soon as the node answers as a master that accepts votes. It
// fails with [ErrWait] when ctx ends before, and says how the node is. Nothing is
// changed.
func Wait(ctx context.Context, node *redlock.Node, method Method) error {
	why := ""
	for {
		o, err := Inspect(ctx, node, method)
		if err == nil && o.serves() {
			return nil
		}
		// An I/O deadline may be told before the context says that it is over.
		end, bounded := ctx.Deadline()
		over := ctx.Err() != nil || bounded && !time.Now().Before(end)
		if why = whyWaiting(why, o, err, over); !over {
			sleep(ctx, 100*time.Millisecond)
			over = ctx.Err() != nil
		}
		if over {
			return fmt.Errorf("node %q: %w: %s", node.Name(), ErrWait, why)
		}
	}
}

// serves tells if a node accepts votes.
func (o Observation) serves() bool {
	shut, _ := o.Shut()
	return o.Role == "master" && !o.Blind && !shut
}

// whyWaiting is why a node does not serve, by a look at it; before is what was
// known. A look that failed when the wait was over was cut short by that, and says
// less than one before.
func whyWaiting(before string, o Observation, err error, over bool) string {
	_, hold := o.Shut()
	switch {
	case err != nil && over && before != "":
		return before
	case err != nil:
		return err.Error()
	case o.Role != "master":
		return "its role is " + o.Role
	case o.Blind:
		return "its fence cannot be read: " + o.Err
	case hold:
		return "an operator holds it closed"
	}
	return "it is closed"
}

// Unused fails if something listens at the node's address.
func Unused(ctx context.Context, node *redlock.Node) error {
	l := dial(node, Method{}, handTimeout)
	defer l.close()
	err := l.send(ctx, func(p redis.Pipeliner) { p.Ping(ctx) })
	switch {
	case isRefused(err), errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil || answered(err):
		return fmt.Errorf("node %q: something answers at %s already", node.Name(), node.Addr())
	}
	return fmt.Errorf("node %q: it cannot be told that nothing listens at %s: %w: %s", node.Name(), node.Addr(), ErrUnreachable, show(err))
}

// Keys is how many keys, of those that match any of the patterns, the node
// holds in its database; it stops at the first few.
func Keys(ctx context.Context, node *redlock.Node, patterns []string) (found int, err error) {
	l := dial(node, Method{}, handTimeout)
	defer l.close()
	for _, pattern := range patterns {
		for cursor := uint64(0); ; {
			var scan *redis.ScanCmd
			err := l.send(ctx, func(p redis.Pipeliner) { scan = p.Scan(ctx, cursor, pattern, 500) })
			if err == nil {
				err = scan.Err()
			}
			if err != nil {
				return found, handError(node, err, ErrUnreachable)
			}
			var keys []string
			keys, cursor = scan.Val()
			for _, k := range keys {
				if k != CounterKey {
					found++
				}
			}
			if cursor == 0 || found > 0 {
				break
			}
		}
	}
	return found, nil
}
