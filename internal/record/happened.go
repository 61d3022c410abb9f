package record

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// The kinds of entries for changes of state: of a node, and of the cluster.
const (
	KindState   = "state"
	KindVerdict = "verdict"
)

// Causes returns the events of a span, oldest first; only of one node if node is not "".
// It omits events that are part of another: one cause is one line.
func (r *Reader) Causes(node string, in Span) ([]Event, error) {
	all, err := r.Events(node, "", in, math.MaxInt32)
	if err != nil {
		return nil, err
	}
	if err := r.tellLater(all, in); err != nil {
		return nil, err
	}
	of := byNode(all)
	return ofManyLocks(slices.DeleteFunc(all, func(e Event) bool { return e.Part || e.Kind == "guard waiting" && waits(of[e.Node], e) })), nil
}

const (
	// burst is how many events of locks of one kind are one line, if each follows the one
	// before within burstPause.
	burst      = 10
	burstPause = 5 * time.Second
)

// Fold merges bursts of events of the same kind about locks into one line each, at the
// time of the first: so nothing important is lost among them.
func Fold(events []Event) []Event {
	type line struct {
		count int
		last  time.Time
	}
	of, at := make([]*line, len(events)), map[string]*line{}
	for i, e := range events {
		if e.Lock == "" {
			continue
		}
		l := at[e.Kind]
		if l == nil || e.At.Sub(l.last) > burstPause {
			l = &line{}
			at[e.Kind] = l
		}
		l.count, l.last, of[i] = l.count+1, e.At, l
	}
	out, told := make([]Event, 0, len(events)), map[*line]bool{}
	for i, e := range events {
		l := of[i]
		switch {
		case l == nil || l.count < burst:
		case told[l]:
			continue
		default:
			told[l] = true
			e.Text = fmt.Sprintf("%d events of locks, the first is %s: %s", l.count, e.Lock, e.Text)
			e.Lock, e.Count, e.Last = "", l.count, l.last
		}
		out = append(out, e)
	}
	return out
}

// Latest returns at most n of the events, in their order, and how many it left out: the
// oldest ones about single locks. What is about nodes, the cluster or actions stays, even
// if that is more than n.
func Latest(events []Event, n int) (kept []Event, left int) {
	left = len(events) - n
	if left <= 0 {
		return events, 0
	}
	gone := 0
	kept = slices.DeleteFunc(slices.Clone(events), func(e Event) bool {
		if gone >= left || e.important() {
			return false
		}
		gone++
		return true
	})
	return kept, gone
}

// important reports whether an event must not be left out of a list that is too long.
func (e *Event) important() bool {
	return e.Lock == "" || e.Kind == lostMajority || e.Kind == "revoked" || e.Kind == forceReleased
}

// ofManyLocks merges the locks that lost their majority together into one line.
func ofManyLocks(events []Event) []Event {
	var out []Event
	line, locks := map[string]int{}, map[int]int{} // index of a line by its text, and the number of locks of each
	for _, e := range events {
		if e.Kind == lostMajority && e.Lock != "" {
			if i, ok := line[e.Text]; ok && within(e.At.Sub(out[i].At)) {
				locks[i]++
				continue
			}
			line[e.Text], locks[len(out)] = len(out), 1
		}
		out = append(out, e)
	}
	for i, n := range locks {
		if n > 1 {
			out[i].Text = fmt.Sprintf("%d locks, the first is %s: %s", n, out[i].Lock, out[i].Text)
			out[i].Lock, out[i].Count = "", n
		}
	}
	return out
}

// Happened returns the entries of a span, oldest first: [Reader.Causes], and the changes
// of state that none of them reports.
func (r *Reader) Happened(node string, in Span) ([]Event, error) {
	out, err := r.Causes(node, in)
	if err != nil {
		return nil, err
	}
	states, err := r.States(in)
	if err != nil {
		return nil, err
	}
	before, err := r.StatesAt(in.Since.Add(-time.Millisecond))
	if err != nil {
		return nil, err
	}
	of, last := byNode(out), map[string]State{}
	for _, s := range before {
		last[s.Node] = s
	}
	for i, s := range states {
		was, seen := last[s.Node]
		last[s.Node] = s
		e := Event{At: s.At, Kind: KindState, Node: s.Node, Text: s.State}
		switch {
		case node != "" && s.Node != node, seen && was.State == s.State && (was.Text == s.Text || s.Text == ""):
			continue // something else about it has changed
		case s.Node != "" && toldBy(of[s.Node], s):
			continue
		case s.Node == "":
			if e.Kind = KindVerdict; seen && was.State == s.State && i+1 < len(states) && states[i+1].At.Equal(s.At) {
				continue // only the reason changed; the node has a line
			}
		}
		if s.Text != "" {
			e.Text += ": " + s.Text
		}
		out = append(out, e)
	}
	slices.SortStableFunc(out, func(a, b Event) int { return a.At.Compare(b.At) })
	return out, nil
}

func byNode(events []Event) map[string][]Event {
	of := map[string][]Event{}
	for _, e := range events {
		of[e.Node] = append(of[e.Node], e)
	}
	return of
}

// stateDelay is the longest delay between an event and the state that it causes.
const stateDelay = 2500 * time.Millisecond

// within reports whether d can be the delay between an event and the state that it
// causes, or between a guard's event and its next action.
func within(d time.Duration) bool { return d >= -250*time.Millisecond && d <= stateDelay }

// toldBy reports whether one of a node's events reports its change to a state.
func toldBy(events []Event, s State) bool {
	return slices.ContainsFunc(events, func(e Event) bool {
		return within(s.At.Sub(e.At)) && tells(strings.TrimPrefix(e.Kind, "guard "), s.State)
	})
}

// waits reports whether an event only says that the guard waits, as follows from another
// event of its node. Without a monitor, nothing has marked it as a part of that.
func waits(events []Event, e Event) bool {
	return slices.ContainsFunc(events, func(o Event) bool {
		return within(e.At.Sub(o.At)) && (o.Kind == "guard restart" || o.Kind == "guard first contact" || o.Kind == "guard fenced")
	})
}

// tells reports whether events of a kind report that a node is in a state.
func tells(kind, state string) bool {
	switch kind {
	case "restart", "first contact":
		return true
	case "up", "rejoined", "reachable":
		return state == "serving"
	case "waiting":
		return state == "fenced"
	case "unreachable":
		return state == "down" || state == "slow" || state == "loading"
	}
	return kind == state
}
