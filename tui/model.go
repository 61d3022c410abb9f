package tui

import (
	"context"
	"fmt"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"redlockctl/monitor"
	"redlockctl/restartguard"
)

// The smallest terminal that the screen fits.
const (
	minWidth  = 60
	minHeight = 15
)

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
	st      *styles
	keys    keyMap

	w, h  int
	snap  *monitor.Snapshot // the latest
	shown *monitor.Snapshot // the one on the screen: the latest, unless frozen
	froze time.Time         // since when the screen is frozen; zero: it is not

	fences    fenceView // the latest
	drawn     fenceView // the one on the screen
	focus     focus
	nodes     nodeTable
	locks     lockTable
	header    header
	nodeView  nodeView
	lockView  lockView
	eventView eventView

	detail    bool
	axisKey   string        // the lock that the detail shows
	axis      time.Duration // the length of its axis
	help      bool
	helpTop   int
	filtering bool
	filter    lineEdit
	dialog    *dialog
	lastID    int
	busy      int              // acts on their way
	mine      map[string]grant // locks acquired by hand, by key

	status   string // painted
	statusAt time.Time
	lockRows int // rows of locks in the last frame
	dirty    bool
	view     tea.View
}

// statusTime is how long a message stands in the last line.
const statusTime = 6 * time.Second

func newModel(ctx context.Context, opt Options, now func() time.Time) *model {
	if opt.FPS <= 0 {
		opt.FPS = defaultFPS
	}
	st := newStyles(opt.ASCII, opt.NoColor)
	m := &model{
		opt:       opt,
		ctx:       ctx,
		now:       now,
		feed:      feed{ctx, opt.Source, opt.Guard, time.Second / time.Duration(opt.FPS)},
		running:   newRunning(),
		st:        &st,
		keys:      newKeyMap(),
		locks:     newLockTable(),
		header:    header{&st},
		nodeView:  nodeView{&st},
		lockView:  newLockView(&st),
		eventView: eventView{&st},
		mine:      map[string]grant{},
		dirty:     true,
	}
	m.fences = fenceView{guarded: opt.Guard != nil, delay: opt.Delay}
	m.setGuard(m.feed.status())
	m.setSnapshot(opt.Source.Snapshot())
	return m
}

// Init implements [tea.Model].
func (m *model) Init() tea.Cmd {
	return tea.Batch(m.feed.next(m.snap.Version, 0), m.feed.tick())
}

// Update implements [tea.Model].
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.w, m.h = msg.Width, msg.Height
		m.dirty = true
	case tea.KeyPressMsg:
		m.dirty = true
		return m, m.press(msg)
	case tea.PasteMsg:
		m.dirty = true
		m.paste(msg.Content)
	case snapshotMsg:
		m.dirty = true
		m.setGuard(msg.guard)
		m.setSnapshot(msg.snap)
		return m, m.feed.next(msg.snap.Version, m.feed.pace)
	case tickMsg:
		m.dirty = true
		m.setGuard(msg.guard)
		if m.froze.IsZero() {
			m.nodes.set(m.shown.Nodes, true)
		}
		if m.status != "" && m.now().Sub(m.statusAt) >= statusTime {
			m.status = ""
		}
		m.forgetEnded()
		return m, m.feed.tick()
	case outcome:
		m.dirty = true
		m.finish(msg)
	}
	return m, nil
}

// View implements [tea.Model]. The frame is made only when something changed.
func (m *model) View() tea.View {
	if !m.dirty {
		return m.view
	}
	m.dirty = false
	m.view = tea.NewView(m.frame())
	m.view.AltScreen = true
	if d := m.dialog; d != nil && d.drawn.IsZero() {
		d.drawn = m.now()
	}
	return m.view
}

func (m *model) setGuard(status []restartguard.NodeStatus) {
	by := make(map[string]restartguard.NodeStatus, len(status))
	for _, s := range status {
		by[s.Node] = s
	}
	m.fences.status = by
	if m.froze.IsZero() {
		m.drawn = m.fences
	}
}

func (m *model) setSnapshot(s *monitor.Snapshot) {
	m.snap = s
	if m.froze.IsZero() {
		m.show(s)
	}
}

func (m *model) show(s *monitor.Snapshot) {
	m.shown = s
	m.nodes.set(s.Nodes, false)
	m.locks.set(s.Locks, s.Nodes)
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
		if m.now().Before(g.until) {
			continue
		}
		if l := m.latestLock(k); l == nil || l.Holder.Raw() != g.token {
			delete(m.mine, k)
		}
	}
}

func (m *model) mode() mode {
	switch {
	case m.dialog != nil:
		return m.dialog.mode()
	case m.help:
		return modeHelp
	case m.filtering:
		return modeFilter
	default:
		return modeOverview
	}
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
		if why := b.disabled(m); why != "" {
			k, text := b.help(m)
			m.say(m.st.warn, k+" "+text+": "+why)
			return nil
		}
		return b.do(m)
	}
	if e := m.editor(); e != nil && msg.Text != "" {
		e.insert(msg.Text)
		m.edited()
	}
	return nil
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
		return &m.filter
	case modeDialog:
		if d := m.dialog; d.focus < len(d.fields) {
			return &d.fields[d.focus].lineEdit
		}
	}
	return nil
}

// edited is called after the editor's text has changed.
func (m *model) edited() {
	if m.mode() == modeFilter {
		m.locks.setFilter(parseFilter(m.filter.String()))
	}
	if m.dialog != nil {
		m.dialog.pressed = false
	}
}

// say puts a message into the last line; s is safe to show.
func (m *model) say(p paint, s string) {
	m.status = p.of(m.st.cut(s, max(1, m.w-2)))
	m.statusAt = m.now()
}

func (m *model) moveCursor(d int) {
	if m.focus == focusNodes {
		m.nodes.move(d)
		return
	}
	m.locks.move(d)
}

func (m *model) page() int {
	if m.focus == focusNodes {
		return max(1, len(m.nodes.nodes))
	}
	return max(1, m.lockRows-1)
}

func (m *model) switchFocus() tea.Cmd {
	m.focus = focusLocks + focusNodes - m.focus
	return nil
}

func (m *model) toggleDetail() tea.Cmd { m.detail = !m.detail; return nil }

func (m *model) openHelp() tea.Cmd  { m.help, m.helpTop = true, 0; return nil }
func (m *model) closeHelp() tea.Cmd { m.help = false; return nil }

func (m *model) openFilter() tea.Cmd {
	m.filtering = true
	m.focus = focusLocks
	m.filter.move(longestLine)
	return nil
}

func (m *model) keepFilter() tea.Cmd { m.filtering = false; return nil }

func (m *model) clearFilter() tea.Cmd {
	m.filtering = false
	m.filter = lineEdit{}
	m.locks.setFilter(filter{})
	return nil
}

func (m *model) back() tea.Cmd {
	switch {
	case m.detail:
		m.detail = false
	case !m.locks.filter.empty():
		return m.clearFilter()
	}
	return nil
}

func (m *model) nextOrder() tea.Cmd {
	m.locks.setOrder((m.locks.order + 1) % orders)
	m.say(m.st.info, "sorted: "+m.locks.order.String())
	return nil
}

func (m *model) toggleFreeze() tea.Cmd {
	if m.froze.IsZero() {
		m.froze = m.now()
		return nil
	}
	m.froze = time.Time{}
	m.drawn = m.fences
	m.show(m.snap)
	return nil
}

func (m *model) quit() tea.Cmd { return tea.Quit }

func (m *model) tooSmall() bool { return m.w < minWidth || m.h < minHeight }

// frame draws the whole screen: exactly h lines, none wider than w.
func (m *model) frame() string {
	if m.w <= 0 || m.h <= 0 {
		return ""
	}
	var lines []string
	if m.tooSmall() {
		lines = wrap(fmt.Sprintf("terminal too small: %d×%d of at least %d×%d", m.w, m.h, minWidth, minHeight), m.w, 0)
		if m.st.ascii {
			lines = wrap(fmt.Sprintf("terminal too small: %dx%d of at least %dx%d", m.w, m.h, minWidth, minHeight), m.w, 0)
		}
	} else {
		lines = m.body()
		lines = append(lines[:min(len(lines), m.h-1)], make([]string, max(0, m.h-1-len(lines)))...)
		lines = append(lines, m.lastLine())
	}
	lines = lines[:min(len(lines), m.h)]
	for i, l := range lines {
		if width(l) > m.w { // a part drew too much: it must not break the screen
			lines[i] = m.st.cut(l, m.w)
		}
	}
	return strings.Join(lines, "\n")
}

// lastLine is a message, the filter being typed, or the keys.
func (m *model) lastLine() string {
	switch {
	case m.status != "":
		return " " + m.status
	case m.mode() == modeFilter:
		found := fmt.Sprintf("%s of %s", count(len(m.locks.rows)), count(len(m.locks.all)))
		left := " / "
		return left + m.filter.view(m.st, m.w-width(left)-width(found)-3) + "  " + m.st.dim.of(found)
	default:
		return m.keyLine(m.w)
	}
}

// body is everything above the last line.
func (m *model) body() []string {
	st, now := m.st, m.shownNow()
	roomy := m.h >= 20
	lines := []string{m.header.line(m.shown, m.w, now, &m.drawn)}
	switch {
	case !m.froze.IsZero():
		s := " FROZEN at " + clock(m.froze) + " (" + age(m.now().Sub(m.froze)) + ") " + st.sep + " still collecting " + st.sep + " space: resume"
		lines = append(lines, st.banner.of(st.pad(s, m.w)))
	case roomy:
		lines = append(lines, " "+st.dim.of(strings.Repeat(st.rule, m.w-2)))
	}
	if m.mode() == modeHelp {
		return append(lines, m.helpPage(m.h-1-len(lines))...)
	}

	room := m.h - 1 - len(lines)
	nodes := m.nodeLines(room, roomy, now)
	dock := m.dock(room)
	if dock != nil && len(dock)+len(nodes) > room {
		// Not even the nodes fit beside it.
		return append(lines, m.dock(room)...)
	}
	lines = append(lines, nodes...)
	room -= len(nodes)
	const least = 2 + 4 // title, columns, rows
	if dock != nil {
		if len(dock)+1+least > room {
			return append(lines, dock...)
		}
		lines = append(lines, m.lockLines(room-len(dock)-1, now)...)
		lines = append(lines, " "+st.dim.of(strings.Repeat(st.rule, m.w-2)))
		return append(lines, dock...)
	}
	events := m.eventView.rows(m.shown.Events, eventRows(m.h), m.w)
	space := 0
	if roomy {
		space = 1
	}
	lines = append(lines, m.lockLines(room-eventRows(m.h)-space, now)...)
	if roomy {
		lines = append(lines, "")
	}
	return append(lines, events...)
}

// eventRows is how many events a screen of h lines shows.
func eventRows(h int) int {
	switch {
	case h >= 50:
		return 10
	case h >= 40:
		return 7
	case h >= 30:
		return 5
	case h >= 24:
		return 3
	default:
		return 1
	}
}

// dock is what stands at the foot of the screen: a dialog, or a detail; nil:
// nothing does.
func (m *model) dock(h int) []string {
	switch {
	case m.dialog != nil:
		return m.dialog.lines(m.st, m.w, h, m.now())
	case !m.detail:
		return nil
	case m.focus == focusNodes:
		d := m.nodeDetail(m.w)
		return d[:min(len(d), h)]
	default:
		d := m.lockDetail(m.w)
		if len(d) > h {
			d = dropBlank(d)
		}
		return d[:min(len(d), h)]
	}
}

func (m *model) cursorOf(f focus) cursorState {
	switch {
	case m.focus != f:
		return cursorAway
	case m.dialog != nil:
		return cursorKept
	default:
		return cursorHere
	}
}

// nodeLines is the table of nodes, or one line for all of them on a small
// screen.
func (m *model) nodeLines(room int, roomy bool, now time.Time) []string {
	at := m.cursorOf(focusNodes)
	if m.w < 76 || m.h < 20 {
		return []string{m.nodeView.strip(&m.nodes, m.w, now, &m.drawn, at != cursorAway)}
	}
	rows := min(len(m.nodes.nodes), max(3, room/3))
	lines := []string{m.nodeView.header(m.nodeView.arrange(m.w, m.nodes.nodes), m.focus == focusNodes)}
	lines = append(lines, m.nodeView.rows(&m.nodes, rows, m.w, now, &m.drawn, at)...)
	if roomy {
		lines = append(lines, "")
	}
	return lines
}

// lockLines is the title, columns and rows of the lock table in h lines.
func (m *model) lockLines(h int, now time.Time) []string {
	at := m.cursorOf(focusLocks)
	m.lockView.arrange(m.w, m.shown.Nodes)
	lines := []string{m.lockTitle(), m.lockView.header(m.shown.Nodes, m.focus == focusLocks)}
	m.lockRows = max(0, h-len(lines))
	rows := m.lockView.rows(&m.locks, m.lockRows, now, m.shown.Cluster.Quorum, at, m.isMine)
	if len(rows) == 0 {
		why := "no locks"
		switch {
		case !m.locks.filter.empty() && len(m.locks.all) > 0:
			why = "no lock matches the filter: esc clears it"
		case m.shown.Cluster.Verdict == monitor.VerdictUnknown:
			why = "waiting for the first look at the nodes" + m.st.ellipsis
		}
		rows = []string{blanks(lockLead) + m.st.dim.of(why)}
	}
	lines = append(lines, rows...)
	return append(lines, make([]string, max(0, h-len(lines)))...)[:max(h, 0)]
}

// lockTitle counts the locks by state and says what is listed and how.
func (m *model) lockTitle() string {
	st := m.st
	left := " " + st.title.of("LOCKS "+count(len(m.locks.all)))
	var parts []string
	// Those that are well first, then what needs a person most.
	for i := range m.locks.states {
		s := monitor.LockHeld
		if i > 0 {
			s = monitor.LockState(len(m.locks.states) - i)
		}
		if n := m.locks.states[s]; n > 0 {
			_, p := st.lock(s)
			if need(s) == 0 {
				p = paint{}
			}
			parts = append(parts, p.of(count(n)+" "+s.String()))
		}
	}
	if len(parts) > 0 {
		left += "   " + strings.Join(parts, " "+st.sep+" ")
	}
	var right string
	if f := m.locks.filter; !f.empty() {
		right = st.info.of("/"+st.escape(f.source, 24)) + " " + count(len(m.locks.rows)) + "  "
	}
	long := right + st.dim.of("sort: "+m.locks.order.String())
	for _, r := range []string{long, right} {
		if n := m.w - width(left) - width(r) - 1; n >= 2 {
			return left + blanks(n) + r
		}
	}
	if right == "" {
		return st.cut(left, m.w)
	}
	return st.cut(left, max(8, m.w-width(right)-2)) + "  " + right
}

func (m *model) helpPage(h int) []string {
	all := m.helpLines(m.w)
	m.helpTop = max(0, min(m.helpTop, len(all)-h))
	return all[m.helpTop:min(len(all), m.helpTop+h)]
}
