package cli

import (
	"fmt"
	"strings"

	"redlockctl/internal/adopt"
	"redlockctl/internal/safetext"
	"redlockctl/internal/view"
)

// mostPrefixes is how many groups of locks are shown.
const mostPrefixes = 20

// printFacts prints what was found.
func (a *commandLine) printFacts(f *adopt.Facts) {
	t := view.NewTable("NODE", "ADDR", "ROLE", "VERSION", "LOGIN", "PERSISTENCE", "EVICTION", "REPLICAS", "CLOCK", "STARTS", "FILE", "UNIT")
	ctx := a.viewContext(f.Snapshot)
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
		t.Add(plain(s.Name), plain(s.Addr), plain(s.Role), plain(s.Version), plain(s.Login()), plain(s.Persistence), plain(s.Eviction),
			plain(view.Count(s.Replicas)), view.Cell{Text: clock}, plain(s.Boot), plain(s.ConfigFile), plain(unit))
	}
	printTable(a.out, t, a.color())
	for _, s := range f.Servers {
		if s.Err != nil {
			fmt.Fprintf(a.out, "%s: %s\n", safetext.Escape(s.Name), safetext.Escape(s.Err.Error()))
		}
	}
	fmt.Fprintln(a.out)
	if len(f.Prefixes) == 0 {
		fmt.Fprintf(a.out, "no lock was seen in %s; --watch 10m looks longer\n", f.Watched)
	} else {
		p := view.NewTable("LOCKS", "SEEN", "LONGEST TTL LEFT", "MADE BY")
		for _, prefix := range f.Prefixes[:min(len(f.Prefixes), mostPrefixes)] {
			p.Add(plain(prefix.Pattern), view.Cell{Text: view.Count(prefix.Locks)}, view.Cell{Text: view.Left(prefix.Longest)}, plain(strings.Join(prefix.Libraries, ", ")))
		}
		printTable(a.out, p, a.color())
		if more := len(f.Prefixes) - mostPrefixes; more > 0 {
			fmt.Fprintf(a.out, "and %s\n", view.Plural(more, "more group"))
		}
	}
	if f.Others > 0 {
		fmt.Fprintf(a.out, "%s that cannot be a lock\n", view.Plural(f.Others, "other key"))
	}
	a.printFindings(a.out, f.Snapshot, pointers(f.Snapshot.Findings))
	fmt.Fprintln(a.out)
}

// printChanges prints what becomes of the folder.
func (a *commandLine) printChanges(f initFlags, folder adopt.Folder, changes []adopt.Change) {
	fmt.Fprintf(a.out, "%s:\n", safetext.Escape(folder.Path))
	for _, c := range changes {
		fmt.Fprintf(a.out, "  %-8s %s\n", c.Kind, safetext.Escape(c.Path))
	}
	if !f.diff {
		return
	}
	for _, c := range changes {
		for line := range strings.Lines(c.Diff) {
			fmt.Fprintln(a.out, safetext.Printable(strings.TrimRight(line, "\n")))
		}
	}
}

// initDoc is the document of what was found and planned.
func initDoc(f *adopt.Facts, folder adopt.Folder, changes []adopt.Change, written bool) initJSON {
	doc := initJSON{
		LongestTTLms: f.LongestTTL.Milliseconds(), WatchedMs: f.Watched.Milliseconds(), Folder: safetext.New(folder.Path), Written: written,
		Servers: []initServerJSON{}, Prefixes: []initPrefixJSON{}, Findings: view.DocsOfFindings(pointers(f.Snapshot.Findings), f.Snapshot.At), Files: append([]adopt.Change{}, changes...),
	}
	for _, s := range f.Servers {
		doc.Servers = append(doc.Servers, initServerJSON{
			Node: safetext.New(s.Name), Addr: safetext.New(s.Addr), Version: safetext.New(s.Version), Role: safetext.New(s.Role), Login: s.Login(), Boot: s.Boot,
			Persistence: safetext.New(s.Persistence), Eviction: safetext.New(s.Eviction), Replicas: s.Replicas,
			ConfigFile: safetext.Optional(s.ConfigFile), ACLFile: safetext.Optional(s.ACLFile), Unit: safetext.Optional(s.Unit),
			Error: safetext.OptionalError(s.Err), Users: safetext.Texts(s.Users),
		})
	}
	for _, p := range f.Prefixes {
		doc.Prefixes = append(doc.Prefixes, initPrefixJSON{Pattern: safetext.New(p.Pattern), Locks: p.Locks, LongestTTLms: p.Longest.Milliseconds(), Libraries: safetext.Texts(p.Libraries)})
	}
	return doc
}
