package boot

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/redlock"
	"redlockctl/restartguard"
	"redlockctl/restartguard/fence"
	"redlockctl/restartguard/wire"
	"redlockctl/server/fences"
	"redlockctl/server/minreplicas"
	"redlockctl/server/safetext"
	"redlockctl/server/serverinfo"
)

// Check is what can be found out about how a server starts, without restarting it.
type Check struct {
	Verdict
	// File is the server's configuration file and Program its executable, by its INFO; empty if it
	// has none or does not tell.
	File, Program string
	// Process is how it is started, if it runs on this host. Local: it does.
	Process Process
	Local   bool
	// StartedUnfenced: a guard saw its present process start unfenced.
	StartedUnfenced bool
	// ByMemory: Boot is Fenced by what a guard remembers of that start.
	ByMemory bool
	// Rewrites is how often the present process was told to rewrite the files of its fence: by
	// CONFIG REWRITE, and with [fences.ACL] also by ACL SAVE; −1 if it does not tell.
	Rewrites int64
	// Files are the files that were read on this host.
	Files []string
	// Data is what the server does with its data after its next start.
	Data NextData
}

// CheckNode finds out whether a server would start fenced by its method. CONFIG GET cannot tell,
// because it shows the present values. The evidence, best first: the command line and the files, if
// the server runs on this host and they can be read; and that the present process started fenced,
// because a guard saw that (remembered), or because the server is fenced and nothing was set since
// its start. A file without a fence does not prove that the server starts unfenced, if its command
// line cannot be seen.
func CheckNode(ctx context.Context, node *redlock.Node, method fences.Method, remembered *restartguard.Fact) (Check, error) {
	var c Check
	if method.Kind == fences.None {
		c.Verdict = Assess(Text{}, method)
		return c, nil
	}
	l := wire.Dial(node, method, wire.HandTimeout)
	defer l.Close()
	l.Introduced = true
	o, err := l.Look(ctx)
	if err != nil {
		return c, wire.NodeError(node, err, restartguard.ErrUnreachable)
	}
	var info, stats *redis.StringCmd
	var write *redis.Cmd
	err = l.Send(ctx, func(p redis.Pipeliner) {
		info = p.Info(ctx, "server")
		stats = p.Info(ctx, "commandstats")
		if method.Kind == fences.ACL {
			write = fence.AskWrites(ctx, p)
		}
	})
	if err != nil {
		return c, wire.NodeError(node, err, restartguard.ErrUnreachable)
	}
	c.File, c.Program = serverinfo.Field(info.Val(), "config_file"), serverinfo.Field(info.Val(), "executable")
	c.Rewrites = -1
	if serverinfo.Field(stats.Val(), "cmdstat_info") != "" {
		c.Rewrites, _ = wire.CallsOf(stats.Val(), fence.Of(method).Traits().Rewrites...)
	}
	var names []string
	if write != nil {
		names, _ = write.StringSlice()
	}

	var why string
	c.Process, why = findProcess(ctx, node.Addr(), info.Val())
	c.Local = why == ""
	filesRead := false // all that its files say is known
	var changed time.Time
	switch {
	case c.Local && (c.File != "" || c.Process.ArgsKnown):
		t := Text{Args: c.Process.Args, ArgsKnown: c.Process.ArgsKnown, Main: c.File, Dir: c.Process.dir,
			Read: c.reading(&changed), Write: names, Writes: writesACLFile(c.Process.PID)}
		if t.Dir == "" && c.File != "" {
			t.Dir = filepath.Dir(c.File)
		}
		if c.Process.ExecStart != "" && len(t.Args) > 0 && filepath.IsAbs(t.Args[0]) && !strings.Contains(t.Args[0], "%") {
			t.Main = "" // the file that the unit names is the one of the next start
		}
		c.Verdict, c.Data = Assess(t, method), AssessData(t)
		_, _, err := t.readAll()
		filesRead = err == nil
		if c.Boot == Unfenced && c.contradicts(o, remembered, info.Val(), changed) {
			c.Boot, c.Form, c.Because, c.Do, filesRead = Unknown, FormUnknown, nil, nil, false
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
	if c.Boot == Unknown {
		c.byPresentProcess(o, known, filesRead, unchanged(info.Val(), changed))
	} else if c.StartedUnfenced && c.Boot == Fenced {
		c.because("a guard saw its present process start UNFENCED: whatever fences it was not there then")
	}
	c.scriptsPass(method, serverinfo.Field(info.Val(), "redis_version"))
	return c, nil
}

// contradicts reports whether the present process is known to have started fenced, and nothing has
// changed since: then something else starts the server as well.
func (c *Check) contradicts(o restartguard.Observation, remembered *restartguard.Fact, info string, changed time.Time) bool {
	fenced, _ := o.Fenced()
	seen := remembered != nil && remembered.Known && remembered.Verified && remembered.RunID == o.RunID
	if !seen && (!fenced || o.Configured) || c.Process.ExecStart != "" || c.Rewrites != 0 {
		return false
	}
	return unchanged(info, changed)
}

// reading reads files of this host, and notes their names and when the last of them was changed.
func (c *Check) reading(changed *time.Time) func(string) ([]File, error) {
	return func(pattern string) ([]File, error) {
		files, err := readFiles(pattern)
		for _, f := range files {
			if slices.Contains(c.Files, f.Path) {
				continue
			}
			c.Files = append(c.Files, f.Path)
			if is, err := os.Stat(f.Path); err == nil && is.ModTime().After(*changed) {
				*changed = is.ModTime()
			}
		}
		return files, err
	}
}

// unchanged reports whether the present process of a server started after this change of its files;
// zero: it has none.
func unchanged(info string, changed time.Time) bool {
	up, ok := serverinfo.Number(info, "uptime_in_seconds")
	return changed.IsZero() || ok && time.Since(changed) > time.Duration(up+1)*time.Second
}

// scriptsPass withdraws the verdict for a fence that scripts write through.
func (c *Check) scriptsPass(method fences.Method, version string) {
	if method.Kind != fences.MinReplicas || minreplicas.StopsScripts(version) {
		return
	}
	c.Boot = Unfenced
	c.because("scripts write through min-replicas-to-write on version %s", safetext.Escape(version))
	c.do("upgrade the server (6.0.17, 6.2.7 or 7.0), or start it late with fence = \"none\": ExecStartPre=redlockctl node wait NAME --before-start")
}

// byPresentProcess decides by how the present process started, if the files and the command line do
// not tell.
func (c *Check) byPresentProcess(o restartguard.Observation, remembered, filesRead, unchanged bool) {
	where := "run this command on the server's own host, or copy its file and use --file"
	if c.Local {
		where = "put the fence into its files, or give the unit that starts it with --file: its command line cannot be seen"
	}
	fenced, _ := o.Fenced()
	switch {
	case c.StartedUnfenced:
		c.Boot = Unfenced
		c.because("a guard saw its present process start UNFENCED")
		return
	case remembered:
		c.ByMemory = true
		c.because("a guard saw its present process start fenced")
	case fenced && !o.Configured:
		c.because("it is fenced, and nothing was set since its start: it started fenced")
	default:
		c.do("%s", where)
		return
	}
	switch {
	case filesRead && !unchanged:
		c.Boot, c.Form = Unfenced, FormNone
		c.because("but its files were changed after that, and do not fence it now")
		c.do("%s", where)
	case filesRead:
		// Its files have no fence, and had none, so its options do.
		c.Boot, c.Form = Fenced, FormCommandLine
		c.because("its files do not fence it, so its command line does")
	case c.Rewrites > 0:
		c.because("CONFIG REWRITE or ACL SAVE was sent to it %d times since then: whether it starts fenced again depends on its files", c.Rewrites)
		c.do("%s", where)
	default:
		c.Boot = Fenced
		c.because("whether CONFIG REWRITE or ACL SAVE can undo it depends on its files")
		c.do("%s", where)
	}
}

// CheckFile finds out how a server starts by a file: its configuration, or its systemd unit. The
// server is asked only for the names of its write commands, with [fences.ACL]. If the
// node runs on this host, its includes are read at their paths. Otherwise the file is a copy, and
// so are the includes beside it.
func CheckFile(ctx context.Context, node *redlock.Node, method fences.Method, file string) (Check, error) {
	file, err := filepath.Abs(file)
	if err != nil {
		return Check{}, err
	}
	f, err := readFile(file)
	if err != nil {
		return Check{}, err
	}
	c := Check{File: file, Rewrites: -1, Local: isOwnAddr(ctx, node.Addr())}
	t := Text{Main: file, Dir: filepath.Dir(file), Read: readCopies(file)}
	if c.Local {
		t.Read = readFiles
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
	if method.Kind == fences.ACL {
		l := wire.Dial(node, method, wire.HandTimeout)
		defer l.Close()
		var write *redis.Cmd
		if err := l.Send(ctx, func(p redis.Pipeliner) { write = fence.AskWrites(ctx, p) }); err == nil {
			t.Write, _ = write.StringSlice()
		}
	}
	c.Verdict = Assess(t, method)
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
