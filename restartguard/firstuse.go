package restartguard

import (
	"errors"
	"fmt"
	"time"

	"redlockctl/server/announce"
)

// ErrNoGuard is returned if no guard announces itself on a node.
var ErrNoGuard = errors.New("no guard announces itself")

// FirstUse is what can be found out about a node that may never have been in use.
type FirstUse struct {
	Node       string
	Seen       Observation
	Keys       int              // under the lock patterns
	Remembered Fact             // by the guard of this machine
	Guards     []announce.Guard // that announce themselves on it
}

// MayVoteFrom returns when the node may vote: now if nothing shows that it was in use, or else D
// after a guard meets it, and why. It knows no more than what was asked: nobody can tell what
// happened before the present start of the server and before the start of each guard.
func (f FirstUse) MayVoteFrom(now time.Time, delay time.Duration) (from time.Time, why error) {
	why = f.used()
	return MayVoteFrom(Loss{Seen: now, Nothing: why == nil}, delay, announce.Greatest(f.Guards, "")), why
}

// used returns why the node may have been in use.
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
			return fmt.Errorf("guard %s has known it in use", g.Name())
		case announce.UseUnknown:
			return fmt.Errorf("guard %s watches node %q and does not say whether it was in use: it is of an earlier version", g.Name(), f.Node)
		}
	}
	if len(f.Guards) == 0 {
		return fmt.Errorf("%w on node %q, so that nobody can say whether it was in use: start the guards first", ErrNoGuard, f.Node)
	}
	return nil
}
