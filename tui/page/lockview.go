package page

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"slices"
	"strconv"
	"strings"
	"time"

	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/tui/styles"
)

// lockView draws the lock table.
type lockView struct {
	st     *styles.Styles
	seed   maphash.Seed
	Cached map[uint64]string // rows of the last frame, by what they show
	Layout LockLayout
	Chosen ColumnSet
	wide   bool
}

func newLockView(st *styles.Styles) *lockView {
	return &lockView{st: st, seed: maphash.MakeSeed(), Chosen: DefaultColumns}
}

// cursorState is how a table draws its cursor.
type cursorState uint8

const (
	cursorAway cursorState = iota // the other table has it
	cursorHere
	cursorKept // a dialog is about what it points at
)

// column is one that may be chosen; the name is always there.
type column uint8

const (
	columnState column = iota
	columnCopies
	columnNodes // one for each node
	columnEnds
	columnMargin
	columnHolder
	columnLib
	columnSince
	numColumns
)

var columnNames = [...]string{"state", "copies", "nodes", "ends", "margin", "holder", "lib", "since"}

// String is the column as the command names it.
func (c column) String() string { return columnNames[c] }

type ColumnSet uint16

func (s ColumnSet) has(c column) bool { return s&(1<<c) != 0 }

const (
	AllColumns     ColumnSet = 1<<numColumns - 1
	DefaultColumns           = AllColumns &^ (1 << columnSince)
)

// Names are the columns of a set.
func (s ColumnSet) Names() (names []string) {
	for c := range numColumns {
		if s.has(c) {
			names = append(names, c.String())
		}
	}
	return names
}

// ColumnsOf is the set of these names; one that is unknown is told.
func ColumnsOf(names []string) (s ColumnSet, unknown string) {
	for _, n := range names {
		i := slices.Index(columnNames[:], n)
		if i < 0 {
			return s, n
		}
		s |= 1 << i
	}
	return s, ""
}

// Choose has these columns shown as far as they fit; none: the default ones.
func (v *lockView) Choose(names []string, wide bool) {
	set, unknown := ColumnsOf(names)
	if len(names) == 0 || unknown != "" {
		set = DefaultColumns
	}
	if wide {
		set = AllColumns
	}
	v.Chosen, v.wide = set, wide
	v.Layout = LockLayout{}
}

// LockLayout is the widths of the columns; zero: not shown.
type LockLayout struct {
	width, name, state, copies, ends, margin, holder, lib, since int
	node                                                         int // of each node's column
	nodes                                                        string
	ascii                                                        bool
}

const (
	copyWidth  = 6
	endsWidth  = 4
	marginCol  = 6
	holderMin  = 11
	holderMost = 24
	holderWide = 48
	libMin     = 10
	libMost    = 22
	sinceWidth = 6
	nameMin    = 18
	nameMost   = 60
)

// arrange decides which of the chosen columns fit: first the state, copies, end
// and margin; then the copies node by node; then the holder, by whom it was made,
// and since when.
func (v *lockView) arrange(w int, nodes []monitor.Node) {
	var names strings.Builder
	node := 4
	for i := range nodes {
		node = max(node, min(6, view.Width(v.st.Whole(nodes[i].Name))))
		names.WriteString(nodes[i].Name)
		names.WriteByte(0)
	}
	l := LockLayout{width: w, nodes: names.String(), ascii: v.st.ASCII}
	room := w - styles.Lead - 1
	take := func(c column, to *int, n int) {
		if v.Chosen.has(c) {
			*to = n
			room -= n + styles.Gap
		}
	}
	take(columnState, &l.state, styles.StateWidth)
	take(columnCopies, &l.copies, copyWidth)
	take(columnEnds, &l.ends, endsWidth)
	take(columnMargin, &l.margin, marginCol)
	if all := len(nodes)*(node+1) + 1; v.Chosen.has(columnNodes) && room-all >= 14 {
		l.node = node
		room -= all
	}
	most := holderMost
	if v.wide {
		most = holderWide
	}
	if v.Chosen.has(columnHolder) && room-holderMin-styles.Gap >= nameMin {
		l.holder = min(most, max(holderMin, (room-styles.Gap)/3))
		if v.Chosen.has(columnLib) {
			l.holder = min(l.holder, max(holderMin, (room-2*styles.Gap)/4))
		}
		room -= l.holder + styles.Gap
	}
	if v.Chosen.has(columnLib) && room-libMin-styles.Gap >= nameMin+4 {
		l.lib = min(libMost, max(libMin, (room-styles.Gap)/4))
		room -= l.lib + styles.Gap
	}
	if v.Chosen.has(columnSince) && room-sinceWidth-styles.Gap >= nameMin+4 {
		l.since = sinceWidth
		room -= l.since + styles.Gap
	}
	l.name = max(4, min(room, nameMost))
	if l != v.Layout {
		v.Layout = l
		v.Cached = nil
	}
}

func (v *lockView) header(nodes []monitor.Node, focused bool) string {
	st, l := v.st, v.Layout
	r := styles.NewRow()
	r.Add(l.name, st.Pad("NAME", l.name))
	r.Add(l.state, st.Pad("STATE", l.state))
	r.Add(l.copies, st.PadLeft("COPIES", l.copies))
	if l.node > 0 {
		cells := make([]string, len(nodes))
		for i := range nodes {
			cells[i] = st.PadLeft(st.Escape(nodes[i].Name, l.node), l.node)
		}
		r.Add(1, strings.Join(cells, " "))
	}
	r.Add(l.ends, st.PadLeft("ENDS", l.ends))
	r.Add(l.margin, st.PadLeft("MARGIN", l.margin))
	r.Add(l.holder, st.Pad("HOLDER", l.holder))
	r.Add(l.lib, st.Pad("MADE BY", l.lib))
	r.Add(l.since, st.PadLeft("SINCE", l.since))
	line := strings.TrimRight(r.String(), " ")
	if focused {
		return st.Title.Of(line)
	}
	return st.Label.Of(line)
}

// rowLook is how a row is drawn besides what its lock says.
type rowLook struct {
	under  bool // the cursor is on it
	block  bool // and is a block
	own    bool // acquired here
	marked bool
	gone   bool // it was there when the rows began to stand still
}

// rows draws h rows. mine tells if a token was acquired here.
func (v *lockView) rows(t *lockTable, h int, now time.Time, quorum int, at cursorState, mine func(key, token string) bool, marked Marks) []string {
	out := make([]string, 0, h)
	fresh := make(map[uint64]string, h)
	for i, listed := range t.window(h) {
		l := t.latest(listed)
		look := rowLook{under: t.top+i == t.Pos && at != cursorAway, block: at == cursorHere, gone: l == nil}
		if l == nil {
			l = listed
		}
		look.own = mine(l.Key.Raw(), l.Holder.Raw())
		look.marked = marked[l.Key.Raw()]
		key := v.fingerprint(l, now, quorum, look)
		line, ok := v.Cached[key]
		if !ok {
			line = v.row(l, now, quorum, look)
		}
		fresh[key] = line
		out = append(out, line)
	}
	v.Cached = fresh
	return out
}

// fingerprint is a hash of all that a row shows, so that it is drawn again only
// when something in it changed.
func (v *lockView) fingerprint(l *monitor.Lock, now time.Time, quorum int, look rowLook) uint64 {
	var h maphash.Hash
	h.SetSeed(v.seed)
	buf := make([]byte, 0, 256)
	num := func(n int64) { buf = binary.AppendVarint(buf, n) }
	flag := func(b bool) {
		if b {
			buf = append(buf, 1)
		} else {
			buf = append(buf, 0)
		}
	}
	left := func(t time.Time) {
		if t.IsZero() {
			num(-2)
			return
		}
		d := t.Sub(now)
		if d < 0 {
			num(-1)
		} else if d == 0 {
			num(-3)
		} else {
			num(int64(d / time.Second))
		}
	}
	num(int64(l.State))
	num(int64(l.Held))
	num(int64(l.Margin()))
	num(int64(l.Tokens))
	num(int64(quorum))
	for _, b := range []bool{l.Nobody, look.under, look.block, look.own, look.marked, look.gone} {
		flag(b)
	}
	left(l.MajorityEnd)
	if v.Layout.since > 0 && !l.Since.IsZero() {
		num(int64(now.Sub(l.Since) / time.Second))
	}
	for _, c := range l.Copies.All() {
		num(int64(c.State))
		left(c.Expires)
		flag(c.Token == l.Holder)
	}
	h.Write(buf)
	h.WriteString(l.Key.Raw())
	h.WriteByte(0)
	h.WriteString(l.Holder.Raw())
	if l.Form != nil {
		h.WriteByte(0)
		h.WriteString(l.Form.Library)
		h.WriteByte(0)
		h.WriteString(l.Form.Owner.Raw())
	}
	return h.Sum64()
}

func (v *lockView) row(l *monitor.Lock, now time.Time, quorum int, look rowLook) string {
	st, lay := v.st, v.Layout
	glyph, p := st.Lock(l.State)
	plain := look.under && look.block // the cursor's row is one block: glyphs and words say the rest
	paintIf := func(p styles.Paint, s string) string {
		if plain {
			return s
		}
		return p.Of(s)
	}
	r := styles.NewRow()
	name := st.Pad(st.Text(l.Key, lay.name), lay.name)
	if l.State > monitor.LockExpiring {
		name = paintIf(st.Strong, name)
	}
	r.Add(lay.name, name)
	if look.gone {
		r.Add(1, paintIf(st.Dim, st.Off+" gone"))
	} else {
		r.Add(lay.state, paintIf(p, st.Pad(glyph+" "+l.State.String(), lay.state)))
		r.Add(lay.copies, st.PadLeft(Copies(l), lay.copies))
		if lay.node > 0 {
			cells := make([]string, l.Copies.Len())
			for i, c := range l.Copies.All() {
				cells[i] = v.copyCell(c, l, now, plain)
			}
			r.Add(1, strings.Join(cells, " "))
		}
		r.Add(lay.ends, st.PadLeft(v.ends(l, now), lay.ends))
		r.Add(lay.margin, v.margin(l, quorum, lay.margin, paintIf))
		if lay.holder > 0 {
			r.Add(lay.holder, st.Pad(v.holder(l, look.own, lay.holder), lay.holder))
		}
		if lay.lib > 0 {
			lib := paintIf(st.Dim, st.Pad(st.None, lay.lib))
			if l.Form != nil {
				lib = st.Pad(st.Sentence(l.Form.Library, lay.lib), lay.lib)
			}
			r.Add(lay.lib, lib)
		}
		if lay.since > 0 {
			since := st.None
			if !l.Since.IsZero() {
				since = view.Age(now.Sub(l.Since))
			}
			r.Add(lay.since, st.PadLeft(since, lay.since))
		}
	}
	s := strings.TrimRight(r.String(), " ")
	lead := " "
	if look.marked {
		lead = st.Marked
	}
	if look.under {
		lead += st.Pointer
	} else {
		lead += " "
	}
	s = lead + s[2:] // over the blanks that a row begins with
	if plain {
		return st.Cursor.Of(st.Pad(s, lay.width))
	}
	return s
}

// margin is how many copies may be lost, where that means something.
func (v *lockView) margin(l *monitor.Lock, quorum, w int, paintIf func(styles.Paint, string) string) string {
	if l.Held < quorum || l.Held == 0 {
		return v.st.PadLeft(v.st.None, w)
	}
	s := v.st.PadLeft(strconv.Itoa(l.Margin()), w)
	if l.Margin() <= 0 {
		return paintIf(v.st.Warn, s)
	}
	return s
}

// Copies is k/N, with the copies of other tokens apart: 2+1/5.
func Copies(l *monitor.Lock) string {
	present := 0
	for _, c := range l.Copies.All() {
		if c.State == monitor.CopyPresent {
			present++
		}
	}
	if l.Tokens > 1 && present > l.Held {
		return fmt.Sprintf("%d+%d/%d", l.Held, present-l.Held, l.Copies.Len())
	}
	return fmt.Sprintf("%d/%d", l.Held, l.Copies.Len())
}

// ends is the time until the majority ends.
func (v *lockView) ends(l *monitor.Lock, now time.Time) string {
	switch {
	case l.State == monitor.LockImmortal && l.MajorityEnd.IsZero():
		return v.st.Endless
	case l.MajorityEnd.IsZero():
		return v.st.None
	default:
		return view.Remaining(l.MajorityEnd.Sub(now))
	}
}

func (v *lockView) copyCell(c monitor.Copy, l *monitor.Lock, now time.Time, plain bool) string {
	st, w := v.st, v.Layout.node
	p := func(p styles.Paint, s string) string {
		if plain {
			return s
		}
		return p.Of(s)
	}
	switch c.State {
	case monitor.CopyAbsent:
		return p(st.Dim, st.PadLeft(st.None, w))
	case monitor.CopyUnknown:
		return p(st.Dim, st.PadLeft("?", w))
	case monitor.CopyUnread:
		return p(st.Dim, st.PadLeft(st.Ellipsis, w))
	}
	s := st.Endless
	if !c.Expires.IsZero() {
		s = view.Remaining(c.Expires.Sub(now))
	}
	if l.Tokens > 1 && c.Token != l.Holder {
		return p(st.Bad, st.PadLeft(s+"'", w)) // ' marks another token's copy
	}
	return st.PadLeft(s, w)
}

func (v *lockView) holder(l *monitor.Lock, own bool, w int) string {
	if l.Nobody {
		return v.st.Cut(l.NobodyText(), w)
	}
	s := v.st.Token(l.Holder, min(w, max(16, w-16)))
	if l.Form != nil && !l.Form.Owner.Empty() {
		s = v.st.Text(l.Form.Owner, w)
	}
	if own {
		return v.st.Cut("here "+s, w)
	}
	if others := l.Tokens - 1; others > 0 {
		return v.st.Cut(s+fmt.Sprintf(" +%d", others), w)
	}
	return s
}
