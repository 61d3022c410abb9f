package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"redlockctl/cli/adopt"
	"redlockctl/cli/exit"
	"redlockctl/cli/flags"
	"redlockctl/cli/printer"
	"redlockctl/internal/acl"
	"redlockctl/internal/config"
	"redlockctl/internal/operator"
	"redlockctl/internal/view"
	"redlockctl/server/safetext"
)

// initCheckJSON is the document of init --check.
type initCheckJSON struct {
	Folder    safetext.Text `json:"folder"`
	Steps     []adopt.Step  `json:"steps"`
	Protected bool          `json:"protected_at_next_crash"`
	// LeftToDo says in one line what is left to do; missing: nothing.
	LeftToDo *safetext.Text `json:"left_to_do,omitempty"`
}

// initFlags are the flags of init.
type initFlags struct {
	out                      string
	watch                    time.Duration
	patterns, libraries      []string
	withoutGuard, ansible    bool
	kubernetes               string
	yes, dryRun, diff, check bool
	beforeUndo, users        string
}

// defaultLook is long enough for findings that need time to settle.
const defaultLook = 5 * time.Second

func (a *commandLine) initCommand() *cobra.Command {
	var f initFlags
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Bring running masters under a guard: look, and write what to install",
		Long: `Looks at the masters of --nodes and changes nothing there: role, version,
persistence, logins, files, locks and their libraries, the longest TTL, and what
doctor finds. Then it asks what only you can know, or takes it from flags with
--yes, and writes one folder: configuration, new users, what starts each master
fenced, the guard's unit, and RUNBOOK.md with the commands, in order, and how to
undo each. No master has to be restarted to be protected at its next crash.

A second run with the same answers changes nothing; passwords in the folder are
kept. --dry-run writes nothing; --diff writes nothing either, and shows each
change.

--check reads everything back from the servers: what is done, what is next, what
is wrong. Exit code 0 when all masters are protected at their next crash and
nothing is wrong, else 1. --before-undo says instead whether a step can be undone
now: not while a master is fenced or down, or would start fenced without a guard.
--users is logged in the audit log, with the users' names and no passwords.

Without a guard (--without-guard): a systemd drop-in for each master that waits
before each start for as long as a lock can live.`,
		Example: `redlockctl init --nodes 10.0.0.1:6379,10.0.0.2:6379,10.0.0.3:6379 --watch 10m
redlockctl init --nodes 10.0.0.1:6379,10.0.0.2:6379,10.0.0.3:6379 --cluster orders --max-ttl 30s --yes
redlockctl init --check --out redlockctl-orders`,
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("kubernetes") && f.kubernetes == "" { // an empty variable must not mean that none are wanted
				return errors.New("--kubernetes names no image")
			}
			return flags.NoArgs(cmd, args)
		},
		RunE: a.run(func(ctx context.Context, _ []string) error {
			switch {
			case f.check && len(a.named.Nodes) > 0 && a.nodesBy == "":
				return exit.Usagef("--check and --nodes: --check takes the masters from the folder of --out")
			case f.check && f.out == "":
				return exit.Usagef("--check: name the folder by --out")
			case f.beforeUndo != "" && !f.check:
				return exit.Usagef("--before-undo belongs to --check")
			case slices.ContainsFunc(f.patterns, func(p string) bool { return strings.TrimSpace(p) == "" }):
				return exit.Usagef("--pattern is empty: no key is a lock then; --pattern '*' means all keys")
			case f.beforeUndo != "" && !slices.Contains(adopt.Undoable, f.beforeUndo):
				return exit.Usagef("--before-undo %q: is none of %s", f.beforeUndo, strings.Join(adopt.Undoable, ", "))
			case f.beforeUndo != "":
				return adopt.MayUndo(ctx, adopt.Folder{Path: f.out}, f.beforeUndo, a.Getenv)
			case f.check:
				return a.initCheck(ctx, f)
			case f.users != "" && f.users != adopt.MakeUsers && f.users != adopt.DeleteUsers:
				return exit.Usagef("--users %q: is neither %s nor %s", f.users, adopt.MakeUsers, adopt.DeleteUsers)
			case f.users != "" && f.out == "":
				return exit.Usagef("--users: name the folder by --out")
			case len(a.named.Nodes) == 0:
				return exit.Usagef("--nodes is missing: name all masters, such as --nodes 10.0.0.1:6379,10.0.0.2:6379,10.0.0.3:6379")
			case f.users != "":
				return a.initUsers(ctx, f)
			}
			return a.init(ctx, f)
		}),
	}
	fl := cmd.Flags()
	fl.StringVar(&f.out, "out", "", "the folder (default ./redlockctl-CLUSTER)")
	fl.DurationVar(&f.watch, "watch", defaultLook, "how long to look: a longer look sees more locks and their TTLs")
	fl.StringArrayVar(&f.patterns, "pattern", nil, "which keys are locks (lock_patterns)")
	fl.StringSliceVar(&f.libraries, "library", nil, "the lock libraries of the clients, such as redsync; or all; default: all that keep a lock in one string")
	fl.BoolVar(&f.withoutGuard, "without-guard", false, "no guard: a delay before each start of a master")
	fl.BoolVar(&f.ansible, "ansible", false, "write an Ansible playbook with roles as well")
	fl.StringVar(&f.kubernetes, "kubernetes", "", "write manifests (kustomize) of two guards in Kubernetes as well, with this image")
	fl.BoolVar(&f.yes, "yes", false, "ask nothing")
	fl.BoolVar(&f.dryRun, "dry-run", false, "write nothing")
	fl.BoolVar(&f.diff, "diff", false, "show what would change in the folder, and write nothing")
	fl.BoolVar(&f.check, "check", false, "read back from the servers which steps of the runbook in --out are done")
	fl.StringVar(&f.beforeUndo, "before-undo", "", "with --check: whether this step can be undone now ("+flags.Either(adopt.Undoable)+")")
	fl.StringVar(&f.users, "users", "", "make the users of the folder in --out on the masters of --nodes, or delete them, as users.sh does: make or delete")
	cmd.MarkFlagsMutuallyExclusive("users", "check")
	_ = cmd.RegisterFlagCompletionFunc("users", cobra.FixedCompletions([]string{adopt.MakeUsers, adopt.DeleteUsers}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("before-undo", cobra.FixedCompletions(adopt.Undoable, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("library", cobra.FixedCompletions(append([]string{"all"}, acl.LibraryNames()...), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (a *commandLine) init(ctx context.Context, f initFlags) error {
	asked := adopt.Answers{Kubernetes: f.kubernetes, WithoutGuard: f.withoutGuard, Cert: a.named.Cert, Key: a.named.Key}
	if err := asked.Check(); err != nil { // before a look that may take minutes
		return exit.Usage(err)
	}
	cfg, err := a.load()
	if err != nil {
		return err
	}
	done := a.ProgressFor("looking at the masters", f.watch)
	facts, err := adopt.Look(ctx, cfg, f.watch)
	done()
	if err != nil {
		return err
	}
	_ = a.incomplete(facts.Snapshot) // reported above; the answers are what counts
	if a.Output != "json" {
		a.printFacts(facts)
	}
	answers, err := a.initAnswers(ctx, f, facts)
	if err != nil {
		return err
	}
	folder := f.folder(answers.Cluster)
	secrets, err := folder.Secrets()
	if err != nil {
		return err
	}
	plan, err := adopt.Plan(facts, answers, secrets)
	if err != nil {
		return err
	}
	changes, err := folder.Changes(plan)
	if err != nil {
		return err
	}
	differs := slices.ContainsFunc(changes, func(c adopt.Change) bool { return c.Kind != adopt.Same })
	if a.Output != "json" {
		a.printChanges(f, folder, changes)
	}
	write := differs && !f.dryRun && !f.diff
	if write && !f.yes {
		if err := a.initConfirm(ctx, folder); err != nil {
			return err
		}
	}
	if write {
		if err := folder.Write(plan); err != nil {
			return err
		}
	}
	left := view.LeftToDo{}
	if write || !differs {
		// The folder of --without-guard has nothing to check.
		if p, err := adopt.Check(ctx, folder, a.Getenv); err == nil {
			left = p.Left
		}
	}
	if a.Output == "json" {
		return a.JSON("init", initDoc(facts, folder, changes, write, left))
	}
	defer a.printLeft(left)
	switch {
	case write:
		fmt.Fprintf(a.Out, "\nNothing else was changed. Next: read %s and run its commands.\n", safetext.Escape(filepath.Join(folder.Path, "RUNBOOK.md")))
	case differs:
		fmt.Fprintln(a.Out, "\nNothing was written.")
	default:
		fmt.Fprintf(a.Out, "\nNothing to change. How far the runbook is: redlockctl init --check --out %s\n", safetext.New(folder.Path).Word())
	}
	return nil
}

// initUsers makes or deletes the users of the folder on the masters, for users.sh.
func (a *commandLine) initUsers(ctx context.Context, f initFlags) error {
	if err := a.tableOnly("what became of each master is a line"); err != nil {
		return err
	}
	return a.act(nil, func(_ *config.Config, op *operator.Operator) error {
		return adopt.Folder{Path: f.out}.ChangeUsers(ctx, op, f.users, func(node, what string) {
			fmt.Fprintf(a.Out, "%s: %s\n", safetext.Escape(node), what)
		})
	})
}

func (f initFlags) folder(cluster string) adopt.Folder {
	return adopt.Folder{Path: cmp.Or(f.out, "redlockctl-"+adopt.Instance(cluster))}
}

// initAnswers collects the answers: from flags, from an existing folder, and by asking.
func (a *commandLine) initAnswers(ctx context.Context, f initFlags, facts *adopt.Facts) (adopt.Answers, error) {
	named := a.named
	answers := adopt.Answers{
		Cluster: a.cluster, Patterns: f.patterns, Libraries: f.libraries, WithoutGuard: f.withoutGuard, Ansible: f.ansible, Kubernetes: f.kubernetes,
		ServerName: named.ServerName,
	}
	for to, path := range map[*string]string{&answers.Cert: named.Cert, &answers.Key: named.Key} {
		if path == "" {
			continue
		}
		full, err := filepath.Abs(path)
		if err != nil {
			return answers, err
		}
		*to = full
	}
	if named.CA != "" {
		b, err := os.ReadFile(named.CA)
		if err != nil {
			return answers, err
		}
		answers.CA = string(b)
	}
	asks := !f.yes && a.InTTY && a.ErrTTY
	if answers.Cluster == "" && asks {
		if err := a.question(ctx, "Name of the cluster", "redlock", &answers.Cluster); err != nil {
			return answers, err
		}
	}
	answers.Cluster = cmp.Or(answers.Cluster, "redlock")
	before := a.folderConfig(f.folder(answers.Cluster).Path)
	if before != nil && a.cluster == "" {
		answers.Cluster = before.Cluster.Name
	}
	return answers, a.initLimits(ctx, asks, named.MaxTTL, facts, before, &answers)
}

func (a *commandLine) initLimits(ctx context.Context, asks bool, maxTTL string, facts *adopt.Facts, before *config.Config, answers *adopt.Answers) error {
	proposed, patterns := facts.MaxTTL(), facts.Patterns()
	if before != nil {
		proposed, patterns = before.Cluster.MaxTTL, before.Cluster.LockPatterns
	}
	if maxTTL == "" && asks {
		def := ""
		if proposed > 0 {
			def = view.Span(proposed)
		}
		if err := a.question(ctx, "Longest TTL of any client, also of those that were not seen", def, &maxTTL); err != nil {
			return err
		}
	} else if maxTTL == "" && before != nil {
		maxTTL = proposed.String()
	}
	var err error
	if answers.MaxTTL, err = facts.ReadMaxTTL(maxTTL); err != nil {
		return exit.Usage(err)
	}
	if len(answers.Patterns) == 0 && asks {
		text := ""
		if err := a.question(ctx, "Which keys are locks", strings.Join(patterns, " "), &text); err != nil {
			return err
		}
		patterns = strings.Fields(text)
	}
	if len(answers.Patterns) == 0 {
		answers.Patterns = patterns
	}
	return nil
}

// folderConfig returns the configuration in the folder; nil if there is none or it is not
// readable.
func (a *commandLine) folderConfig(path string) *config.Config {
	set, err := config.LoadWith([]string{filepath.Join(path, "config.toml")}, a.Getenv, config.Options{Secretless: true})
	if err != nil {
		return nil
	}
	return set.Clusters[0]
}

// question asks for one line; an empty line means the default.
func (a *commandLine) question(ctx context.Context, text, def string, to *string) error {
	if def != "" {
		text += " [" + safetext.Escape(def) + "]"
	}
	fmt.Fprintf(a.Err, "%s: ", text)
	line, err := readLine(ctx, a.In)
	if err != nil {
		fmt.Fprintln(a.Err)
		return fmt.Errorf("%w: %w", exit.ErrNotConfirmed, err)
	}
	*to = cmp.Or(strings.TrimSpace(line), def)
	return nil
}

func (a *commandLine) initConfirm(ctx context.Context, folder adopt.Folder) error {
	if !a.InTTY || !a.ErrTTY {
		return fmt.Errorf("%w: add --yes to write %s without being asked", exit.ErrNotConfirmed, safetext.Escape(folder.Path))
	}
	answer := ""
	if err := a.question(ctx, "Write the folder "+safetext.Escape(folder.Path)+"? Nothing else is changed (y/n)", "n", &answer); err != nil {
		return err
	}
	if !strings.HasPrefix(strings.ToLower(answer), "y") {
		return exit.ErrNotConfirmed
	}
	return nil
}

func (a *commandLine) initCheck(ctx context.Context, f initFlags) error {
	done := a.Progress("reading back")
	p, err := adopt.Check(ctx, adopt.Folder{Path: f.out}, a.Getenv)
	done()
	if err != nil {
		return err
	}
	wrong := !p.Protected || slices.ContainsFunc(p.Steps, func(s adopt.Step) bool { return s.State == adopt.Wrong })
	if a.Output == "json" {
		err = a.JSON("init check", initCheckJSON{safetext.New(f.out), p.Steps, p.Protected, safetext.Optional(p.Left.Text())})
	} else {
		tone := map[adopt.State]view.Tone{adopt.Done: view.Good, adopt.Next: view.Warn, adopt.Wrong: view.Bad}
		for _, s := range p.Steps {
			do := ""
			if s.Do != "" {
				do = "; do: " + s.Do
			}
			fmt.Fprintf(a.Out, "%s %-7s %s%s\n", a.Paint(fmt.Sprintf("%-6s", s.State), tone[s.State]), s.Name, safetext.Printable(s.Text), do)
		}
		fmt.Fprintf(a.Out, "protected at the next crash: %s\n", map[bool]string{true: "yes", false: "no"}[p.Protected])
		a.printLeft(p.Left)
	}
	if err == nil && wrong {
		err = exit.Silently(errors.New("not protected yet, or something is wrong"))
	}
	return err
}

// mostPrefixes is how many groups of locks are shown.
const mostPrefixes = 20

// initJSON is the document of init.
type initJSON struct {
	Servers  []initServerJSON `json:"servers"`
	Prefixes []initPrefixJSON `json:"prefixes"`
	// LongestTTLms is the longest TTL that was seen.
	LongestTTLms int64             `json:"longest_ttl_ms"`
	WatchedMs    int64             `json:"looked_for_ms"`
	Findings     []view.FindingDoc `json:"findings"`
	Folder       safetext.Text     `json:"folder"`
	Files        []adopt.Change    `json:"files"`
	Written      bool              `json:"written"`
	// LeftToDo says in one line what is left to do; missing: nothing, or that was not looked at.
	LeftToDo *safetext.Text `json:"left_to_do,omitempty"`
}

type initServerJSON struct {
	adopt.Server
	Login string         `json:"login"`
	Error *safetext.Text `json:"error,omitempty"`
}

type initPrefixJSON struct {
	Pattern      safetext.Text   `json:"pattern"`
	Locks        int             `json:"locks"`
	Libraries    []safetext.Text `json:"libraries,omitempty"`
	LongestTTLms int64           `json:"longest_ttl_ms"`
}

func (a *commandLine) printFacts(f *adopt.Facts) {
	t := view.NewTable("NODE", "ADDR", "ROLE", "VERSION", "LOGIN", "PERSISTENCE", "EVICTION", "REPLICAS", "CLOCK", "STARTS", "FILE", "UNIT")
	ctx := a.ViewContext(f.Snapshot)
	for i := range f.Servers {
		s, n := &f.Servers[i], &f.Snapshot.Nodes[i]
		clock := ""
		if n.Offset.Valid {
			clock = ctx.Offset(n.Offset)
		}
		unit := s.Unit
		if s.Guessed {
			unit += " (?)"
		}
		t.Add(printer.Plain(s.Name), printer.Plain(s.Addr), printer.Plain(s.Role), printer.Plain(s.Version), printer.Plain(s.Login()), printer.Plain(s.Persistence), printer.Plain(s.Eviction),
			printer.Plain(view.Count(s.Replicas)), view.Cell{Text: clock}, printer.Plain(s.Boot), printer.Plain(s.ConfigFile), printer.Plain(unit))
	}
	a.Table(t)
	for _, s := range f.Servers {
		if s.Err != nil {
			fmt.Fprintf(a.Out, "%s: %s\n", safetext.Escape(s.Name), safetext.Escape(s.Err.Error()))
		}
	}
	fmt.Fprintln(a.Out)
	if len(f.Prefixes) == 0 {
		fmt.Fprintf(a.Out, "no lock was seen in %s; --watch 10m looks longer\n", f.Watched)
	} else {
		p := view.NewTable("LOCKS", "SEEN", "LONGEST TTL LEFT", "MADE BY")
		for _, prefix := range f.Prefixes[:min(len(f.Prefixes), mostPrefixes)] {
			p.Add(printer.Plain(prefix.Pattern), view.Cell{Text: view.Count(prefix.Locks)}, view.Cell{Text: view.Left(prefix.Longest)}, printer.Plain(strings.Join(prefix.Libraries, ", ")))
		}
		a.Table(p)
		if more := len(f.Prefixes) - mostPrefixes; more > 0 {
			fmt.Fprintf(a.Out, "and %s\n", view.Plural(more, "more group"))
		}
	}
	if f.Others > 0 {
		fmt.Fprintf(a.Out, "%s that cannot be a lock\n", view.Plural(f.Others, "other key"))
	}
	a.printFindings(f.Snapshot, view.Rows(f.Snapshot.Findings))
	fmt.Fprintln(a.Out)
}

func (a *commandLine) printChanges(f initFlags, folder adopt.Folder, changes []adopt.Change) {
	fmt.Fprintf(a.Out, "%s:\n", safetext.Escape(folder.Path))
	for _, c := range changes {
		fmt.Fprintf(a.Out, "  %-8s %s\n", c.Kind, safetext.Escape(c.Path))
	}
	if !f.diff {
		return
	}
	for _, c := range changes {
		for line := range strings.Lines(c.Diff) {
			fmt.Fprintln(a.Out, safetext.Printable(strings.TrimRight(line, "\n")))
		}
	}
}

func initDoc(f *adopt.Facts, folder adopt.Folder, changes []adopt.Change, written bool, left view.LeftToDo) initJSON {
	doc := initJSON{
		LongestTTLms: f.LongestTTL.Milliseconds(), WatchedMs: f.Watched.Milliseconds(), Folder: safetext.New(folder.Path), Written: written, LeftToDo: safetext.Optional(left.Text()),
		Servers: []initServerJSON{}, Prefixes: []initPrefixJSON{}, Findings: view.DocsOfFindings(view.Rows(f.Snapshot.Findings), f.Snapshot.At), Files: append([]adopt.Change{}, changes...),
	}
	for _, s := range f.Servers {
		doc.Servers = append(doc.Servers, initServerJSON{s, s.Login(), safetext.OptionalError(s.Err)})
	}
	for _, p := range f.Prefixes {
		doc.Prefixes = append(doc.Prefixes, initPrefixJSON{Pattern: safetext.New(p.Pattern), Locks: p.Locks, LongestTTLms: p.Longest.Milliseconds(), Libraries: safetext.Texts(p.Libraries)})
	}
	return doc
}
