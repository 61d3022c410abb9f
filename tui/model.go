package tui

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/restartguard"
	"redlockctl/tui/styles"
)

// The smallest terminal that the screen fits.
const (
	minWidth  = 60
	minHeight = 15
)

// focus is which table of the overview has the cursor.
type focus uint8

const (
	focusLocks focus = iota
	focusNodes
)

// model is the only tea.Model: it routes messages, owns focus and layout, and
// lets its parts draw. All of it is touched by the program's goroutine alone;
// commands work on what they were given.
type model struct {
	opt     Options
	ctx     context.Context
	now     func() time.Time
	feed    feed
	running *running
	st      *styles.Styles
	keys    keyMap

	w, h  int
	snap  *monitor.Snapshot // the latest
	shown *monitor.Snapshot // the one on the screen: the latest, unless frozen
	froze time.Time         // since when the screen is frozen; zero: it is not
	// missed are the locks that changed since then; lost: so many that they were
	// not kept.
	missed []string
	lost   bool

	fences fenceView // the latest
	drawn  fenceView // the one on the screen
	at     place
	trail  []place // where esc leads back to
	focus  focus   // on the overview

	nodes    nodeTable
	locks    lockTable
	events   eventTable
	findings findingTable
	past     nodePasts
	began    time.Time // of what is in it
	watched  lockLog

	header    header
	nodeView  nodeView
	lockView  lockView
	eventView eventView

	detail    bool
	axisKey   string        // the lock that the detail shows
	axis      time.Duration // the length of its axis
	filtering bool
	filter    lineEdit // of the locks
	line      *commandLine
	dialog    *dialog
	lastID    int
	busy      int              // acts on their way
	mine      map[string]grant // locks acquired by hand, by key
	losses    []loss           // of those that were kept, and that nobody has seen yet
	keyed     *binding         // whose key was pressed
	single    bool             // an act is about one lock, also where some are marked
	marks     marks
	prefs     Preferences
	saver     *saver
	stopped   map[string]bool // nodes that the lab stopped
	moving    bool            // another cluster is being opened

	status   string // painted
	statusAt time.Time
	lockRows int // rows in the last frame
	pageRows int
	hits     hits
	dirty    bool
	view     tea.View
}

// statusTime is how long a message stands in the last line.
const statusTime = 6 * time.Second

func newModel(ctx context.Context, opt Options, now func() time.Time) *model {
	if opt.FPS <= 0 {
		opt.FPS = defaultFPS
	}
	saver, prefs, loadErr := newSaver(opt.Store)
	theme := opt.Theme
	switch {
	case opt.NoColor:
		theme = styles.ThemeNone
	case theme == "":
		theme = prefs.Theme
	}
	st := styles.New(opt.ASCII, theme)
	m := &model{
		opt:       opt,
		ctx:       ctx,
		now:       now,
		feed:      feed{ctx: ctx, source: opt.Source, guard: opt.Guard, pace: time.Second / time.Duration(opt.FPS)},
		running:   newRunning(),
		st:        &st,
		keys:      newKeyMap(),
		locks:     newLockTable(),
		events:    newEventTable(),
		past:      nodePasts{},
		began:     now(),
		header:    header{&st},
		nodeView:  nodeView{&st},
		lockView:  newLockView(&st),
		eventView: eventView{&st},
		mine:      map[string]grant{},
		marks:     marks{},
		prefs:     prefs,
		saver:     saver,
		stopped:   map[string]bool{},
		dirty:     true,
	}
	m.opt.Mouse = opt.Mouse || prefs.Mouse
	m.lockView.choose(prefs.Columns, prefs.Wide)
	m.locks.order = orderOf(prefs.Sort)
	m.setGuard(m.feed.status())
	m.setSnapshot(opt.Source.Snapshot(), nil, false, nil)
	if m.locks.order != orderNeeds {
		m.say(m.st.Info, "the locks are sorted by "+m.locks.order.word()+", as you left them: s changes it")
	}
	if loadErr != nil {
		m.say(m.st.Warn, "what was chosen last time cannot be read: "+m.st.Whole(loadErr.Error()))
	}
	return m
}

// Init implements [tea.Model].
func (m *model) Init() tea.Cmd {
	return tea.Batch(m.feed.next(m.snap, m.events.seq, 0), m.feed.tick(), m.sorting())
}

// Update implements [tea.Model].
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	cmd := m.update(msg)
	if s := m.sorting(); s != nil {
		cmd = tea.Batch(cmd, s)
	}
	if key := m.watched.wants; key != "" {
		m.watched.wants = ""
		if h := m.feed.history(key); h != nil {
			cmd = tea.Batch(cmd, h)
		}
	}
	return m, cmd
}

// sorting is the command that sorts many locks anew, where that is wanted.
func (m *model) sorting() tea.Cmd {
	build := m.locks.build()
	if build == nil {
		return nil
	}
	return func() tea.Msg { return build() }
}

func (m *model) update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		first := m.w == 0
		m.w, m.h = msg.Width, msg.Height
		m.dirty = true
		if !first {
			return redraw
		}
	case tea.KeyPressMsg:
		m.dirty = true
		if msg.Code == tea.KeyEscape && msg.Mod == tea.ModAlt {
			// Two escapes that come in one burst, as over a slow line, are read as one
			// with alt.
			msg.Mod = 0
			return tea.Batch(m.press(msg), m.press(msg))
		}
		return m.press(msg)
	case tea.MouseMsg:
		m.dirty = true
		return m.mouse(msg)
	case tea.PasteMsg:
		m.dirty = true
		m.paste(msg.Content)
	case snapshotMsg:
		if msg.cluster != m.feed.cluster {
			return nil
		}
		m.dirty = true
		m.setGuard(msg.guard)
		m.setSnapshot(msg.snap, msg.changed, msg.known, msg.events)
		return m.feed.next(msg.snap, m.events.seq, m.feed.pace)
	case historyMsg:
		m.dirty = true
		m.watched.before(msg)
	case built:
		m.dirty = true
		m.locks.take(msg)
	case tickMsg:
		if msg.cluster != m.feed.cluster {
			return nil
		}
		m.dirty = true
		m.tick(msg)
		return m.feed.tick()
	case outcome:
		m.dirty = true
		return m.finish(msg)
	case clusterMsg:
		m.dirty = true
		return m.moved(msg)
	case savedMsg:
		m.dirty = true
		m.say(m.st.Warn, "your choice is not remembered: "+m.st.Whole(msg.err.Error()))
	case copiedMsg:
		m.dirty = true
		m.copied(msg)
	}
	return nil
}

// tick is a second that has passed.
func (m *model) tick(msg tickMsg) {
	m.setGuard(msg.guard)
	m.past.sample(m.snap)
	m.lookAfter()
	if m.froze.IsZero() {
		m.nodes.set(m.shown.Nodes, true)
		m.locks.tick(m.locks.filter.At(m.now()))
	}
	if m.status != "" && m.now().Sub(m.statusAt) >= statusTime {
		m.status = ""
	}
	m.forgetEnded()
	m.marks.keep(m.snap.Locks)
}

// View implements [tea.Model]. The frame is made only when something changed.
func (m *model) View() tea.View {
	if !m.dirty {
		return m.view
	}
	m.dirty = false
	m.view = tea.NewView(m.frame())
	m.view.AltScreen = true
	if m.opt.Mouse {
		m.view.MouseMode = tea.MouseModeCellMotion
	}
	if d := m.dialog; d != nil && d.drawn.IsZero() {
		d.drawn = m.now()
	}
	return m.view
}

func (m *model) setGuard(g guardState) {
	by := make(map[string]restartguard.NodeStatus, len(g.status))
	for _, s := range g.status {
		by[s.Node] = s
	}
	m.fences.status, m.fences.list = by, g.status
	m.fences.own, m.fences.guarded = g.id, g.id != ""
	m.seeGuards()
}

// seeGuards takes in the guards elsewhere.
func (m *model) seeGuards() {
	if m.snap != nil {
		m.fences.see(m.snap, m.opt.Delay)
	}
	if m.froze.IsZero() {
		m.drawn = m.fences
	}
}

func (m *model) setSnapshot(s *monitor.Snapshot, changed []string, known bool, events []monitor.Event) {
	m.snap = s
	m.seeGuards()
	m.past.see(s)
	if events == nil {
		events = s.Events
	}
	m.events.add(events)
	m.watched.add(events)
	if m.froze.IsZero() {
		m.show(s, changed, known)
		return
	}
	if m.missed = append(m.missed, changed...); !known || len(m.missed) > mostChanges {
		m.missed, m.lost = nil, true
	}
}

func (m *model) show(s *monitor.Snapshot, changed []string, known bool) {
	m.shown = s
	m.nodes.set(s.Nodes, false)
	m.locks.show(s.Locks, s.Nodes, changed, known)
	m.findings.set(s.Findings)
}

// shownNow is the moment that the screen shows.
func (m *model) shownNow() time.Time {
	if !m.froze.IsZero() {
		return m.froze
	}
	return m.now()
}

func (m *model) isMine(key, token string) bool {
	g, ok := m.mine[key]
	return ok && g.token == token
}

// forgetEnded drops grants whose validity is over and whose token holds nothing
// any more: there is nothing left to release.
func (m *model) forgetEnded() {
	for k, g := range m.mine {
		if g.kept != nil || m.now().Before(g.until) {
			continue
		}
		if l := m.latestLock(k); l == nil || l.Holder.Raw() != g.token {
			delete(m.mine, k)
		}
	}
}

// picked is the lock that a key is about: the page's, or the one under the
// cursor; nil: there is none.
func (m *model) picked() *monitor.Lock {
	switch m.mode() {
	case modeLock:
		return m.shown.Locks.Get(m.at.lock)
	case modeLocks:
		return m.locks.selected()
	}
	return nil
}

// pickedNode is the same for a node.
func (m *model) pickedNode() *monitor.Node {
	switch {
	case m.mode() == modeNode:
		for i := range m.shown.Nodes {
			if m.shown.Nodes[i].Name == m.at.node {
				return &m.shown.Nodes[i]
			}
		}
	case m.mode()&modeOnNode != 0:
		return m.nodes.selected()
	}
	return nil
}

// press is a key.
func (m *model) press(msg tea.KeyPressMsg) tea.Cmd {
	m.status = ""
	mode := m.mode()
	if m.tooSmall() && msg.String() != "ctrl+c" && msg.String() != "q" {
		return nil // nobody acts on what cannot be seen
	}
	if d := m.dialog; d != nil && msg.String() != "ctrl+c" && msg.String() != "esc" && !d.listens(m.now()) {
		d.early = m.now()
		return nil
	}
	for i := range m.keys {
		b := &m.keys[i]
		if b.in&mode == 0 || !key.Matches(msg, b.Binding) {
			continue
		}
		m.keyed = b
		return m.try(b)
	}
	if msg.Text == "" {
		return nil
	}
	if e := m.editor(); e != nil {
		e.insert(msg.Text)
		m.edited()
	} else if mode == modeDialog && len(m.dialog.fields) > 0 {
		m.dialog.fields[m.dialog.focus].choose(msg.Text)
		m.edited()
	}
	return nil
}

// try does what a binding does, or says why not. A command that is typed is
// about one lock, its key about those that are marked.
func (m *model) try(b *binding) tea.Cmd {
	m.single = b != m.keyed
	defer func() { m.single = false }()
	if why := b.disabled(m); why != "" {
		k, text := b.help(m)
		m.say(m.st.Warn, k+" "+text+": "+why)
		return nil
	}
	return b.do(m)
}

func (m *model) paste(s string) {
	if m.tooSmall() {
		return
	}
	if d := m.dialog; d != nil && !d.listens(m.now()) {
		d.early = m.now()
		return
	}
	if e := m.editor(); e != nil {
		e.insert(s)
		m.edited()
	}
}

// editor is the line that takes letters now; nil where none does.
func (m *model) editor() *lineEdit {
	switch m.mode() {
	case modeFilter:
		return m.filterLine()
	case modeCommand:
		return &m.line.lineEdit
	case modeDialog:
		if d := m.dialog; d.focus < len(d.fields) && d.fields[d.focus].choices == nil {
			return &d.fields[d.focus].lineEdit
		}
	}
	return nil
}

// edited is called after the editor's text has changed.
func (m *model) edited() {
	switch m.mode() {
	case modeFilter:
		m.applyFilter()
	case modeCommand:
		m.line.typed()
	}
	if m.dialog != nil {
		m.dialog.pressed = false
	}
}

// say puts a message into the last line; s is safe to show.
func (m *model) say(p styles.Paint, s string) {
	if m.w > 0 { // before the first frame the width is not known, and frame cuts it
		s = m.st.Cut(s, max(1, m.w-2))
	}
	m.status = p.Of(s)
	m.statusAt = m.now()
}

func (m *model) moveCursor(d int) {
	switch mode := m.mode(); {
	case mode == modeLocks:
		m.locks.move(d)
	case mode == modeEvents:
		m.events.move(d)
	case mode == modeFindings:
		m.findings.move(d)
	case mode&(modeNodes|modeGuard|modeLab) != 0:
		m.nodes.move(d)
	default: // a page that is read
		m.at.top = max(0, min(m.at.top, 1<<20)+d)
	}
}

// page is how many rows a page has.
func (m *model) page() int {
	switch mode := m.mode(); {
	case mode == modeLocks:
		return max(1, m.lockRows-1)
	case mode&(modeNodes|modeGuard|modeLab) != 0:
		return max(1, len(m.nodes.nodes))
	default:
		return max(1, m.pageRows-1)
	}
}

func (m *model) tab() tea.Cmd {
	if m.at.view != viewOverview {
		return m.turn(1)
	}
	m.focus = focusLocks + focusNodes - m.focus
	return nil
}

// enter opens what is under the cursor: below it where there is a place for it,
// else on a page of its own.
func (m *model) enter() tea.Cmd {
	switch m.at.view {
	case viewOverview, viewEvents, viewFindings:
		m.detail = !m.detail
		m.watchLock()
		return nil
	default:
		return m.openPicked()
	}
}

func (m *model) whyNoOpenPicked() string {
	switch mode := m.mode(); {
	case mode == modeLock || mode == modeNode || mode == modeHelp:
		return "it is open"
	case mode == modeLocks && m.picked() == nil:
		return "no lock under the cursor"
	case mode&modeOnNode != 0 && m.pickedNode() == nil:
		return "no node under the cursor"
	case mode == modeEvents:
		if e := m.events.selected(); e == nil || e.Key.Empty() && e.Node == "" {
			return "it is about no lock and no node"
		}
	case mode == modeFindings:
		if f := m.findings.selected(); f == nil || f.Key.Empty() && f.Node == "" {
			return "it is about no lock and no node"
		}
	}
	return ""
}

// openPicked opens what is under the cursor on a page of its own.
func (m *model) openPicked() tea.Cmd {
	if m.whyNoOpenPicked() != "" {
		return nil
	}
	about := func(key, node string) tea.Cmd {
		if key != "" {
			return m.open(place{view: viewLock, lock: key})
		}
		return m.open(place{view: viewNode, node: node})
	}
	switch mode := m.mode(); {
	case mode == modeLocks:
		return about(m.picked().Key.Raw(), "")
	case mode&modeOnNode != 0:
		return about("", m.pickedNode().Name)
	case mode == modeEvents:
		e := m.events.selected()
		return about(e.Key.Raw(), e.Node)
	case mode == modeFindings:
		f := m.findings.selected()
		return about(f.Key.Raw(), f.Node)
	}
	return nil
}

// filterHere tells if what is on the page is filtered.
func (m *model) filterHere() bool {
	if m.at.view == viewEvents {
		return m.events.source != ""
	}
	return (m.at.view == viewOverview || m.at.view == viewLocks) && m.locks.source != ""
}

func (m *model) whyNoFilter() string {
	switch m.at.view {
	case viewOverview, viewLocks, viewEvents:
		return ""
	}
	return "there is nothing to filter on this page: 2 are the locks, 4 the events"
}

// filterLine is the line in which the filter of the page is typed.
func (m *model) filterLine() *lineEdit {
	if m.at.view == viewEvents {
		return &m.events.line
	}
	return &m.filter
}

func (m *model) openFilter() tea.Cmd {
	m.filtering = true
	if m.at.view == viewOverview {
		m.focus = focusLocks
	}
	m.filterLine().move(longestLine)
	return nil
}

func (m *model) keepFilter() tea.Cmd { m.filtering = false; return nil }

func (m *model) clearFilter() tea.Cmd {
	m.filtering = false
	*m.filterLine() = lineEdit{}
	m.applyFilter()
	return nil
}

// applyFilter lists what the filter chooses as far as it is typed.
func (m *model) applyFilter() {
	if m.at.view == viewEvents {
		m.events.setFilter(m.events.line.String())
		return
	}
	s := m.filter.String()
	m.locks.setFilter(monitor.ParseFilter(s).At(m.now()), s)
}

// filterProblem is what is wrong with the filter of the page, safe to show.
func (m *model) filterProblem() string {
	if m.at.view == viewEvents {
		return ""
	}
	err := m.locks.filter.Check(m.shown.Nodes)
	if err == nil {
		return ""
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	return m.st.Whole(strings.TrimPrefix(first, monitor.ErrFilter.Error()+": "))
}

func (m *model) whyNoSort() string {
	if m.mode()&modeLocks == 0 {
		return "it is for the table of locks"
	}
	return ""
}

func (m *model) nextOrder() tea.Cmd { return m.sortBy((m.locks.order + 1) % orders) }

func (m *model) sortBy(o order) tea.Cmd {
	m.locks.setOrder(o)
	m.say(m.st.Info, "sorted: "+o.String())
	m.prefs.Sort = o.word()
	return m.save()
}

func orderOf(word string) order {
	for o := range orders {
		if o.word() == word {
			return o
		}
	}
	return orderNeeds
}

func (m *model) toggleFreeze() tea.Cmd {
	if m.froze.IsZero() {
		m.froze = m.now()
		m.events.until = m.events.seq
		return nil
	}
	m.froze = time.Time{}
	m.events.until = 0
	m.drawn = m.fences
	missed, lost := m.missed, m.lost
	m.missed, m.lost = nil, false
	m.show(m.snap, missed, !lost)
	return nil
}

func (m *model) toggleFollow() tea.Cmd {
	m.events.follow = !m.events.follow
	if m.events.follow {
		m.say(m.st.Info, "following the newest event")
	}
	return nil
}

func (m *model) whyNoFollow() string {
	if m.at.view != viewEvents {
		return "events are followed (4); a node is fenced (tab, 3); the cursor follows its lock by itself"
	}
	return ""
}

func (m *model) toggleWide() tea.Cmd {
	m.prefs.Wide = !m.prefs.Wide
	m.lockView.choose(m.prefs.Columns, m.prefs.Wide)
	return m.save()
}

func (m *model) quit() tea.Cmd { return tea.Quit }

func (m *model) tooSmall() bool { return m.w < minWidth || m.h < minHeight }

// frame draws the whole screen: exactly h lines, none wider than w.
func (m *model) frame() string {
	if m.w <= 0 || m.h <= 0 {
		return ""
	}
	m.hits.reset()
	var lines []string
	if m.tooSmall() {
		text := fmt.Sprintf("terminal too small: %d%s%d of at least %d%s%d", m.w, m.st.Times, m.h, minWidth, m.st.Times, minHeight)
		lines = styles.Wrap(text, m.w, 0)
	} else {
		lines = styles.Fill(m.body(), m.h-1)
		lines = append(lines, m.lastLine())
	}
	lines = lines[:min(len(lines), m.h)]
	for i, l := range lines {
		if view.Width(l) > m.w { // a part drew too much: it must not break the screen
			lines[i] = m.st.Cut(l, m.w)
		}
	}
	return strings.Join(lines, "\n")
}

// lastLine is a message, what is being typed, or the keys.
func (m *model) lastLine() string {
	st := m.st
	switch mode := m.mode(); {
	case m.status != "":
		return " " + m.status
	case mode == modeFilter:
		found := m.found()
		if why := m.filterProblem(); why != "" {
			found = st.Bad.Of(st.Cut("! "+why, m.w/2))
		} else {
			found = st.Dim.Of(found)
		}
		left := " / "
		return left + m.filterLine().view(st, m.w-view.Width(left)-view.Width(found)-3) + "  " + found
	case mode == modeCommand:
		return m.line.view(m, m.w)
	default:
		return m.keyLine(m.w)
	}
}

// found is how many of how many the filter chooses.
func (m *model) found() string {
	if m.at.view == viewEvents {
		return fmt.Sprintf("%s of %s", view.Count(len(m.events.list())), view.Count(len(m.events.all)))
	}
	if m.locks.stale {
		return "looking" + m.st.Ellipsis
	}
	return fmt.Sprintf("%s of %s", view.Count(m.locks.len()), view.Count(m.shown.Locks.Len()))
}

func (m *model) ruler() string { return " " + m.st.Dim.Of(strings.Repeat(m.st.Rule, m.w-2)) }

// body is everything above the last line.
func (m *model) body() []string {
	st, now := m.st, m.shownNow()
	roomy := m.h >= 20
	lines := []string{m.header.line(m.shown, m.w, now, &m.drawn, m.spelt())}
	if !m.froze.IsZero() {
		s := " FROZEN at " + view.Clock(m.froze) + " (" + view.Age(m.now().Sub(m.froze)) + ") " + st.Sep + " still collecting " + st.Sep + " space: resume"
		lines = append(lines, st.Banner.Of(st.Pad(s, m.w)))
	}
	lines = append(lines, m.keptLines(m.w)...)
	if roomy {
		m.hits.tabRow = len(lines)
		lines = append(lines, m.tabs(m.w))
	}
	room := m.h - 1 - len(lines)
	if m.dialog == nil {
		m.hits.base = len(lines)
		return append(lines, m.draw(room, now)...)
	}
	dock := m.dialog.lines(st, m.w, room, m.now())
	const least = 1 + 2 + 4 // rule, title, columns, rows
	if len(dock)+least <= room {
		lines = append(lines, styles.Fill(m.draw(room-len(dock)-1, now), room-len(dock)-1)...)
		lines = append(lines, m.ruler())
		return append(lines, dock...)
	}
	if len(dock)+1 <= room { // at least the nodes
		lines = append(lines, m.nodeView.strip(&m.nodes, m.w, now, &m.drawn, false))
		room--
	}
	return append(lines, m.dialog.lines(st, m.w, room, m.now())...)
}

// draw draws the page in at most h lines.
func (m *model) draw(h int, now time.Time) []string {
	switch m.at.view {
	case viewOverview:
		return m.overview(h, now)
	case viewLocks:
		return m.lockLines(h, now)
	case viewNodes:
		return m.nodesPage(h, now)
	case viewEvents:
		return m.eventsPage(h)
	case viewFindings:
		return m.findingsPage(h, now)
	case viewGuard:
		return m.guardPage(h, now)
	case viewLab:
		return m.labPage(h, now)
	case viewLock:
		return m.read(m.lockPage(m.w, h, now), h)
	case viewNode:
		return m.read(m.nodePage(m.w, now), h)
	default:
		return m.read(m.helpLines(m.w), h)
	}
}

// read is the part in sight of a page that is read.
func (m *model) read(all []string, h int) []string {
	m.pageRows = h
	if len(all) <= h {
		m.at.top = 0
		return all
	}
	m.at.top = max(0, min(m.at.top, len(all)-h+1))
	out := slices.Clone(all[m.at.top:min(len(all), m.at.top+h-1)])
	more := " pgup"
	if n := len(all) - m.at.top - h + 1; n > 0 {
		more = " " + view.Plural(n, "more line") + ": pgdn"
	}
	return append(out, m.st.Dim.Of(more))
}
