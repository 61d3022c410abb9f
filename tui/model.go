package tui

import (
	"context"
	"fmt"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"redlockctl/internal/view"
	"redlockctl/tui/input"
	"redlockctl/tui/page"
	"redlockctl/tui/styles"
)

// The smallest terminal that the screen fits.
const (
	minWidth  = 60
	minHeight = 15
)

// model is the only tea.Model: it routes messages, owns focus and layout, and
// lets its pages draw. All of it is touched by the program's goroutine alone;
// commands work on what they were given.
type model struct {
	opt     Options
	ctx     context.Context
	now     func() time.Time
	feed    feed
	running *running
	keys    keyMap

	*page.Set // what is shown
	page      page.Page
	trail     []page.Page // where esc leads back to

	filtering bool
	line      *commandLine
	dialog    *dialog
	lastID    int
	busy      int              // acts on their way
	mine      map[string]grant // locks acquired by hand, by key
	losses    []loss           // of those that were kept, and that nobody has seen yet
	keyed     *binding         // whose key was pressed
	single    bool             // an act is about one lock, also where some are marked
	prefs     Preferences
	saver     *saver
	moving    bool // another cluster is being opened

	notice   string // painted
	noticeAt time.Time
	hits     hits
	dirty    bool
	view     tea.View
}

// noticeTime is how long a message stands in the last line.
const noticeTime = 6 * time.Second

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
		opt:     opt,
		ctx:     ctx,
		now:     now,
		feed:    feed{ctx: ctx, source: opt.Source, guard: opt.Guard, pace: time.Second / time.Duration(opt.FPS)},
		running: newRunning(),
		keys:    newKeyMap(),
		mine:    map[string]grant{},
		prefs:   prefs,
		saver:   saver,
		dirty:   true,
	}
	m.Set = page.New(&page.Screen{St: &st, IsMine: m.isMine}, now(), m.labLines, m.helpLines)
	m.page = m.Overview
	m.opt.Mouse = opt.Mouse || prefs.Mouse
	m.LockView.Choose(prefs.Columns, prefs.Wide)
	m.Locks.Order = orderOf(prefs.Sort)
	m.seeGuard(m.feed.status())
	m.Receive(opt.Source.Snapshot(), nil, false, nil)
	if m.Locks.Order != page.OrderNeeds {
		m.say(m.St.Info, "the locks are sorted by "+m.Locks.Order.Word()+", as you left them: s changes it")
	}
	if loadErr != nil {
		m.say(m.St.Warn, "what was chosen last time cannot be read: "+m.St.Whole(loadErr.Error()))
	}
	return m
}

// Init implements [tea.Model].
func (m *model) Init() tea.Cmd {
	return tea.Batch(m.feed.next(m.Latest, m.Events.Seq, 0), m.feed.tick(), m.sorting())
}

// Update implements [tea.Model].
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	cmd := m.update(msg)
	if s := m.sorting(); s != nil {
		cmd = tea.Batch(cmd, s)
	}
	if key := m.Lock.Watched.Wants; key != "" {
		m.Lock.Watched.Wants = ""
		cmd = tea.Batch(cmd, m.feed.history(key))
	}
	return m, cmd
}

// sorting is the command that sorts many locks anew, where that is wanted.
func (m *model) sorting() tea.Cmd {
	build := m.Locks.Build()
	if build == nil {
		return nil
	}
	return func() tea.Msg { return build() }
}

func (m *model) update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		first := m.W == 0
		m.W, m.H = msg.Width, msg.Height
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
		m.seeGuard(msg.guard)
		m.Receive(msg.snap, msg.changed, msg.known, msg.events)
		return m.feed.next(msg.snap, m.Events.Seq, m.feed.pace)
	case historyMsg:
		m.dirty = true
		m.Lock.Watched.Before(msg.key, msg.events)
	case page.Built:
		m.dirty = true
		m.Locks.Take(msg)
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
		m.say(m.St.Warn, "your choice is not remembered: "+m.St.Whole(msg.err.Error()))
	case copiedMsg:
		m.dirty = true
		m.copied(msg)
	}
	return nil
}

func (m *model) seeGuard(g guardState) { m.TakeGuard(g.id, g.status, m.opt.Delay) }

// tick is a second that has passed.
func (m *model) tick(msg tickMsg) {
	m.seeGuard(msg.guard)
	m.Set.Tick(m.now())
	m.lookAfter()
	if m.notice != "" && m.now().Sub(m.noticeAt) >= noticeTime {
		m.notice = ""
	}
	m.forgetEnded()
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

// press is a key.
func (m *model) press(msg tea.KeyPressMsg) tea.Cmd {
	m.notice = ""
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
		if b.in&mode == 0 || b.do == nil || !key.Matches(msg, b.Binding) {
			continue
		}
		m.keyed = b
		return m.try(b)
	}
	if e := m.editor(); e != nil {
		if e.Press(msg) {
			m.edited()
		}
	} else if mode == page.ModeDialog && len(m.dialog.fields) > 0 && msg.Text != "" {
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
		m.say(m.St.Warn, k+" "+text+": "+why)
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
		e.Paste(s)
		m.edited()
	}
}

// editor is the line that takes letters now; nil where none does.
func (m *model) editor() *input.Line {
	switch m.mode() {
	case page.ModeFilter:
		return m.page.(page.Filtered).FilterLine()
	case page.ModeCommand:
		return &m.line.Line
	case page.ModeDialog:
		if d := m.dialog; d.focus < len(d.fields) && d.fields[d.focus].choices == nil {
			return &d.fields[d.focus].Line
		}
	}
	return nil
}

// edited is called after the editor's text has changed.
func (m *model) edited() {
	switch m.mode() {
	case page.ModeFilter:
		m.page.(page.Filtered).Filter(m.now())
	case page.ModeCommand:
		m.line.typed()
	}
	if m.dialog != nil {
		m.dialog.pressed = false
	}
}

// say puts a message into the last line; s is safe to show.
func (m *model) say(p styles.Paint, s string) {
	if m.W > 0 { // before the first frame the width is not known, and frame cuts it
		s = m.St.Cut(s, max(1, m.W-2))
	}
	m.notice = p.Of(s)
	m.noticeAt = m.now()
}

func (m *model) tab() tea.Cmd {
	if m.viewed() != page.Overview {
		return m.turn(1)
	}
	m.Overview.TurnFocus()
	return nil
}

// enter opens what is under the cursor: below it where there is a place for it,
// else on a page of its own.
func (m *model) enter() tea.Cmd {
	d, ok := m.page.(page.Detailed)
	if !ok {
		return m.openPicked()
	}
	*d.Detail() = !*d.Detail()
	if l := m.selected().Lock; l != nil && *d.Detail() {
		m.Locks.Chosen = true // what is looked at stays under the cursor
		m.Lock.Watch(l.Key.Raw())
	}
	return nil
}

func (m *model) whyNoOpenPicked() string {
	mode := m.mode()
	if mode&(page.ModeLock|page.ModeNode|page.ModeHelp) != 0 {
		return "it is open"
	}
	switch key, node := m.selected().About(); {
	case key != "" || node != "":
		return ""
	case mode == page.ModeLocks && m.selected().Lock == nil:
		return "no lock under the cursor"
	case mode&page.ModeOnNode != 0:
		return "no node under the cursor"
	case mode&(page.ModeEvents|page.ModeFindings) != 0:
		return "it is about no lock and no node"
	}
	return ""
}

// openPicked opens what is under the cursor on a page of its own.
func (m *model) openPicked() tea.Cmd {
	if m.whyNoOpenPicked() != "" {
		return nil
	}
	s := m.selected()
	key, node := s.About()
	if key != "" || s.Lock != nil {
		return m.open(page.Place{Kind: page.Lock, Name: key})
	}
	return m.open(page.Place{Kind: page.Node, Name: node})
}

func (m *model) whyNoFilter() string {
	if _, ok := m.page.(page.Filtered); !ok {
		return "there is nothing to filter on this page: 2 are the locks, 4 the events"
	}
	return ""
}

func (m *model) openFilter() tea.Cmd {
	m.filtering = true
	m.page.(page.Filtered).FilterLine().End()
	return nil
}

func (m *model) keepFilter() tea.Cmd { m.filtering = false; return nil }

func (m *model) clearFilter() tea.Cmd {
	m.filtering = false
	f := m.page.(page.Filtered)
	f.FilterLine().Set("")
	f.Filter(m.now())
	return nil
}

func (m *model) whyNoSort() string {
	if m.mode()&page.ModeLocks == 0 {
		return "it is for the table of locks"
	}
	return ""
}

func (m *model) nextOrder() tea.Cmd { return m.sortBy((m.Locks.Order + 1) % page.Orders) }

func (m *model) sortBy(o page.Order) tea.Cmd {
	m.Locks.SetOrder(o)
	m.say(m.St.Info, "sorted: "+o.String())
	m.prefs.Sort = o.Word()
	return m.save()
}

func orderOf(word string) page.Order {
	for o := range page.Orders {
		if o.Word() == word {
			return o
		}
	}
	return page.OrderNeeds
}

func (m *model) toggleFreeze() tea.Cmd {
	if m.Frozen.On() {
		m.Thaw()
	} else {
		m.Freeze(m.now())
	}
	return nil
}

func (m *model) toggleFollow() tea.Cmd {
	m.Events.Follow = !m.Events.Follow
	if m.Events.Follow {
		m.say(m.St.Info, "following the newest event")
	}
	return nil
}

func (m *model) whyNoFollow() string {
	if m.viewed() != page.Events {
		return "events are followed (4); a node is fenced (tab, 3); the cursor follows its lock by itself"
	}
	return ""
}

func (m *model) toggleWide() tea.Cmd {
	m.prefs.Wide = !m.prefs.Wide
	m.LockView.Choose(m.prefs.Columns, m.prefs.Wide)
	return m.save()
}

func (m *model) quit() tea.Cmd { return tea.Quit }

func (m *model) tooSmall() bool { return m.W < minWidth || m.H < minHeight }

// frame draws the whole screen: exactly h lines, none wider than w.
func (m *model) frame() string {
	if m.W <= 0 || m.H <= 0 {
		return ""
	}
	m.hits.reset()
	m.Screen.Now, m.Asking = m.ShownAt(m.now()), m.dialog != nil
	var lines []string
	if m.tooSmall() {
		text := fmt.Sprintf("terminal too small: %d%s%d of at least %d%s%d", m.W, m.St.Times, m.H, minWidth, m.St.Times, minHeight)
		lines = styles.Wrap(text, m.W, 0)
	} else {
		lines = styles.Fill(m.body(), m.H-1)
		lines = append(lines, m.lastLine())
	}
	lines = lines[:min(len(lines), m.H)]
	for i, l := range lines {
		if view.Width(l) > m.W { // a part drew too much: it must not break the screen
			lines[i] = m.St.Cut(l, m.W)
		}
	}
	return strings.Join(lines, "\n")
}

// lastLine is a message, what is being typed, or the keys.
func (m *model) lastLine() string {
	st := m.St
	switch mode := m.mode(); {
	case m.notice != "":
		return " " + m.notice
	case mode == page.ModeFilter:
		f := m.page.(page.Filtered)
		found := "looking" + st.Ellipsis
		if n, of, ok := f.Found(); ok {
			found = fmt.Sprintf("%s of %s", view.Count(n), view.Count(of))
		}
		if why := f.FilterProblem(); why != "" {
			found = st.Bad.Of(st.Cut("! "+why, m.W/2))
		} else {
			found = st.Dim.Of(found)
		}
		left := " / "
		return left + f.FilterLine().View(st, m.W-view.Width(left)-view.Width(found)-3) + "  " + found
	case mode == page.ModeCommand:
		return m.line.view(m, m.W)
	default:
		return m.keyLine(m.W)
	}
}

// body is everything above the last line.
func (m *model) body() []string {
	st, now := m.St, m.Screen.Now
	lines := []string{m.Header(m.viewed())}
	if m.Frozen.On() {
		s := " FROZEN at " + view.Clock(now) + " (" + view.Age(m.now().Sub(now)) + ") " + st.Sep + " still collecting " + st.Sep + " space: resume"
		lines = append(lines, st.Banner.Of(st.Pad(s, m.W)))
	}
	lines = append(lines, m.keptLines(m.W)...)
	if m.H >= 20 {
		m.hits.tabRow = len(lines)
		lines = append(lines, m.tabs(m.W))
	}
	room := m.H - 1 - len(lines)
	if m.dialog == nil {
		m.hits.base = len(lines)
		return append(lines, m.page.Lines(room)...)
	}
	dock := m.dialog.lines(st, m.W, room, m.now())
	const least = 1 + 2 + 4 // rule, title, columns, rows
	if len(dock)+least <= room {
		lines = append(lines, styles.Fill(m.page.Lines(room-len(dock)-1), room-len(dock)-1)...)
		lines = append(lines, st.Ruler(m.W))
		return append(lines, dock...)
	}
	if len(dock)+1 <= room { // at least the nodes
		lines = append(lines, m.NodeStrip())
		room--
	}
	return append(lines, m.dialog.lines(st, m.W, room, m.now())...)
}
