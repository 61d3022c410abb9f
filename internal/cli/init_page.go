package cli

import (
	"fmt"
	"strings"

	"redlockctl/internal/adopt"
	"redlockctl/internal/cli/printer"
	"redlockctl/internal/safetext"
	"redlockctl/internal/view"
)

// mostPrefixes is how many groups of locks are shown.
const mostPrefixes = 20

// initJSON is the document of init.
type initJSON struct {
	Servers  []initServerJSON `json:"servers"`
	Prefixes []initPrefixJSON `json:"prefixes"`
	// LongestTTLms is the longest remaining time that was seen of a lock.
	LongestTTLms int64             `json:"longest_ttl_ms"`
	WatchedMs    int64             `json:"looked_for_ms"`
	Findings     []view.FindingDoc `json:"findings"`
	Folder       safetext.Text     `json:"folder"`
	Files        []adopt.Change    `json:"files"`
	Written      bool              `json:"written"`
}

type initServerJSON struct {
	Node        safetext.Text   `json:"node"`
	Addr        safetext.Text   `json:"addr"`
	Error       *safetext.Text  `json:"error,omitempty"`
	Version     safetext.Text   `json:"version"`
	Role        safetext.Text   `json:"role"`
	Login       string          `json:"login"`
	Persistence safetext.Text   `json:"persistence"`
	Eviction    safetext.Text   `json:"eviction"`
	Replicas    int             `json:"replicas"`
	ConfigFile  *safetext.Text  `json:"config_file,omitempty"`
	ACLFile     *safetext.Text  `json:"acl_file,omitempty"`
	Unit        *safetext.Text  `json:"unit,omitempty"`
	Users       []safetext.Text `json:"users,omitempty"`
	Boot        string          `json:"boot"`
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

func initDoc(f *adopt.Facts, folder adopt.Folder, changes []adopt.Change, written bool) initJSON {
	doc := initJSON{
		LongestTTLms: f.LongestTTL.Milliseconds(), WatchedMs: f.Watched.Milliseconds(), Folder: safetext.New(folder.Path), Written: written,
		Servers: []initServerJSON{}, Prefixes: []initPrefixJSON{}, Findings: view.DocsOfFindings(view.Rows(f.Snapshot.Findings), f.Snapshot.At), Files: append([]adopt.Change{}, changes...),
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
