package observe

import (
	"slices"
	"time"

	"redlockctl/monitor"
	"redlockctl/monitor/words"
)

// silence keeps what is to be told of nodes that fell silent, until it is known whether it
// is them or the line from here: then another node is heard, or none is.
type silence struct {
	kept []monitor.Event // of nodes
	cut  bool            // reported that nothing is seen from here, and not yet what it was
	out  map[string]bool // the nodes that were silent meanwhile
	over time.Time       // since when enough is seen again; zero: it is not
}

const (
	// silenceKept is how long such an event is kept at most.
	silenceKept = 2 * time.Second
	// backWithin is how long after enough are seen again the others are heard, at the latest, if it
	// was the line: a connection that was being set up meanwhile ends first, and is tried again.
	backWithin = 5 * time.Second
)

// keep keeps the event of a node that fell silent.
func (q *silence) keep(e monitor.Event) { q.kept = append(q.kept, e) }

// broken drops the event of a node that is heard again. It reports whether there was one:
// then nobody was told.
func (q *silence) broken(node string) bool {
	n := len(q.kept)
	q.kept = slices.DeleteFunc(q.kept, func(e monitor.Event) bool { return e.Node == node })
	return len(q.kept) < n
}

// tell emits what is known by now, by a snapshot: of a line that was cut one event, of
// which those of the nodes are parts.
func (q *silence) tell(s *monitor.Snapshot, emit func(monitor.Event)) {
	cut := s.Cluster.NotSeen
	if cut && !q.cut {
		emit(monitor.NodeEvent(s.At, monitor.LevelAlarm, "not seen from here", "", "%s", s.NotSeenText()))
		q.cut, q.out = true, map[string]bool{}
	}
	if q.cut {
		q.ends(s, emit)
	}
	var heard time.Time
	for i := range s.Nodes {
		if s.Nodes[i].Heard.After(heard) {
			heard = s.Nodes[i].Heard
		}
	}
	q.kept = slices.DeleteFunc(q.kept, func(e monitor.Event) bool {
		if !cut && !heard.After(e.At) && s.At.Sub(e.At) < silenceKept {
			return false
		}
		e.Part = e.Part || q.cut
		emit(e)
		return true
	})
}

// ends tells what it was that nothing was seen from here, once that is known: the line, if all nodes
// answer again that were silent. The others are out by themselves.
func (q *silence) ends(s *monitor.Snapshot, emit func(monitor.Event)) {
	var still []string
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if !n.SilentSince.IsZero() {
			q.out[n.Name] = true
		}
		if q.out[n.Name] && !n.State.Answers() && n.State != monitor.NodeDenied {
			still = append(still, n.Name+" "+n.State.String())
		}
	}
	switch {
	case s.Cluster.NotSeen:
		q.over = time.Time{}
		return
	case q.over.IsZero():
		q.over = s.At
	}
	switch {
	case still == nil:
		emit(monitor.NodeEvent(s.At, monitor.LevelNotice, "seen again", "", "the line from this console works again"))
	case s.At.Sub(q.over) < backWithin:
		return
	default:
		emit(monitor.NodeEvent(s.At, monitor.LevelAlarm, "seen again", "", "%s: the line from this console to the others works", words.Names(still)))
	}
	*q = silence{kept: q.kept}
}
