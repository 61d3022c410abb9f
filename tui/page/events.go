package page

import (
	"slices"
	"strings"
	"time"

	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/tui/input"
	"redlockctl/tui/styles"
)

// MostEvents bounds the events that are kept since the start: those of weight,
// and as many everyday ones.
const MostEvents = 2000

// eventTable is the events since the console began, and which one is under the
// cursor.
type eventTable struct {
	All    []monitor.Event // oldest first
	weighs int             // how many of them are more than everyday
	Seq    uint64          // of the latest
	until  uint64          // the latest that is shown, while frozen; 0: all are
	choice[*monitor.Event]
	Follow bool
	under  uint64 // seq of the one under the cursor
	top    int
	listed []int // what the filter chooses: indexes into all, newest first
	stale  bool
}

func NewEventTable() eventTable {
	return eventTable{choice: newChoice(&view.EventLanguage), Follow: true, stale: true}
}

// Add takes in those events of a picture that are new.
func (t *eventTable) Add(events []monitor.Event) {
	for i := range events {
		if events[i].Seq <= t.Seq {
			continue
		}
		t.All = append(t.All, events[i])
		t.Seq = events[i].Seq
		if events[i].Level > monitor.LevelInfo {
			t.weighs++
		}
		t.stale = true
	}
	if len(t.All) > 3*MostEvents {
		t.trim()
	}
}

// trim forgets the oldest: the everyday ones never push out what matters.
func (t *eventTable) trim() {
	dropWeighty, dropChurn := max(0, t.weighs-MostEvents), max(0, len(t.All)-t.weighs-MostEvents)
	t.All = slices.DeleteFunc(t.All, func(e monitor.Event) bool {
		if e.Level > monitor.LevelInfo {
			if dropWeighty > 0 {
				dropWeighty--
				t.weighs--
				return true
			}
			return false
		}
		if dropChurn > 0 {
			dropChurn--
			return true
		}
		return false
	})
	t.stale = true
}

// setFilter chooses events by what is typed.
func (t *eventTable) setFilter(now time.Time) {
	t.choice.apply(now)
	t.stale = true
}

// tick brings what depends on time alone up to now.
func (t *eventTable) tick(now time.Time) {
	if t.filter.Timed() {
		t.at, t.stale = now, true
	}
}

// List is what is chosen, newest first.
func (t *eventTable) List() []int {
	if t.stale || t.until > 0 {
		t.stale = t.until > 0
		t.listed = t.listed[:0]
		for i := len(t.All) - 1; i >= 0; i-- {
			if (t.until == 0 || t.All[i].Seq <= t.until) && t.has(&t.All[i]) && (!t.All[i].Part || !t.filter.Empty()) {
				t.listed = append(t.listed, i)
			}
		}
	}
	return t.listed
}

// pos is the place of the cursor in the list: its event's, or that of the next
// older one that is left.
func (t *eventTable) pos() int {
	list := t.List()
	if len(list) == 0 {
		return -1
	}
	if t.Follow || t.under == 0 {
		return 0
	}
	for i, e := range list {
		if t.All[e].Seq <= t.under {
			return i
		}
	}
	return len(list) - 1
}

func (t *eventTable) move(d int) { t.goTo(t.pos() + d) }

// goTo puts the cursor on a place of the list; away from the newest, it follows
// no more.
func (t *eventTable) goTo(i int) {
	list := t.List()
	if len(list) == 0 {
		return
	}
	i = max(0, min(len(list)-1, i))
	t.under = t.All[list[i]].Seq
	t.Follow = t.Follow && i == 0
}

func (t *eventTable) Selected() *monitor.Event {
	if i := t.pos(); i >= 0 {
		return &t.All[t.listed[i]]
	}
	return nil
}

// eventsPage is the events, newest first, and the one under the cursor in full
// where it was asked for.
type eventsPage struct {
	*Screen
	events    *eventTable
	eventView eventView
	height    int
	span      lineSpan // of its rows
	detailed  bool
}

func (m *eventsPage) Place() Place        { return Place{Kind: Events} }
func (m *eventsPage) Mode() Mode          { return ModeEvents }
func (m *eventsPage) Detail() *bool       { return &m.detailed }
func (m *eventsPage) Move(d int)          { m.events.move(d) }
func (m *eventsPage) Rows() int           { return max(1, m.height-1) }
func (m *eventsPage) Selected() Selection { return Selection{Event: m.events.Selected()} }

func (m *eventsPage) Click(x, y int) bool {
	if i, ok := m.span.at(x, y); ok {
		m.events.goTo(m.events.top + i)
	}
	return false
}

func (m *eventsPage) FilterLine() *input.Line { return &m.events.line }
func (m *eventsPage) Filter(now time.Time)    { m.events.setFilter(now) }
func (m *eventsPage) FilterSource() string    { return m.events.source }
func (m *eventsPage) FilterProblem() string   { return m.events.problem(m.St) }

func (m *eventsPage) FilterOffers(line string) []string {
	return view.EventLanguage.Offers(line, view.EventValues(m.events.All, m.Shown.Nodes))
}

func (m *eventsPage) FilterLearn() func() Values { return nil }

func (m *eventsPage) Found() (n, of int, ok bool) {
	return len(m.events.List()), len(m.events.All), true
}

func (m *eventsPage) Lines(h int) []string {
	e := m.events.Selected()
	if !m.detailed || e == nil {
		return m.list(h)
	}
	if m.wide() {
		return m.beside(m.W*11/20, h, m.list, func(h int) []string {
			title, d := m.events.full(e, m.eventView, m.In())
			return m.frame(Pane{Title: title}, d, h)
		})
	}
	title, d := m.events.full(e, m.eventView, m.In())
	dock := min(len(d)+m.chrome(), h/2)
	return append(m.list(h-dock), m.frame(Pane{Title: title}, d, dock)...)
}

// list is the events in h lines.
func (m *eventsPage) list(h int) []string {
	st, t, w := m.St, m.events, m.In()
	list := t.List()
	title := Pane{Title: "Events " + view.Count(len(t.All)), More: st.Dim.Of("newest first"), Focused: true, Right: st.Dim.Of("f: follow")}
	if t.on() {
		title.More = t.title(st, len(list))
	}
	if t.Follow {
		title.Right = st.Good.Of(st.Points + " following")
	}
	room := max(0, h-m.chrome())
	m.height = room
	m.span = m.rowsAt(1, 0)
	pos := max(0, t.pos())
	if t.Follow {
		t.top = pos
	}
	t.top = scrollTo(t.top, pos, len(list), room)
	var lines []string
	for i := t.top; i < min(len(list), t.top+room); i++ {
		line := m.eventView.row(&t.All[list[i]], w-2, true)
		if i == pos {
			line = "  " + st.Pad(styles.Bare(line), w-2)
			line = st.Cursor.Of(" " + st.Pointer + line[2:])
		} else {
			line = "  " + line
		}
		lines = append(lines, line)
		m.span.n++
	}
	switch {
	case len(list) == 0 && t.on():
		lines = nothing(st, "event", t.filter.Hint(), w)
	case len(list) == 0:
		lines = append(lines, styles.Blanks(styles.Lead)+st.Dim.Of("nothing has happened yet"))
	}
	return m.frame(title, lines, h)
}

// full is one event in full, under a title.
func (t *eventTable) full(e *monitor.Event, v eventView, w int) (title string, lines []string) {
	st := v.st
	title = e.At.Format("2006-01-02 15:04:05.000") + "  " + e.Level.String() + ", " + st.Whole(e.Kind)
	if e.Node != "" {
		title += ", node " + st.Escape(e.Node, 20)
	}
	for _, l := range styles.Wrap(st.Whole(e.Text.Raw()), w-2, 0) {
		lines = append(lines, " "+l)
	}
	if !e.Key.Empty() {
		for _, l := range styles.Wrap("lock "+st.Name(e.Key.Raw()), w-2, 0) {
			lines = append(lines, " "+l)
		}
	}
	for _, text := range t.more(e, v, w) {
		for _, l := range styles.Wrap(text, w-2, 2) {
			lines = append(lines, " "+l)
		}
	}
	return title, lines
}

// partsTime is how far from a cause its parts are looked for.
const partsTime = 15 * time.Second

// more is what else there is to an event: the locks that a restart cost a copy, and
// what else was told of its node.
func (t *eventTable) more(e *monitor.Event, v eventView, w int) (lines []string) {
	if e.Cost == nil {
		return nil
	}
	if names := lostLocks(e, v.st); names != "" {
		lines = append(lines, "locks "+names)
	}
	for i := range t.All {
		if p := &t.All[i]; p.Part && p.Node == e.Node && p.At.Sub(e.At).Abs() < partsTime {
			lines = append(lines, v.row(p, w, true))
		}
	}
	return lines
}

// lostLocks names the locks that a restart cost a copy; empty: none did.
func lostLocks(e *monitor.Event, st *styles.Styles) string {
	if e.Cost == nil || len(e.Cost.Locks) == 0 {
		return ""
	}
	names := make([]string, len(e.Cost.Locks))
	for i, l := range e.Cost.Locks {
		names[i] = st.Text(l, 40)
	}
	text := strings.Join(names, ", ")
	if more := e.Cost.Lost - len(names); more > 0 {
		text += " and " + view.Count(more) + " more"
	}
	return text
}

// MostWatched bounds the history of the lock that is looked at.
const MostWatched = 200

// lockLog is what happened to one lock since it is looked at: of a busy cluster
// the latest events are over in a moment.
type lockLog struct {
	key    string
	on     bool
	Wants  string // the key of which the history before is wanted; "": it is here
	seq    uint64
	Events []monitor.Event
}

func (l *lockLog) add(events []monitor.Event) {
	if !l.on {
		return
	}
	for i := range events {
		if e := &events[i]; e.Seq > l.seq {
			l.seq = e.Seq
			if e.Key.Raw() == l.key {
				l.Events = append(l.Events, *e)
			}
		}
	}
	if len(l.Events) > 2*MostWatched {
		l.Events = slices.Clone(l.Events[len(l.Events)-MostWatched:])
	}
}

// Before puts what happened before in front of what is known.
func (l *lockLog) Before(key string, events []monitor.Event) {
	if !l.on || l.key != key {
		return
	}
	first := uint64(1<<64 - 1)
	if len(l.Events) > 0 {
		first = l.Events[0].Seq
	}
	older := slices.DeleteFunc(slices.Clone(events), func(e monitor.Event) bool { return e.Seq >= first })
	l.Events = append(older, l.Events...)
}

// begin watches a lock, unless it is watched already; all are the events that are
// known.
func (l *lockLog) begin(key string, all []monitor.Event) {
	if l.on && l.key == key {
		return
	}
	*l = lockLog{key: key, on: true, Wants: key}
	l.add(all)
}

// eventView draws the latest events, newest first.
type eventView struct{ st *styles.Styles }

// latest are h of them. Everyday churn fills only the lines that nothing of
// weight needs: a hundred acquisitions a second must not wash a restart away.
func (v *eventView) latest(events []monitor.Event, h int) []*monitor.Event {
	var picked []int
	for i := len(events) - 1; i >= 0 && len(picked) < h; i-- {
		if events[i].Level > monitor.LevelInfo && !events[i].Part {
			picked = append(picked, i)
		}
	}
	for i := len(events) - 1; i >= 0 && len(picked) < h; i-- {
		if events[i].Level == monitor.LevelInfo {
			picked = append(picked, i)
		}
	}
	slices.SortFunc(picked, func(a, b int) int { return b - a })
	out := make([]*monitor.Event, len(picked))
	for n, i := range picked {
		out[n] = &events[i]
	}
	return out
}

// tokenWidth is how many cells a token has in the sentence of an event.
const tokenWidth = 22

// row draws one event; named says what it is about where its sentence does not.
func (v *eventView) row(e *monitor.Event, w int, named bool) string {
	st := v.st
	level := st.Level(e.Level)
	at := " " + view.Clock(e.At) + " "
	about := view.EventAbout(e)
	if about != "" && named {
		about = st.Escape(about, max(8, w/4)) + ": "
	} else {
		about = ""
	}
	said := e.Text.Raw()
	if token := e.Token.Raw(); token != "" { // its beginning and its end, which may tell the owner, are enough here
		said = strings.ReplaceAll(said, token, st.Middle(token, tokenWidth))
	}
	return st.Dim.Of(at) + st.Paint(level.Tone).Of(level.Sign+" "+about+st.Sentence(said, max(1, w-view.Width(at)-view.Width(about)-3)))
}

// eventsPane is a pane of events beside what they are about.
func (p *Screen) eventsPane(events []string, h int) []string {
	if len(events) == 0 {
		events = []string{p.St.Dim.Of(" nothing has happened since this screen began")}
	}
	return p.frame(Pane{Title: "Events"}, events, h)
}

// lastEvents are the last n events that are wanted, oldest first.
func lastEvents(events []monitor.Event, n int, want func(*monitor.Event) bool) []*monitor.Event {
	var out []*monitor.Event
	for i := len(events) - 1; i >= 0 && len(out) < n; i-- {
		if want(&events[i]) {
			out = append([]*monitor.Event{&events[i]}, out...)
		}
	}
	return out
}
