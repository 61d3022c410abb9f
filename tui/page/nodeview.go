package page

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"redlockctl/internal/announce"
	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/restartguard"
	"redlockctl/tui/styles"
)

// nodeTable is the masters and which one is under the cursor, by its name.
type nodeTable struct {
	nodes []monitor.Node
	// figures are the nodes as they were at the last tick: round trips and clock
	// offsets change many times a second, which nobody can read, so what is shown
	// of them changes once a second. What a node's state tells is never old.
	figures map[string]monitor.Node
	Name    string
	top     int
}

func (t *nodeTable) set(nodes []monitor.Node, tick bool) {
	if t.figures == nil {
		t.figures = map[string]monitor.Node{}
	}
	t.nodes = nodes
	for _, n := range nodes {
		old, ok := t.figures[n.Name]
		if tick || !ok || old.State != n.State || old.RunID != n.RunID || !old.Offset.Valid && n.Offset.Valid {
			t.figures[n.Name] = n
		}
	}
	if t.pos() < 0 && len(nodes) > 0 {
		t.Name = nodes[0].Name
	}
}

func (t *nodeTable) pos() int {
	for i := range t.nodes {
		if t.nodes[i].Name == t.Name {
			return i
		}
	}
	return -1
}

func (t *nodeTable) move(d int) {
	if len(t.nodes) > 0 {
		t.Name = t.nodes[max(0, min(len(t.nodes)-1, max(t.pos(), 0)+d))].Name
	}
}

func (t *nodeTable) Selected() *monitor.Node {
	if i := t.pos(); i >= 0 {
		return &t.nodes[i]
	}
	return nil
}

// window is the range of nodes in sight when h fit; the cursor is in it.
func (t *nodeTable) window(h int) (from, to int) {
	t.top = scrollTo(t.top, max(t.pos(), 0), len(t.nodes), h)
	return t.top, min(len(t.nodes), t.top+h)
}

// fenceView is what there is to say about fences beyond the snapshot.
type fenceView struct {
	Guarded    bool   // there is a guard in this process
	own        string // its id
	Status     map[string]restartguard.NodeStatus
	list       []restartguard.NodeStatus // the same, in the nodes' order
	configured time.Duration             // D of this program's configuration
	Delay      time.Duration             // D; zero: not known
	others     []announce.Guard          // the guards that are seen, without that in this process
}

// see takes in which guards announce themselves. The greatest D counts; that of this
// program's configuration where its own guard runs, or none is seen.
func (f *fenceView) see(s *monitor.Snapshot) {
	all, _ := s.Guards()
	f.Delay, f.others = 0, nil
	if f.Guarded || len(all) == 0 {
		f.Delay = f.configured
	}
	for _, g := range all {
		f.Delay = max(f.Delay, g.Delay)
		if g.ID != f.own {
			f.others = append(f.others, g)
		}
	}
}

// protectors are the guards that watch, in a few words; empty: none is seen.
func (f *fenceView) protectors(st *styles.Styles) string {
	elsewhere := f.elsewhere(st)
	switch {
	case !f.Guarded:
		return elsewhere
	case elsewhere == "":
		return "guard here"
	}
	return "guard here and " + elsewhere
}

// elsewhere are the guards in other programs; empty: none is seen.
func (f *fenceView) elsewhere(st *styles.Styles) string {
	var names []string
	for _, g := range f.others {
		names = append(names, guardName(st, g))
	}
	if len(names) > 2 {
		names = append(names[:1], view.Plural(len(names)-1, "more guard"))
	}
	return strings.Join(names, " and ")
}

func guardName(st *styles.Styles, g announce.Guard) string {
	if g.Host.Empty() {
		return "guard " + g.ID[:min(6, len(g.ID))]
	}
	return "guard@" + st.Escape(g.Host.Raw(), 20)
}

// Waiting are the nodes that only the guard in this process lets rejoin.
func (f *fenceView) Waiting(s *monitor.Snapshot) (names []string) {
	if !f.Guarded {
		return nil
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		another := slices.ContainsFunc(n.Guards, func(g announce.Guard) bool { return g.ID != f.own })
		if fenced := n.State == monitor.NodeFenced || f.Status[n.Name].Phase == restartguard.PhaseClosed; fenced && !another {
			names = append(names, n.Name)
		}
	}
	return names
}

// Countdown is the time until the guard here lifts the node's fence.
func (f *fenceView) Countdown(n *monitor.Node, now time.Time) (time.Duration, bool) {
	s, ok := f.Status[n.Name]
	if !ok || s.Phase != restartguard.PhaseClosed || s.Until.IsZero() || n.State != monitor.NodeFenced {
		return 0, false
	}
	return max(0, s.Until.Sub(now)), true
}

// nodeView draws the node table, and the strip that stands for it on a small
// screen.
type nodeView struct{ st *styles.Styles }

// nodeLayout is the widths of the columns; zero: not shown.
type nodeLayout struct {
	name, state, up, locks, rtt, spark, offset, drift, guard int
}

const guardMin = 26

func (v *nodeView) arrange(w int, nodes []monitor.Node) nodeLayout {
	l := nodeLayout{name: 4, state: styles.StateWidth, up: 6, locks: 6, rtt: 6, spark: 8, offset: 14, drift: 9}
	for i := range nodes {
		l.name = max(l.name, min(12, view.Width(v.st.Whole(nodes[i].Name))))
		l.locks = max(l.locks, view.Width(view.Count(nodes[i].Locks)))
		if nodes[i].Offset.Valid {
			l.offset = max(l.offset, view.Width(v.offset(nodes[i].Offset)))
		}
	}
	for _, drop := range []*int{nil, &l.spark, &l.drift, &l.offset, &l.up, &l.rtt} {
		if drop != nil {
			*drop = 0
		}
		room := w - styles.Lead
		for _, col := range []int{l.name, l.state, l.up, l.locks, l.rtt, l.spark, l.offset, l.drift} {
			if col > 0 {
				room -= col + styles.Gap
			}
		}
		l.guard = max(0, room-1)
		if l.guard >= guardMin {
			break
		}
	}
	return l
}

func (v *nodeView) header(l nodeLayout, focused bool) string {
	st := v.st
	row := styles.NewRow()
	row.Add(l.name, st.Pad("NODE", l.name))
	row.Add(l.state, st.Pad("STATE", l.state))
	row.Add(l.up, st.PadLeft("UP", l.up))
	row.Add(l.locks, st.PadLeft("LOCKS", l.locks))
	row.Add(l.rtt, st.PadLeft("RTT", l.rtt))
	row.Add(l.spark, st.Pad("", l.spark))
	row.Add(l.offset, st.PadLeft("CLOCK OFFSET", l.offset))
	row.Add(l.drift, st.PadLeft("DRIFT", l.drift))
	row.Add(l.guard, st.Cut("GUARD", l.guard))
	if focused {
		return st.Title.Of(row.String())
	}
	return st.Label.Of(row.String())
}

func (v *nodeView) rows(t *nodeTable, h, w int, now time.Time, f *fenceView, at cursorState) []string {
	l := v.arrange(w, t.nodes)
	var out []string
	from, to := t.window(h)
	for i := from; i < to; i++ {
		n := &t.nodes[i]
		fig := t.figures[n.Name]
		out = append(out, v.row(n, &fig, l, w, now, f, n.Name == t.Name && at != cursorAway, at == cursorHere))
	}
	return out
}

// answers tells if what a node said last is of now.
func answers(s monitor.NodeState) bool {
	switch s {
	case monitor.NodeServing, monitor.NodeFenced, monitor.NodeHeld, monitor.NodeLoading, monitor.NodeWrongRole:
		return true
	}
	return false
}

func (v *nodeView) row(n, fig *monitor.Node, l nodeLayout, w int, now time.Time, f *fenceView, under, block bool) string {
	st := v.st
	plain := under && block
	paintIf := func(p styles.Paint, s string) string {
		if plain {
			return s
		}
		return p.Of(s)
	}
	glyph, p := st.Node(n.State)
	answers := answers(n.State)
	none := func(w int) string { return paintIf(st.Dim, st.PadLeft(st.None, w)) }
	cell := func(w int, ok bool, s func() string) string {
		switch {
		case w == 0:
			return ""
		case !ok:
			return none(w)
		}
		return st.PadLeft(s(), w)
	}
	r := styles.NewRow()
	r.Add(l.name, paintIf(st.Strong, st.Pad(st.Escape(n.Name, l.name), l.name)))
	r.Add(l.state, paintIf(p, st.Pad(glyph+" "+n.State.String(), l.state)))
	r.Add(l.up, cell(l.up, answers, func() string { return view.Age(fig.Uptime) }))
	r.Add(l.locks, cell(l.locks, answers, func() string { return view.Count(fig.Locks) }))
	r.Add(l.rtt, cell(l.rtt, answers && fig.RTT > 0, func() string { return view.Milliseconds(fig.RTT) }))
	if l.spark > 0 && !answers {
		r.Add(l.spark, styles.Blanks(l.spark))
	} else if l.spark > 0 {
		r.Add(l.spark, paintIf(st.Info, st.Sparkline(fig.RTTs, l.spark)))
	}
	r.Add(l.offset, cell(l.offset, answers && fig.Offset.Valid, func() string { return v.offset(fig.Offset) }))
	if l.drift > 0 && answers && !fig.Drift.Valid {
		r.Add(l.drift, paintIf(st.Dim, st.PadLeft(st.Ellipsis, l.drift)))
	} else {
		r.Add(l.drift, cell(l.drift, answers, func() string { return v.drift(fig.Drift) }))
	}
	if l.guard > 0 {
		text, gp := v.guard(n, now, f, l.guard)
		r.Add(l.guard, paintIf(gp, st.Cut(text, l.guard)))
	}
	s := r.String()
	if under {
		s = " " + st.Pointer + s[2:] // over the blanks that a row begins with
	}
	if plain {
		return st.Cursor.Of(st.Pad(s, w))
	}
	return s
}

func (v *nodeView) offset(e monitor.Estimate) string {
	if e.Offset.Abs() >= 10*time.Second {
		return v.st.Signed(e.Offset.Seconds(), 1) + " s"
	}
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	return v.st.Signed(ms(e.Offset), 1) + " " + v.st.PM + strconv.FormatFloat(ms(e.Bound), 'f', 1, 64) + " ms"
}

func (v *nodeView) signedMS(d time.Duration) string {
	return v.st.Signed(float64(d)/float64(time.Millisecond), 1) + " ms"
}

func (v *nodeView) drift(d monitor.Drift) string { return v.st.Signed(d.PPM, 0) + " ppm" }

// guard says what keeps the node out of the quorum or lets it in.
func (v *nodeView) guard(n *monitor.Node, now time.Time, f *fenceView, w int) (string, styles.Paint) {
	st := v.st
	since := ""
	if !n.Since.IsZero() {
		since = " since " + view.Clock(n.Since) + " (" + view.Age(now.Sub(n.Since)) + ")"
	}
	switch n.State {
	case monitor.NodeDown, monitor.NodeSlow, monitor.NodeDenied, monitor.NodeWrongRole:
		why := n.State.String()
		if !n.Err.Empty() {
			why = st.Sentence(lastClause(n.Err.Raw()), w)
			if view.Width(why)+view.Width(since) > w && !n.Since.IsZero() {
				since = " since " + view.Clock(n.Since)
			}
			why = st.Cut(why, max(8, w-view.Width(since)))
		}
		_, p := st.Node(n.State)
		return why + since, p
	case monitor.NodeLoading:
		return "reading its data" + since, st.Warn
	}
	s, ok := f.Status[n.Name]
	switch {
	case ok && s.Phase == restartguard.PhaseClosed && !s.Until.IsZero():
		left := max(0, s.Until.Sub(now))
		whole := f.Delay
		if whole <= 0 {
			whole = s.Until.Sub(s.Since)
		}
		share := 0.0
		if whole > 0 {
			share = float64(left) / float64(whole)
		}
		bar := 8
		if w >= 34 {
			bar = 18
		}
		text := st.Bar(share, bar) + " " + view.Remaining(left)
		if left == 0 {
			text = st.Bar(0, bar) + " rejoining"
		}
		if s.Reason != "" {
			text += "  " + st.Sentence(s.Reason, max(1, w-view.Width(text)-styles.Gap))
		}
		return text, st.Warn
	case n.State == monitor.NodeHeld, ok && s.Phase == restartguard.PhaseHeld:
		return "held by an operator: O opens it", st.Warn
	case ok && s.Phase == restartguard.PhaseClosed:
		return "closed by the guard", st.Warn
	case ok && s.Phase == restartguard.PhaseExposed:
		return "EXPOSED: must be closed, and is open !", st.Bad
	case n.State == monitor.NodeFenced && f.Guarded:
		return "fenced, the guard is looking" + st.Ellipsis, st.Warn
	case n.State == monitor.NodeFenced:
		who := "a guard"
		if len(n.Guards) > 0 {
			who = guardName(st, n.Guards[0])
		}
		if f.Delay > 0 {
			text := "waits for " + who + ", D = " + view.Span(f.Delay)
			if w >= view.Width(text)+8 {
				text = "fenced, " + text
			}
			return text, st.Warn
		}
		return "fenced, waits for " + who, st.Warn
	case ok && s.Phase == restartguard.PhaseActive && s.Known && s.Verified:
		return "boot fence verified", styles.Paint{}
	case ok && s.Phase == restartguard.PhaseActive && s.Known:
		if s.BootExposed > 0 && w >= 44 {
			return "boot fence not verified ! open " + restartguard.AtMost(s.BootExposed).String(), st.Warn
		}
		return "boot fence not verified !", st.Warn
	case ok && s.Phase == restartguard.PhaseActive:
		return "unverified: no start seen yet", st.Dim
	case ok && s.Phase == restartguard.PhaseUnreachable:
		return st.Sentence("guard: "+s.Err, w), st.Warn
	case n.State == monitor.NodeUnknown:
		return st.Ellipsis, st.Dim
	case f.Guarded:
		return st.Ellipsis, st.Dim
	case len(n.Guards) > 0:
		// The guard elsewhere says what it saw of the last start.
		switch boot := func(b announce.Boot) bool {
			return slices.ContainsFunc(n.Guards, func(g announce.Guard) bool { return g.Boot == b })
		}; {
		case boot(announce.BootUnfenced):
			return "boot fence not verified !", st.Warn
		case boot(announce.BootFenced):
			return "boot fence verified", styles.Paint{}
		}
		return "unverified: no start seen yet", st.Dim
	case !n.GuardsKnown && len(f.others) > 0:
		return st.Ellipsis, st.Dim
	default:
		return "no guard here", st.Dim
	}
}

// lastClause is the end of an error, which says what went wrong; what is before
// it says where, and that is known here.
func lastClause(s string) string {
	if i := strings.LastIndex(s, ": "); i >= 0 && i+2 < len(s) {
		return s[i+2:]
	}
	return s
}

// Strip is the nodes in one line: those that do not serve first where not all
// fit.
func (v *nodeView) strip(t *nodeTable, w int, now time.Time, f *fenceView, focused bool) string {
	st := v.st
	cells := make([]string, len(t.nodes))
	total := 1
	for i := range t.nodes {
		n := &t.nodes[i]
		glyph, p := st.Node(n.State)
		s := st.Escape(n.Name, 10) + " " + glyph
		if left, ok := f.Countdown(n, now); ok {
			s += view.Remaining(left)
		} else if n.State != monitor.NodeServing && n.State != monitor.NodeDown && n.State != monitor.NodeFenced {
			s += n.State.String()
		}
		total += view.Width(s) + styles.Gap
		if focused && n.Name == t.Name {
			cells[i] = st.Cursor.Of(s)
		} else {
			cells[i] = p.Of(s)
		}
	}
	if total > w {
		var trouble, calm []string
		for i := range t.nodes {
			switch {
			case focused && t.nodes[i].Name == t.Name:
				trouble = append([]string{cells[i]}, trouble...)
			case t.nodes[i].State != monitor.NodeServing:
				trouble = append(trouble, cells[i])
			default:
				calm = append(calm, cells[i])
			}
		}
		cells = append(trouble, calm...)
	}
	return st.Cut(" "+strings.Join(cells, styles.Blanks(styles.Gap)), w)
}
