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
	Cached map[string]DrawnRow // rows of the last frame, by their keys
	names  []string            // of the nodes for which the grid was made
	ascii  bool
	Chosen []string // words of columns
	usual  bool     // nobody has chosen them: a wide screen shows all
}

// DrawnRow is a row and what it was drawn of. Locks are immutable.
type DrawnRow struct {
	Line  string
	lock  *monitor.Lock
	look  rowLook
	own   bool
	known *who.Answer
	until time.Time // when it changes by itself; zero: it does not
}

func newLockView(st *styles.Styles) *lockView {
	return &lockView{st: st, Chosen: LockWords(false), usual: true}
}

// LockWords are the columns that a person may choose, but for the name, which is
// always there; all of them, or the default ones.
func LockWords(all bool) (words []string) {
	for _, c := range view.LockColumns(make([]monitor.Node, 1))[1:] {
		if c.Rank > 0 && (all || !c.Folded) {
			words = append(words, c.Word())
		}
	}
	return words
}

// Choose has these columns shown as far as they fit; none: the default ones.
func (v *lockView) Choose(words []string, wide bool) {
	v.usual = len(words) == 0
	if len(words) == 0 || wide {
		words = LockWords(wide)
	}
	v.Chosen = words
	v.Restyle()
}

// HidesState reports whether the column is not chosen that tells what needs a person.
func (v *lockView) HidesState() bool { return !slices.Contains(v.Chosen, "state") }

// Restyle draws all rows anew.
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
	chosen := v.Chosen
	if v.usual && w >= besideFrom-2 {
		chosen = LockWords(true)
	}
	columns := slices.DeleteFunc(view.LockColumns(nodes), func(c view.Column[*monitor.Lock]) bool {
		return c.Word() != "name" && !slices.Contains(chosen, c.Word())
	})
	v.grid = newGrid(v.st, columns, w)
}

// rows draws h rows, those of the last frame again where nothing in them changed.
func (v *lockView) rows(t *lockTable, h int, ctx *view.Context, at cursorState, marked Marks) []string {
	out := make([]string, 0, h)
	ctx.NoHolder = !v.grid.shows("holder")
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
