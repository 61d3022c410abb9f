package page

import (
	"time"

	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/tui/styles"
)

// timelineMost and timelineLeast bound the span on the guard's page.
const (
	timelineMost  = 30 * time.Minute
	timelineLeast = 2 * time.Minute
)

// guardPage shows the states of the nodes over time, what keeps them fenced now, and the
// events of fences and rejoins.
type guardPage struct {
	*nodePanel
	events    *eventTable
	eventView eventView
	past      nodePasts
	began     *time.Time // of what is in it
}

func (g *guardPage) Place() Place { return Place{Kind: Guard} }
func (g *guardPage) Mode() Mode   { return modeGuard }

func (g *guardPage) Lines(h int) []string {
	whole := h
	h -= g.chrome()
	title, lines := g.state()
	rows := len(g.Shown.Nodes)
	if h-len(lines) >= 2*rows+6 {
		lines = append(lines, g.timelines()...)
	}
	if g.wide() {
		head := len(lines) + g.chrome()
		nodes := Pane{Title: "Nodes", Right: title.Right, Focused: true}
		title.Focused, title.Right = false, ""
		lines = g.frame(title, lines, head)
		return append(lines, g.beside(g.W/2, whole-head,
			func(h int) []string {
				return g.frame(nodes, g.states(head+1, h-g.chrome()), h)
			},
			func(h int) []string { return g.eventsPane("Events", g.latest(h-g.chrome(), g.eventView.whole), h) })...)
	}
	lines = append(lines, g.states(len(lines)+1, max(2, h-len(lines)-2))...)
	if room := h - len(lines) - 1; room > 0 {
		lines = append(append(lines, ""), g.latest(room, func(e *monitor.Event, w int, named bool) []string {
			return []string{g.eventView.row(e, w, named)} // there is little room
		})...)
	}
	return g.frame(title, lines, whole)
}

// states draws the nodes and what a guard knows about each, with the names of the columns,
// in at most h lines from line top of the page on.
func (g *guardPage) states(top, h int) []string {
	return g.fold(top, h, g.cursor(), guardColumns())
}

// latest draws the latest events of restarts and fences, in about that many lines.
func (g *guardPage) latest(most int, draw func(e *monitor.Event, w int, named bool) []string) (lines []string) {
	for i := len(g.events.All) - 1; i >= 0 && len(lines) < most; i-- {
		e := &g.events.All[i]
		// Events of a node are about restarts and fences, except clock events.
		if e.Node != "" && e.Level > monitor.LevelInfo && e.Kind != "clock step" && e.Key.Empty() && (g.events.until == 0 || e.Seq <= g.events.until) {
			lines = append(lines, draw(e, g.In(), true)...)
		}
	}
	return lines
}

// state says which guards run, and when locking is possible again.
func (g *guardPage) state() (title Pane, lines []string) {
	st := g.St
	others := g.drawn.Elsewhere()
	state := "no guard is seen: nothing lets a fenced node rejoin"
	switch _, known := g.Shown.Guards(); {
	case g.drawn.Here && others != "":
		state = "a guard runs in this console, and " + others + " watches too"
	case g.drawn.Here:
		state = "a guard runs in this console"
	case others != "":
		state = others + " watches; this console runs no guard"
	case !known:
		state = "guards cannot be seen on all nodes, and none runs in this console"
	}
	if g.drawn.Delay > 0 {
		state = "D = " + view.Span(g.drawn.Delay) + ", " + state
	}
	title = Pane{Title: "Guard", More: st.Dim.Of(state), Focused: true}
	title.Right = g.layout.listing(st)
	if o := g.drawn.Outlook(g.Shown); len(g.drawn.List) > 0 {
		p := st.Good
		switch {
		case o.Unknown(), o.Voting == o.Quorum && o.Voting < o.N: // one more stops all locking
			p = st.Warn
		case !o.Possible():
			p = st.Bad
		}
		for _, l := range styles.Wrap(p.Of(st.Whole(o.Text())), g.In()-2, 2) {
			lines = append(lines, " "+l)
		}
	}
	return title, lines
}

// timelines draws the states of each node over time.
func (g *guardPage) timelines() []string {
	st, now := g.St, g.Now
	name := 4
	for i := range g.Shown.Nodes {
		name = max(name, min(10, view.Width(st.Whole(g.Shown.Nodes[i].Name))))
	}
	lead := styles.Lead + name + view.Gap
	w := g.In() - lead - 1
	length := timelineLeast
	if first := *g.began; !first.IsZero() {
		for length < now.Sub(first) && length < timelineMost {
			length *= 2
		}
		length = min(length, timelineMost)
	}
	ago := view.Age(length) + " ago"
	lines := []string{"", styles.Blanks(lead) + st.Label.Of(ago+styles.Blanks(w-view.Width(ago)-3)+"now")}
	for i := range g.Shown.Nodes {
		n := &g.Shown.Nodes[i]
		past := g.past[n.Name]
		if past == nil {
			past = &nodePast{}
		}
		lines = append(lines, styles.Blanks(styles.Lead)+st.Pad(st.Escape(n.Name, name), name)+styles.Blanks(view.Gap)+past.timeline(st, now.Add(-length), now, w))
	}
	return append(lines, styles.Blanks(lead)+st.Dim.Of(st.Cut(st.Open+" serves  "+st.Closed+" fenced or cordoned  "+st.Gone+" down  R restarted  ? otherwise", w)), "")
}

// guardColumns are the columns of this page.
func guardColumns() []view.Column[*monitor.Node] {
	columns, _ := view.Choose(view.NodeColumns(), []string{"node", "state", "guard"})
	guard := columns[2].Cell
	columns[2].Cell = func(c *view.Context, n *monitor.Node) view.Cell {
		cell := guard(c, n)
		if more := view.GuardMore(c, n); more != "" {
			cell.Text += "  " + more
		}
		return cell
	}
	return columns
}
