package view

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"redlockctl/internal/audit"
	"redlockctl/monitor"
	"redlockctl/restartguard"
	"redlockctl/server/announce"
	"redlockctl/server/lockform"
	"redlockctl/server/minreplicas"
	"redlockctl/server/safetext"
	"redlockctl/server/safetext/safetexttest"
)

var update = flag.Bool("update", false, "write what is generated anew")

// epoch is the time of the snapshots in these tests.
var epoch = time.Date(2026, 11, 20, 12, 3, 10, 0, time.UTC)

// sample is a cluster with a lock of each kind.
func sample() *Context {
	text := safetext.New
	in := func(d time.Duration) time.Time { return epoch.Add(d) }
	copies := func(tokens string, left ...time.Duration) monitor.Copies {
		var all []monitor.Copy
		for i, c := range tokens {
			one := monitor.Copy{State: monitor.CopyPresent, Type: "string", Token: text(strings.Repeat(string(c), 24))}
			switch c {
			case '-':
				one = monitor.Copy{}
			case '?':
				one.State = monitor.CopyUnknown
			case '.':
				one = monitor.Copy{State: monitor.CopyUnread}
			}
			if left[i] > 0 {
				one.Expires = in(left[i])
			}
			all = append(all, one)
		}
		return monitor.PackCopies(all...)
	}
	const s = time.Second
	nodes := []monitor.Node{
		{Name: "n1", Addr: "10.0.0.1:6379", State: monitor.NodeServing, Since: in(-3 * time.Hour), RunID: strings.Repeat("a", 40), Version: "7.0.15", Role: "master", Uptime: 76 * time.Hour, Eviction: "noeviction", UsedMemory: 3 << 20,
			Clients: 12, Locks: 1204, Read: 1, RTT: 312 * time.Microsecond, RTTs: []time.Duration{300_000, 312_000}, Offset: monitor.Estimate{Valid: true, Offset: 180 * time.Microsecond, Bound: 90 * time.Microsecond},
			Drift: monitor.Drift{Valid: true, PPM: -4.2, Bound: 0.3}, GuardsKnown: true, Guards: []announce.Guard{{ID: "e1e2e3e4", Host: text("ops1"), Delay: 30350 * time.Millisecond, Boot: announce.BootFenced}}},
		{Name: "n2", Addr: "10.0.0.2:6379", State: monitor.NodeFenced, Since: in(-12 * s), RunID: strings.Repeat("b", 40), Uptime: 12 * s, MinReplicasToWrite: minreplicas.FenceUp, Locks: 3, Read: 0.5, Restarts: 1},
		{Name: "n3", Addr: "10.0.0.3:6379", State: monitor.NodeDown, Since: in(-40 * s), Err: text("dial tcp 10.0.0.3:6379: connection refused"), MinReplicasToWrite: -1},
	}
	locks := []monitor.Lock{
		monitor.Lock{Key: text("held"), State: monitor.LockHeld, Holder: text(strings.Repeat("a", 24)), Held: 3, Tokens: 1, Copies: copies("aaa", 10*s, 9800*time.Millisecond, 9700*time.Millisecond)}.Timed(in(-5*s), in(9800*time.Millisecond)),
		monitor.Lock{Key: text("split \x1b[31m"), State: monitor.LockSplit, Holder: text(strings.Repeat("a", 24)), Held: 2, Tokens: 2, Copies: copies("aba", 2*time.Hour, s/2, 90*time.Minute)}.Timed(in(-2*time.Hour), in(90*time.Minute)),
		{Key: text("=cmd"), State: monitor.LockOrphaned, Holder: text(strings.Repeat("c", 24)), Held: 1, Tokens: 1, Copies: copies("-c?", 0, 3*s, 2*s)},
		monitor.Lock{Key: text("stuck"), State: monitor.LockNoTTL, Holder: text(strings.Repeat("d", 24)), Held: 2, Tokens: 1, Copies: copies("dd.", 0, 0, 0),
			Form: &lockform.Form{Library: "SETNX with a time stamp", Deadline: in(-time.Hour), Owner: text("web-7 (pid 811)"), Created: in(-2 * time.Hour), Refused: "no"}}.WithKeys(text("stuck"), text("stuck2")),
	}
	snap := &monitor.Snapshot{
		At: epoch, Settled: in(-time.Hour), Nodes: nodes, Locks: monitor.NewLocks(locks...), Complete: true,
		Cluster:  monitor.Cluster{Name: "test", N: 3, Quorum: 2, Serving: 1, MaxTTL: 30 * s, Verdict: monitor.VerdictUnavailable},
		Findings: []monitor.Finding{{ID: "no-ttl-lock", Severity: monitor.SeverityDanger, Key: text("stuck"), Count: 2, Since: in(-time.Hour), Title: "locks without a TTL", Evidence: text("stuck"), Consequence: "blocks", Remedy: "delete"}},
	}
	g := NewGuard("", []restartguard.NodeStatus{{Node: "n2", Phase: restartguard.PhaseFenced, Until: in(18 * s), Known: true, Verified: true, Reason: "restarted"}})
	g.See(snap)
	snap.Guard = &monitor.GuardView{Nodes: map[string]monitor.GuardedNode{"n2": {Known: true, Verified: true}}}
	return &Context{Glyphs: Plain(false), Snap: snap, Now: epoch, Guard: g}
}

func (c *Context) locks() (all []*monitor.Lock) {
	for l := range c.Snap.Locks.All() {
		all = append(all, l)
	}
	return all
}

func (c *Context) nodes() (all []*monitor.Node) {
	for i := range c.Snap.Nodes {
		all = append(all, &c.Snap.Nodes[i])
	}
	return all
}

func (c *Context) clusters() []*ClusterRow {
	return []*ClusterRow{{Name: "test", Snap: c.Snap, Delay: time.Minute}, {Name: "new", Snap: &monitor.Snapshot{}, Delay: 2 * time.Second}, {Name: "broken", Err: "no password"}}
}

func (c *Context) findings() []*monitor.Finding { return []*monitor.Finding{&c.Snap.Findings[0]} }

var auditLines = []audit.Entry{
	{Seq: 7, Record: audit.Record{Time: epoch, ID: "a1", Phase: audit.Intent, Actor: "me@host", Cluster: "test", Act: "revoke", Target: "job\x1b", Reason: "stuck", TokenSHA: "9f86"}},
	{Record: audit.Record{Time: epoch, ID: "a0", Phase: audit.Failed, Actor: "me@host", Act: "release", Target: "job", Detail: "not held"}, Doubt: errors.New("it was changed")},
}

var events = []monitor.Event{
	{At: epoch, Level: monitor.LevelInfo, Kind: "acquired", Key: safetext.New("job\x1b"), Text: safetext.New("job\x1b acquired")},
	{At: epoch, Level: monitor.LevelAlarm, Kind: "restart", Node: "n2", Text: safetext.New("n2 restarted … 12 locks")},
	{At: epoch, Level: monitor.LevelNotice, Kind: "own clock", Text: safetext.New("the clock was set")},
}

// written formats a table as text, with a bar between two cells.
func written(t *Table) string {
	var b strings.Builder
	fmt.Fprintln(&b, strings.Join(t.Head, " | "))
	for row := range t.Rows() {
		for i, c := range row {
			if i > 0 {
				b.WriteString(" | ")
			}
			b.WriteString(c.Text)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func facts(title string, all []Fact) string {
	var b strings.Builder
	fmt.Fprintln(&b, "\n"+title)
	for _, f := range all {
		if f.Text != "" {
			fmt.Fprintf(&b, "%-11s%s\n", f.Label, f.Text)
		}
	}
	return b.String()
}

// The output is as it was when it was last reviewed.
func TestGolden(t *testing.T) {
	for name, g := range map[string]*Glyphs{"plain": Plain(false), "ascii": Plain(true), "screen": &Unicode} {
		c := sample()
		c.Glyphs, c.Short = g, name == "screen"
		var b strings.Builder
		b.WriteString(written(Tabulate(c, LockColumns(c.Snap.Nodes), c.locks(), true)))
		b.WriteString("\n" + written(Tabulate(c, LockColumns(c.Snap.Nodes), c.locks(), false)))
		b.WriteString("\n" + written(Tabulate(c, NodeColumns(), c.nodes(), true)))
		b.WriteString("\n" + written(Tabulate(c, FindingColumns(), c.findings(), true)))
		b.WriteString("\n" + written(Tabulate(c, GuardColumns(false), []GuardDoc{{Name: safetext.New("n1"), State: "serving", BootFence: "verified", Incarnations: 2, Method: "acl"}, {Name: safetext.New("n2"), State: "fenced"}}, true)))
		b.WriteString("\n" + written(Tabulate(c, ClusterColumns(), c.clusters(), true)))
		b.WriteString("\n" + written(Tabulate(c, AuditColumns(), auditLines, true)))
		for _, e := range events {
			b.WriteString("\n" + Line(c, EventColumns(), &e))
		}
		b.WriteByte('\n')
		for _, l := range c.locks() {
			axis := Axis(c, l)
			b.WriteString(facts(c.Name(l.Key.Raw())+": "+LockEnd(c, l), LockFacts(c, l)))
			if axis > 0 {
				fmt.Fprintln(&b, AxisLabels(axis, 20))
			}
			for _, bar := range LockBars(c, l, axis, 20) {
				fmt.Fprintln(&b, bar.Node, bar.State.Sign, bar.Left.Text, bar.Bar.Text, bar.Note.Text)
			}
		}
		for _, n := range c.nodes() {
			b.WriteString(facts(n.Name+NodeSince(c, n), NodeFacts(c, n)))
		}
		for _, f := range c.findings() {
			b.WriteString(facts(FindingTitle(c, f), FindingFacts(c, f)))
		}
		compare(t, "testdata/"+name+".txt", b.String())
		if name == "ascii" && strings.ContainsFunc(b.String(), func(r rune) bool { return r > 126 }) {
			t.Error("beyond ASCII")
		}
	}
}

// compare compares text with a file, or writes it.
func compare(t *testing.T, path, text string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != text {
		a, b := strings.Split(string(want), "\n"), strings.Split(text, "\n")
		i := 0
		for i < min(len(a), len(b))-1 && a[i] == b[i] {
			i++
		}
		t.Errorf("%s is not as it was (go test ./internal/view -update, and read the difference), line %d:\nwant %s\ngot  %s", path, i+1, a[i], b[i])
	}
}

// described returns the columns as docs/columns.md lists them: how a column is chosen,
// its fields in JSON, its meaning.
func described[T any](columns []Column[T]) string {
	var b strings.Builder
	b.WriteString("| Column | JSON | Means |\n| --- | --- | --- |\n")
	var said []string
	for _, c := range columns {
		name := c.Name
		if c.Group != "" {
			if slices.Contains(said, c.Group) {
				continue
			}
			said, name = append(said, c.Group), "n1, n2 … (`"+c.Group+"`)"
		}
		fields := ""
		for i, f := range c.Fields {
			if i > 0 {
				fields += ", "
			}
			fields += "`" + strings.Replace(f, ".0.", ".", 1) + "`"
		}
		help := c.Help
		if c.Wide {
			help += " (`-o wide`)"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", name, fields, help)
	}
	return b.String()
}

// docs/columns.md lists the columns as declared.
func TestColumnsPage(t *testing.T) {
	const path = "../../docs/columns.md"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(page)
	for name, table := range map[string]string{
		"locks": described(LockColumns([]monitor.Node{{Name: "n1"}, {Name: "n2"}})), "nodes": described(NodeColumns()),
		"guard": described(GuardColumns(false)), "clusters": described(ClusterColumns()), "findings": described(FindingColumns()),
		"events": described(EventColumns()), "audit": described(AuditColumns()),
		"grants": described(GrantColumns(false)), "history": described(PastEventColumns(false)),
	} {
		part := regexp.MustCompile(`(?s)(<!-- columns of ` + name + `, made by go test ./internal/view -update -->\n).*?(<!-- end -->)`)
		if !part.MatchString(text) {
			t.Errorf("docs/columns.md has no place for the columns of %s", name)
		}
		text = part.ReplaceAllStringFunc(text, func(s string) string {
			m := part.FindStringSubmatch(s)
			return m[1] + table + m[2]
		})
	}
	compare(t, path, text)
}

// Each field of a column is one of its document.
func TestFieldsAreInTheDocuments(t *testing.T) {
	c := sample()
	var b bytes.Buffer
	for _, err := range []error{
		CSV(&b, LockColumns(c.Snap.Nodes), c.locks(), func(l *monitor.Lock) any { return DocOfLock(l, c.Snap) }),
		CSV(&b, NodeColumns(), c.nodes(), func(n *monitor.Node) any { return DocOfNode(*n, c.Now) }),
		CSV(&b, GuardColumns(false), []GuardDoc{{}}, func(g GuardDoc) any { return g }),
		CSV(&b, ClusterColumns(), c.clusters(), func(r *ClusterRow) any { return DocOfClusterRow(r) }),
		CSV(&b, EventColumns(), []*monitor.Event{{Kind: "up", Node: "n1"}}, func(e *monitor.Event) any { return DocOfEvent(e) }),
		CSV(&b, AuditColumns(), []audit.Entry{{}}, func(e audit.Entry) any { return DocOfAudit(e) }),
		CSV(&b, FindingColumns(), c.findings(), func(f *monitor.Finding) any { return DocOfFinding(*f, c.Now) }),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	for _, want := range []string{
		"key,state,copies,n,nodes.0.state,nodes.0.ttl_ms,", "\n\\x3dcmd,orphaned,1,3,absent,,present,3000,unknown,2000,,,", "\nsplit \\x1b[31m,split,2,3,present,7200000,",
		"\nno-ttl-lock", "danger,no-ttl-lock,,locks without a TTL,stuck,2,stuck,3600000",
	} {
		if !strings.Contains(b.String(), want) && !strings.HasPrefix(want, "\nno-ttl") {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

func TestColumnsAreChosenAndSortedBy(t *testing.T) {
	all := LockColumns(sample().Snap.Nodes)
	for said, want := range map[string]string{"name": "NAME", "HOLD": "HOLDER", "nodes,state": "n1 n2 n3 STATE", "seen-for": "SEEN FOR", "n2,name,N1": "n2 NAME n1"} {
		got, err := Choose(all, strings.Split(said, ","))
		var names []string
		for _, c := range got {
			names = append(names, c.Name)
		}
		if err != nil || strings.Join(names, " ") != want {
			t.Errorf("%s: %v, %v", said, names, err)
		}
	}
	for _, said := range []string{"", "n", "n9", "nothing"} {
		if _, err := Choose(all, []string{said}); err == nil {
			t.Errorf("%q is a column", said)
		}
	}
	for said, want := range map[string]string{"state": "stuck", "ends": "=cmd", "ends:desc": "stuck", "name:desc": "stuck", "copies:desc": "held"} {
		compare, _, err := Sort(all, said)
		locks := sample().locks()
		if err == nil {
			slices.SortStableFunc(locks, compare)
		}
		if err != nil || locks[0].Key.Raw() != want {
			t.Errorf("%s: %v first, %v", said, locks[0].Key, err)
		}
	}
	for _, said := range []string{"nodes", "name:down", ""} {
		if _, _, err := Sort(all, said); err == nil {
			t.Errorf("sorted by %q", said)
		}
	}
}

// Rows can be sorted by each sortable column, and numbers in names count by their value.
func TestEachColumnSorts(t *testing.T) {
	for name, words := range map[string][2][]string{
		"locks": each(LockColumns([]monitor.Node{{Name: "n1"}, {Name: "n2"}})), "nodes": each(NodeColumns()), "guard": each(GuardColumns(false)),
		"clusters": each(ClusterColumns()), "findings": each(FindingColumns()), "events": each(EventColumns()), "audit": each(AuditColumns()),
		"grants": each(GrantColumns(false)), "history": each(PastEventColumns(false)),
	} {
		if !slices.Equal(words[0], words[1]) {
			t.Errorf("%s: columns %q, and sorted by %q", name, words[0], words[1])
		}
	}
	now := time.Now()
	lock := func(key string, left ...time.Duration) *monitor.Lock {
		var copies []monitor.Copy
		for _, d := range left {
			c := monitor.Copy{}
			if d >= 0 {
				c.State = monitor.CopyPresent
			}
			if d > 0 {
				c.Expires = now.Add(d)
			}
			copies = append(copies, c)
		}
		return &monitor.Lock{Key: safetext.New(key), Copies: monitor.PackCopies(copies...)}
	}
	locks := []*monitor.Lock{lock("none", 5, -1), lock("endless", 1, 0), lock("late", 2, time.Minute), lock("soon", 3, time.Second)}
	compare, _, err := Sort(LockColumns([]monitor.Node{{Name: "n1"}, {Name: "n2"}}), "n2")
	if err != nil {
		t.Fatal(err)
	}
	slices.SortStableFunc(locks, compare)
	var keys []string
	for _, l := range locks {
		keys = append(keys, l.Key.Raw())
	}
	if got := strings.Join(keys, " "); got != "soon late endless none" {
		t.Errorf("by the copies on n2: %s", got)
	}
	names := []string{"n10", "n2", "n", "n02x", "7.10", "7.2"}
	slices.SortFunc(names, natural)
	if got := strings.Join(names, " "); got != "7.2 7.10 n n2 n02x n10" {
		t.Errorf("in order: %s", got)
	}
}

// each returns the words of the columns, and of those that can be sorted by.
func each[T any](all []Column[T]) [2][]string {
	var names []string
	for i := range all {
		names = append(names, all[i].sortWord())
		if s := all[i].SortAs; s != "" && !slices.Contains(Words(all), s) {
			names = append(names, "no column "+s)
		}
	}
	return [2][]string{names, SortWords(all)}
}

// Columns never take more room than there is, and use all of it.
func TestFit(t *testing.T) {
	for _, n := range []int{1, 3, 5, 7, 50} {
		columns := LockColumns(make([]monitor.Node, n))
		before := 0
		for w := range 300 {
			sum, shown := -Gap, 0
			widths := Fit(columns, w)
			nodes := 0
			for i, one := range widths {
				if one > 0 {
					sum += one + GapBefore(columns, i)
					shown++
				}
				if one > 0 && columns[i].Group == "nodes" {
					nodes++
				}
			}
			if shown > 0 && sum > w {
				t.Errorf("%d nodes, %d cells: %d are taken", n, w, sum)
			}
			if nodes != 0 && nodes != n {
				t.Errorf("%d nodes, %d cells: %d columns of nodes", n, w, nodes)
			}
			if w >= 60 && (widths[0] < 14 || widths[1] == 0 || widths[2] == 0) {
				t.Errorf("%d nodes, %d cells: the first columns are missing", n, w)
			}
			before = max(before, shown)
		}
	}
}

// A row is valid until one of its cells changes, and no longer.
func TestUntil(t *testing.T) {
	c := sample()
	row := func() (all string) {
		c.Fresh()
		for _, l := range c.locks() {
			for _, col := range LockColumns(c.Snap.Nodes) {
				all += col.Cell(c, l).Text + "|"
			}
		}
		return all
	}
	for range 200 {
		was, from, until := row(), c.Now, c.Until()
		if !until.After(from) {
			t.Fatalf("at %s it stands until %s", from, until)
		}
		for _, at := range []time.Time{from.Add(until.Sub(from) / 2), until.Add(-1)} {
			if c.Now = at; row() != was {
				t.Fatalf("from %s on it was to stand until %s, and changed by %s", from, until, at)
			}
		}
		c.Now = until
	}
}

// Nothing that a server sends reaches a terminal.
func TestHostileText(t *testing.T) {
	for _, raw := range safetexttest.Hostile {
		c := sample()
		l := c.locks()[0]
		hostile := *l
		hostile.Key, hostile.Holder = safetext.New(raw), safetext.New(raw)
		hostile.Form = &lockform.Form{Library: raw, Owner: safetext.New(raw)}
		hostile = hostile.WithKeys(hostile.Key, hostile.Key)
		n := c.Snap.Nodes[2]
		n.Name, n.Addr, n.Version, n.Role, n.Eviction, n.RunID, n.Err, n.Notes = raw, raw, raw, raw, raw, raw, safetext.New(raw), []string{raw}
		f := monitor.Finding{ID: "x", Node: raw, Key: safetext.New(raw), Evidence: safetext.New(raw), Title: raw}
		var b bytes.Buffer
		b.WriteString(written(Tabulate(c, LockColumns(c.Snap.Nodes), []*monitor.Lock{&hostile}, true)) + facts("", LockFacts(c, &hostile)))
		b.WriteString(written(Tabulate(c, NodeColumns(), []*monitor.Node{&n}, true)) + facts("", NodeFacts(c, &n)))
		b.WriteString(FindingTitle(c, &f) + facts("", FindingFacts(c, &f)))
		_ = CSV(&b, LockColumns(c.Snap.Nodes), []*monitor.Lock{&hostile}, func(l *monitor.Lock) any { return DocOfLock(l, c.Snap) })
		for line := range strings.SplitSeq(b.String(), "\n") {
			if got := safetext.Escape(strings.ReplaceAll(line, `\`, "")); got != strings.ReplaceAll(line, `\`, "") {
				t.Errorf("%q is not safe: %q", raw, line)
			}
		}
	}
}

// Rendering a row of the lock table must be cheap: each is drawn again every second.
func BenchmarkRow(b *testing.B) {
	c := sample()
	c.Glyphs, c.Short = &Unicode, true
	columns, l := LockColumns(c.Snap.Nodes), c.locks()[1]
	b.ReportAllocs()
	for b.Loop() {
		for i := range columns {
			if columns[i].Rank > 0 {
				columns[i].Cell(c, l)
			}
		}
	}
}

func TestNoFieldIsAMistake(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a field that is not there is found")
		}
	}()
	fieldPlaces{}.field(reflect.ValueOf(LockDoc{}), "nonsense")
}
