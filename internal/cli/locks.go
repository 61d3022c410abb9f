package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"redlockctl/internal/app"
	"redlockctl/internal/lockform"
	"redlockctl/internal/safetext"
	"redlockctl/monitor"
	"redlockctl/redlock"
)

// locksJSON is the document of locks.
type locksJSON struct {
	clusterJSON
	Locks []lockJSON `json:"locks"`
}

func (a *commandLine) locksCommand() *cobra.Command {
	var filter string
	var again live
	cmd := again.add(&cobra.Command{
		Use:   "locks [NAME]",
		Short: "The locks on every master: holder, copies, remaining TTLs",
		Long: `Looks at every master once and prints a row for each lock. The column of a node
is the remaining TTL of the copy there: - no copy, ? the node does not answer
(~ its copy as last seen), … it answers but could not be read to the end, ' another token than the holder's, which COPIES counts
behind a +; a copy that never ends says so, and a value that is no lock is named by its type. ENDS is when
the holder falls below a quorum, MARGIN how many copies may be lost before
another client can reach one: 0 is a lock one restart away from two holders.
MADE BY is the library whose locks look so, where another than this program is
known, with what the lock tells: that it is several keys, or ends by its value
and not by a TTL. JSON has more: owner, time of creation, what to know before
the lock is taken away.

A filter chooses by its terms, all of which must hold: a part of the name, or with
* or ? all of it (orders:*);
state:WORD, node:NAME (has a copy there), holder:PART, lib:PART (who made it,
lib:unknown for nobody known), ttl<5s, age>1h, margin:0, copies<3; with ! before
a term, the opposite.

With a NAME it prints all that is known of that lock: holder, who made it and what
to know before it is taken away, its keys, the findings about it, and what is left
of each copy on one axis of time. Exit code 5 if no node that answers has a copy.

Exit code 4 if fewer than a quorum of the nodes answer, so that locks may be missing;
what is known is printed all the same. With --watch it is 0.

All keys of all nodes are read, however long that takes: a lock that is named by its
name alone, and where the filter fixes a part of the names only those. What
--timeout cuts off is said on standard error and in JSON ("complete": false, and
which nodes), and the exit code is 7. With -o jsonl each lock is a line.`,
		Args:              optionalName("lock"),
		ValidArgsFunction: a.completeLocks,
		Example: `redlockctl locks --filter "state:orphan lib:redsync"
redlockctl locks job:1 --watch`,
		RunE: a.run(func(ctx context.Context, args []string) error {
			if len(args) > 0 && filter != "" {
				return usageError{errors.New("--filter chooses among all locks: leave the name out")}
			}
			if openQuote(filter) {
				return usageError{errors.New("--filter: a double quote is not closed")}
			}
			f := monitor.ParseFilter(filter)
			if err := f.Check(nil); err != nil {
				return usageError{err}
			}
			cfg, err := a.load()
			if err != nil {
				return err
			}
			of := app.Aim{Match: f.Pattern(), Locks: true}
			if len(args) > 0 {
				of = app.Aim{Keys: lockform.PossibleSiblings(args[0])}
			}
			return a.pictures(ctx, cfg, &again, of, func(s *monitor.Snapshot) error {
				if len(args) > 0 {
					return a.showLock(s, args[0], again.set())
				}
				if err := f.Check(s.Nodes); err != nil {
					return usageError{err}
				}
				locks := matching(s, f.At(s.At))
				switch a.output {
				case "json":
					err = printLocksJSON(a.out, s, locks)
				case "jsonl":
					err = printLockLines(a.out, s, locks, again.set())
				default:
					a.printLocks(a.out, s, locks)
				}
				if err != nil {
					return err
				}
				if again.set() {
					return nil // the copies are marked, and once is enough to say why
				}
				for _, n := range s.Nodes {
					switch n.State {
					case monitor.NodeServing, monitor.NodeFenced, monitor.NodeHeld:
					default:
						fmt.Fprintf(a.errOut, "redlockctl: %s is %s: its copies are unknown\n", printable(n.Name), n.State)
					}
				}
				if answering(s) < s.Cluster.Quorum {
					return silent{redlock.ErrNoQuorum} // a lock may be there that nobody tells of
				}
				return nil
			})
		}),
	})
	cmd.Flags().StringVar(&filter, "filter", "", "only locks that these terms choose: a part of the name, state:WORD, lib:PART, …")
	return cmd
}

// openQuote tells if a term of a filter begins with a double quote that is not
// closed: in a screen it is still being typed, in a command it is a mistake.
func openQuote(filter string) bool {
	for {
		filter = strings.TrimPrefix(strings.TrimLeft(filter, " \t\r\n"), "!")
		if filter == "" {
			return false
		}
		quoted, closed := strings.CutPrefix(filter, `"`)
		if closed {
			if _, filter, closed = strings.Cut(quoted, `"`); !closed {
				return true
			}
		} else if i := strings.IndexAny(filter, " \t\r\n"); i >= 0 {
			filter = filter[i:]
		} else {
			return false
		}
	}
}

// locksEndJSON is the line behind the locks, where a reader has to know that there
// are no more, or that some are missing.
type locksEndJSON struct {
	clusterJSON
	Count int `json:"count"` // of the lines before
}

// lockLineJSON is a lock on a line of its own.
type lockLineJSON struct {
	Cluster  safetext.Text `json:"cluster"`
	Complete bool          `json:"complete"`
	lockJSON
}

// printLocksJSON writes one document, a lock at a time: there may be very many.
func printLocksJSON(to io.Writer, s *monitor.Snapshot, locks []*monitor.Lock) error {
	w := bufio.NewWriter(to)
	var head bytes.Buffer
	if err := printJSON(&head, locksJSON{clusterJSON: clusterDoc(s), Locks: []lockJSON{}}); err != nil {
		return err
	}
	before, after, _ := strings.Cut(head.String(), `"locks": [`)
	_, _ = w.WriteString(before + `"locks": [`)
	var line, doc bytes.Buffer
	for i, l := range locks {
		line.Reset()
		doc.Reset()
		enc := json.NewEncoder(&line)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(lockDoc(l, s)); err != nil {
			return err
		}
		if err := json.Indent(&doc, bytes.TrimSpace(line.Bytes()), "    ", "  "); err != nil {
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

// printLockLines writes one lock a line, and a line behind them where more such
// pictures follow or something is missing.
func printLockLines(to io.Writer, s *monitor.Snapshot, locks []*monitor.Lock, more bool) error {
	w := bufio.NewWriter(to)
	cluster := text(s.Cluster.Name)
	for _, l := range locks {
		if err := printLine(w, lockLineJSON{cluster, s.Complete, lockDoc(l, s)}); err != nil {
			return err
		}
	}
	if more || !s.Complete {
		if err := printLine(w, locksEndJSON{clusterDoc(s), len(locks)}); err != nil {
			return err
		}
	}
	return w.Flush()
}

// matching are the locks that a filter chooses, sorted by key.
func matching(s *monitor.Snapshot, f monitor.Filter) []*monitor.Lock {
	var kept []*monitor.Lock
	for l := range s.Locks.All() {
		if f.Match(l, s.Nodes) {
			kept = append(kept, l)
		}
	}
	return kept
}

// printLocks prints the table of locks.
func (a *commandLine) printLocks(w io.Writer, s *monitor.Snapshot, locks []*monitor.Lock) {
	if len(locks) == 0 {
		switch answering(s) {
		case 0:
			fmt.Fprintln(w, "no node answers: what is locked is not known")
			return
		}
		switch n := answering(s); {
		case !s.Complete:
			fmt.Fprintln(w, "no locks among the keys that have been read")
		case n == len(s.Nodes):
			fmt.Fprintln(w, "no locks")
		default:
			fmt.Fprintf(w, "no locks on the %d of %d nodes that answer\n", n, len(s.Nodes))
		}
		return
	}
	// A column that is empty, or names only this program, would be in the way.
	wide := a.output == "wide"
	forms := wide || slices.ContainsFunc(locks, func(l *monitor.Lock) bool {
		by := madeBy(l, s.At)
		return by != "" && by != ownLibrary
	})
	t := &table{head: []string{"NAME", "STATE", "COPIES"}}
	for _, n := range s.Nodes {
		t.head = append(t.head, safetext.Escape(n.Name))
	}
	t.head = append(t.head, "ENDS", "MARGIN")
	if forms {
		t.head = append(t.head, "MADE BY")
	}
	if wide {
		t.head = append(t.head, "OWNER", "TOKENS", "KEYS", "SEEN FOR")
	}
	t.head = append(t.head, "HOLDER")
	t.each = func(yield func([]cell) bool) {
		for _, l := range locks {
			if !yield(a.lockRow(l, s, forms, wide)) {
				return
			}
		}
	}
	t.write(w, a.color())
}

// lockRow are the cells of a lock.
func (a *commandLine) lockRow(l *monitor.Lock, s *monitor.Snapshot, forms, wide bool) []cell {
	row := []cell{
		{text: a.cut(l.Key.String(), 60)},
		{text: l.State.String(), tone: lockTone(l.State)},
		{text: copiesOf(l, s)},
	}
	for i := range s.Nodes {
		c := cell{text: "?"}
		if i < l.Copies.Len() {
			c = a.copyCell(l.Copies.At(i), l, s)
		}
		row = append(row, c)
	}
	ends, margin := "-", "-"
	if !l.MajorityEnd.IsZero() {
		ends = left(l.MajorityEnd.Sub(s.At))
	}
	if l.Held >= s.Cluster.Quorum {
		margin = strconv.Itoa(l.Margin())
	}
	row = append(row, cell{text: ends}, cell{text: margin})
	if forms {
		row = append(row, cell{text: a.cut(madeBy(l, s.At), 48)})
	}
	if wide {
		row = append(row, wideLock(l, s)...)
	}
	holder := cell{text: a.cut(l.Holder.String(), 48)}
	if l.Nobody {
		holder = cell{text: l.NobodyText(), tone: toneBad}
	}
	return append(row, holder)
}

// wideLock are the columns that there is no room for in most terminals.
func wideLock(l *monitor.Lock, s *monitor.Snapshot) []cell {
	owner, keys, seen := "-", "-", cmp.Or(seenFor(l, s), "-")
	if l.Form != nil && !l.Form.Owner.Empty() {
		owner = l.Form.Owner.String()
	}
	if len(l.Keys) > 1 {
		names := make([]string, len(l.Keys))
		for i, k := range l.Keys {
			names[i] = k.String()
		}
		keys = strings.Join(names, " ")
	}
	return []cell{{text: owner}, {text: strconv.Itoa(l.Tokens)}, {text: keys}, {text: seen}}
}

// copiesOf is how many of the nodes have a copy, those of other tokens apart:
// 2+1/5.
func copiesOf(l *monitor.Lock, s *monitor.Snapshot) string {
	others := -l.Held
	for _, c := range l.Copies.All() {
		if c.State == monitor.CopyPresent {
			others++
		}
	}
	if l.Tokens > 1 && others > 0 {
		return fmt.Sprintf("%d+%d/%d", l.Held, others, s.Cluster.N)
	}
	return fmt.Sprintf("%d/%d", l.Held, s.Cluster.N)
}

// seenFor is for how long the holder was seen; empty where it was there when the
// looking began.
func seenFor(l *monitor.Lock, s *monitor.Snapshot) string {
	if seen := s.At.Sub(l.Since); !l.Since.IsZero() && seen > app.SettleTime && (l.Since.After(s.Settled) || !justCame(s)) {
		return span(seen)
	}
	return ""
}

// ownLibrary is the name of the form of this program's own locks.
const ownLibrary = "redlockctl"

// deadline is when a lock ends by its value; zero where that is not what ends
// it. A value that looks like a time means that only where there is no TTL: else
// it may as well say when the lock was made.
func deadline(l *monitor.Lock) time.Time {
	if l.Form != nil {
		for _, c := range l.Copies.All() {
			if c.State != monitor.CopyAbsent && !c.Token.Empty() && c.Expires.IsZero() {
				return l.Form.Deadline
			}
		}
	}
	return time.Time{}
}

// madeBy is who made a lock, and what its form tells that the other columns do
// not; empty where nobody knows.
func madeBy(l *monitor.Lock, now time.Time) string {
	var parts []string
	if l.Form != nil {
		parts = append(parts, l.Form.Library)
		if d := deadline(l); !d.IsZero() {
			// A time on another's wall clock: compared with ours, by whole seconds.
			if over := now.Sub(d).Truncate(time.Second); over > 0 {
				parts = append(parts, "stale for "+span(over))
			} else {
				parts = append(parts, "ends in "+span(-over))
			}
		}
		if l.Form.Companion {
			parts = append(parts, "kept beside a lock")
		}
	}
	if len(l.Keys) > 1 {
		parts = append(parts, plural(len(l.Keys), "key", "keys"))
	}
	return strings.Join(parts, ", ")
}

func lockTone(st monitor.LockState) tone {
	switch st {
	case monitor.LockHeld:
		return toneGood
	case monitor.LockExpiring, monitor.LockPartial, monitor.LockNotALock:
		return toneNone
	case monitor.LockBare, monitor.LockOrphan:
		return toneWarn
	}
	return toneBad
}

// unreadSign stands for a copy on a node that answers and has not been read yet.
func (a *commandLine) unreadSign() string {
	if a.ascii {
		return ".."
	}
	return "…"
}

func (a *commandLine) copyCell(c monitor.Copy, l *monitor.Lock, s *monitor.Snapshot) cell {
	var text string
	unknown := ""
	switch c.State {
	case monitor.CopyUnknown:
		unknown = "?"
	case monitor.CopyUnread:
		unknown = a.unreadSign()
	}
	switch {
	case c.State == monitor.CopyAbsent:
		return cell{text: "-", tone: toneDim}
	case unknown != "" && c.Type == "":
		return cell{text: unknown, tone: toneWarn}
	case c.Type != "" && c.Type != "string" && c.Token.Empty():
		text = safetext.Escape(c.Type)
	case c.Expires.IsZero():
		text = "no TTL"
	default:
		text = left(c.Expires.Sub(s.At))
	}
	if unknown != "" {
		return cell{text: unknown + "~" + text, tone: toneWarn}
	}
	if c.Token != l.Holder && (c.Type == "" || c.Type == "string" || !c.Token.Empty()) {
		return cell{text: text + "'", tone: toneBad}
	}
	return cell{text: text}
}
