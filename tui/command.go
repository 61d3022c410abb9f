package tui

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"redlockctl/internal/safetext"
	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/tui/page"
	"redlockctl/tui/styles"
)

// command is one of the command line.
type command struct {
	name  string
	takes string // what may follow, for help; "": nothing
	help  string
	when  func(*model) bool             // whether it exists here; nil: it does
	next  func(*model, string) []string // what may follow, for the word that is being typed
	do    func(*model, string) tea.Cmd  // with what follows
}

// cliPages are the pages that the command line prints under another name.
var cliPages = map[string]page.Kind{"status": page.Overview, "watch": page.Events, "doctor": page.Findings, "guard status": page.Guard}

// commands are all of the command line: the pages, the acts and switches of the
// key map, and those that take a word. What redlockctl has as a command is called
// the same here.
func (m *model) commands() []command {
	var out []command
	for v := range page.NumTabs {
		if m.whyNoView(v) == "" && v != page.Locks && v != page.Nodes {
			out = append(out, command{name: v.String(), help: "go to this page", do: func(m *model, _ string) tea.Cmd { return m.goTo(v) }})
		}
	}
	for name, v := range cliPages {
		out = append(out, command{name: name, help: "the page " + v.String(), do: func(m *model, _ string) tea.Cmd { return m.goTo(v) }})
	}
	out = append(out,
		command{name: "locks", takes: "[NAME]", help: "the locks, or the page of one", next: (*model).lockNames, do: (*model).openLock},
		command{name: "nodes", takes: "[NODE]", help: "the nodes, or the page of one", next: (*model).nodeNames, do: (*model).openNode},
		command{name: "replay", takes: "MOMENT", help: "what was seen then: 03:12, yesterday 03:12, 2h ago", do: (*model).replayAt},
		command{name: "filter", takes: "TERMS", help: "list only these locks, or events or acts on their pages; alone: all", next: (*model).filterOffers, do: (*model).filterBy},
		command{name: "sort", takes: "ORDER", help: "by a column, or COLUMN:desc; default: what needs you first", next: (*model).sortWords, do: (*model).sortWord},
		command{name: "columns", takes: "NAMES", help: "those of the locks: a b c, or +a -b, or default", next: (*model).columnWords, do: (*model).columnsBy},
		command{name: "mark", takes: "all", help: "mark the lock under the cursor, or all that are listed; none unmarks", next: func(*model, string) []string { return []string{"all", "none"} }, do: (*model).markBy},
		command{name: "theme", takes: "NAME", help: "the colours of the screen", next: themeWords, do: (*model).themeBy},
		command{name: "ascii", help: "no character beyond ASCII, or all of them again", do: (*model).toggleASCII},
		command{name: "mouse", help: "clicks and the wheel, or the terminal's own selection again", do: (*model).toggleMouse},
		command{name: "audit show", help: "who did what, with which outcome, and whether the log is intact", when: (*model).hasAudit, do: (*model).openAudit},
		command{name: "clusters status", help: "all clusters: verdict, locks, the worst finding", when: (*model).severalClusters, do: (*model).openClusters},
		command{name: "cluster", takes: "NAME", help: "change to another cluster", when: (*model).severalClusters, next: (*model).clusterNames, do: (*model).changeCluster},
	)
	for i := range m.keys {
		b := &m.keys[i]
		if b.name == "" || !m.has(b.group) {
			continue
		}
		c := command{name: b.name, help: "as the key " + b.Help().Key, do: func(m *model, what string) tea.Cmd { return m.doBinding(b, what) }}
		switch {
		case b.takes&page.ModeOnLock != 0 && b.name != "acquire":
			c.takes, c.next = "[NAME]", (*model).lockNames
		case b.takes&page.ModeOnNode != 0 && b.takes != page.ModeLab:
			c.takes, c.next = "[NODE]", (*model).nodeNames
		}
		out = append(out, c)
	}
	out = slices.DeleteFunc(out, func(c command) bool { return c.when != nil && !c.when(m) })
	slices.SortFunc(out, func(a, b command) int { return strings.Compare(a.name, b.name) })
	return out
}

// begins is how many of a line's words stand for the command's name: the words of the
// name or the start of each; 0: it is another command. rest is what follows them.
func (c *command) begins(line string) (n int, whole bool, rest string) {
	rest, whole = strings.TrimLeft(line, " "), true
	for i, part := range strings.Fields(c.name) {
		if rest == "" && i > 0 {
			return n, false, ""
		}
		var word string
		word, rest, _ = strings.Cut(rest, " ")
		if rest = strings.TrimLeft(rest, " "); !strings.HasPrefix(part, word) {
			return 0, false, ""
		}
		n, whole = n+1, whole && part == word
	}
	return n, whole, rest
}

// command is the one that a line begins with, or the only one of which the line has the
// start; rest is what follows its name.
func (m *model) command(line string) (found command, rest, why string) {
	var names, near []string
	best, wholly := 0, false
	first, _, _ := strings.Cut(line, " ")
	for _, c := range m.commands() {
		n, whole, behind := c.begins(line)
		whole = whole || line == "q" && c.name == "quit" || line == "h" && c.name == "help"
		switch {
		case whole && (!wholly || n > best), n > best && !wholly:
			found, rest, best, wholly, names = c, behind, n, whole, []string{c.name}
		case n > 0 && n == best && !wholly:
			names = append(names, c.name)
		}
		if slices.Contains(strings.Fields(c.name), first) {
			near = append(near, c.name)
		}
	}
	word := safetext.Escape(strings.TrimSpace(line))
	switch {
	case len(names) == 1:
		return found, rest, ""
	case len(names) > 1:
		return command{}, "", word + " may be " + strings.Join(names, ", ")
	case len(near) > 0:
		return command{}, "", "there is no command " + word + ": it is " + strings.Join(near, ", ")
	}
	return command{}, "", "there is no command " + word
}

// offers are whole lines that the line may become.
func (m *model) offers(line string) []string {
	line = strings.TrimLeft(line, " ")
	var out []string
	for _, c := range m.commands() {
		if strings.HasPrefix(c.name, line) {
			out = append(out, c.name)
		}
	}
	c, word, why := m.command(line)
	if len(out) > 0 || why != "" || c.next == nil {
		return out
	}
	// The last word is completed; what takes a name takes all of the rest. A filter completes
	// itself.
	head := c.name + " "
	if c.takes == "TERMS" {
		for _, o := range c.next(m, word) {
			out = append(out, head+o)
		}
		return out
	}
	if c.takes == "NAMES" {
		if i := strings.LastIndexByte(word, ' '); i >= 0 {
			head, word = head+word[:i+1], word[i+1:]
		}
	}
	for _, o := range c.next(m, word) {
		if strings.HasPrefix(strings.ToLower(o), strings.ToLower(word)) {
			out = append(out, head+o)
		}
	}
	return out
}

func (m *model) openLine() tea.Cmd {
	m.line = newCommandLine(m.prefs.History)
	return learn(m.filterPage())
}

func (m *model) closeLine() tea.Cmd { m.line = nil; return nil }

// doLine does what was typed, and keeps it.
func (m *model) doLine() tea.Cmd {
	line := strings.TrimSpace(m.line.String())
	m.line = nil
	if line == "" {
		return nil
	}
	history := slices.DeleteFunc(slices.Clone(m.prefs.History), func(s string) bool { return s == line })
	history = append(history, line)
	m.prefs.History = history[max(0, len(history)-mostHistory):]
	save := m.save()
	c, rest, why := m.command(line)
	if why != "" {
		m.say(m.St.Bad, why)
		return save
	}
	cmd := c.do(m, rest)
	switch {
	case save == nil:
		return cmd
	case cmd == nil:
		return save
	}
	return tea.Batch(save, cmd)
}

// doBinding does what a key does, to a lock or node that may be named.
func (m *model) doBinding(b *binding, what string) tea.Cmd {
	if what != "" {
		var why string
		switch {
		case b.takes&page.ModeOnLock != 0:
			why = m.pickLock(what)
		case b.takes&page.ModeOnNode != 0:
			why = m.pickNode(what)
		default:
			why = "it takes no name"
		}
		if why != "" {
			m.say(m.St.Bad, b.name+": "+why)
			return nil
		}
	}
	if b.in&m.mode() == 0 { // its key is known on one page only
		if b.in&page.ModeLab != 0 {
			m.goTo(page.Lab)
		} else if b.in&page.ModeOnNode != 0 {
			m.goTo(page.Nodes)
		}
	}
	m.typed = true
	defer func() { m.typed = false }()
	return m.try(b)
}

// pickLock puts the cursor on a lock.
func (m *model) pickLock(name string) string {
	if m.page.Place() == (page.Place{Kind: page.Lock, Name: name}) {
		return ""
	}
	if m.viewed() != page.Overview && m.viewed() != page.Locks {
		m.goTo(page.Locks)
	}
	if m.viewed() == page.Overview {
		m.Overview.OnNodes, m.Overview.OnEvents = false, false
	}
	switch {
	case m.Locks.Jump(name):
		return ""
	case m.Shown.Locks.Get(name) != nil:
		return "the filter hides it: esc clears the filter"
	}
	return "there is no lock " + m.St.Escape(name, 40)
}

// pickNode puts the cursor on a node.
func (m *model) pickNode(name string) string {
	n := m.nodeNamed(name)
	if n == nil {
		return "there is no node " + m.St.Escape(name, 40)
	}
	if m.mode()&page.ModeOnNode == 0 || m.mode() == page.ModeNode {
		m.goTo(page.Nodes)
	}
	m.Nodes.Name = n.Name
	return ""
}

// nodeNamed is the node with this name, in letters of either case.
func (m *model) nodeNamed(name string) *monitor.Node {
	i := slices.IndexFunc(m.Shown.Nodes, func(n monitor.Node) bool { return strings.EqualFold(n.Name, name) })
	if i < 0 {
		return nil
	}
	return &m.Shown.Nodes[i]
}

func (m *model) openLock(name string) tea.Cmd {
	if name == "" {
		return m.goTo(page.Locks)
	}
	if m.Shown.Locks.Get(name) == nil {
		m.say(m.St.Bad, "there is no lock "+m.St.Escape(name, 40))
		return nil
	}
	return m.open(page.Place{Kind: page.Lock, Name: name})
}

func (m *model) openNode(name string) tea.Cmd {
	if name == "" {
		return m.goTo(page.Nodes)
	}
	if n := m.nodeNamed(name); n != nil {
		return m.open(page.Place{Kind: page.Node, Name: n.Name})
	}
	m.say(m.St.Bad, "there is no node "+m.St.Escape(name, 40))
	return nil
}

// mostNames bounds what is offered of names.
const mostNames = 200

// lockNames are names of locks that begin so.
func (m *model) lockNames(word string) (names []string) {
	for l := range m.Shown.Locks.From(word) {
		key := l.Key.Raw()
		if !strings.HasPrefix(key, word) || len(names) >= mostNames {
			break
		}
		if safetext.Escape(key) == key { // what cannot be typed is picked with the cursor
			names = append(names, key)
		}
	}
	return names
}

func (m *model) nodeNames(string) (names []string) {
	for i := range m.Shown.Nodes {
		names = append(names, m.Shown.Nodes[i].Name)
	}
	return names
}

// filterOffers are whole filters that one may become.
func (m *model) filterOffers(text string) []string {
	return m.filterPage().FilterOffers(text)
}

// filterPage is the page whose rows a command filters: that which is shown, or the locks.
func (m *model) filterPage() page.Filtered {
	if f, ok := m.page.(page.Filtered); ok {
		return f
	}
	return m.Set.At(page.Place{Kind: page.Locks}).(page.Filtered)
}

func (m *model) filterBy(text string) tea.Cmd {
	if _, ok := m.page.(page.Filtered); !ok {
		m.goTo(page.Locks)
	}
	f := m.filterPage()
	f.FilterLine().Set(text)
	f.Filter(m.Now())
	if why := f.FilterProblem(); why != "" {
		m.say(m.St.Bad, why)
	}
	return nil
}

func (m *model) columnWords(string) []string {
	words := append([]string{"default"}, page.LockWords(true)...)
	for _, w := range page.LockWords(true) {
		words = append(words, "+"+w, "-"+w)
	}
	return words
}

// columnsBy chooses columns: these, or those until now with some more or less.
func (m *model) columnsBy(text string) tea.Cmd {
	said := strings.Fields(strings.ReplaceAll(text, ",", " "))
	set := slices.Clone(m.LockView.Chosen)
	if m.table.Wide {
		m.LockView.Choose(m.table.Columns, false)
		set = slices.Clone(m.LockView.Chosen)
	}
	if len(said) == 0 {
		m.say(m.St.Info, "columns: "+strings.Join(m.LockView.Chosen, " "))
		return nil
	}
	whole := false
	for _, w := range said {
		name := strings.TrimLeft(w, "+-")
		if w == "default" {
			set, whole = page.LockWords(false), false
			continue
		}
		name, err := view.WordOf(name, page.LockWords(true))
		switch {
		case err != nil:
			m.say(m.St.Bad, m.St.Our(err.Error()))
			return nil
		case w[0] == '-':
			set = slices.DeleteFunc(set, func(s string) bool { return s == name })
			continue
		case w[0] != '+' && !whole:
			set, whole = nil, true
		}
		set = append(set, name)
	}
	words := slices.DeleteFunc(page.LockWords(true), func(w string) bool { return !slices.Contains(set, w) })
	m.table.Columns, m.table.Wide = words, false
	if slices.Equal(words, page.LockWords(false)) {
		m.table.Columns = nil
	}
	m.LockView.Choose(words, false)
	if m.LockView.HidesState() {
		m.say(m.St.Warn, "without STATE nobody sees what needs a person: :columns default")
	}
	return m.keepTable()
}

func (m *model) markBy(what string) tea.Cmd {
	switch what {
	case "":
		if why := m.whyNoMark(); why != "" {
			m.say(m.St.Warn, why)
			return nil
		}
		return m.toggleMark()
	case "all":
		n := m.markAll()
		m.say(m.St.Info, view.Plural(n, "lock")+" more marked")
	case "none":
		return m.clearMarks()
	default:
		m.say(m.St.Bad, "mark what? all, none, or nothing for the one under the cursor")
	}
	return nil
}

func themeWords(*model, string) (words []string) {
	for _, t := range styles.Themes() {
		words = append(words, string(t))
	}
	return words
}

func (m *model) themeBy(word string) tea.Cmd {
	t := styles.Theme(word)
	switch {
	case !slices.Contains(styles.Themes(), t):
		m.say(m.St.Bad, "a theme is one of "+strings.Join(themeWords(m, ""), ", "))
		return nil
	case m.opt.NoColor && t != styles.ThemeNone:
		m.say(m.St.Warn, "no colours here: NO_COLOR or the configuration says so")
		return nil
	}
	m.prefs.Theme = t
	look := m.St.Look
	look.Theme = t
	m.restyle(look)
	if m.opt.Theme != "" {
		m.say(m.St.Info, "until you quit: the configuration names the theme "+string(m.opt.Theme))
	}
	return m.save()
}

func (m *model) toggleASCII(string) tea.Cmd {
	look := m.St.Look
	look.ASCII = !look.ASCII
	m.restyle(look)
	return nil
}

func (m *model) toggleMouse(string) tea.Cmd {
	m.prefs.Mouse = !m.prefs.Mouse
	m.opt.Mouse = m.prefs.Mouse
	if m.opt.Mouse {
		m.say(m.St.Info, "the mouse is taken: shift selects text")
	} else {
		m.say(m.St.Info, "the mouse is the terminal's own")
	}
	return m.save()
}

// restyle draws everything in other colours or characters.
func (m *model) restyle(look styles.Look) {
	*m.St = styles.New(look)
	m.LockView.Restyle()
}
