package restartguard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"redlockctl/redlock"
	"redlockctl/server/announce"
)

// ErrNoGuard is wrapped where no guard announces itself on a node.
var ErrNoGuard = errors.New("no guard announces itself")

// FirstUse is what can be found out of a node that may never have been in use.
type FirstUse struct {
	Node       string
	Seen       Observation
	Keys       int              // under the lock patterns
	Remembered Remembered       // by the guard of this machine
	Guards     []announce.Guard // that are seen to watch it
}

// AskFirstUse looks at a node and asks the guards on it, by what they announce; nothing
// is changed. It fails if it cannot be read or if its guards cannot be seen.
func AskFirstUse(ctx context.Context, node *redlock.Node, method Method, remembered Remembered, patterns []string) (f FirstUse, err error) {
	f = FirstUse{Node: node.Name(), Remembered: remembered}
	l := dial(node, method.codec(), handTimeout)
	defer l.close()
	l.met, l.hear = true, true
	if f.Seen, err = l.look(ctx); err != nil {
		return f, handError(node, err, ErrUnreachable)
	}
	if l.deaf != nil {
		return f, fmt.Errorf("the guards that watch node %q cannot be seen: %w", node.Name(), handError(node, l.deaf, ErrDenied))
	}
	f.Guards = l.heard
	f.Keys, err = CountKeys(ctx, node, patterns)
	return f, err
}

// MayVoteFrom is from when the node may vote, by the rule of this name: from now, if
// nothing shows that it was in use, or else D after a guard meets it; then why says what
// does. It has no more to go by than what was asked: what happened before the present
// start of the server and before the start of each guard nobody can tell.
func (f FirstUse) MayVoteFrom(now time.Time, delay time.Duration) (from time.Time, why error) {
	why = f.used()
	return MayVoteFrom(Loss{Seen: now, Nothing: why == nil}, delay, announce.Greatest(f.Guards, "")), why
}

// used is why the node may have been in use.
func (f FirstUse) used() error {
	fenced, cordoned := f.Seen.Fenced()
	switch {
	case f.Remembered.Served || f.Remembered.Incarnations > 1:
		return fmt.Errorf("a guard has known node %q before", f.Node)
	case f.Seen.Role != "master":
		return fmt.Errorf("the role of node %q is %s", f.Node, f.Seen.Role)
	case cordoned:
		return fmt.Errorf("node %q is cordoned by an operator", f.Node)
	case !fenced:
		return fmt.Errorf("node %q is neither fenced nor cordoned", f.Node)
	case f.Seen.Configured:
		return fmt.Errorf("node %q was configured since it started, so that it may have served", f.Node)
	case f.Keys > 0:
		return fmt.Errorf("node %q holds keys under the lock patterns", f.Node)
	}
	for _, g := range f.Guards {
		switch g.Use {
		case announce.UseSeen:
			return fmt.Errorf("guard %s has known it in use", peerName(g))
		case announce.UseUnknown:
			return fmt.Errorf("guard %s watches node %q and does not say whether it was in use: it is of an earlier version", peerName(g), f.Node)
		}
	}
	if len(f.Guards) == 0 {
		return fmt.Errorf("%w on node %q, so that nobody can say whether it was in use: start the guards first", ErrNoGuard, f.Node)
	}
	return nil
}

// useSeen takes note of a state, and reports whether it shows for the first time that the
// cluster was in use: a node has served, or has restarted since it was met.
func (g *Guard) useSeen(s *State) bool {
	if !s.used() || !g.used.CompareAndSwap(false, true) {
		return false
	}
	g.usedSince.Store(int64(BootTime()))
	return true
}

// newFor is how long after the first node of a new cluster the others are let serve.
const newFor = 5 * time.Second

// mayBeNew reports whether a person may let the node serve before D, since the guard has not known
// its cluster in use before: it says so to who asks.
func (g *Guard) mayBeNew(s *State) bool {
	since := time.Duration(g.usedSince.Load())
	return !s.used() && (!g.used.Load() || since != 0 && BootTime()-since < newFor)
}

func (s Starts) used() bool { return s.Served || s.Incarnations > 1 }

// use is what the guard announces of that.
func (g *Guard) use() announce.Use {
	if g.used.Load() {
		return announce.UseSeen
	}
	return announce.UseNone
}
