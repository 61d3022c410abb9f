package tui

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"strconv"
	"strings"
	"time"

	"redlockctl/internal/safetext"
	"redlockctl/monitor"
)

// lockView draws the lock table.
type lockView struct {
	st     *styles
	seed   maphash.Seed
	cached map[uint64]string // rows of the last frame, by what they show
	layout lockLayout
}

func newLockView(st *styles) lockView { return lockView{st: st, seed: maphash.MakeSeed()} }

// cursorState is how a table draws its cursor.
type cursorState uint8

const (
	cursorAway cursorState = iota // the other table has it
	cursorHere
	cursorKept // a dialog is about what it points at
)

// lockLayout is the widths of the columns; zero: not shown.
type lockLayout struct {
	width, name, holder int
	node                int // of each node's column
	nodes               string
}

const (
	lockLead   = 3  // blank, cursor, blank
	stateWidth = 12 // "◇ over-TTL", "◌ wrong role"
	copyWidth  = 6
	endsWidth  = 4
	marginCol  = 6
	holderMin  = 11
	holderMost = 24
	gap        = 2
)

// arrange decides which columns fit: first the name, state, copies, end and
// margin; then the copies node by node; then the holder.
func (v *lockView) arrange(w int, nodes []monitor.Node) {
	var names strings.Builder
	node := 4
	for i := range nodes {
		node = max(node, min(6, width(v.st.whole(nodes[i].Name))))
		names.WriteString(nodes[i].Name)
		names.WriteByte(0)
	}
	l := lockLayout{width: w, nodes: names.String()}
	room := w - lockLead - stateWidth - copyWidth - endsWidth - marginCol - 4*gap - 1
	if all := len(nodes)*(node+1) + 1; room-all >= 14 {
		l.node = node
		room -= all
	}
	if room-holderMin-gap >= 18 {
		l.holder = min(holderMost, max(holderMin, (room-gap)/3))
		room -= l.holder + gap
	}
	l.name = max(4, min(room, 60))
	if l != v.layout {
		v.layout = l
		v.cached = nil
	}
}

func (v *lockView) header(nodes []monitor.Node, focused bool) string {
	st, l := v.st, v.layout
	var b strings.Builder
	b.WriteString(blanks(lockLead) + st.pad("NAME", l.name) + blanks(gap) + st.pad("STATE", stateWidth) +
		blanks(gap) + st.padLeft("COPIES", copyWidth) + blanks(gap))
	if l.node > 0 {
		for i := range nodes {
			b.WriteString(st.padLeft(st.escape(nodes[i].Name, l.node), l.node) + " ")
		}
		b.WriteByte(' ')
	}
	b.WriteString(st.padLeft("ENDS", endsWidth) + blanks(gap) + st.padLeft("MARGIN", marginCol))
	if l.holder > 0 {
		b.WriteString(blanks(gap) + "HOLDER")
	}
	if focused {
		return st.title.of(b.String())
	}
	return st.label.of(b.String())
}

// rows draws h rows. mine tells if a token was acquired here.
func (v *lockView) rows(t *lockTable, h int, now time.Time, quorum int, at cursorState, mine func(key, token string) bool) []string {
	out := make([]string, 0, h)
	fresh := make(map[uint64]string, h)
	for i, r := range t.window(h) {
		l := &t.all[r]
		under := t.top+i == t.pos && at != cursorAway
		own := mine(l.Key.Raw(), l.Holder.Raw())
		key := v.fingerprint(l, now, quorum, under, at == cursorHere, own)
		line, ok := v.cached[key]
		if !ok {
			line = v.row(l, now, quorum, under, at == cursorHere, own)
		}
		fresh[key] = line
		out = append(out, line)
	}
	v.cached = fresh
	return out
}

// fingerprint is a hash of all that a row shows, so that it is drawn again only
// when something in it changed.
func (v *lockView) fingerprint(l *monitor.Lock, now time.Time, quorum int, under, block, own bool) uint64 {
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
	num(int64(l.Margin))
	num(int64(quorum))
	flag(under)
	flag(block)
	flag(own)
	left(l.MajorityEnd)
	for i := range l.Copies {
		c := &l.Copies[i]
		num(int64(c.State))
		left(c.Expires)
		flag(c.Token == l.Holder)
	}
	h.Write(buf)
	h.WriteString(l.Key.Raw())
	h.WriteByte(0)
	h.WriteString(l.Holder.Raw())
	return h.Sum64()
}

func (v *lockView) row(l *monitor.Lock, now time.Time, quorum int, under, block, own bool) string {
	st, lay := v.st, v.layout
	glyph, p := st.lock(l.State)
	plain := under && block // the cursor's row is one block: glyphs and words say the rest
	paintIf := func(p paint, s string) string {
		if plain {
			return s
		}
		return p.of(s)
	}
	var b strings.Builder
	if under {
		b.WriteString(" " + st.pointer + " ")
	} else {
		b.WriteString(blanks(lockLead))
	}
	name := st.pad(st.text(l.Key, lay.name), lay.name)
	if l.State > monitor.LockExpiring {
		name = paintIf(st.strong, name)
	}
	b.WriteString(name + blanks(gap))
	b.WriteString(paintIf(p, st.pad(glyph+" "+l.State.String(), stateWidth)) + blanks(gap))
	b.WriteString(st.padLeft(copies(l), copyWidth) + blanks(gap))
	if lay.node > 0 {
		for i := range l.Copies {
			b.WriteString(v.copyCell(&l.Copies[i], l, now, plain) + " ")
		}
		b.WriteByte(' ')
	}
	b.WriteString(st.padLeft(v.ends(l, now), endsWidth) + blanks(gap))
	margin := st.none
	if l.Held >= quorum && l.Held > 0 {
		margin = strconv.Itoa(l.Margin)
	}
	b.WriteString(st.padLeft(margin, marginCol))
	if lay.holder > 0 {
		b.WriteString(blanks(gap) + st.pad(v.holder(l, own, lay.holder), lay.holder))
	}
	if plain {
		return st.cursor.of(st.pad(b.String(), lay.width))
	}
	return b.String()
}

// copies is k/N, with the copies of other tokens apart: 2+1/5.
func copies(l *monitor.Lock) string {
	present := 0
	for i := range l.Copies {
		if l.Copies[i].State == monitor.CopyPresent {
			present++
		}
	}
	if l.Tokens > 1 && present > l.Held {
		return fmt.Sprintf("%d+%d/%d", l.Held, present-l.Held, len(l.Copies))
	}
	return fmt.Sprintf("%d/%d", l.Held, len(l.Copies))
}

// ends is the time until the majority ends.
func (v *lockView) ends(l *monitor.Lock, now time.Time) string {
	switch {
	case l.State == monitor.LockImmortal && l.MajorityEnd.IsZero():
		return v.st.infinity
	case l.MajorityEnd.IsZero():
		return v.st.none
	default:
		return remaining(l.MajorityEnd.Sub(now))
	}
}

func (v *lockView) copyCell(c *monitor.Copy, l *monitor.Lock, now time.Time, plain bool) string {
	st, w := v.st, v.layout.node
	p := func(p paint, s string) string {
		if plain {
			return s
		}
		return p.of(s)
	}
	switch c.State {
	case monitor.CopyAbsent:
		return p(st.dim, st.padLeft(st.none, w))
	case monitor.CopyUnknown:
		return p(st.dim, st.padLeft("?", w))
	}
	s := st.infinity
	if !c.Expires.IsZero() {
		s = remaining(c.Expires.Sub(now))
	}
	if l.Tokens > 1 && c.Token != l.Holder {
		return p(st.bad, st.padLeft(s+"'", w)) // ' marks another token's copy
	}
	return st.padLeft(s, w)
}

func (v *lockView) holder(l *monitor.Lock, own bool, w int) string {
	s := v.st.token(l.Holder, min(w, 16))
	if own {
		return v.st.cut("here "+s, w)
	}
	if others := l.Tokens - 1; others > 0 {
		return v.st.cut(s+fmt.Sprintf(" +%d", others), w)
	}
	return s
}

// token renders a token in at most w cells; its beginning and end tell it
// apart from others well enough for a person.
func (st *styles) token(t safetext.Text, w int) string {
	if t.Empty() {
		return st.none
	}
	if len(t.Raw()) > w {
		w = min(w, 11)
	}
	return st.text(t, w)
}
