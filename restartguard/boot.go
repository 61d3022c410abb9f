package restartguard

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/base/sleep"
	"redlockctl/redlock"
	"redlockctl/server/minreplicas"
	"redlockctl/server/safetext"
	"redlockctl/server/serverinfo"
)

// Inspect looks at a node once, on a connection of its own, and changes
// nothing. It fails with [ErrUnreachable] or [ErrDenied]. Where the fence cannot
// be read, Blind is set and Err says why.
func Inspect(ctx context.Context, node *redlock.Node, method Method) (Observation, error) {
	l := dial(node, method.codec(), handTimeout)
	defer l.close()
	l.met = true // who only looks needs no name
	o, err := l.look(ctx)
	if err != nil {
		return o, handError(node, err, ErrUnreachable)
	}
	return o, nil
}

// Fenced reports whether the node refuses writes because of a fence; cordoned: of an
// operator's.
func (o Observation) Fenced() (fenced, cordoned bool) {
	return !o.Blind && (o.Params.fenced() || o.Params.cordoned()), !o.Blind && o.Params.cordoned()
}

// BootCheck is what can be told of how a server starts, without restarting it.
type BootCheck struct {
	BootVerdict
	// File is the server's configuration and Program its executable, as it tells
	// them; empty if it has none or does not say.
	File, Program string
	// Process is how it is started, where it runs on this host; Local says that it
	// does.
	Process BootProcess
	Local   bool
	// StartedUnfenced: a guard saw its present process start unfenced.
	StartedUnfenced bool
	// Rewrites is how often its present process was told to rewrite what its fence
	// rests on: CONFIG REWRITE, and for [MethodACL] also ACL SAVE; −1 if it does not tell.
	Rewrites int64
	// Data is what becomes of its data after its next start.
	Data NextData
}

// CheckBoot says whether a server would start fenced by its method. CONFIG GET
// cannot say that: it shows what is set at present. The evidence, best first: the
// command line and the files, if the server runs on this host and they can be
// read; and that the present process started fenced, which was seen by a guard
// (remembered), or which the server shows by being fenced with nothing set since its
// start. A file that says nothing is no proof that the server starts unfenced,
// where the command line cannot be seen.
func CheckBoot(ctx context.Context, node *redlock.Node, method Method, remembered *Remembered) (BootCheck, error) {
	var c BootCheck
	if method.Kind == MethodNone {
		c.BootVerdict = AssessBoot(BootText{}, method)
		return c, nil
	}
	l := dial(node, method.codec(), handTimeout)
	defer l.close()
	l.met = true
	o, err := l.look(ctx)
	if err != nil {
		return c, handError(node, err, ErrUnreachable)
	}
	var info, stats *redis.StringCmd
	var write *redis.Cmd
	err = l.send(ctx, func(p redis.Pipeliner) {
		info = p.Info(ctx, "server")
		stats = p.Info(ctx, "commandstats")
		if method.codec().traits().boot {
			write = askWrites(ctx, p)
		}
	})
	if err != nil {
		return c, handError(node, err, ErrUnreachable)
	}
	c.File, c.Program = serverinfo.Field(info.Val(), "config_file"), serverinfo.Field(info.Val(), "executable")
	c.Rewrites = -1
	if serverinfo.Field(stats.Val(), "cmdstat_info") != "" {
		c.Rewrites, _ = callsOf(stats.Val(), method.codec().traits().rewrites...)
	}
	var names []string
	if write != nil {
		names, _ = write.StringSlice()
	}

	var why string
	c.Process, why = findProcess(ctx, node.Addr(), info.Val())
	c.Local = why == ""
	filesRead := false // all that its files say is known
	switch {
	case c.Local && (c.File != "" || c.Process.ArgsKnown):
		t := BootText{Args: c.Process.Args, ArgsKnown: c.Process.ArgsKnown, Main: c.File, Dir: c.Process.dir,
			Read: readBootFiles, Write: names, Writes: writesACLFile(c.Process.PID)}
		if t.Dir == "" && c.File != "" {
			t.Dir = filepath.Dir(c.File)
		}
		if c.Process.ExecStart != "" && len(t.Args) > 0 && filepath.IsAbs(t.Args[0]) && !strings.Contains(t.Args[0], "%") {
			t.Main = "" // the file that the unit names is the one of the next start
		}
		c.BootVerdict, c.Data = AssessBoot(t, method), AssessData(t)
		_, _, err := t.readAll()
		filesRead = err == nil
		if c.Boot == BootUnfenced && c.contradicts(o, remembered, info.Val()) {
			c.Boot, c.Form, c.Because, c.Do, filesRead = BootUnknown, FormUnknown, nil, nil, false
			c.because("what is read of its files and its command line does not start it fenced, and its present process did start so")
		}
	case c.File == "":
		c.because("it runs without a configuration file")
		filesRead = true
	default:
		c.because("its files cannot be read from here: %s", safetext.Escape(why))
	}
	known := remembered != nil && remembered.Known && remembered.RunID == o.RunID
	c.StartedUnfenced = known && !remembered.Verified
	if c.Boot == BootUnknown {
		c.byPresentProcess(o, known, filesRead)
	} else if c.StartedUnfenced && c.Boot == BootFenced {
		c.because("a guard saw its present process start UNFENCED: whatever fences it was not there then")
	}
	c.scriptsPass(method, serverinfo.Field(info.Val(), "redis_version"))
	return c, nil
}

// contradicts reports whether the present process is known to have started fenced, and nothing has
// changed since: then what is read here is not all that starts it.
func (c *BootCheck) contradicts(o Observation, remembered *Remembered, info string) bool {
	fenced, _ := o.Fenced()
	seen := remembered != nil && remembered.Known && remembered.Verified && remembered.RunID == o.RunID
	if !seen && (!fenced || o.Configured) || c.Process.ExecStart != "" || c.Rewrites != 0 {
		return false
	}
	up, ok := serverinfo.Number(info, "uptime_in_seconds")
	if c.File == "" {
		return true
	}
	file, err := os.Stat(c.File)
	return ok && err == nil && time.Since(file.ModTime()) > time.Duration(up+1)*time.Second
}

// scriptsPass takes back what was told of a fence that scripts pass.
func (c *BootCheck) scriptsPass(method Method, version string) {
	if method.Kind != MethodMinReplicas || minreplicas.StopsScripts(version) {
		return
	}
	c.Boot = BootUnfenced
	c.because("scripts write through min-replicas-to-write on version %s", safetext.Escape(version))
	c.do("upgrade the server (6.0.17, 6.2.7 or 7.0), or start it late with fence = \"none\": ExecStartPre=redlockctl node wait NAME --before-start")
}

// byPresentProcess judges by how the present process started, where its files and
// command line do not tell.
func (c *BootCheck) byPresentProcess(o Observation, remembered, filesRead bool) {
	const where = "run this command on the server's own host, or copy its file and use --file"
	fenced, _ := o.Fenced()
	switch {
	case c.StartedUnfenced:
		c.Boot = BootUnfenced
		c.because("a guard saw its present process start UNFENCED")
		return
	case remembered:
		c.because("a guard saw its present process start fenced")
	case fenced && !o.Configured:
		c.because("it is fenced, and nothing was set since its start: it started fenced")
	default:
		c.do(where)
		return
	}
	switch {
	case filesRead:
		// Its files do not do it, so it was started by options.
		c.Boot, c.Form = BootFenced, FormCommandLine
		c.because("its files do not fence it, so its command line does")
	case c.Rewrites > 0:
		c.because("CONFIG REWRITE or ACL SAVE was sent to it %d times since then: whether it starts fenced again depends on its files", c.Rewrites)
		c.do(where)
	default:
		c.Boot = BootFenced
		c.because("whether CONFIG REWRITE or ACL SAVE can undo it depends on its files")
		c.do(where)
	}
}

// CheckBootFile is what a file says of how a server starts: its configuration,
// or the unit that starts it. The server is asked only for the commands that write,
// for [MethodACL]. Of a node of this host includes are read where they stand; otherwise
// the file is a copy, and they are copies beside it.
func CheckBootFile(ctx context.Context, node *redlock.Node, method Method, file string) (BootCheck, error) {
	file, err := filepath.Abs(file)
	if err != nil {
		return BootCheck{}, err
	}
	f, err := readBootFile(file)
	if err != nil {
		return BootCheck{}, err
	}
	c := BootCheck{File: file, Rewrites: -1, Local: isOwnAddr(ctx, node.Addr())}
	t := BootText{Main: file, Dir: filepath.Dir(file), Read: readCopies(file)}
	if c.Local {
		t.Read = readBootFiles
	}
	if isUnit(f.Text) {
		c.Process.ExecStart = execStartOf(f.Text)
		args := serverArgs(c.Process.ExecStart)
		if args == nil {
			c.because("%s has no single ExecStart whose options of a server can be told", safetext.Escape(file))
			c.do("use the output of systemctl cat, and give the two options last")
			return c, nil
		}
		t.Args, t.ArgsKnown, t.Main = args, true, ""
	}
	if method.codec().traits().boot {
		l := dial(node, method.codec(), handTimeout)
		defer l.close()
		var write *redis.Cmd
		if err := l.send(ctx, func(p redis.Pipeliner) { write = askWrites(ctx, p) }); err == nil {
			t.Write, _ = write.StringSlice()
		}
	}
	c.BootVerdict = AssessBoot(t, method)
	return c, nil
}

// isUnit reports whether a text is a systemd unit.
func isUnit(text string) bool {
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) == "[Service]" {
			return true
		}
	}
	return false
}

// ErrWait is returned by [WaitServing] when the node does not serve in time.
var ErrWait = errors.New("the node does not serve yet")

// WaitServing returns as soon as the node answers as a master that accepts votes. It
// fails with [ErrWait] when ctx ends before, and says how the node is. Nothing is
// changed.
func WaitServing(ctx context.Context, node *redlock.Node, method Method) error {
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
			_ = sleep.For(ctx, 100*time.Millisecond)
			over = ctx.Err() != nil
		}
		if over {
			return fmt.Errorf("node %q: %w: %s", node.Name(), ErrWait, why)
		}
	}
}

// serves reports whether a node accepts votes.
func (o Observation) serves() bool {
	fenced, _ := o.Fenced()
	return o.Role == "master" && !o.Blind && !fenced && !o.Lacking
}

// whyWaiting is why a node does not serve, by a look at it; before is what was
// known. A look that failed when the wait was over was cut short by that, and says
// less than one before.
func whyWaiting(before string, o Observation, err error, over bool) string {
	_, cordoned := o.Fenced()
	switch {
	case err != nil && over && before != "":
		return before
	case err != nil:
		return err.Error()
	case o.Role != "master":
		return "its role is " + o.Role
	case o.Blind:
		return "its fence cannot be read: " + o.Err
	case cordoned:
		return "an operator has cordoned it"
	case o.Lacking:
		return fmt.Sprintf("it refuses writes for lack of replicas: %s is %d", paramMinReplicas, o.Params.MinReplicas)
	}
	return "it is fenced"
}

// Unused fails if something listens at the node's address.
func Unused(ctx context.Context, node *redlock.Node) error {
	l := dial(node, paramFence{}, handTimeout)
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

// CountKeys is how many keys, of those that match any of the patterns, the node
// holds in its database; it stops at the first few.
func CountKeys(ctx context.Context, node *redlock.Node, patterns []string) (found int, err error) {
	l := dial(node, paramFence{}, handTimeout)
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
