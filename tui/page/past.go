package page

import (
	"strconv"
	"time"

	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/tui/styles"
)

// Bounds of the remembered history of a node.
const (
	MostTurns   = 200
	MostOffsets = 120 // one per second
)

// turn is a change of a node's state.
type turn struct {
	at    time.Time
	state monitor.NodeState
	run   string // run_id of the server
}

// nodePast is the history of a node since the console started.
type nodePast struct {
	Turns   []turn          // oldest first
	Offsets []time.Duration // clock offsets, one per second
}

// nodePasts has the histories by node name.
type nodePasts map[string]*nodePast

// see records a snapshot.
func (p nodePasts) see(s *monitor.Snapshot) {
	for i := range s.Nodes {
		n := &s.Nodes[i]
		past := p[n.Name]
		if past == nil {
			past = &nodePast{}
			p[n.Name] = past
		}
		at := n.Since
		if at.IsZero() || len(past.Turns) > 0 && at.Before(past.Turns[len(past.Turns)-1].at) {
			at = s.At
		}
		if k := len(past.Turns); k > 0 && past.Turns[k-1].state == n.State && (past.Turns[k-1].run == n.RunID || n.RunID == "") {
			continue
		}
		if k := len(past.Turns); k > 0 && past.Turns[k-1].state == n.State {
			at = s.At // a new incarnation in the same state
		}
		past.Turns = append(past.Turns, turn{at, n.State, n.RunID})
		if len(past.Turns) > MostTurns {
			past.Turns = append(past.Turns[:0:0], past.Turns[len(past.Turns)-MostTurns/2:]...)
		}
	}
}

// recall adds how nodes changed in the past, oldest first.
func (p nodePasts) recall(turns []view.NodeTurn) {
	starts := map[string]int{}
	for _, t := range turns {
		past := p[t.Node]
		if past == nil {
			past = &nodePast{}
			p[t.Node] = past
		}
		if t.Restarted {
			starts[t.Node]++
		}
		past.Turns = append(past.Turns, turn{t.At, t.State, "start " + strconv.Itoa(starts[t.Node])})
	}
}

// sample records the values of a second.
func (p nodePasts) sample(s *monitor.Snapshot) {
	for i := range s.Nodes {
		n := &s.Nodes[i]
		past := p[n.Name]
		if past == nil || !n.Offset.Valid {
			continue
		}
		past.Offsets = append(past.Offsets, n.Offset.Offset)
		if len(past.Offsets) > 2*MostOffsets {
			past.Offsets = append(past.Offsets[:0:0], past.Offsets[len(past.Offsets)-MostOffsets:]...)
		}
	}
}

// state returns the node's state at a moment, and whether it restarted within the span
// before.
func (p *nodePast) state(from, to time.Time) (worst monitor.NodeState, known, restarted bool) {
	for i := range p.Turns {
		t := &p.Turns[i]
		if t.at.After(to) {
			break
		}
		if i+1 < len(p.Turns) && p.Turns[i+1].at.Before(from) {
			continue
		}
		if !known || heavier(t.state, worst) {
			worst, known = t.state, true
		}
		if i > 0 && t.at.After(from) && t.run != "" && p.Turns[i-1].run != "" && t.run != p.Turns[i-1].run {
			restarted = true
		}
	}
	return worst, known, restarted
}

// heavier decides which of two states within one cell of a timeline is shown.
func heavier(a, b monitor.NodeState) bool {
	weight := func(s monitor.NodeState) int {
		switch s {
		case monitor.NodeServing:
			return 0
		case monitor.NodeFenced, monitor.NodeCordoned:
			return 2
		case monitor.NodeDown:
			return 3
		default:
			return 1
		}
	}
	return weight(a) > weight(b)
}

// timeline draws the node's states from a moment to another in w cells.
func (p *nodePast) timeline(st *styles.Styles, from, to time.Time, w int) string {
	if w <= 0 || !to.After(from) {
		return ""
	}
	cell := to.Sub(from) / time.Duration(w)
	out, run := "", ""
	var with styles.Paint
	flush := func() { out, run = out+with.Of(run), "" }
	for i := range w {
		a := from.Add(time.Duration(i) * cell)
		state, known, restarted := p.state(a, a.Add(cell))
		glyph, paint := " ", st.Dim
		switch {
		case restarted:
			glyph, paint = "R", st.Bad
		case !known || state == monitor.NodeUnknown:
		case state == monitor.NodeServing:
			glyph, paint = st.Open, st.Good
		case state == monitor.NodeFenced, state == monitor.NodeCordoned:
			glyph, paint = st.Closed, st.Warn
		case state == monitor.NodeDown:
			glyph, paint = st.Gone, st.Bad
		default:
			glyph, paint = "?", st.Warn
		}
		if paint != with {
			flush()
			with = paint
		}
		run += glyph
	}
	flush()
	return out
}
