package page

import (
	"slices"
	"time"

	"redlockctl/internal/view"
	"redlockctl/internal/who"
	"redlockctl/monitor"
	"redlockctl/tui/styles"
)

// lockView draws the lock table.
type lockView struct {
	st     *styles.Styles
	grid   grid[*monitor.Lock]
	Cached map[string]DrawnRow // rows of the last frame, by key
	names  []string            // of the nodes in the grid
	ascii  bool
	layout Layout
}

// DrawnRow is a drawn row and its input. Locks are immutable.
type DrawnRow struct {
	Line  string
	lock  *monitor.Lock
	look  rowLook
	own   bool
	known *who.Answer
	until time.Time // when it changes by itself; zero: never
}

// newLockView lists locks with columns for the present nodes.
func newLockView(st *styles.Styles, nodes func() []monitor.Node) *lockView {
	v := &lockView{st: st, layout: Layout{Of: "locks", always: "name", tells: "state", usual: OrderNeeds, Order: OrderNeeds}}
	v.layout.heads = func() []view.Head { return view.Heads(view.LockColumns(nodes())) }
	return v
}

// Restyle redraws all rows.
func (v *lockView) Restyle() { v.grid.width = 0 }

// arrange fits the columns into w cells.
func (v *lockView) arrange(w int, nodes []monitor.Node) {
	same := slices.EqualFunc(v.names, nodes, func(name string, n monitor.Node) bool { return name == n.Name })
	if v.grid.width == w && same && v.ascii == v.st.ASCII {
		return
	}
	v.names, v.ascii, v.Cached = nil, v.st.ASCII, nil
	for i := range nodes {
		v.names = append(v.names, nodes[i].Name)
	}
	columns := view.LockColumns(nodes)
	if usual := len(v.layout.Kept.Columns) == 0 && !v.layout.Kept.Wide; !usual || w < besideFrom-2 {
		columns = onScreen(&v.layout, columns)
	} else if len(nodes) > view.MostCharted {
		columns = slices.DeleteFunc(columns, func(c view.Column[*monitor.Lock]) bool { return c.Group == "nodes" })
	}
	v.grid = fitted(&v.layout, v.st, columns, w)
}

// rows draws h rows; it reuses rows of the last frame if nothing changed in them.
func (v *lockView) rows(t *lockTable, h int, ctx *view.Context, at cursorState, marked Marks) []string {
	out := make([]string, 0, h)
	ctx.NoHolder = v.grid.room("holder") == 0
	ctx.NoAt = v.grid.room("at") == 0 && v.grid.room("ends") >= len("14:03")
	fresh := make(map[string]DrawnRow, h)
	for i, listed := range t.window(h) {
		l := t.latest(listed)
		look := rowLook{under: t.top+i == t.Pos && at != cursorAway, block: at == cursorHere, gone: l == nil}
		if l == nil {
			l = listed
		}
		look.marked = marked[l.Key.Raw()]
		own := ctx.Own(l.Key.Raw(), l.Holder.Raw())
		known := ctx.Known(l.Holder.Raw())
		row, ok := v.Cached[l.Key.Raw()]
		if !ok || row.lock != l || row.look != look || row.own != own || row.known != known || !row.until.IsZero() && !ctx.Now.Before(row.until) {
			ctx.Fresh()
			row = DrawnRow{v.grid.row(ctx, l, look), l, look, own, known, ctx.Until()}
		}
		fresh[l.Key.Raw()] = row
		out = append(out, row.Line)
	}
	v.Cached = fresh
	return out
}
