package observe

import (
	"slices"
	"time"

	"redlockctl/monitor"
)

// silence keeps what is to be told of nodes that fell silent, until it is known whether it
// is them or the line from here: then another node is heard, or none is.
type silence struct {
	kept []monitor.Event // of nodes
	cut  bool            // reported that nothing is seen from here
}

// silenceKept is how long such an event is kept at most.
const silenceKept = 2 * time.Second

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
	switch {
	case cut && !q.cut:
		emit(monitor.NodeEvent(s.At, monitor.LevelAlarm, "not seen from here", "", "%s", s.NotSeenText()))
	case q.cut && !cut:
		emit(monitor.NodeEvent(s.At, monitor.LevelNotice, "seen again", "", "the line from this console works again"))
	}
	q.cut = cut
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
		e.Part = e.Part || cut
		emit(e)
		return true
	})
}
