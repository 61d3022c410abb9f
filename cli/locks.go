package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"redlockctl/cli/app"
	"redlockctl/cli/exit"
	"redlockctl/cli/flags"
	"redlockctl/cli/printer"
	"redlockctl/internal/config"
	"redlockctl/internal/operator"
	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/redlock"
	"redlockctl/server/lockform"
	"redlockctl/server/safetext"
)

// locksJSON is the document of locks.
type locksJSON struct {
	view.SightDoc
	Locks []view.LockDoc `json:"locks"`
}

func (a *commandLine) locksCommand() *cobra.Command {
	var filter string
	var fast bool
	var again live
	var as flags.Listing
	cmd := as.Names(as.Add(again.add(&cobra.Command{
		Use:   "locks [NAME]",
		Short: "The locks on every master: holder, copies, remaining TTLs",
		Long: `Looks at every master once and prints a row for each lock. The column of a node
is the remaining TTL of the copy there: - no copy, lost a copy that a restart or a
wipe took, ? the node does not answer (~ its copy as last seen), … it answers but
could not be read to the end, ' another token than the holder's, which COPIES counts
after a +; a copy without a TTL says so, and a value that is not a lock shows its type.
ENDS is until when the holder can rely on the lock, MARGIN how many more copies it may
lose and still extend it, and WHO CAN GET IN (-o wide) when another client can get it
before that.
LIBRARY is the library that probably made the lock, and whether the lock consists of
several keys or ends by its value and not by a TTL. JSON has more: owner, time of
creation, what to know before
the lock is removed. --columns chooses columns, --sort sorts by one; with -o csv
the columns are the fields of JSON that say the same, with all digits.

A filter chooses by its terms, all of which must hold: a part of the name, or with
* or ? all of it (orders:*), or a regular expression (~^job:[0-9]+$);
state:WORD, node:NAME (has a copy there), holder:PART, owner:PART, lib:PART (who made it,
lib:unknown for nobody known), ttl<5s, age>1h, margin:0, copies<3; with | between
values one of them (state:split|orphaned), with ! before a term the opposite.

With a NAME it prints all that is known of that lock: holder, who made it and what
to know before it is revoked or force-released, its keys, the findings about it, and
what is left of each copy on one axis of time. Exit code 5 if no node that answers has a
copy, unless it is known that a client relies on the lock all the same.

A lock that was granted and lost copies has lost its majority: its holder relies on it
until the time that is shown. Whoever looks once cannot always tell; then it may be held
until then.

Exit code 4 if fewer than a quorum of the nodes answer, so that locks or
copies may be missing; what is known is printed all the same. With --watch it is 0.

It reads all keys of all nodes, however long that takes; for a named lock only its keys,
and with a filter on the name only matching keys. It reads a node that has other clients
with pauses, and takes only a part of a thin line; --fast has neither. If --timeout expires, standard error
and JSON ("complete": false, and which nodes) list what is missing, and the exit code is
7. With -o jsonl each lock is a line.`,
		Args:              flags.OptionalName("lock"),
		ValidArgsFunction: firstArgument(a.completeLocks, cobra.ShellCompDirectiveNoFileComp),
		Example: `redlockctl locks --filter "state:orphaned lib:redsync"
redlockctl locks --sort ends --columns name,holder,ends
redlockctl locks job:1 --watch`,
		RunE: a.run(func(ctx context.Context, args []string) error {
			if len(args) > 0 && filter != "" {
				return exit.Usagef("--filter chooses among all locks: leave the name out")
			}
			if len(args) > 0 && as.Quiet {
				return exit.Usagef("--quiet is for a list: leave the name out")
			}
			f, err := flags.Filter(filter, nil)
			if err != nil {
				return err
			}
			cfg, err := a.load()
			if err != nil {
				return err
			}
			of := app.Aim{Match: f.Pattern(), Locks: true, Starts: true}
			if len(args) > 0 {
				of = app.Aim{Keys: lockform.PossibleSiblings(args[0]), Starts: true}
			}
			of.Fast = fast
			return a.snapshots(ctx, cfg, &again, of, func(s *monitor.Snapshot) error {
				if len(args) > 0 {
					return a.showLock(cfg, s, args[0], again.set())
				}
				return a.listLocks(s, f, &as, again.set())
			})
		}),
	}), view.Heads(view.LockColumns(nil))))
	cmd.Flags().StringVar(&filter, "filter", "", "only locks that these terms choose: a part of the name, state:WORD, lib:PART, …")
	cmd.Flags().BoolVar(&fast, "fast", false, "read as fast as the nodes answer: their other clients wait longer")
	_ = cmd.RegisterFlagCompletionFunc("filter", a.completeFilter)
	return cmd
}

// listLocks prints the locks that match a filter. again: more snapshots follow.
func (a *commandLine) listLocks(s *monitor.Snapshot, f monitor.Filter, as *flags.Listing, again bool) error {
	if err := f.Check(s.Nodes); err != nil {
		return exit.Usage(err)
	}
	columns := view.LockColumns(s.Nodes)
	locks, err := flags.Sorted(as, columns, matching(s, f.At(s.At)))
	switch {
	case err != nil:
	case as.Quiet:
		for _, l := range locks {
			a.Names(l.Key.Raw())
		}
	case a.Output == "json":
		err = printLocksJSON(a.Out, s, locks)
	case a.Output == "jsonl":
		err = printLockLines(a.Out, s, locks, again)
	case len(locks) == 0 && a.Output != "csv":
		fmt.Fprintln(a.Out, view.NoLocks(s))
		if hint := f.Hint(); hint != "" {
			a.Note("filter: %s", safetext.Printable(hint))
		}
	default:
		err = printer.List(a.Printer, as.Columns, a.ViewContext(s), columns, locks, func(l *monitor.Lock) any { return view.DocOfLock(l, s) })
	}
	if err != nil {
		return err
	}
	if again {
		return nil // the copies are marked; the reason was printed before
	}
	a.noteUnread(s)
	if view.Answering(s) < s.Cluster.Quorum {
		return exit.Silently(redlock.ErrNoQuorum) // there may be locks that no node reported
	}
	return nil
}

// noteUnread says whose copies are unknown, a line for each reason.
func (a *commandLine) noteUnread(s *monitor.Snapshot) {
	unread, hidden := causes{}, ""
	if view.MayHide(s) {
		hidden = ", and so are locks that have no others, unless a guard announces them"
	}
	for i := range s.Nodes {
		switch n := &s.Nodes[i]; {
		case n.State == monitor.NodeDenied:
			unread.add(n.Name, n.State.String()+": its copies are unknown: "+n.Err.String())
		case !n.State.Readable():
			unread.add(n.Name, n.State.String()+": its copies are unknown"+hidden)
		}
	}
	for cause, nodes := range unread.all() {
		if strings.Contains(nodes, ", ") {
			a.Note("%s are %s", nodes, strings.Replace(cause, "its copies", "their copies", 1))
		} else {
			a.Note("%s is %s", nodes, cause)
		}
	}
}

// causes are the nodes of which something is not known, by why.
type causes map[string][]string

func (c causes) add(node, why string) { c[why] = append(c[why], node) }

// all returns each cause with its nodes, both safe to print, and with what to do where rights are missing.
func (c causes) all() iter.Seq2[string, string] {
	return func(yield func(cause, nodes string) bool) {
		for _, why := range slices.Sorted(maps.Keys(c)) {
			nodes := slices.Sorted(slices.Values(c[why]))
			if strings.Contains(why, "NOPERM") {
				why += "; " + exit.Rights
			}
			if !yield(why, safetext.Printable(strings.Join(nodes, ", "))) {
				return
			}
		}
	}
}

// locksEndJSON is the last line after the locks: it says that the list ends, or that
// locks are missing.
type locksEndJSON struct {
	view.SightDoc
	Count int `json:"count"` // of the lines before
}

// lockLineJSON is a line with one lock.
type lockLineJSON struct {
	Cluster  safetext.Text `json:"cluster"`
	Complete bool          `json:"complete"`
	view.LockDoc
}

// printLocksJSON writes one document, lock by lock, because there may be very many.
func printLocksJSON(to io.Writer, s *monitor.Snapshot, locks []*monitor.Lock) error {
	w := bufio.NewWriter(to)
	var head bytes.Buffer
	if err := printer.JSON(&head, "locks", locksJSON{SightDoc: view.DocOfSight(s), Locks: []view.LockDoc{}}); err != nil {
		return err
	}
	before, after, _ := strings.Cut(head.String(), `"locks": [`)
	_, _ = w.WriteString(before + `"locks": [`)
	var doc bytes.Buffer
	for i, l := range locks {
		line, err := safetext.Marshal(view.DocOfLock(l, s))
		if err != nil {
			return err
		}
		doc.Reset()
		if err := json.Indent(&doc, line, "    ", "  "); err != nil {
			return err
		}
		if i > 0 {
			_ = w.WriteByte(',')
		}
		_, _ = w.WriteString("\n    ")
		_, _ = w.Write(doc.Bytes())
	}
	if len(locks) > 0 {
		_, _ = w.WriteString("\n  ")
	}
	_, _ = w.WriteString(after)
	return w.Flush()
}

// printLockLines writes a line per lock, and a [locksEndJSON] if more snapshots follow or
// something is missing.
func printLockLines(to io.Writer, s *monitor.Snapshot, locks []*monitor.Lock, more bool) error {
	w := bufio.NewWriter(to)
	cluster := safetext.New(s.Cluster.Name)
	for _, l := range locks {
		if err := printer.Line(w, "lock line", lockLineJSON{cluster, s.Complete, view.DocOfLock(l, s)}); err != nil {
			return err
		}
	}
	if more || !s.Complete {
		if err := printer.Line(w, "locks end", locksEndJSON{view.DocOfSight(s), len(locks)}); err != nil {
			return err
		}
	}
	return w.Flush()
}

// lockPageJSON is the document of locks NAME.
type lockPageJSON struct {
	view.SightDoc
	Lock     *view.LockDoc     `json:"lock,omitempty"` // nil: no answering node has a copy
	Findings []view.FindingDoc `json:"findings"`       // that are about it
}

// unseen returns the error for a lock without copies: it does not exist, or too few nodes
// answer.
func unseen(cfg *config.Config, s *monitor.Snapshot, name string) error {
	answer := view.Answering(s)
	if !s.Complete {
		return fmt.Errorf("\"%s\": %w: no copy on those that could", safetext.Escape(name), exit.ErrIncomplete)
	}
	if answer < s.Cluster.Quorum {
		return fmt.Errorf("\"%s\": %w: none of the %d of %d nodes that answer has a copy",
			safetext.Escape(name), redlock.ErrNoQuorum, answer, s.Cluster.N)
	}
	err := notLocked(cfg, name, answer, s.Cluster.N)
	if part := strings.Trim(name, "*?"); part != name && part != "" {
		return fmt.Errorf("%w; for all locks whose name has a part: redlockctl locks --filter %s", err, safetext.Escape(part))
	}
	return err
}

// notLocked is the error for a lock without a copy. It says too if somebody may rely on it because it was
// force-released.
func notLocked(cfg *config.Config, name string, answer, of int) error {
	err := operator.NotLocked(name, answer, of)
	if relies := app.KeptBy(cfg).ForceReleased(name, nil, time.Now()); relies != "" {
		return fmt.Errorf("%w; %s", err, safetext.Escape(relies))
	}
	return err
}

// showLock prints one lock. A missing lock is an error, except in a series of snapshots.
func (a *commandLine) showLock(cfg *config.Config, s *monitor.Snapshot, name string, again bool) error {
	l := s.LockNamed(name)
	about := slices.DeleteFunc(view.Rows(s.Findings), func(f *monitor.Finding) bool { return l == nil || f.Key != l.Key })
	doc := lockPageJSON{SightDoc: view.DocOfSight(s), Findings: view.DocsOfFindings(about, s.At)}
	if l != nil {
		doc.Lock = new(view.DocOfLock(l, s))
	}
	printed := false
	if l != nil || again {
		var err error
		if printed, err = a.Document("lock", doc); err != nil {
			return err
		}
	}
	switch {
	case l == nil && !again:
		return unseen(cfg, s, name)
	case printed:
	case l == nil:
		fmt.Fprintf(a.Out, "%s: no node that answers has a copy\n", safetext.Escape(name))
	default:
		a.printLock(cfg, s, l, about)
	}
	if !again && view.Answering(s) < s.Cluster.Quorum {
		return exit.Silently(redlock.ErrNoQuorum) // its copies elsewhere are not known
	}
	return nil
}

// axisWidth is how many cells the axis of remaining time has.
const axisWidth = 32

func (a *commandLine) printLock(cfg *config.Config, s *monitor.Snapshot, l *monitor.Lock, findings []*monitor.Finding) {
	ctx := a.ViewContext(s)
	state := ctx.LockStateOf(l)
	copies, end := view.Copies(l)+" copies", view.LockEnd(ctx, l)
	if strings.HasPrefix(end, state.Text) { // it already says the state
		fmt.Fprintf(a.Out, "%s: %s, %s\n", l.Key, a.Paint(end, state.Tone), copies)
	} else {
		fmt.Fprintf(a.Out, "%s: %s, %s, %s\n", l.Key, a.Paint(state.Text, state.Tone), copies, end)
	}
	band := a.holdersOf(l)
	ctx.Holders = band.Grants
	before := app.KeptBy(cfg).ForceReleased(l.Key.Raw(), l, time.Now())
	a.Facts(append([]view.Fact{{Label: "Earlier", Text: safetext.Escape(before), Tone: view.Bad}}, view.LockFacts(ctx, l)...))
	axis := view.Axis(ctx, l)
	t := view.NewTable("NODE", "COPY", "NOTE")
	if axis > 0 {
		t = view.NewTable("NODE", "COPY", view.AxisLabels(axis, axisWidth), "NOTE")
	}
	for _, b := range view.LockBars(ctx, l, axis, axisWidth) {
		cells := []view.Cell{{Text: b.Node, Tone: b.State.Tone}, b.Left, b.Note}
		if axis > 0 {
			cells = slices.Insert(cells, 2, b.Bar)
		}
		t.Add(cells...)
	}
	fmt.Fprintln(a.Out)
	a.Table(t)
	if len(band.Grants) > 0 {
		fmt.Fprintln(a.Out)
		a.Facts(view.MakerFacts(ctx, l, band.Grants))
		a.Facts(band.Lines(ctx, mostHolders))
	}
	a.printFindings(s, findings)
}

// mostHolders is the number of holders that a lock's page shows.
const mostHolders = 8

// holdersOf returns who held a lock in the last hour, if that is recorded here.
func (a *commandLine) holdersOf(l *monitor.Lock) (band view.Band) {
	r, err := a.openRecord("")
	if err != nil {
		return band // history says why
	}
	defer r.Close()
	now := time.Now()
	band, _ = app.BandOf(r, l.Key.Raw(), now.Add(-time.Hour), now)
	return band.AsSeen(l)
}
